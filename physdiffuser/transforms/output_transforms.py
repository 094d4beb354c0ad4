"""Outer inverses: if `y = T(g)`, then `g = T⁻¹(y)` may be far simpler than `y` itself.

The steps that are known, and the transforms that are made of them. Other modules of this package may register
more in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Apply, Expression, Number
from physdiffuser.expressions.tree import add, call, div, power, sub
from physdiffuser.transforms.transform import ElementaryTransform, register


def _d_inverse(y: FloatArray) -> FloatArray:
    return -1.0 / (y * y)


def _d_sqrt(y: FloatArray) -> FloatArray:
    return 0.5 / np.sqrt(y)


def _cube(y: FloatArray) -> FloatArray:
    # The formula stands under a cube root.
    return np.where(y > 0.0, y * y * y, np.nan)


def _d_cube(y: FloatArray) -> FloatArray:
    return 3.0 * y * y


def _d_cbrt(y: FloatArray) -> FloatArray:
    return np.cbrt(y) / (3.0 * y)


def _two_thirds(y: FloatArray) -> FloatArray:
    return np.where(y > 0.0, np.cbrt(y) ** 2, np.nan)


def _d_two_thirds(y: FloatArray) -> FloatArray:
    return 2.0 / (3.0 * np.cbrt(y))


def _minus_sin(y: FloatArray) -> FloatArray:
    return -np.sin(y)


def _d_arcsin(y: FloatArray) -> FloatArray:
    return 1.0 / np.sqrt(1.0 - y * y)


def _d_arccos(y: FloatArray) -> FloatArray:
    return -1.0 / np.sqrt(1.0 - y * y)


def _d_arctanh(y: FloatArray) -> FloatArray:
    return 1.0 / (1.0 - y * y)


def _minus_ones(y: FloatArray) -> FloatArray:
    return -np.ones_like(y)


def _d_tan(y: FloatArray) -> FloatArray:
    return 1.0 + np.square(np.tan(y))


def _redo_power(exponent: int | Fraction) -> Callable[[Expression], Expression]:
    def redo(inner: Expression) -> Expression:
        return power(inner, Number(exponent))

    return redo


def _redo_plus_one(inner: Expression) -> Expression:
    return add(inner, ONE)


def _redo_minus_one(inner: Expression) -> Expression:
    return sub(inner, ONE)


def _call_step(
    id: str,
    sentence: str,
    operator: str,
    undo: Callable[..., FloatArray],
    slope: Callable[..., FloatArray],
    shown: Callable[[Expression], Expression],
    noise_tolerant: bool = False,
) -> ElementaryTransform:
    needs = frozenset({operator})
    return ElementaryTransform(
        id, sentence, undo, slope, partial(call, operator), needs, shown, noise_tolerant
    )


def _function_step(
    sentence: str,
    operator: str,
    undo: Callable[..., FloatArray],
    slope: Callable[..., FloatArray],
    inverse: str,
    noise_tolerant: bool = False,
) -> ElementaryTransform:
    # Not `call`: the inverse need not be an operator that formulas may hold.
    def shown(inner: Expression) -> Expression:
        return Apply(inverse, (inner,))

    return _call_step(inverse, sentence, operator, undo, slope, shown, noise_tolerant)


INVERSE = ElementaryTransform(
    "reciprocal",
    "took the reciprocal",
    np.reciprocal,
    _d_inverse,
    partial(div, ONE),
    frozenset({"div"}),
    partial(div, ONE),
    True,
)
SQUARE = _call_step(
    "square", "squared the target", "sqrt", np.square, partial(np.multiply, 2.0), _redo_power(2), True
)
ROOT = ElementaryTransform(
    "sqrt",
    "took the square root",
    np.sqrt,
    _d_sqrt,
    _redo_power(2),
    frozenset({"pow"}),
    partial(call, "sqrt"),
    True,
)
_POW = frozenset({"pow"})
CUBE = ElementaryTransform(
    "cube", "cubed the target", _cube, _d_cube, _redo_power(Fraction(1, 3)), _POW, _redo_power(3)
)
CUBE_ROOT = ElementaryTransform(
    "cbrt", "took the cube root", np.cbrt, _d_cbrt, _redo_power(3), _POW, _redo_power(Fraction(1, 3))
)
TWO_THIRDS = ElementaryTransform(
    "two_thirds",
    "took the power 2/3",
    _two_thirds,
    _d_two_thirds,
    _redo_power(Fraction(3, 2)),
    _POW,
    _redo_power(Fraction(2, 3)),
)
LOG = _function_step("took the logarithm", "exp", np.log, np.reciprocal, "log", True)
EXP = _function_step("took the exponential", "log", np.exp, np.exp, "exp")
SIN = _function_step("took the sine", "asin", np.sin, np.cos, "sin")
COS = _function_step("took the cosine", "acos", np.cos, _minus_sin, "cos")
TAN = _function_step("took the tangent", "atan", np.tan, _d_tan, "tan")
ARCSIN = _function_step("took the arcsine", "sin", np.arcsin, _d_arcsin, "asin")
ARCCOS = _function_step("took the arccosine", "cos", np.arccos, _d_arccos, "acos")
ARCTANH = _function_step("took the inverse hyperbolic tangent", "tanh", np.arctanh, _d_arctanh, "atanh")
LESS_ONE = ElementaryTransform(
    "minus_one",
    "subtracted 1",
    partial(np.add, -1.0),
    np.ones_like,
    _redo_plus_one,
    frozenset({"add"}),
    _redo_minus_one,
)
MORE_ONE = ElementaryTransform(
    "plus_one",
    "added 1",
    partial(np.add, 1.0),
    np.ones_like,
    _redo_minus_one,
    frozenset({"sub"}),
    _redo_plus_one,
)
FROM_ONE = ElementaryTransform(
    "from_one",
    "subtracted the target from 1",
    partial(np.subtract, 1.0),
    _minus_ones,
    partial(sub, ONE),
    frozenset({"sub"}),
    partial(sub, ONE),
)


register(depth=1)
for _step in (INVERSE, SQUARE, LOG, ROOT, EXP, SIN, COS, ARCSIN, ARCCOS, ARCTANH, TAN):
    register(_step, depth=1)

# Steps that laws are seen to take: 1/sqrt, 1/g**2, 1/(exp(g) - 1), exp of a reciprocal, ...
for _steps in (
    (SQUARE, INVERSE),
    (ROOT, INVERSE),
    (INVERSE, LESS_ONE, LOG),
    (INVERSE, MORE_ONE, LOG),
    (INVERSE, FROM_ONE, LOG),
    (MORE_ONE, LOG),
    (LESS_ONE, LOG),
    (FROM_ONE, LOG),
    (LESS_ONE,),
    (INVERSE, LESS_ONE),
    (LESS_ONE, INVERSE),
    (MORE_ONE, INVERSE),
    (LESS_ONE, SQUARE),
    (FROM_ONE, SQUARE),
    (MORE_ONE, SQUARE),
    (LOG, INVERSE),
    (LOG, SQUARE),
    (LOG, ROOT),
    (SQUARE, SQUARE),
    (ROOT, ROOT),
    (SQUARE, LESS_ONE, INVERSE),
    (SQUARE, MORE_ONE, INVERSE),
    (SQUARE, LOG),
    (EXP, INVERSE),
    (EXP, SQUARE),
    (SIN, INVERSE),
    (SIN, SQUARE),
    (COS, INVERSE),
    (TAN, SQUARE),
    (ROOT, ARCSIN),
    (ROOT, ARCCOS),
    (INVERSE, ARCCOS),
    (INVERSE, ARCSIN),
    (CUBE_ROOT,),
    (CUBE_ROOT, INVERSE),
    (TWO_THIRDS,),
    (TWO_THIRDS, INVERSE),
    (CUBE,),
):
    register(*_steps)
