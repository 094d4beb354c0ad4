"""A small problem and its candidates, for tests of the search."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import parse

NAMES = ("a", "b")


def problem(noise: float = 0.0, rows: int = 200) -> Problem:
    random = np.random.default_rng(0)
    inputs = random.uniform(1, 3, (rows, 2))
    target = inputs[:, 0] ** 2 * inputs[:, 1] + noise * random.normal(size=rows)
    return Problem(inputs, target, NAMES)


def candidate(text: str) -> Candidate:
    return Candidate(parse(text, NAMES), "test")
