"""Trees to sympy and back, node by node: no text is ever handed to sympy to be read.

sympy is imported only when a function of this module is called.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.simplification import exact
from physdiffuser.expressions.tree import (
    PI,
    Apply,
    Expression,
    Number,
    Parameter,
    Symbol,
    Variable,
    chain,
)

# A power of numbers with more bits than this is left unevaluated: sympy would compute 9**9**9.
_MAX_BITS = 4096


def to_sympy(
    expression: Expression,
    names: Sequence[str] | None = None,
    *,
    positive: Collection[int] = frozenset(),
) -> Any:
    """An expression as a sympy expression.

    Parameters
    ----------
    names
        Variable names in column order; `x1`, `x2`, ... when not given.
    positive
        Columns whose symbols are declared positive; the others are declared real.
    """
    import sympy

    seen: dict[Expression, Any] = {}

    def visit(node: Expression) -> Any:
        known = seen.get(node)
        if known is None:
            known = seen[node] = build(node)
        return known

    def build(node: Expression) -> Any:
        match node:
            case Number(value=value):
                if isinstance(value, float):
                    return sympy.Float(value)
                return sympy.Rational(value.numerator, value.denominator)
            case Symbol(name=name, value=value):
                if node == PI:
                    return sympy.pi
                return _symbol(name, value > 0)
            case Variable(index=index):
                name = names[index] if names is not None else f"x{index + 1}"
                return _symbol(name, index in positive)
            case Parameter(index=index):
                return sympy.Symbol(f"c{index + 1}", real=True)
            case Apply(operator=operator, arguments=arguments):
                parts = [visit(argument) for argument in arguments]
                if operator == "pow":
                    return _power(*parts)
                return OPERATORS[operator].sympy(*parts)

    return visit(expression)


def _symbol(name: str, positive: bool) -> Any:
    import sympy

    return sympy.Symbol(name, positive=True) if positive else sympy.Symbol(name, real=True)


def _power(base: Any, exponent: Any) -> Any:
    import sympy

    if base.is_Rational and exponent.is_Rational:
        size = max(abs(base.p).bit_length(), base.q.bit_length()) * abs(exponent.p)
        if size > _MAX_BITS and base not in (-1, 0, 1):
            return sympy.Pow(base, exponent, evaluate=False)
    return base**exponent


def from_sympy(
    expression: Any, names: Sequence[str] | None = None, constants: Mapping[str, float] | None = None
) -> Expression:
    """A sympy expression as a tree.

    Parameters
    ----------
    expression
        A real expression of numbers, symbols, sums, products, powers, and the functions of the
        operator table; `cot`, `sec`, `csc`, `coth`, `sech`, `csch` and their inverses are rewritten.
    names
        Variable names in column order; `x1`, `x2`, ... when not given.

    Raises
    ------
    ValueError
        If it holds anything else.
    """
    return _Reader(names, constants or {}).read(expression)


class _Reader:
    def __init__(self, names: Sequence[str] | None, constants: Mapping[str, float]) -> None:
        self.known: dict[str, Expression] = {
            name: Symbol(name, float(value)) for name, value in constants.items()
        }
        self.names = names
        if names is not None:
            self.known.update({name: Variable(index) for index, name in enumerate(names)})

    def read(self, node: Any) -> Expression:
        import sympy

        if node.is_Rational:
            value = exact.tidy(Fraction(int(node.p), int(node.q)))
            if isinstance(value, float) and math.isinf(value):
                raise ValueError(f"a number of {int(node.p).bit_length()} bits is too large for a formula")
            return Number(value)
        if node.is_Float:
            return Number(float(node))
        if node is sympy.pi:
            return PI
        if node is sympy.E:
            return Apply("exp", (Number(1),))
        if node.is_Symbol:
            return self._name(node.name)
        if node.is_Add:
            return self._sum(node)
        if node.is_Mul:
            return self._product(node)
        if node.is_Pow or node.func is sympy.exp:
            return self._power(*node.as_base_exp())
        return self._function(node)

    def _name(self, name: str) -> Expression:
        known = self.known.get(name)
        if known is not None:
            return known
        if name[:1] == "c" and name[1:].isdigit() and int(name[1:]) > 0:
            return Parameter(int(name[1:]) - 1)
        if self.names is None and name[:1] == "x" and name[1:].isdigit() and int(name[1:]) > 0:
            return Variable(int(name[1:]) - 1)
        raise ValueError(f"symbol {name!a} is neither a variable nor a known constant")

    def _sum(self, node: Any) -> Expression:
        terms = sorted(node.as_ordered_terms(), key=lambda term: bool(term.could_extract_minus_sign()))
        tree = self.read(terms[0])
        for term in terms[1:]:
            if term.could_extract_minus_sign():
                tree = Apply("sub", (tree, self.read(-term)))
            else:
                tree = Apply("add", (tree, self.read(term)))
        return tree

    def _product(self, node: Any) -> Expression:
        top: list[Expression] = []
        bottom: list[Expression] = []
        number, rest = node.as_coeff_Mul()
        if number.is_Rational:
            if abs(number.p) != 1:
                top.append(Number(abs(int(number.p))))
            if number.q != 1:
                bottom.append(Number(int(number.q)))
        else:
            rest = node
        for factor in rest.as_ordered_factors():
            base, power = factor.as_base_exp()
            if power.is_Rational and power < 0:
                bottom.append(self._power(base, -power))
            elif factor != 1:
                top.append(self.read(factor))
        if not top:
            top.append(Number(1))
        if number.is_Rational and number < 0:
            first = top[0]
            top[0] = Number(-first.value) if isinstance(first, Number) else Apply("neg", (first,))
        tree = chain("mul", top)
        return Apply("div", (tree, chain("mul", bottom))) if bottom else tree

    def _power(self, base: Any, power: Any) -> Expression:
        import sympy

        if base is sympy.E:
            return Apply("exp", (self.read(power),))
        if power == sympy.S.Half:
            return Apply("sqrt", (self.read(base),))
        if power == 1:
            return self.read(base)
        if power.is_Rational and power < 0:
            return Apply("div", (Number(1), self._power(base, -power)))
        return Apply("pow", (self.read(base), self.read(power)))

    def _function(self, node: Any) -> Expression:
        name = type(node).__name__
        name = {"Abs": "abs"}.get(name, name)
        operator = OPERATORS.get(name)
        arguments = tuple(self.read(argument) for argument in node.args)
        if operator is not None and operator.infix is None and operator.arity == len(arguments):
            return Apply(name, arguments)
        inverse = {
            "cot": "tan",
            "sec": "cos",
            "csc": "sin",
            "coth": "tanh",
            "sech": "cosh",
            "csch": "sinh",
        }.get(name)
        if inverse is not None:
            return Apply("div", (Number(1), Apply(inverse, arguments)))
        inverse = {"asec": "acos", "acsc": "asin", "acot": "atan"}.get(name)
        if inverse is not None:
            return Apply(inverse, (Apply("div", (Number(1), arguments[0])),))
        raise ValueError(f"sympy's {name} has no counterpart in the operator table")
