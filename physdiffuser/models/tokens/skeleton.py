"""Skeletons: what of a formula is learned, and what is left to least squares.

A factor in front of a formula, and the factors in front of the terms of its outermost sum, follow
from the data by linear least squares. `without_linear_coefficients` takes them away, so that a network
never has to write `8*pi` in front of a law; `with_linear_coefficients` puts a parameter in each of these
places.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter, Symbol, evaluate
from physdiffuser.expressions.tree import chain, div, mul, substitute, walk


def _constant(expression: Expression) -> bool:
    """Whether no variable and no parameter occurs."""
    return all(isinstance(node, (Number, Symbol, Apply)) for node in walk(expression))


def _strip_factor(expression: Expression, under_root: bool = False) -> Expression:
    """A product without its constant factors; 1 when nothing else is left.

    Under a root a sign belongs to the argument, so only positive numbers are taken away there.
    """
    if isinstance(expression, Parameter):
        return expression if under_root else ONE
    if _constant(expression):
        negative = bool(evaluate(expression, np.empty((1, 0)))[0] < 0)
        return expression if under_root and negative else ONE
    if not isinstance(expression, Apply):
        return expression
    match expression.operator, expression.arguments:
        case "neg", (argument,):
            inner = _strip_factor(argument, under_root)
            return Apply("neg", (inner,)) if under_root else inner
        case "sqrt", (argument,):
            inner = _strip_factor(argument, True)
            return ONE if inner == ONE else Apply("sqrt", (inner,))
        case "pow", (base, Number() as exponent):
            inner = _strip_factor(base, True)
            return ONE if inner == ONE else Apply("pow", (inner, exponent))
        case "mul", (first, second):
            left, right = _strip_factor(first, under_root), _strip_factor(second, under_root)
            return right if left == ONE else left if right == ONE else mul(left, right)
        case "div", (first, second):
            above, below = _strip_factor(first, under_root), _strip_factor(second, under_root)
            return above if below == ONE else div(above, below)
        case _:
            return expression


def terms(expression: Expression) -> list[Expression]:
    """Terms of the outermost sum, signs left out."""
    if isinstance(expression, Apply) and expression.operator in ("add", "sub"):
        return [term for argument in expression.arguments for term in terms(argument)]
    if isinstance(expression, Apply) and expression.operator == "neg":
        return terms(expression.arguments[0])
    return [expression]


def without_linear_coefficients(expression: Expression) -> Expression:
    """The formula without the numbers that linear least squares can restore.

    Constant factors of the whole, and of each term of the outermost sum, are dropped; signs between
    these terms become `+`. Terms that become equal are merged.
    """
    if len(terms(expression)) == 1:
        stripped = _strip_factor(expression)
        # 2*(a + b): what was inside the factor may itself be a sum.
        return stripped if stripped == expression else without_linear_coefficients(stripped)
    unique = list(dict.fromkeys(_strip_factor(term) for term in terms(expression)))
    return chain("add", unique)


def with_linear_coefficients(skeleton: Expression) -> Expression:
    """The skeleton with a parameter in front of every term of its outermost sum.

    Parameters already in the skeleton are renumbered after their order of appearance; a term that is
    1 becomes the parameter itself.
    """
    count = 0

    def fresh() -> Parameter:
        nonlocal count
        count += 1
        return Parameter(count - 1)

    def renumber(node: Expression) -> Expression | None:
        return fresh() if isinstance(node, Parameter) else None

    parts: list[Expression] = []
    for term in terms(skeleton):
        stripped = _strip_factor(term)
        factor = fresh()
        parts.append(factor if stripped == ONE else mul(factor, substitute(stripped, renumber)))
    return chain("add", parts)


def collected(expression: Expression) -> Expression:
    """The formula with the numbers of every product multiplied into one number in front of it."""
    factor, rest = _collect(expression)
    if rest == ONE:
        return Number(factor)
    return rest if factor == 1.0 else mul(Number(factor), rest)


def _collect(expression: Expression) -> tuple[float, Expression]:
    """A factor and what it multiplies."""
    if isinstance(expression, Number):
        return float(expression.value), ONE
    if not isinstance(expression, Apply):
        return 1.0, expression
    parts = expression.arguments
    match expression.operator:
        case "neg":
            factor, rest = _collect(parts[0])
            return -factor, rest
        case "mul" | "div":
            left, above = _collect(parts[0])
            right, below = _collect(parts[1])
            if expression.operator == "mul":
                return left * right, above if below == ONE else below if above == ONE else mul(above, below)
            return left / right, above if below == ONE else div(above, below)
        case "sqrt":
            factor, rest = _collect(parts[0])
            if factor > 0.0:
                return factor**0.5, rest if rest == ONE else Apply("sqrt", (rest,))
        case "pow" if isinstance(parts[1], Number):
            factor, rest = _collect(parts[0])
            if factor > 0.0 or float(parts[1].value).is_integer():
                return factor ** float(parts[1].value), rest if rest == ONE else Apply(
                    "pow", (rest, parts[1])
                )
            return 1.0, expression
    return 1.0, Apply(expression.operator, tuple(collected(part) for part in parts))
