"""Trees written as source code of other languages.

One printer, one `Dialect` a language. A part of the formula without variables whose value is not finite
is written as that value: `9**9**9` would never return in one language and raise in another.
"""

from __future__ import annotations

import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.errors import UsageError
from physdiffuser.expressions import OPERATORS, Expression, OperatorSpec, evaluate
from physdiffuser.expressions.definitions import expanded
from physdiffuser.expressions.operators import BUILT_IN_NAMES
from physdiffuser.expressions.tree import Apply, Number, Parameter, Symbol, Variable, variables

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)
_PRECEDENCE = {"add": _SUM, "sub": _SUM, "mul": _PRODUCT, "div": _PRODUCT}


@dataclass(frozen=True)
class Dialect:
    """How one language writes the parts of a formula.

    Attributes
    ----------
    name
        For messages.
    number
        Text of a number; the flag tells that only constants stand beside it, so that its type decides
        how the language computes.
    function
        Name of an operator's function, or None when the language has none.
    infix_power
        Whether powers are written `a**b`; else as a call of `pow`.
    nan, infinity
        How the two are written.
    fold_functions
        Write a function of constants as its value, for languages whose functions take no plain numbers.
    power_sign
        Between the base and the exponent of an infix power.
    """

    name: str
    number: Callable[[int | Fraction | float, bool], str]
    function: Callable[[OperatorSpec], str | None]
    infix_power: bool
    nan: str
    infinity: str
    fold_functions: bool = False
    power_sign: str = "**"


class Writer:
    """Writes one formula in one dialect.

    Parameters
    ----------
    names
        What stands for each variable, in column order.
    symbols
        What stands for `pi` and the other named constants.

    Raises
    ------
    UsageError
        From `write`, if an operator has no form in the language.
    """

    def __init__(
        self,
        dialect: Dialect,
        names: Sequence[str],
        symbols: dict[str, str],
        parameters: Sequence[str] = (),
    ) -> None:
        self.dialect = dialect
        self.names = names
        self.symbols = symbols
        self.parameters = parameters

    def write(self, expression: Expression) -> str:
        """The formula as one expression of the language, without operators that the user has defined."""
        return self._write(expanded(expression), False)[0]

    def _write(self, node: Expression, constant: bool) -> tuple[str, int]:
        match node:
            case Number(value=value):
                text = self.dialect.number(value, constant)
                if "/" in text:
                    return text, _PRODUCT
                return text, _SIGN if text.startswith("-") else _ATOM
            case Symbol(name=name):
                return self.symbols[name], _ATOM
            case Variable(index=index):
                return self.names[index], _ATOM
            case Parameter(index=index):
                return self.parameters[index], _ATOM
            case Apply():
                return self._apply(node)

    def _apply(self, node: Apply) -> tuple[str, int]:
        spec = OPERATORS[node.operator]
        constant = _is_constant(node)
        if constant:
            value = float(evaluate(node, np.empty((1, 0)))[0])
            if math.isnan(value):
                return self.dialect.nan, _ATOM
            if math.isinf(value):
                sign = "-" if value < 0 else ""
                return sign + self.dialect.infinity, _SIGN if sign else _ATOM
            if self.dialect.fold_functions and spec.infix is None and node.operator != "neg":
                text = repr(value)
                return text, _SIGN if text.startswith("-") else _ATOM
        parts = [self._write(argument, constant) for argument in node.arguments]
        if node.operator == "neg":
            return f"-{_wrap(parts[0], _POWER)}", _SIGN
        if node.operator == "pow" and self.dialect.infix_power:
            return f"{_wrap(parts[0], _ATOM)}{self.dialect.power_sign}{_wrap(parts[1], _SIGN)}", _POWER
        precedence = _PRECEDENCE.get(node.operator)
        if precedence is None:
            function = "pow" if node.operator == "pow" else self.dialect.function(spec)
            if function is None:
                raise UsageError(
                    f"operator '{node.operator}' has no form in {self.dialect.name}; export to another format"
                )
            return f"{function}({', '.join(text for text, _ in parts)})", _ATOM
        left, right = _wrap(parts[0], precedence), _wrap(parts[1], precedence + 1)
        if right.startswith("-"):
            right = f"({right})"
        space = " " if precedence == _SUM else ""
        return f"{left}{space}{spec.infix}{space}{right}", precedence


def _wrap(part: tuple[str, int], least: int) -> str:
    text, precedence = part
    return text if precedence >= least else f"({text})"


def _is_constant(node: Expression) -> bool:
    if isinstance(node, Parameter):
        return False
    if isinstance(node, Apply):
        return all(_is_constant(argument) for argument in node.arguments)
    return not variables(node)


def named_constants(expression: Expression) -> dict[str, float]:
    """Named constants that occur, with their values, in order of appearance."""
    from physdiffuser.expressions.tree import walk

    return {node.name: node.value for node in walk(expanded(expression)) if isinstance(node, Symbol)}


