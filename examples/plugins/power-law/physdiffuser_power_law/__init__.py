"""The generator `power-law`: one power law through all columns, by least squares on logarithms."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import monomial
from physdiffuser.expressions.tree import Number, mul
from physdiffuser.hookspecs import hookimpl
from physdiffuser.specs import GeneratorSpec

NAME = "power-law"


class PowerLaws:
    """Proposes `c * x1**p1 * x2**p2 * ...` with simple fractions for exponents.

    Parameters
    ----------
    denominators
        Largest denominators of the exponents, tried in turn.
    """

    name = NAME

    def __init__(self, *, denominators: tuple[int, ...] = (1, 2, 3, 6)) -> None:
        self.remaining = list(denominators)

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """One candidate for each denominator; each costs one step of the budget."""
        if (problem.inputs == 0).any() or (problem.target == 0).any():
            return  # a power law has no logarithm there; returning early means: nothing more will come
        design = np.column_stack([np.log(np.abs(problem.inputs)), np.ones(problem.rows)])
        solution = np.linalg.lstsq(design, np.log(np.abs(problem.target)), rcond=None)[0]
        while self.remaining:
            denominator = self.remaining.pop(0)
            exponents = [Fraction(round(power * denominator), denominator) for power in solution[:-1]]
            powers = tuple((column, power) for column, power in enumerate(exponents) if power)
            with np.errstate(all="ignore"):
                law = np.prod(problem.inputs ** np.array(exponents, dtype=float), axis=1)
            factor = float(law @ problem.target / (law @ law))
            if np.isfinite(factor):
                yield Candidate(
                    expression=mul(Number(factor), monomial(powers, None)),
                    generator=self.name,
                    derivation=("a power law through all columns fits the logarithms",),
                )
            if not budget.spend():
                return


@hookimpl
def physdiffuser_generators() -> list[GeneratorSpec]:
    """What this package offers."""
    return [GeneratorSpec(name=NAME, build=PowerLaws, options={"denominators": (1, 2, 3, 6)})]
