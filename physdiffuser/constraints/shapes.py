"""Constraints on slopes and curvatures: increasing, decreasing, convex, concave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.constraints.constraint import Constraint, Region, register
from physdiffuser.constraints.proofs import is_at_least
from physdiffuser.expressions import Apply, Expression
from physdiffuser.verification.calculus import derivative

# Lines across the region, and points on each: for one column, and for several.
ONE, SEVERAL = (1, 600), (16, 49)


@dataclass(frozen=True)
class _Along(Constraint):
    """The sign of a derivative along a column, from differences of neighbours on lines."""

    column: int
    order: ClassVar[int]
    sign: ClassVar[float]

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """One constraint for each column that is named."""
        found: list[Constraint] = []
        for column in region.columns(value):
            count, points = ONE if len(region.low) == 1 else SEVERAL
            lines = region.lines(column, count, points)
            width = cls.order + 1
            windows = [lines[:, start : start + width] for start in range(points - cls.order)]
            found.append(cls(text, region, np.concatenate(windows), column))
        return found

    def amounts(self, values: FloatArray) -> FloatArray:
        """How far the difference lies on the wrong side."""
        difference = np.diff(values, n=self.order, axis=1)[:, 0]
        return np.maximum(-self.sign * difference, 0.0)

    def prove(self, expression: Expression) -> bool:
        """By bounds of the derivative."""
        slope: Expression | None = expression
        for _ in range(self.order):
            slope = None if slope is None else derivative(slope, self.column)
        if slope is None:
            return False
        if self.sign < 0:
            slope = Apply("neg", (slope,))
        return is_at_least(slope, 0.0, self.region.low, self.region.high)


@register
class Increasing(_Along):
    """Nowhere decreasing along a column."""

    kind, order, sign = "increasing", 1, 1.0


@register
class Decreasing(_Along):
    """Nowhere increasing along a column."""

    kind, order, sign = "decreasing", 1, -1.0


@register
class Convex(_Along):
    """Second derivative by a column nowhere negative."""

    kind, order, sign = "convex", 2, 1.0


@register
class Concave(_Along):
    """Second derivative by a column nowhere positive."""

    kind, order, sign = "concave", 2, -1.0
