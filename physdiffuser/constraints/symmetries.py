"""Constraints on symmetry: even, odd, symmetric, antisymmetric, homogeneous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.constraints.constraint import Constraint, Region, mapping, number, register
from physdiffuser.constraints.ranges import exact
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Apply, Expression, Variable
from physdiffuser.expressions.tree import mul, substitute
from physdiffuser.verification.equivalence import equivalent
from physdiffuser.verification.patience import allowed

POINTS = 60
# Factors by which homogeneous arguments are multiplied.
FACTORS = (0.5, 2.0, 3.0)
_PROVING_SECONDS = 2.0


@dataclass(frozen=True)
class _Transformed(Constraint):
    """The value at another point is the value here times a factor."""

    needs_values = True
    columns: tuple[int, ...]
    factor: FloatArray
    degree: float = 0.0

    def amounts(self, values: FloatArray) -> FloatArray:
        """Distance of the second value from what it should be."""
        return np.abs(values[:, 1] - self.factor * values[:, 0])

    def prove(self, expression: Expression) -> bool:
        """By simplification of both sides."""
        left, right = self.sides(expression)
        ranges = list(zip(self.region.low.tolist(), self.region.high.tolist(), strict=True))
        return equivalent(left, right, ranges, seconds=allowed(_PROVING_SECONDS)) == "verified"

    def sides(self, expression: Expression) -> tuple[Expression, Expression]:
        """Formulas that must be equal."""
        raise NotImplementedError

    @staticmethod
    def signed(expression: Expression, sign: float) -> Expression:
        """A formula with a sign."""
        return expression if sign > 0 else Apply("neg", (expression,))


class _Mirrored(_Transformed):
    """The sign of a column is changed."""

    sign: ClassVar[float]

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """One constraint for each column that is named."""
        found: list[Constraint] = []
        for column in region.columns(value):
            here = region.random(POINTS)
            there = here.copy()
            there[:, column] *= -1
            points = np.stack([here, there], axis=1)
            found.append(cls(text, region, points, (column,), np.full(POINTS, cls.sign)))
        return found

    def sides(self, expression: Expression) -> tuple[Expression, Expression]:
        """The formula at the mirrored point, and what it must be."""

        def put(node: Expression) -> Expression | None:
            return Apply("neg", (node,)) if node == Variable(self.columns[0]) else None

        return substitute(expression, put), self.signed(expression, self.sign)


@register
class Even(_Mirrored):
    """Unchanged when a column changes its sign."""

    kind, sign = "even", 1.0


@register
class Odd(_Mirrored):
    """Changes its sign with a column."""

    kind, sign = "odd", -1.0


class _Exchanged(_Transformed):
    """Two columns are exchanged."""

    sign: ClassVar[float]

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From a pair of columns."""
        if not isinstance(value, list | tuple) or len(value) != 2 or value[0] == value[1]:
            raise UsageError(f"must name two columns, as in {cls.kind}: [a, b]")
        first, second = region.columns(value)
        here = region.random(POINTS)
        there = here.copy()
        there[:, [first, second]] = here[:, [second, first]]
        points = np.stack([here, there], axis=1)
        return [cls(text, region, points, (first, second), np.full(POINTS, cls.sign))]

    def sides(self, expression: Expression) -> tuple[Expression, Expression]:
        """The formula with the columns exchanged, and what it must be."""
        first, second = self.columns

        def put(node: Expression) -> Expression | None:
            other = {Variable(first): Variable(second), Variable(second): Variable(first)}
            return other.get(node) if isinstance(node, Variable) else None

        return substitute(expression, put), self.signed(expression, self.sign)


@register
class Symmetric(_Exchanged):
    """Unchanged when two columns are exchanged."""

    kind, sign = "symmetric", 1.0


@register
class Antisymmetric(_Exchanged):
    """Changes its sign when two columns are exchanged."""

    kind, sign = "antisymmetric", -1.0


@register
class Homogeneous(_Transformed):
    """Multiplied by a power of a factor by which some columns are multiplied."""

    kind = "homogeneous"

    @classmethod
    def build(cls, text: str, value: Any, region: Region) -> list[Constraint]:
        """From `{columns: [x, y], degree: 2}`."""
        given = mapping(value, ("columns", "degree"), "homogeneous: {columns: [x, y], degree: 2}")
        columns, degree = region.columns(given["columns"]), number(given["degree"], "the degree")
        here = np.concatenate([region.random(POINTS // len(FACTORS))] * len(FACTORS))
        factors = np.repeat(FACTORS, POINTS // len(FACTORS))
        there = here.copy()
        there[:, columns] *= factors[:, None]
        points = np.stack([here, there], axis=1)
        return [cls(text, region, points, tuple(columns), factors**degree, degree)]

    def sides(self, expression: Expression) -> tuple[Expression, Expression]:
        """The formula with a further variable as factor, and what it must be."""
        factor = Variable(len(self.region.low))

        def put(node: Expression) -> Expression | None:
            scaled = isinstance(node, Variable) and node.index in self.columns
            return mul(factor, node) if scaled else None

        power = Apply("pow", (factor, exact(self.degree)))
        return substitute(expression, put), mul(power, expression)

    def prove(self, expression: Expression) -> bool:
        """By simplification, the factor positive."""
        left, right = self.sides(expression)
        ranges = list(zip(self.region.low.tolist(), self.region.high.tolist(), strict=True))
        return equivalent(left, right, [*ranges, (0.5, 3.0)], seconds=allowed(_PROVING_SECONDS)) == "verified"
