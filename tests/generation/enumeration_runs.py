"""Tables of a formula, and what enumeration or one of its stages finds in them."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import evaluate, parse
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.generator import EnumerationGenerator
from physdiffuser.generation.enumeration.registry import STAGES, Size
from physdiffuser.search.archive import ParetoArchive


def table(
    formula: str, ranges: dict[str, tuple[float, float]], rows: int = 400, noise: float = 0.0, seed: int = 0
) -> Problem:
    """A problem sampled from a formula."""
    random = np.random.default_rng(seed)
    inputs = np.stack([random.uniform(*ranges[name], rows) for name in ranges], axis=1)
    target = evaluate(parse(formula, list(ranges)), inputs)
    target = target + noise * np.sqrt(np.mean(target**2)) * random.normal(size=rows)
    return Problem(inputs, target, tuple(ranges))


def search(problem: Problem, steps: int) -> ParetoArchive:
    """The archive after so many steps of enumeration alone."""
    archive = ParetoArchive(problem)
    generator = EnumerationGenerator()
    with np.errstate(all="ignore"):
        for candidate in generator.propose(problem, archive, Budget(steps)):
            archive.offer(candidate)
    return archive


def proposed(stage: str, size: Size, problem: Problem, reduction: Reduction) -> list[Candidate]:
    """What one stage proposes for a reduction."""
    work = STAGES[stage].run(Context(problem), size, reduction)
    return [item for item in work if isinstance(item, Candidate)]
