"""What a table shows about its law before any formula is tried, as all generators of a run read it."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.fitting import Fit


@dataclass(frozen=True)
class Level:
    """How well polynomials in the features of a reduction, times its factor, predict rows left out of it.

    Attributes
    ----------
    reduction
        The reduction.
    error
        The smallest error of any degree, as a share of the target's standard deviation.
    falling
        Whether the error was still falling with the degree when the terms ran out, or was never flat.
    left
        Errors of each degree that does as well, the lowest first, shape (rows,), all of one size if they are
        noise of one size.
    """

    reduction: Reduction
    error: float
    falling: bool
    left: tuple[FloatArray, ...]


@dataclass(frozen=True)
class ReductionAnalysis:
    """The reductions that cost little to find.

    Attributes
    ----------
    reductions
        Those that units demand and slopes suggest, with the fewest features first, the columns as they are
        last.
    rough
        Those of a power law fitted to the target itself; most of them are wrong.
    levels
        How well polynomials in the features of both predict rows.
    noisy
        Whether the most accurate of them shows a noise floor.
    """

    reductions: tuple[Reduction, ...]
    rough: tuple[Reduction, ...]
    levels: tuple[Level, ...]
    noisy: bool


class TableAnalysis(Protocol):
    """Results that several generators need, each computed when it is first asked for."""

    @property
    def first(self) -> ReductionAnalysis:
        """Reductions that are found at once, and whether the table shows noise."""
        ...

    def later(self) -> Generator[float, None, tuple[Reduction, ...]]:
        """Reductions by scale symmetries and data collapse; yields nominal seconds of work."""
        ...

    def standard_fits(self, problem: Problem) -> list[Fit]:
        """The usual laws that the problem allows, fitted by least squares."""
        ...
