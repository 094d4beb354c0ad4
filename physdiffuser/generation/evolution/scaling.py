"""Columns and target brought to ordinary size inside the search, and formulas brought back.

Constants are drawn and perturbed on a scale of about one, so a column of 1e-19 C or 1e30 kg is divided by a
power of ten first. `restore` puts the powers back without leaving them all over the formula: factors are
pulled outwards through products, powers and roots, and stay only where a function or a sum needs them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import ONE, Apply, Expression, Number, Variable
from physdiffuser.expressions.tree import add, mul, sub, substitute

# Columns whose typical size lies within are left alone: formulas with clean constants then keep them.
ORDINARY = (1e-3, 1e3)
# The largest value is at most ten to this power.
MAX_DECADES = 100


@dataclass(frozen=True)
class Scaling:
    """Powers of ten by which columns and target are divided.

    Attributes
    ----------
    columns
        One exponent per input column.
    target
        Exponent of the target.
    """

    columns: tuple[int, ...]
    target: int

    @classmethod
    def of(cls, inputs: FloatArray, target: FloatArray) -> Scaling:
        """The scaling for a table: shapes (rows, columns) and (rows,)."""
        return cls(tuple(_exponent(inputs[:, index]) for index in range(inputs.shape[1])), _exponent(target))

    def apply(self, inputs: FloatArray) -> FloatArray:
        """Scaled inputs, shape (rows, columns)."""
        scaled: FloatArray = inputs / np.array([10.0**exponent for exponent in self.columns])
        return scaled

    def apply_target(self, target: FloatArray) -> FloatArray:
        """Scaled target, shape (rows,)."""
        return target / 10.0**self.target

    def restore(self, expression: Expression) -> Expression:
        """`10**target * expression` with the columns in their own units."""
        coefficient, rest = pull(expression, self.columns)
        return scaled(coefficient * 10.0**self.target, rest)


def _exponent(values: FloatArray) -> int:
    sizes = np.abs(values[values != 0.0])
    if not sizes.size:
        return 0
    typical, largest = float(np.median(sizes)), float(sizes.max())
    usual = 0 if ORDINARY[0] <= typical <= ORDINARY[1] else round(math.log10(typical))
    # Values that span hundreds of decades: squares of the largest must remain finite.
    return max(usual, math.ceil(math.log10(largest)) - MAX_DECADES)


def scaled(coefficient: float, rest: Expression | None) -> Expression:
    """`coefficient * rest` written as simply as it goes; None stands for 1."""
    if rest is None:
        return Number(coefficient)
    if coefficient == 1.0:
        return rest
    if coefficient == -1.0:
        return Apply("neg", (rest,))
    return mul(Number(coefficient), rest)


def pull(node: Expression, columns: tuple[int, ...]) -> tuple[float, Expression | None]:
    """A factor and what it multiplies (None for 1), with scaled columns replaced by their own.

    Fitted constants meet on the way: `2.5*(x*0.1)` gives 0.25 and `x`.
    """
    match node:
        case Variable(index=index):
            return 10.0 ** -columns[index], node
        case Number(value=value):
            return (1.0, node) if node.exact else (float(value), None)
        case Apply(operator=operator, arguments=arguments):
            return _pull_apply(node, operator, [pull(argument, columns) for argument in arguments])
        case _:
            return 1.0, node


Part = tuple[float, Expression | None]


def _pull_apply(node: Apply, operator: str, parts: list[Part]) -> Part:
    factor, rest = parts[0]
    match operator:
        case "mul":
            return factor * parts[1][0], _times(rest, parts[1][1])
        case "div" if parts[1][0] != 0.0:
            return factor / parts[1][0], _over(rest, parts[1][1])
        case "neg":
            return -factor, rest
        case "add":
            return _sum(parts[0], parts[1], 1.0)
        case "sub":
            return _sum(parts[0], parts[1], -1.0)
        case "sqrt" if factor > 0.0:
            return math.sqrt(factor), None if rest is None else Apply("sqrt", (rest,))
        case "abs":
            return abs(factor), None if rest is None else Apply("abs", (rest,))
        case "pow":
            exponent = parts[1]
            if factor > 0.0 and (value := _constant(exponent)) is not None:
                try:
                    power = factor**value
                except OverflowError:
                    power = math.inf
                if 0.0 < power < math.inf:
                    return power, None if rest is None else Apply("pow", (rest, scaled(*exponent)))
    return 1.0, Apply(operator, tuple(scaled(*part) for part in parts))


def _constant(part: Part) -> float | None:
    factor, rest = part
    if rest is None:
        return factor
    return factor * float(rest.value) if isinstance(rest, Number) else None


def _times(left: Expression | None, right: Expression | None) -> Expression | None:
    if left is None or right is None:
        return left if right is None else right
    return mul(left, right)


def _over(left: Expression | None, right: Expression | None) -> Expression | None:
    if right is None:
        return left
    return Apply("div", (ONE if left is None else left, right))


def without_signs(expression: Expression, allowed: frozenset[str]) -> Expression:
    """Signs and differences written as products and sums where those alone are allowed."""
    if "neg" in allowed and "sub" in allowed:
        return expression

    def replace(node: Expression) -> Expression | None:
        if not isinstance(node, Apply) or node.operator in allowed:
            return None
        *left, right = (substitute(argument, replace) for argument in node.arguments)
        match node.operator:
            case "neg":
                return scaled_negative(right)
            case "sub":
                return add(left[0], scaled_negative(right))
            case _:
                return None

    return substitute(expression, replace)


def scaled_negative(node: Expression) -> Expression:
    """`-node` as a product with a negative number."""
    if isinstance(node, Number):
        return Number(-node.value)
    if isinstance(node, Apply) and node.operator == "mul" and isinstance(node.arguments[0], Number):
        return mul(Number(-node.arguments[0].value), node.arguments[1])
    return mul(Number(-1), node)


def _sum(left: Part, right: Part, sign: float) -> Part:
    """A factor taken out so that one of the two terms keeps none."""
    if left[1] is None and right[1] is None:
        return left[0] + sign * right[0], None
    # The constant, or else the second term, keeps a factor; a sum of equals keeps none.
    outer = right[0] if left[1] is None else left[0]
    if outer == 0.0 or not math.isfinite(outer):
        outer = 1.0
    first = scaled(left[0] / outer, left[1])
    second = right[0] / outer * sign
    if second < 0.0:
        return outer, sub(first, scaled(-second, right[1]))
    return outer, add(first, scaled(second, right[1]))
