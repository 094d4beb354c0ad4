"""Any formula as the networks would write it: fitted numbers as C, in the arrangement of the training laws.

A law is one function and can be written in many ways. The networks have seen each in one arrangement
(`physdiffuser.models.tokens.arrangement`), without what linear least squares restores
(`physdiffuser.models.tokens.skeleton`); how likely they find a formula is defined in that arrangement alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from physdiffuser.expressions import ONE, PI, Apply, Expression, Number, Parameter, evaluate
from physdiffuser.expressions.tree import call, div, mul, variables, walk
from physdiffuser.models.tokens.arrangement import Factor, Term, product, total
from physdiffuser.models.tokens.skeleton import without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import NUMBERS

_WRITTEN = frozenset(Fraction(number) for number in NUMBERS)
_FITTED = Parameter(0)
_ONCE = Fraction(1)
_HALVES = 2


def canonical_skeleton(expression: Expression) -> Expression:
    """The skeleton of a formula in the arrangement of the training laws.

    Parameters
    ----------
    expression
        With numbers as fitted, or as they are written. Exact numbers that the networks can write stay,
        all others become the parameter 0.
    """
    return without_linear_coefficients(total([_without_number(term) for term in _terms(expression)]))


def _constant(expression: Expression) -> bool:
    return not variables(expression)


def _value(expression: Expression) -> float:
    if isinstance(expression, Number):
        return float(expression.value)
    if any(isinstance(node, Parameter) for node in walk(expression)):
        return 1.0  # not known, and taken for positive
    return float(evaluate(expression, np.empty((1, 0)))[0])


def _fraction(expression: Expression) -> Fraction | None:
    """The value of an exact number or a quotient of such; None for everything else."""
    match expression:
        case Number(exact=True, value=value):
            return Fraction(value)
        case Apply(operator="neg", arguments=(argument,)):
            inner = _fraction(argument)
            return None if inner is None else -inner
        case Apply(operator="div", arguments=(first, second)):
            above, below = _fraction(first), _fraction(second)
            return above / below if above is not None and below else None
    return None


def _number(expression: Expression) -> Expression:
    """What stands for an expression without variables."""
    if expression == PI:
        return PI
    exact = _fraction(expression)
    if exact not in _WRITTEN:
        return _FITTED
    return Number(exact.numerator) if exact.denominator == 1 else Number(exact)


def _half_power(expression: Expression) -> Fraction | None:
    """The exponent of a power, if it is a whole number of halves."""
    if not isinstance(expression, Apply) or expression.operator != "pow":
        return None
    exponent = _fraction(expression.arguments[1])
    return exponent if exponent is not None and exponent.denominator <= _HALVES else None


def _canonical(expression: Expression) -> Expression:
    if _constant(expression):
        return _number(expression)
    if not isinstance(expression, Apply):
        return expression
    if expression.operator in ("add", "sub", "neg"):
        terms = _terms(expression)
        if all(sign < 0 for sign, _ in terms):
            return call("neg", total([(1, term) for _, term in terms]))
        return total(terms)
    if expression.operator in ("mul", "div", "sqrt") or _half_power(expression) is not None:
        sign, written = _signed_product(expression)
        return written if sign > 0 else call("neg", written)
    return Apply(expression.operator, tuple(_canonical(argument) for argument in expression.arguments))


def _terms(expression: Expression, sign: int = 1) -> list[Term]:
    """Terms of a sum with their signs, each in canonical form; those of a product are one."""
    match expression:
        case Apply(operator="add", arguments=(first, second)):
            return _terms(first, sign) + _terms(second, sign)
        case Apply(operator="sub", arguments=(first, second)):
            return _terms(first, sign) + _terms(second, -sign)
        case Apply(operator="neg", arguments=(argument,)):
            return _terms(argument, -sign)
        case Number(value=value) if value < 0:
            return [(-sign, _number(Number(-value)))]
    written = _canonical(expression)
    if isinstance(written, Apply) and written.operator == "neg":
        return [(-sign, written.arguments[0])]
    return [(sign, written)]


@dataclass
class _Product:
    """Factors with their exponents, and the number in front as far as it is exact."""

    factors: list[Factor] = field(default_factory=list)
    exact: Fraction = _ONCE
    fitted: bool = False
    sign: int = 1

    def take(self, expression: Expression, exponent: Fraction) -> None:
        """Multiply by a power of an expression."""
        if _constant(expression):
            self._take_number(expression, exponent)
            return
        match expression:
            case Apply(operator="neg", arguments=(argument,)) if exponent.denominator == 1:
                self.sign *= -1 if exponent.numerator % 2 else 1
                self.take(argument, exponent)
            case Apply(operator="mul", arguments=(first, second)):
                self.take(first, exponent)
                self.take(second, exponent)
            case Apply(operator="div", arguments=(first, second)):
                self.take(first, exponent)
                self.take(second, -exponent)
            case Apply(operator="sqrt", arguments=(argument,)) if exponent.denominator == 1:
                self.take(argument, exponent / 2)
            case Apply(operator="pow", arguments=(base, _)) if (
                power := _half_power(expression)
            ) is not None and (power * exponent).denominator <= _HALVES:
                self.take(base, power * exponent)
            case _:
                self.factors.append((_canonical(expression), exponent))

    def _take_number(self, expression: Expression, exponent: Fraction) -> None:
        value = _value(expression)
        if value < 0 and exponent.denominator == 1 and exponent.numerator % 2:
            self.sign = -self.sign
        exact = _fraction(expression)
        if exact and exponent.denominator == 1:
            self.exact *= abs(exact) ** exponent.numerator
        elif value != 1.0 or isinstance(expression, Parameter):
            self.fitted = True

    def written(self) -> Expression:
        """The product, its number in front."""
        result = product(self.factors)
        if not self.fitted and self.exact == 1:
            return result
        whole = self.exact in _WRITTEN and self.exact.denominator == 1 and not self.fitted
        number = Number(int(self.exact)) if whole else _FITTED
        match result:
            case Apply(operator="div", arguments=(above, below)) if above == ONE:
                return div(number, below)
        return mul(number, result)


def _signed_product(expression: Expression) -> tuple[int, Expression]:
    found = _Product()
    found.take(expression, _ONCE)
    return found.sign, found.written()


def _without_number(term: Term) -> Term:
    """A term of the outermost sum without the number in front of it, which least squares restores."""
    sign, written = term
    if _constant(written):
        return 1, ONE
    match written:
        case Apply(operator="mul", arguments=(number, rest)) if _constant(number):
            return sign, rest
        case Apply(operator="div", arguments=(number, below)) if _constant(number):
            return sign, div(ONE, below)
    return term