def _python_number(value: int | Fraction | float, constant: bool) -> str:
    if isinstance(value, Fraction):
        short = float(value)
        return repr(short) if Fraction(repr(short)) == value else f"{value.numerator}/{value.denominator}"
    if isinstance(value, float):
        return repr(value)
    # Powers of python integers are exact however long they get, and fail for negative exponents of arrays.
    return repr(float(value)) if constant or abs(value) >= 2**53 else str(value)


_NUMPY_SPELLINGS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}


def _numpy_function(spec: OperatorSpec) -> str | None:
    if spec.name in BUILT_IN_NAMES:
        return f"np.{_NUMPY_SPELLINGS.get(spec.name, spec.name)}"
    function = spec.evaluate
    if isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function:
        return f"np.{function.__name__}"
    return None


NUMPY = Dialect("numpy", _python_number, _numpy_function, True, "np.nan", "np.inf")


JULIA = Dialect(
    "Julia",
    _python_number,
    lambda spec: spec.name if spec.name in BUILT_IN_NAMES else None,
    True,
    "NaN",
    "Inf",
    power_sign="^",
)


def _torch_function(spec: OperatorSpec) -> str | None:
    name = spec.torch or spec.name
    if spec.name in BUILT_IN_NAMES:
        return f"torch.{name}"  # without the seconds that importing torch takes
    import torch

    return f"torch.{name}" if callable(getattr(torch, name, None)) else None


TORCH = Dialect("torch", _python_number, _torch_function, True, "math.nan", "math.inf", fold_functions=True)


def _sympy_number(value: int | Fraction | float, constant: bool) -> str:
    if isinstance(value, Fraction):
        return f"sympy.Rational({value.numerator}, {value.denominator})"
    if isinstance(value, float):
        return repr(value)
    return f"sympy.Integer({value})" if constant else str(value)


def _sympy_function(spec: OperatorSpec) -> str | None:
    import sympy

    name = getattr(spec.sympy, "args", (None,))[0]
    return f"sympy.{name}" if isinstance(name, str) and hasattr(sympy, name) else None


SYMPY = Dialect("sympy", _sympy_number, _sympy_function, True, "sympy.nan", "sympy.oo")


def _c_number(value: int | Fraction | float, constant: bool) -> str:
    if isinstance(value, Fraction):
        return f"{float(value.numerator)!r}/{float(value.denominator)!r}"
    return repr(float(value))


_C_FUNCTIONS = """
    sqrt exp log sin cos tan asin acos atan sinh cosh tanh fabs cbrt exp2 expm1 log10 log1p log2 erf erfc
    asinh acosh atanh atan2 hypot fmod fmin fmax tgamma lgamma floor ceil
"""
_C_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while bool true false asm typeof main pow linux unix i386 errno math_errhandling NAN INFINITY HUGE_VAL
    HUGE_VALF HUGE_VALL M_PI M_E fpclassify isfinite isinf isnan isnormal signbit
"""
_C_MATH = frozenset(_C_FUNCTIONS.split())
_C_RESERVED = _C_MATH | frozenset(_C_KEYWORDS.split())


def _c_function(spec: OperatorSpec) -> str | None:
    name = spec.c or spec.name
    return name if name in _C_MATH else None


C = Dialect("C", _c_number, _c_function, False, "NAN", "INFINITY")

_PYTHON_NAMES = "np torch sympy math self super float pi __debug__"
_PYTHON_RESERVED = frozenset((*keyword.kwlist, *_PYTHON_NAMES.split()))


def python_identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Distinct python identifiers that resemble the names and mean nothing else in the exported code."""
    return _distinct((_escaped(name, _PYTHON_RESERVED) for name in names), taken)


def c_identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Distinct ASCII identifiers for C that resemble the names: `θ` becomes `theta`."""
    return _distinct((_escaped(_ascii_identifier(name), _C_RESERVED) for name in names), taken)


def _escaped(name: str, reserved: frozenset[str]) -> str:
    if name.startswith("__"):
        name = "x" + name
    return name + "_" if name in reserved else name


def _distinct(names: Iterable[str], taken: Iterable[str]) -> list[str]:
    used = set(taken)
    result = []
    for name in names:
        unique, number = name, 2
        while unique in used:
            unique, number = f"{name}_{number}", number + 1
        used.add(unique)
        result.append(unique)
    return result


def _ascii_identifier(name: str) -> str:
    parts = []
    for char in unicodedata.normalize("NFKD", name):
        if char.isascii():
            parts.append(char if char.isalnum() or char == "_" else "_")
        elif not unicodedata.combining(char):
            spelled = re.search(r"LETTER (?:[A-Z]+ )*?([A-Z]+)(?: WITH .*)?$", unicodedata.name(char, ""))
            word = spelled[1].lower() if spelled else f"u{ord(char):x}"
            parts.append(word.capitalize() if char.isupper() else word)
    text = "".join(parts) or "x"
    # A leading underscore is the compiler's own in many places.
    return text if text[0].isalpha() else f"x{text}"
