"""Ladders: which stages run, in which order and at which sizes, the cheap ones first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from physdiffuser.core.reduction import Reduction
from physdiffuser.generation.enumeration.registry import STAGES, Size

# Reductions with one feature that a row for these alone takes, first ones first.
MAX_OF_ONE_FEATURE = 2
# Functions of single features are searched of so many.
MAX_OF_FUNCTIONS = 6


class Row(NamedTuple):
    """A stage at one size.

    Attributes
    ----------
    stage
        Its name.
    at_least, at_most
        The row is for reductions with so many features.
    """

    stage: str
    size: Size
    at_least: int = 1
    at_most: int = 1_000

    @property
    def exact(self) -> bool:
        """Whether its stage looks for exact matches."""
        return STAGES[self.stage].exact

    def suited(self, reductions: Iterable[Reduction]) -> list[Reduction]:
        """The reductions that it is for."""
        suited = [one for one in reductions if self.at_least <= len(one.features) <= self.at_most]
        return suited[:MAX_OF_ONE_FEATURE] if self.at_most == 1 else suited


def own_rows() -> tuple[Row, ...]:
    """Rows of the stages that have sizes of their own."""
    return tuple(Row(name, size) for name, stage in STAGES.parts().items() for size in stage.sizes)


@dataclass(frozen=True)
class Ladder:
    """Rows in the order in which they are worked off.

    Attributes
    ----------
    first
        Worked off before data collapse, and after it on the reductions that it found.
    later
        Worked off then, on all reductions.
    """

    first: tuple[Row, ...]
    later: tuple[Row, ...]

    def exact_last(self) -> Ladder:
        """The same rows with those of exact stages at the end."""
        first = tuple(row for row in self.first if not row.exact)
        others = tuple(row for row in self.later if not row.exact)
        exact = tuple(row for row in (*self.first, *self.later) if row.exact)
        return Ladder(first, (*others, *exact))


# For tables that show no noise.
CLEAN = Ladder(
    first=(
        Row("exact pairs", Size(1_500, depth=2)),
        Row("exact pairs", Size(1_500, divisors=1_500, depth=2)),
    ),
    later=(
        Row("sums", Size(300), at_most=3),
        Row("products", Size(600, divisors=100), at_most=3),
        Row("scaled sums", Size(400, divisors=100), at_most=2),
        Row("exact prefactors", Size(6_000, divisors=40, depth=2, shifts=120)),
        Row("parametric products", Size(40, divisors=30), at_most=1),
        Row("usual laws times powers", Size(), at_most=1),
        Row("curves", Size(), at_most=1),
        Row("residual pursuit", Size(20), at_most=1),
        Row("function products", Size(6_000), at_most=1),
        Row("exact pairs", Size(15_000, divisors=3_000, depth=2)),
        Row("sums", Size(3_000)),
        Row("products", Size(1_500, divisors=300)),
        Row("scaled sums", Size(400, divisors=100), at_least=3),
        Row("parametric products", Size(40, divisors=30), at_least=2, at_most=2),
        Row("usual laws times powers", Size(), at_least=2, at_most=MAX_OF_FUNCTIONS),
        Row("separable products", Size(), at_least=2),
        Row("function products", Size(6_000), at_least=2, at_most=MAX_OF_FUNCTIONS),
        Row("residual pursuit", Size(20, divisors=60), at_least=2, at_most=MAX_OF_FUNCTIONS),
        Row("parametric sums", Size(6, divisors=4, shifts=20), at_most=1),
        Row("exact triples", Size(15_000, divisors=150, shifts=400)),
        Row("parametric sums", Size(6, divisors=4, shifts=20), at_least=2, at_most=2),
        Row("parametric products", Size(40, divisors=30), at_least=3),
        Row("scaled sums", Size(1_500, divisors=600)),
        Row("products", Size(10_000, divisors=1_000)),
        Row("exact prefactors", Size(60_000, divisors=200, depth=2, shifts=300)),
        Row("exact triples", Size(40_000, divisors=250, shifts=2_000)),
        Row("exact pairs", Size(120_000, divisors=20_000, depth=1)),
        Row("parametric products", Size(150, divisors=200)),
        Row("parametric sums", Size(12, divisors=6, shifts=60)),
        Row("sums", Size(12_000)),
        Row("exact pairs", Size(400_000, divisors=20_000, depth=2)),
        Row("products", Size(40_000, divisors=5_000)),
        Row("exact triples", Size(200_000, divisors=400, shifts=6_000)),
        Row("exact pairs", Size(600_000, divisors=60_000, depth=1)),
        Row("sums", Size(40_000)),
    ),
)

# Where noise shows before any law is known: nothing exact, and what costs little before what costs much.
NOISY = Ladder(
    first=(),
    later=(
        Row("sums", Size(300)),
        Row("products", Size(600, divisors=100)),
        Row("usual laws times powers", Size(), at_most=1),
        Row("scaled sums", Size(400, divisors=100), at_most=2),
        Row("parametric products", Size(40, divisors=30), at_most=1),
        Row("curves", Size(), at_most=1),
        Row("usual laws times powers", Size(), at_least=2, at_most=MAX_OF_FUNCTIONS),
        Row("separable products", Size(), at_least=2),
        Row("residual pursuit", Size(20), at_most=1),
        Row("function products", Size(6_000), at_most=1),
        Row("sums", Size(3_000)),
        Row("products", Size(1_500, divisors=300)),
        Row("scaled sums", Size(400, divisors=100), at_least=3),
        Row("parametric products", Size(40, divisors=30), at_least=2, at_most=2),
        Row("function products", Size(6_000), at_least=2, at_most=MAX_OF_FUNCTIONS),
        Row("residual pursuit", Size(20, divisors=60), at_least=2, at_most=MAX_OF_FUNCTIONS),
        Row("scaled sums", Size(1_500, divisors=600)),
        Row("products", Size(10_000, divisors=1_000)),
        Row("parametric sums", Size(6, divisors=4, shifts=20), at_most=1),
        Row("parametric products", Size(40, divisors=30), at_least=3),
        Row("parametric sums", Size(6, divisors=4, shifts=20), at_least=2, at_most=2),
        Row("sums", Size(12_000)),
        Row("parametric products", Size(150, divisors=200)),
        Row("products", Size(40_000, divisors=5_000)),
        Row("parametric sums", Size(12, divisors=6, shifts=60)),
        Row("sums", Size(40_000)),
    ),
)

# For reductions that formulas propose, whatever the number of their features.
PROPOSED = (
    Row("sums", Size(300, average=True)),
    Row("products", Size(1_500, divisors=300, average=True)),
)


@dataclass(frozen=True)
class Ladders:
    """The ladders of a run.

    Attributes
    ----------
    clean, noisy
        For tables without and with noise that shows before any law is known.
    proposed
        Rows for reductions that the best formulas propose.
    """

    clean: Ladder = CLEAN
    noisy: Ladder = NOISY
    proposed: tuple[Row, ...] = PROPOSED


LADDERS = Ladders()
