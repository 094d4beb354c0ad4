"""Ways to merge two features into one: products of powers, sums, sums of squares, projections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, Number
from physdiffuser.expressions.tree import add, call, div, mul, power, sub


@dataclass(frozen=True)
class Merge:
    """A way to merge two features into one.

    Attributes
    ----------
    needs
        Operators that the merged feature is written with.
    evaluate, build
        Its values from those of the two, each of shape (rows,), and its tree from theirs.
    ordered
        Whether it differs if the two change places.
    positive
        Whether both must be positive.
    """

    needs: frozenset[str]
    evaluate: Callable[[FloatArray, FloatArray], FloatArray]
    build: Callable[[Expression, Expression], Expression]
    ordered: bool
    positive: bool = False


def _powers(first: int, second: int, positive: bool) -> Merge:
    """`u**first * v**second`."""

    def evaluate(u: FloatArray, v: FloatArray) -> FloatArray:
        result: FloatArray = u**first * v ** float(second)
        return result

    def build(u: Expression, v: Expression) -> Expression:
        left = u if first == 1 else power(u, Number(first))
        right = v if abs(second) == 1 else power(v, Number(abs(second)))
        return mul(left, right) if second > 0 else div(left, right)

    needs = {"mul" if second > 0 else "div"} | ({"pow"} if first > 1 or abs(second) > 1 else set())
    return Merge(frozenset(needs), evaluate, build, ordered=(first, second) != (1, 1), positive=positive)


def _squared(node: Expression) -> Expression:
    return power(node, Number(2))


SUM = Merge(frozenset({"add"}), np.add, add, ordered=False)
DIFFERENCE = Merge(frozenset({"sub"}), np.subtract, sub, ordered=False)
SUM_OF_SQUARES = Merge(
    frozenset({"add", "pow"}),
    lambda u, v: u * u + v * v,
    lambda u, v: add(_squared(u), _squared(v)),
    ordered=False,
)
DIFFERENCE_OF_SQUARES = Merge(
    frozenset({"sub", "pow"}),
    lambda u, v: u * u - v * v,
    lambda u, v: sub(_squared(u), _squared(v)),
    ordered=False,
)
MERGES = (
    _powers(1, 1, False),
    _powers(1, -1, False),
    _powers(1, 2, True),
    _powers(1, -2, True),
    SUM,
    DIFFERENCE,
    SUM_OF_SQUARES,
    DIFFERENCE_OF_SQUARES,
    Merge(frozenset({"mul", "cos"}), lambda u, v: u * np.cos(v), lambda u, v: mul(u, call("cos", v)), True),
    Merge(frozenset({"mul", "sin"}), lambda u, v: u * np.sin(v), lambda u, v: mul(u, call("sin", v)), True),
)
