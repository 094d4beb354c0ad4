"""Tree to text, with as few parentheses as the grammar of `parser` needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from physdiffuser.expressions.operators import OPERATORS, shown_name
from physdiffuser.expressions.tree import Apply, Expression, Number, Parameter, Symbol, Variable

# Significant digits of fitted constants: the same for all, or by value.
Digits: TypeAlias = int | Callable[[float], int]

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)
_PRECEDENCE = {"add": _SUM, "sub": _SUM, "mul": _PRODUCT, "div": _PRODUCT, "neg": _SIGN, "pow": _POWER}


def to_text(expression: Expression, names: Sequence[str] | None = None, digits: Digits | None = None) -> str:
    """Write an expression as text that `parser.parse` reads back.

    Parameters
    ----------
    names
        Variable names in column order; `x1`, `x2`, ... when not given.
    digits
        Significant digits of fitted constants, or a function that gives them for a value; all that
        are needed to read the same double back when None.
    """
    return _write(expression, names, digits)[0]


_MAX_PLAIN = 1e6
"""Shortened numbers below it are written without a power of ten."""


def is_decimal(value: Fraction) -> bool:
    """Whether a typeset formula shows a fraction by its decimals: 0.3, but halves and eighths as they are."""
    return value.denominator % 5 == 0 and 10_000 % value.denominator == 0


def number_text(value: int | Fraction | float, digits: Digits | None = None) -> str:
    """A number as written in formulas: fractions of four decimals as decimals, others as `p/q`."""
    if isinstance(value, float):
        if digits is None:
            # An exact integer and a float of the same value read back alike: both are written alike.
            return repr(value).removesuffix(".0")
        count = digits(value) if callable(digits) else digits
        # Where fifteen digits say it all the sixteenth need not be zero: that of 6.6743e-11 is not.
        text = f"{value:.{15 if count > 15 and float(f'{value:.15g}') == value else count}g}"
        # People write 9020, not 9.02e+03.
        return f"{float(text):.0f}" if "e+" in text and abs(float(text)) < _MAX_PLAIN else text
    if isinstance(value, Fraction) and value.denominator > 1 and 10_000 % value.denominator == 0:
        # The parser reads so few decimals as the exact fraction.
        whole, rest = divmod(abs(value), 1)
        decimals = f"{int(rest * 10_000):04d}".rstrip("0")
        return f"{'-' if value < 0 else ''}{int(whole)}.{decimals}"
    return str(value)


def _write(expression: Expression, names: Sequence[str] | None, digits: Digits | None) -> tuple[str, int]:
    match expression:
        case Number(value=value):
            text = number_text(value, digits)
            if "/" in text:
                return text, _PRODUCT  # also -1/3: x**-1/3 would read as (x**-1)/3
            return text, _SIGN if text.startswith("-") else _ATOM
        case Symbol(name=name):
            return name, _ATOM
        case Variable(index=index):
            return (names[index] if names is not None else f"x{index + 1}"), _ATOM
        case Parameter(index=index):
            return f"c{index + 1}", _ATOM
        case Apply(operator=operator, arguments=arguments):
            parts = [_write(argument, names, digits) for argument in arguments]
            precedence = _PRECEDENCE.get(operator)
            if precedence is None:
                return f"{shown_name(operator)}({', '.join(text for text, _ in parts)})", _ATOM
            if operator == "neg":
                return f"-{_wrap(parts[0], _SIGN)}", _SIGN
            sign = OPERATORS[operator].infix
            if operator == "pow":
                # The exponent may be a signed or nested power: the operator associates to the right.
                return f"{_wrap(parts[0], _ATOM)}**{_wrap(parts[1], _SIGN)}", _POWER
            left = _wrap(parts[0], precedence)
            # a + (b + c) keeps its shape only with the parentheses; a - (b - c) needs them.
            right = _wrap(parts[1], precedence + 1)
            if precedence == _SUM:
                if right.startswith("-"):
                    right = f"({right})"
                return f"{left} {sign} {right}", _SUM
            if right.startswith("-"):
                right = f"({right})"
            return f"{left}{sign}{right}", _PRODUCT


def _wrap(part: tuple[str, int], least: int) -> str:
    text, precedence = part
    return text if precedence >= least else f"({text})"
