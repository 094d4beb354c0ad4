"""What a constraint is: groups of points, and by how much the values of a formula there violate it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.io.display import visible

# A violation counts if it is larger than this share of the target's deviation, and of rounding.
TOLERANCE, ROUNDING = 1e-7, 1e-11


@dataclass(frozen=True)
class Region:
    """Where a constraint holds.

    Attributes
    ----------
    names
        Names of the columns, as the table has them and as formulas have them, to positions.
    low, high
        Shape (columns,).
    seed
        Of the random points.
    """

    names: Mapping[str, int]
    low: FloatArray
    high: FloatArray
    seed: int = 0

    def column(self, name: object) -> int:
        """Position of a column.

        Raises
        ------
        UsageError
            If there is none of that name.
        """
        if not isinstance(name, str) or name not in self.names:
            known = " ".join(dict.fromkeys(visible(one) for one in self.names))
            raise UsageError(f"there is no input column '{visible(str(name))}'; the columns are {known}")
        return self.names[name]

    def columns(self, value: object) -> list[int]:
        """Positions of one column or of a list of columns."""
        names = value if isinstance(value, list | tuple) else [value]
        if not names:
            raise UsageError("names no column")
        return [self.column(name) for name in names]

    def random(self, count: int) -> FloatArray:
        """Points of the region, shape (points, columns); equal for equal regions."""
        share = np.random.default_rng([self.seed, 41]).uniform(size=(count, len(self.low)))
        return self.low + share * (self.high - self.low)

    def corners(self, most: int = 32) -> FloatArray:
        """Corners of the region, shape (corners, columns)."""
        count = min(most, 2 ** len(self.low))
        bits = (np.arange(count)[:, None] >> np.arange(len(self.low))) & 1
        corners: FloatArray = np.where(bits == 1, self.high, self.low)
        return corners

    def lines(self, column: int, lines: int, points: int) -> FloatArray:
        """Points on lines along a column, shape (lines, points, columns)."""
        others = np.concatenate([self.corners(lines // 2), self.random(lines)])[:lines]
        grid = np.linspace(self.low[column], self.high[column], points)
        found = np.repeat(others[:, None, :], points, axis=1)
        found[:, :, column] = grid
        return found


@dataclass(frozen=True)
class Violation:
    """Where a formula violates a constraint the most.

    Attributes
    ----------
    point
        Shape (columns,).
    amount
        By how much, in units of the target; inf where the formula has no value that it should have.
    """

    point: FloatArray
    amount: float


@dataclass(frozen=True)
class Constraint(ABC):
    """What a law must satisfy.

    Attributes
    ----------
    text
        As the user wrote it.
    region
        Where it holds.
    points
        Shape (tests, points, columns): each test looks at the values at some points together.
    """

    kind: ClassVar[str]
    # Whether points where a formula has no value violate it.
    needs_values: ClassVar[bool] = False

    text: str
    region: Region
    points: FloatArray

    @classmethod
    @abstractmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """Constraints from a value in the file; raises `UsageError` if it cannot be used."""

    @abstractmethod
    def amounts(self, values: FloatArray) -> FloatArray:
        """By how much each test fails.

        Parameters
        ----------
        values
            Shape (tests, points): values of a formula.

        Returns
        -------
        Shape (tests,), not negative; 0 where it holds.
        """

    def prove(self, expression: Expression) -> bool:
        """Whether it can be shown that a formula satisfies it in the whole region."""
        return False

    @property
    def numbers(self) -> tuple[float, ...]:
        """Numbers that it states: a constant of a law that satisfies it may be one of them."""
        return ()

    @property
    def count(self) -> int:
        """Points that are looked at."""
        return int(self.points.shape[0] * self.points.shape[1])

    @np.errstate(all="ignore")
    def measured(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Amounts of all tests, shape (tests,), and the values, shape (tests, points).

        Parameters
        ----------
        values
            Shape (tests * points,): values of a formula at the points, one test after the other.
        """
        values = values.reshape(self.points.shape[:2])  # (tests, points)
        amounts = self.amounts(values)
        missing = ~np.isfinite(values).all(axis=1)
        return np.where(missing, np.inf if self.needs_values else 0.0, amounts), values

    def screen(self, expression: Expression, spread: float) -> Violation | None:
        """The largest violation at the sample points; None if there is none.

        Parameters
        ----------
        expression
            The formula.
        spread
            Standard deviation of the target.
        """
        points = self.points.reshape(-1, self.points.shape[2])  # (tests * points, columns)
        amounts, values = self.measured(evaluate(expression, points))
        finite = np.abs(values[np.isfinite(values)])
        if not finite.size:
            return Violation(self.points[0, 0], float("inf"))
        worst = int(np.argmax(amounts))
        if amounts[worst] <= TOLERANCE * spread + ROUNDING * float(finite.max()):
            return None
        return Violation(self.points[worst, 0], float(amounts[worst]))


KINDS: dict[str, type[Constraint]] = {}


def register(kind: type[Constraint]) -> type[Constraint]:
    """Make a constraint known by its name in files."""
    KINDS[kind.kind] = kind
    return kind


def number(value: object, what: str) -> float:
    """A finite number; raises `UsageError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise UsageError(f"{what} must be a number, not '{visible(str(value))}'")
    if not np.isfinite(value):
        raise UsageError(f"{what} must be a finite number")
    return float(value)


def mapping(value: object, keys: Sequence[str], example: str) -> Mapping[str, Any]:
    """A mapping with exactly the keys; raises `UsageError` for anything else."""
    if not isinstance(value, Mapping) or set(value) != set(keys):
        raise UsageError(f"must have {' and '.join(keys)}, as in {example}")
    return value


def yes(value: object) -> None:
    """Raises `UsageError` for anything but true."""
    if value is not True:
        raise UsageError(f"must be true, not '{visible(str(value))}'; leave it out where it does not hold")
