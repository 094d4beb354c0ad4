"""Keeping benchmark laws out of training.

Two laws count as the same when, after all constant factors are taken out of both, some renaming of
variables makes them equal in value, up to one factor, at fixed points. Values do not care how a
law is written, so rewriting does not hide it. Laws of at most nine tokens (`a*b/c`) are arithmetic
that no training set can avoid; they are let through, and so are longer ones that are such a product but
for a constant in front (`q*B/(2*pi*m)`): in training that constant is 1 or any random number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import ONE, Apply, Expression, Parameter, Variable, evaluate, to_prefix
from physdiffuser.expressions.tree import substitute, variables
from physdiffuser.models.skeleton import bare, terms
from physdiffuser.models.vocabulary import MAX_VARIABLES

ComplexArray = npt.NDArray[np.complex128]

# Laws with at most this many prefix tokens are not excluded.
SHORT = 9
_POINTS = np.random.default_rng(20_240_607).uniform(0.55, 1.9, (3, MAX_VARIABLES)).astype(np.complex128)
_RESOLUTION = 1e6
_CHUNK = 40_000


def _is_constant(expression: Expression) -> bool:
    return not variables(expression)


def without_factors(expression: Expression) -> Expression:
    """The formula with every constant factor, at any depth, replaced by 1; signs stay."""
    if isinstance(expression, Parameter):
        return ONE
    if not isinstance(expression, Apply):
        return expression
    if expression.operator == "pow":
        return Apply("pow", (without_factors(expression.arguments[0]), expression.arguments[1]))
    arguments = tuple(without_factors(argument) for argument in expression.arguments)
    if expression.operator in ("mul", "div") and not _is_constant(expression):
        kept: list[Expression] = []
        negative = False
        for argument in arguments:
            if _is_constant(argument):
                negative ^= bool(evaluate(argument, np.empty((1, 0)))[0] < 0)
                kept.append(ONE)
            else:
                kept.append(argument)
        left, right = kept
        result: Expression
        if right == ONE:
            result = left
        elif left == ONE and expression.operator == "mul":
            result = right
        else:
            result = Apply(expression.operator, (left, right))
        return Apply("neg", (result,)) if negative else result
    return Apply(expression.operator, arguments)


def _keys(values: ComplexArray) -> npt.NDArray[np.int64]:
    """One integer per row of values at the three points, (n, 3); equal for proportional rows."""
    with np.errstate(all="ignore"):
        logs = np.log(np.abs(values))
        first = np.rint((logs[:, 1] - logs[:, 0]) * _RESOLUTION)
        second = np.rint((logs[:, 2] - logs[:, 0]) * _RESOLUTION)
    good = np.isfinite(first) & np.isfinite(second)
    first, second = first[good].astype(np.int64), second[good].astype(np.int64)
    return first * np.int64(1_000_003_019) + second


def _values(expression: Expression, points: ComplexArray) -> ComplexArray:
    # The operators take complex columns as well as real ones, and no root is outside its domain then.
    table: Any = points
    value: Any = evaluate(expression, table)
    return np.asarray(value, dtype=np.complex128)


def _renamed(expression: Expression) -> tuple[Expression, int]:
    """The formula with its variables numbered 0, 1, ... and how many there are."""
    places = {place: index for index, place in enumerate(sorted(variables(expression)))}

    def replace(node: Expression) -> Expression | None:
        return Variable(places[node.index]) if isinstance(node, Variable) else None

    return substitute(expression, replace), len(places)


def forms(expression: Expression) -> list[Expression]:
    """The forms of a law that are compared: without linear coefficients, and without any factor."""
    ones = substitute(expression, lambda node: ONE if isinstance(node, Parameter) else None)
    found = [bare(ones), bare(without_factors(ones))]
    return [found[0]] if found[0] == found[1] else found


def _chunks(count: int) -> Iterator[npt.NDArray[np.intp]]:
    orders = permutations(range(count))
    while chunk := list(islice(orders, _CHUNK)):
        yield np.array(chunk, dtype=np.intp)


def signatures(expression: Expression) -> npt.NDArray[np.int64]:
    """Keys of a law under every renaming of its variables."""
    found: list[npt.NDArray[np.int64]] = []
    for form in forms(expression):
        renamed, count = _renamed(form)
        if count == 0:
            continue
        for orders in _chunks(count):
            values = np.stack([_values(renamed, point[orders]) for point in _POINTS], axis=1)
            found.append(np.unique(_keys(values)))
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def key(expression: Expression) -> list[int]:
    """Keys of a law with its variables as they are, one for each form that has a finite value."""
    found: list[int] = []
    for form in forms(expression):
        renamed, count = _renamed(form)
        if count:
            values = _values(renamed, _POINTS[:, :count])
            found.extend(int(number) for number in _keys(values[None, :]))
    return found


class Excluded:
    """Laws that must not be trained on.

    Parameters
    ----------
    laws
        Their formulas. Those of at most `SHORT` tokens, with or without the constant in front, are
        counted and let through.

    Attributes
    ----------
    short, short_but_for_factor, long
        How many laws were let through as they are, let through for what remains without the
        constant in front, and excluded.
    """

    def __init__(self, laws: Iterable[Expression]) -> None:
        self.short = self.short_but_for_factor = self.long = 0
        keys: list[npt.NDArray[np.int64]] = []
        for law in laws:
            if len(to_prefix(law)) <= SHORT:
                self.short += 1
            elif len(terms(law)) == 1 and len(to_prefix(bare(law))) <= SHORT and len(terms(bare(law))) == 1:
                self.short_but_for_factor += 1
            else:
                self.long += 1
                keys.append(signatures(law))
        self._keys = np.unique(np.concatenate(keys)) if keys else np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def contains(self, expression: Expression) -> bool:
        """Whether the formula is one of the excluded laws."""
        for number in key(expression):
            place = int(np.searchsorted(self._keys, number))
            if place < len(self._keys) and int(self._keys[place]) == number:
                return True
        return False
