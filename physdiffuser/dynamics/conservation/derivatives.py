"""Derivatives of formulas by a variable, as formulas."""

from __future__ import annotations

from physdiffuser.expressions import ONE, ZERO, Apply, Expression, Number, Variable
from physdiffuser.expressions.tree import add, call, div, mul, power, sub, variables

_TWO = Number(2)


def differentiate(expression: Expression, index: int) -> Expression | None:
    """The derivative by one variable; None where an operator has no rule here.

    Parameters
    ----------
    expression
        Without parameters.
    """
    if index not in variables(expression):
        return ZERO
    if isinstance(expression, Variable):
        return ONE
    assert isinstance(expression, Apply)
    inner = [differentiate(argument, index) for argument in expression.arguments]
    if any(part is None for part in inner):
        return None
    parts = [part for part in inner if part is not None]
    if len(parts) == 1:
        outer = _of_function(expression.operator, expression.arguments[0], expression)
        return None if outer is None else product(outer, parts[0])
    return _of_pair(expression, parts[0], parts[1])


def product(left: Expression, right: Expression) -> Expression:
    """`left*right` without factors of 0 and 1."""
    if ZERO in (left, right):
        return ZERO
    if left == ONE:
        return right
    return left if right == ONE else mul(left, right)


def total(left: Expression, right: Expression) -> Expression:
    """`left + right` without terms that are 0."""
    if left == ZERO:
        return right
    return left if right == ZERO else add(left, right)


def _of_pair(node: Apply, by_left: Expression, by_right: Expression) -> Expression | None:
    left, right = node.arguments
    match node.operator:
        case "add":
            return total(by_left, by_right)
        case "sub":
            return by_left if by_right == ZERO else sub(by_left, by_right)
        case "mul":
            return total(product(by_left, right), product(left, by_right))
        case "div":
            if by_right == ZERO:
                return div(by_left, right)
            return div(sub(product(by_left, right), product(left, by_right)), power(right, _TWO))
        case "pow" if by_right == ZERO:
            lower = Number(right.value - 1) if isinstance(right, Number) else sub(right, ONE)
            return product(product(right, power(left, lower)), by_left)
    return None


def _of_function(operator: str, argument: Expression, whole: Expression) -> Expression | None:
    match operator:
        case "neg":
            return Number(-1)
        case "exp":
            return whole
        case "sin":
            return call("cos", argument)
        case "cos":
            return call("neg", call("sin", argument))
        case "log":
            return div(ONE, argument)
        case "sqrt":
            return div(Number(1), mul(_TWO, whole))
        case "tanh":
            return sub(ONE, power(whole, _TWO))
        case "sinh":
            return call("cosh", argument)
        case "cosh":
            return call("sinh", argument)
        case "abs":
            return div(argument, whole)
    return None
