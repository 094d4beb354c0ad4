"""Whether two laws are one law with other names: found by value, over all renamings of the variables.

Both formulas are evaluated at fixed complex points near the positive real axis, where roots, logarithms and
inverse functions all have values, so no range has to be known. At points where all variables are equal a
renaming changes nothing: that rules out most pairs, and the permutations are tried on the rest.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks_feynman.suites import Law
from physdiffuser.arrays import IndexArray
from physdiffuser.expressions import Expression, Number, Variable, evaluate
from physdiffuser.expressions.tree import substitute, variables

ComplexArray = npt.NDArray[np.complex128]

_POINTS = 8
_TOLERANCE = 1e-9
_MAX_PLAIN_NUMBER = 12


@cache
def _points(columns: int) -> ComplexArray:
    random = np.random.Generator(np.random.PCG64(20240229))
    size = random.uniform(0.4, 1.9, (_POINTS, columns))
    return np.asarray(size * np.exp(1j * random.uniform(-0.3, 0.3, (_POINTS, columns))))


@cache
def _orders(columns: int) -> IndexArray:
    return np.array(list(itertools.permutations(range(columns))), dtype=np.intp)


def _values(expression: Expression, points: ComplexArray) -> ComplexArray:
    table: Any = points  # the operators take complex columns as well as real ones
    inputs = np.asarray(table)
    value: Any = evaluate(expression, inputs)
    return np.asarray(value, dtype=np.complex128)


@cache
def _values_on_diagonal(expression: Expression, columns: int) -> ComplexArray:
    return _values(expression, np.repeat(_points(1), columns, axis=1))


@cache
def _step_on_diagonal(expression: Expression, columns: int) -> complex | None:
    """The quotient of two values, which no factor changes; None if the values are no more than rounding."""
    values = _values_on_diagonal(expression, columns)
    return complex(values[1] / values[0]) if _telling(values) else None


@cache
def _values_at_points(expression: Expression, columns: int) -> ComplexArray:
    return _values(expression, _points(columns))


@cache
def _values_renamed(expression: Expression, columns: int) -> tuple[ComplexArray, ComplexArray]:
    first, second = (_values(expression, _points(columns)[row][_orders(columns)]) for row in (0, 1))
    return first, second


def _alike(left: ComplexArray, right: ComplexArray, factor: bool) -> bool:
    with np.errstate(all="ignore"):
        ratio = left / right
        difference = np.abs(ratio / ratio[0] - 1) if factor else np.abs(ratio - 1)
    return bool(np.isfinite(difference).all() and difference.max() < _TOLERANCE)


def _telling(values: ComplexArray) -> bool:
    """Whether the values are more than rounding: `sqrt(1 - x**2/x**2)` is not."""
    size = np.abs(values)
    return bool(np.isfinite(size).all() and size.min() > 1e-6 and size.max() < 1e6)


@cache
def generalised(expression: Expression) -> tuple[Expression, int]:
    """The formula with a variable for every measured constant, and how many variables it then has.

    Integers up to 12 and simple fractions belong to the form of a law; anything else is a constant that
    another law may hold as a variable. Equal constants share a variable.
    """
    count = 1 + max(variables(expression), default=-1)
    known: dict[float, Variable] = {}

    def replace(node: Expression) -> Expression | None:
        if not isinstance(node, Number) or _plain(node):
            return None
        return known.setdefault(float(node.value), Variable(count + len(known)))

    general = substitute(expression, replace)
    return general, count + len(known)


def _plain(number: Number) -> bool:
    if isinstance(number.value, float):
        return False
    value = Fraction(number.value)
    return max(abs(value.numerator), value.denominator) <= _MAX_PLAIN_NUMBER


def same_up_to_renaming(left: Expression, right: Expression, columns: int, *, factor: bool = True) -> bool:
    """Whether some renaming of `columns` variables makes the formulas equal.

    With `factor`, one may be a constant times the other.
    """
    one, other = _step_on_diagonal(left, columns), _step_on_diagonal(right, columns)
    # Most pairs differ here already, where nothing is to be computed for a pair but a quotient.
    if one is not None and other is not None and abs(one / other - 1) > 3 * _TOLERANCE:
        return False
    at_left, at_right = _values_on_diagonal(left, columns), _values_on_diagonal(right, columns)
    if _telling(at_left) and _telling(at_right) and not _alike(at_left, at_right, factor):
        return False
    points = _points(columns)
    expected = _values_at_points(left, columns)
    # All renamings at once on two points; the few that pass, on the rest.
    orders = _orders(columns)
    first, second = _values_renamed(right, columns)
    with np.errstate(all="ignore"):
        passed = np.abs(second / first * (expected[0] / expected[1]) - 1) < _TOLERANCE
    return any(_alike(expected, _values(right, points[:, order]), factor) for order in orders[passed])


def equal_laws(law: Law, others: list[Law]) -> list[Law]:
    """Those of `others` that are this law up to the names of variables and constants."""
    forms = {(law.expression, len(law.names)), generalised(law.expression)}
    found = []
    for other in others:
        for expression, count in ((other.expression, len(other.names)), generalised(other.expression)):
            if any(
                count == columns and same_up_to_renaming(form, expression, columns) for form, columns in forms
            ):
                found.append(other)
                break
    return found
