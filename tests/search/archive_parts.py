"""Small problems, candidates and entries for tests of the archive."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.archive import Entry
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import parse, to_text

NAMES = ("a", "b")


def problem(noise: float = 0.1, rows: int = 200, seed: int = 0) -> Problem:
    random = np.random.default_rng(seed)
    inputs = random.uniform(1, 3, (rows, 2))
    target = inputs[:, 0] ** 2 * inputs[:, 1] + noise * random.normal(size=rows)
    return Problem(inputs, target, NAMES)


def candidate(text: str) -> Candidate:
    return Candidate(parse(text, NAMES), "test")


def entry(complexity: int, constants: int, loss: float, nats: float) -> Entry:
    return Entry(candidate("a"), complexity, loss, nats, constants, loss)


def texts(entries: list[Entry]) -> list[str]:
    return [to_text(entry.candidate.expression, NAMES) for entry in entries]
