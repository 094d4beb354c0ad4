"""Forms: the ways in which an entry of the expression library is made out of one or two others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, OPERATORS, Expression, Number
from physdiffuser.expressions.tree import add, call, div, mul, power, sub


@dataclass(frozen=True)
class Form:
    """One way of making an entry out of one or two others.

    `cost` steers the order of enumeration; it is the search's own measure (squares and reciprocals
    are as cheap as they are common) and not the complexity that is reported.
    """

    name: str
    arity: int
    cost: int
    evaluate: Callable[..., FloatArray]
    build: Callable[..., Expression]
    needs: frozenset[str]
    symmetric: bool = False
    transcendental: bool = False


def _exp_neg(x: FloatArray) -> FloatArray:
    return np.exp(-x)


def _half_sin(x: FloatArray) -> FloatArray:
    return np.sin(0.5 * x)


def _build_sq(x: Expression) -> Expression:
    return power(x, Number(2))


def _build_exp_neg(x: Expression) -> Expression:
    return call("exp", call("neg", x))


def _build_exp_less_one(x: Expression) -> Expression:
    return sub(call("exp", x), ONE)


def _build_less_one(x: Expression) -> Expression:
    return sub(x, ONE)


def _build_half_sin(x: Expression) -> Expression:
    return call("sin", div(x, Number(2)))


_ALGEBRAIC = frozenset({"sq", "inv", "sqrt", "one_plus", "one_minus", "less_one"})


def _unary(
    name: str, cost: int, evaluate: Callable[..., FloatArray], build: Callable[..., Expression], *needs: str
) -> Form:
    return Form(name, 1, cost, evaluate, build, frozenset(needs), transcendental=name not in _ALGEBRAIC)


def _operator(name: str, cost: int) -> Form:
    return _unary(name, cost, OPERATORS[name].evaluate, partial(call, name), name)


UNARY = (
    _unary("sq", 1, np.square, _build_sq, "pow"),
    _unary("inv", 1, np.reciprocal, partial(div, ONE), "div"),
    _operator("sqrt", 1),
    _operator("sin", 1),
    _operator("cos", 1),
    _operator("exp", 1),
    _unary("exp_neg", 1, _exp_neg, _build_exp_neg, "exp", "neg"),
    _operator("log", 1),
    _unary("half_sin", 2, _half_sin, _build_half_sin, "sin", "div"),
    _unary("exp_less_one", 2, np.expm1, _build_exp_less_one, "exp", "sub"),
    _operator("tanh", 2),
    _operator("tan", 2),
    _operator("asin", 2),
    _operator("acos", 2),
    _operator("atan", 2),
)
ONE_PLUS = _unary("one_plus", 1, partial(np.add, 1.0), partial(add, ONE), "add")
ONE_MINUS = _unary("one_minus", 1, partial(np.subtract, 1.0), partial(sub, ONE), "sub")
# What 1 - x is written as where it is negative: it can then go under a root or a logarithm.
LESS_ONE = _unary("less_one", 1, partial(np.add, -1.0), _build_less_one, "sub")
BINARY = (
    Form("mul", 2, 1, np.multiply, mul, frozenset({"mul"}), symmetric=True),
    Form("div", 2, 1, np.divide, div, frozenset({"div"})),
    Form("add", 2, 1, np.add, add, frozenset({"add"}), symmetric=True),
    # a - b and b - a are one entry: values are distinct up to sign.
    Form("sub", 2, 1, np.subtract, sub, frozenset({"sub"}), symmetric=True),
)
# One thing to the power of another: put in by itself, for most such things mean nothing.
POWER = Form("pow", 2, 2, np.power, power, frozenset({"pow"}), transcendental=True)
# The place of a form is its code in a recipe.
FORMS = (*UNARY, ONE_PLUS, ONE_MINUS, *BINARY, LESS_ONE, POWER)
CODE = {form.name: code for code, form in enumerate(FORMS)}
