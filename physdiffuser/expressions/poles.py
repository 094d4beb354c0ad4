"""Whether a formula has a pole between points of a region."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions.evaluate import evaluate
from physdiffuser.expressions.tree import Apply, Expression, Number, call, variables, walk

_SMALL = 1e-9


def has_pole(expression: Expression, points: FloatArray) -> bool:
    """Whether a denominator, or what a logarithm is taken of, passes 0 among the points.

    Each of these is continuous where it has a value, so both signs among points of one box mean a zero
    between them.
    """
    return any(_passes_zero(node, points) for node in _must_not_vanish(expression))


def _must_not_vanish(expression: Expression) -> set[Expression]:
    """Denominators, bases of negative powers, arguments of logarithms, and cosines of tangents."""
    found: set[Expression] = set()
    for node in walk(expression):
        match node:
            case Apply(operator="div", arguments=(_, below)):
                found.add(below)
            case Apply(operator="log", arguments=(argument,)):
                found.add(argument)
            case Apply(operator="tan", arguments=(argument,)):
                found.add(call("cos", argument))
            case Apply(operator="pow", arguments=(base, Number(value=exponent))) if exponent < 0:
                found.add(base)
    return {node for node in found if variables(node)}


def _passes_zero(node: Expression, points: FloatArray) -> bool:
    match node:
        # Even powers touch 0 without a change of sign.
        case Apply(operator="pow", arguments=(base, Number(value=int() | Fraction() as exponent))) if (
            exponent > 0
        ):
            return _passes_zero(base, points)
        case Apply(operator="abs", arguments=(inner,)):
            return _passes_zero(inner, points)
        case Apply(operator="mul", arguments=(left, right)):
            return any(_passes_zero(part, points) for part in (left, right) if variables(part))
    values = evaluate(node, points)
    values = values[np.isfinite(values)]
    if not values.size:
        return False
    small = _SMALL * float(np.abs(values).max())
    return bool(values.min() < -small and values.max() > small)
