"""What is made of the archive at the end: constants final, one law chosen."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import Expression, Number, evaluate, parse, to_text
from physdiffuser.expressions.tree import substitute
from physdiffuser.fitting import refit
from physdiffuser.search.archive import NEAR, ParetoArchive
from physdiffuser.search.candidate import Candidate
from physdiffuser.search.conclusion import work_out
from physdiffuser.search.problem import Problem

NAMES = ("g", "r", "a")
# Simpler than the law as it was found, and closer to these rows by what noise happens to be.
RIVAL = "(1.43 - 0.41*r/a)*sqrt(g/r)"
LAW = "sqrt(g)*sqrt(2.01*(1/r) + (-0.95*(1/a)))"


def orbits(noise: float, seed: int = 0) -> Problem:
    random = np.random.default_rng(seed)
    inputs = random.uniform((1, 0.5, 2), (5, 2, 4), (240, 3))
    target = evaluate(parse("sqrt(g*(2/r - 1/a))", NAMES), inputs)
    return Problem(inputs, target * (1 + noise * random.normal(size=240)), NAMES)


def to_be_fitted(text: str) -> Expression:
    """The formula with its decimal numbers as fitted constants."""

    def replace(node: Expression) -> Expression | None:
        decimal = isinstance(node, Number) and not float(node.value).is_integer()
        return Number(float(node.value)) if decimal else None  # type: ignore[union-attr]

    return substitute(parse(text, NAMES), replace)


def archive_of(problem: Problem, *texts: str) -> ParetoArchive:
    archive = ParetoArchive(problem)
    for text in texts:
        fit = refit(to_be_fitted(text), problem.inputs, problem.target)
        archive.offer(Candidate(fit.expression, "test"))
    return archive


def chosen(archive: ParetoArchive, problem: Problem, floor: float = 1e-22) -> Expression:
    laws, position = work_out(archive, problem, floor, float("inf"))
    return laws[position].final


@pytest.mark.parametrize("seed", [1, 2, 4, 6])
def test_a_law_that_a_simpler_one_nearly_equals_wins_when_its_constants_can_be_exact(seed: int) -> None:
    problem = orbits(0.1, seed)
    archive = archive_of(problem, RIVAL, LAW)
    assert to_text(chosen(archive, problem), NAMES) == "sqrt(g*(2/r - 1/a))"


def test_the_archive_remembers_what_is_nearly_as_short_and_nothing_else() -> None:
    problem = orbits(0.1, 1)
    archive = archive_of(problem, RIVAL, LAW, "1.1*g", "2.2*sqrt(g) - 0.4*r")
    lengths = [archive.length(entry) for entry in archive.near()]
    assert lengths == sorted(lengths) and len(lengths) == 2
    assert lengths[-1] < min(archive.length(entry) for entry in archive.front()) + NEAR


def test_the_memory_does_not_grow_with_the_search() -> None:
    problem = orbits(0.1, 2)
    archive = archive_of(problem, LAW)
    law = parse("sqrt(g*(2/r - 1/a))", NAMES)
    for step in range(500):
        text = to_text(law, NAMES).replace("2/r", f"{2 + 1e-4 * (step + 1)!r}/r")
        archive.offer(Candidate(to_be_fitted(text), "test"))
    assert 0 < len(archive.near()) <= 40 and len(archive._near) <= 80
