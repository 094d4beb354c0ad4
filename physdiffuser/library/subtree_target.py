"""The target of one subtree of a formula.

For a place in a formula, the operators on the way to it are inverted one after the other on the target. The
result is the column of values that the subtree there should have had (semantic backpropagation,
Pawlak, Wieloch & Krawiec, *IEEE Trans. Evol. Comput.* 19, 2015). Here every row also carries a weight, the
squared derivative of the target by that value, so that noise blown up by the inversion does not mislead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import OPERATORS, Expression
from physdiffuser.expressions.tree import Path, along

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

# Rows where the operators can be inverted, as a share; with fewer the subtree target is not used.
_USABLE_ROWS = 0.75


class Rows(Protocol):
    """The rows for which subtree targets are computed.

    Attributes
    ----------
    target, share
        Shape (rows,): what the whole formula should give, and the weight of each row; weights add up to 1.
    """

    target: FloatArray
    share: FloatArray

    @checked
    def values(self, expressions: Sequence[Expression]) -> Float64[np.ndarray, "expressions rows"]:
        """Shape (expressions, rows)."""
        ...


@dataclass(frozen=True)
class SubtreeTarget:
    """What a place in a formula should give.

    Attributes
    ----------
    values, weights
        Shape (rows,); the weight is 0 where no value would do, and weights add up to 1.
    total
        What the weights add up to in units of the target.
    """

    values: FloatArray
    weights: FloatArray
    total: float = 1.0

    @checked
    def beside(self, operator: str, present: Float64[np.ndarray, " rows"]) -> SubtreeTarget | None:
        """What has to be added to the present values, or multiplied with them, to meet the target."""
        with np.errstate(all="ignore"):
            if operator == "add":
                values, weights = self.values - present, self.weights
            else:
                values, weights = self.values / present, self.weights * present * present
        good = np.isfinite(values) & np.isfinite(weights)
        total = weights[good].sum()
        if good.mean() < _USABLE_ROWS or not (0.0 < total < np.inf):
            return None
        return SubtreeTarget(
            np.where(good, values, 0.0), np.where(good, weights, 0.0) / total, self.total * total
        )


def subtree_target(
    rows: Rows, expression: Expression, path: Path, factor: float, offset: float
) -> SubtreeTarget | None:
    """Undo the outer scale and then the operators along a path; None when they cannot be inverted.

    Where an operator has several inverses (squares, sines) the one nearest to the present value is taken;
    where it has none, the step that Newton's method would take.
    """
    with np.errstate(all="ignore"):
        wanted = (rows.target - offset) / factor
        weights = rows.share.copy()
        for node, index in zip(along(expression, path), path, strict=True):
            undo = _UNDO.get((node.operator, index))
            if undo is None:
                return None
            *present, value = rows.values([*node.arguments, node]).copy()
            others = [column for place, column in enumerate(present) if place != index]
            now = present[index]
            before = undo(wanted, now, *others)
            derivative = OPERATORS[node.operator].derivatives[index]
            failed = ~np.isfinite(before)
            if failed.any():
                before = np.where(failed, now + (wanted - value) / derivative(*present, value), before)
            present[index] = before
            slope = derivative(*present, wanted)
            weights = weights * slope * slope
            wanted = before
    good = np.isfinite(wanted) & np.isfinite(weights)
    if good.mean() < _USABLE_ROWS:
        return None
    weights = np.where(good, weights, 0.0)
    total = weights.sum()
    if not (0.0 < total < np.inf):
        return None
    return SubtreeTarget(np.where(good, wanted, 0.0), weights / total, float(total))


def _root(wanted: FloatArray, now: FloatArray, exponent: FloatArray) -> FloatArray:
    size = np.power(np.abs(wanted), 1.0 / exponent)
    odd = np.where(np.mod(exponent, 2.0) == 1.0, np.sign(wanted), np.nan)
    even = np.where(wanted >= 0.0, np.where(now < 0.0, -1.0, 1.0), np.nan)
    return size * np.where(np.mod(exponent, 2.0) == 1.0, odd, even)


def _angle_of_sine(wanted: FloatArray, now: FloatArray) -> FloatArray:
    first = np.arcsin(wanted)
    return _nearest(now, first + _turns(now - first), np.pi - first + _turns(now - np.pi + first))


def _angle_of_cosine(wanted: FloatArray, now: FloatArray) -> FloatArray:
    first = np.arccos(wanted)
    return _nearest(now, first + _turns(now - first), -first + _turns(now + first))


def _angle_of_tangent(wanted: FloatArray, now: FloatArray) -> FloatArray:
    first = np.arctan(wanted)
    return first + np.pi * np.round((now - first) / np.pi)


def _turns(angle: FloatArray) -> FloatArray:
    return 2 * np.pi * np.round(angle / (2 * np.pi))


def _nearest(now: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    return np.where(np.abs(first - now) <= np.abs(second - now), first, second)


# (wanted value of the operator, present value of the argument, the other arguments) -> wanted argument
_UNDO: dict[tuple[str, int], Callable[..., FloatArray]] = {
    ("add", 0): lambda wanted, now, other: wanted - other,
    ("add", 1): lambda wanted, now, other: wanted - other,
    ("sub", 0): lambda wanted, now, other: wanted + other,
    ("sub", 1): lambda wanted, now, other: other - wanted,
    ("mul", 0): lambda wanted, now, other: wanted / other,
    ("mul", 1): lambda wanted, now, other: wanted / other,
    ("div", 0): lambda wanted, now, other: wanted * other,
    ("div", 1): lambda wanted, now, other: other / wanted,
    ("pow", 0): _root,
    ("pow", 1): lambda wanted, now, base: np.log(wanted) / np.log(base),
    ("neg", 0): lambda wanted, now: -wanted,
    ("sqrt", 0): lambda wanted, now: np.where(wanted >= 0.0, wanted * wanted, np.nan),
    ("abs", 0): lambda wanted, now: np.where(wanted >= 0.0, np.where(now < 0.0, -wanted, wanted), np.nan),
    ("exp", 0): lambda wanted, now: np.log(wanted),
    ("log", 0): lambda wanted, now: np.exp(wanted),
    ("sin", 0): _angle_of_sine,
    ("cos", 0): _angle_of_cosine,
    ("tan", 0): _angle_of_tangent,
    ("asin", 0): lambda wanted, now: np.sin(wanted),
    ("acos", 0): lambda wanted, now: np.cos(wanted),
    ("atan", 0): lambda wanted, now: np.tan(wanted),
    ("tanh", 0): lambda wanted, now: np.arctanh(wanted),
    ("sinh", 0): lambda wanted, now: np.arcsinh(wanted),
    ("cosh", 0): lambda wanted, now: np.where(now < 0.0, -1.0, 1.0) * np.arccosh(wanted),
}
