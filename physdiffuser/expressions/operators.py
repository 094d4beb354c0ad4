"""The one table of operators: name, arity, complexity, numeric form, derivatives, sympy form, domain.

Plugins add rows with `register`. Everything else in the package (parser, printer, evaluator,
enumeration, exports) reads this table and has no list of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions.simplification import trigonometry

if TYPE_CHECKING:
    from physdiffuser.expressions.definitions import Definition

Numeric = Callable[..., FloatArray]


@dataclass(frozen=True, slots=True)
class OperatorSpec:
    """One operator.

    Attributes
    ----------
    name
        Its prefix token and, for functions, the name read and written in formulas.
    arity
        One or two.
    complexity
        What one occurrence adds to the complexity of a formula; a leaf adds 1.
    evaluate
        Elementwise numpy form; takes `arity` arrays and returns one. It is called with floating
        point errors silenced and returns nan or inf outside the domain.
    derivatives
        One function per argument, called as `f(*arguments, value)`: the partial derivative.
    sympy
        Builds the sympy form from sympy arguments; imports sympy only when called.
    domain
        What the arguments must satisfy, in words; shown in the documentation.
    infix
        The sign written between two arguments, or None for functions.
    c, torch
        Name of the C function and of the `torch` function, when they differ from `name`.
    degree
        How units pass through: the arguments share one unit and the value has it to this power (1 for
        `abs`, 1/2 for `sqrt`, 0 for a sign). None when the arguments must be dimensionless, as the value
        then is. `mul`, `div` and `pow` have rules of their own.
    definition
        Of an operator that a user has defined by a formula; `name` is then its key in the table.
    """

    name: str
    arity: int
    complexity: int
    evaluate: Numeric
    derivatives: tuple[Numeric, ...]
    sympy: Callable[..., Any]
    domain: str = "all reals"
    infix: str | None = None
    c: str | None = None
    torch: str | None = None
    degree: int | Fraction | None = None
    definition: Definition | None = None


def _sympy_function(name: str, *arguments: Any) -> Any:
    import sympy

    return getattr(sympy, name)(*arguments)


def _sympy_infix(sign: str, left: Any, right: Any) -> Any:
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right
        case _:
            return left**right


def _sympy_negative(argument: Any) -> Any:
    return -argument


def _one(*arguments: FloatArray) -> FloatArray:
    return np.ones_like(arguments[-1])


def _minus_one(*arguments: FloatArray) -> FloatArray:
    return -np.ones_like(arguments[-1])


def _second(left: FloatArray, right: FloatArray, value: FloatArray) -> FloatArray:
    return right


def _first(left: FloatArray, right: FloatArray, value: FloatArray) -> FloatArray:
    return left


def _div_left(left: FloatArray, right: FloatArray, value: FloatArray) -> FloatArray:
    return 1.0 / right


def _div_right(left: FloatArray, right: FloatArray, value: FloatArray) -> FloatArray:
    return -value / right


def _pow_base(base: FloatArray, exponent: FloatArray, value: FloatArray) -> FloatArray:
    # Not value * exponent / base, which is nan at base = 0.
    return exponent * np.power(base, exponent - 1.0)


def _pow_exponent(base: FloatArray, exponent: FloatArray, value: FloatArray) -> FloatArray:
    # 0**e is 0 for e > 0 and does not move with e; log(0) would make it nan.
    return np.where(base == 0.0, 0.0, value * np.log(base))


def _power(base: FloatArray, exponent: FloatArray) -> FloatArray:
    # numpy's general power is some 20 times slower than these, and they are most of what occurs.
    if np.ndim(exponent) == 0:
        if exponent == 2.0:
            return base * base
        if exponent == 3.0:
            return base * base * base
        if exponent == 4.0:
            return np.square(base * base)
        if exponent == -1.0:
            return 1.0 / base
        if exponent == -2.0:
            return 1.0 / (base * base)
        if exponent == 0.5:
            return np.sqrt(base)
        if exponent == 1.5:
            return base * np.sqrt(base)
        if exponent == -0.5:
            return 1.0 / np.sqrt(base)
    return np.power(base, exponent)


def _d_sqrt(argument: FloatArray, value: FloatArray) -> FloatArray:
    return 0.5 / value


def _d_exp(argument: FloatArray, value: FloatArray) -> FloatArray:
    return value


def _d_log(argument: FloatArray, value: FloatArray) -> FloatArray:
    return 1.0 / argument


def _d_sin(argument: FloatArray, value: FloatArray) -> FloatArray:
    return trigonometry.cos(argument)


def _d_cos(argument: FloatArray, value: FloatArray) -> FloatArray:
    return -trigonometry.sin(argument)


def _d_tan(argument: FloatArray, value: FloatArray) -> FloatArray:
    return 1.0 + value * value


def _d_asin(argument: FloatArray, value: FloatArray) -> FloatArray:
    return 1.0 / np.sqrt(1.0 - argument * argument)


def _d_acos(argument: FloatArray, value: FloatArray) -> FloatArray:
    return -1.0 / np.sqrt(1.0 - argument * argument)


def _d_atan(argument: FloatArray, value: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + argument * argument)


def _d_sinh(argument: FloatArray, value: FloatArray) -> FloatArray:
    return np.cosh(argument)


def _d_cosh(argument: FloatArray, value: FloatArray) -> FloatArray:
    return np.sinh(argument)


def _d_tanh(argument: FloatArray, value: FloatArray) -> FloatArray:
    return 1.0 - value * value


def _d_abs(argument: FloatArray, value: FloatArray) -> FloatArray:
    return np.sign(argument)


def _infix(name: str, sign: str, evaluate: Numeric, derivatives: tuple[Numeric, Numeric]) -> OperatorSpec:
    domain = {"div": "second argument not 0", "pow": "base > 0, or base < 0 with a whole exponent"}
    return OperatorSpec(
        name,
        2,
        1,
        evaluate,
        derivatives,
        partial(_sympy_infix, sign),
        domain=domain.get(name, "all reals"),
        infix=sign,
        degree=1 if name in ("add", "sub") else None,
    )


def _function(
    name: str,
    complexity: int,
    evaluate: Numeric,
    derivative: Numeric,
    *,
    sympy: str | None = None,
    domain: str = "all reals",
    c: str | None = None,
    degree: int | Fraction | None = None,
) -> OperatorSpec:
    return OperatorSpec(
        name,
        1,
        complexity,
        evaluate,
        (derivative,),
        partial(_sympy_function, sympy or name),
        domain=domain,
        c=c,
        degree=degree,
    )


_BUILT_IN = (
    _infix("add", "+", np.add, (_one, _one)),
    _infix("sub", "-", np.subtract, (_one, _minus_one)),
    _infix("mul", "*", np.multiply, (_second, _first)),
    _infix("div", "/", np.divide, (_div_left, _div_right)),
    _infix("pow", "**", _power, (_pow_base, _pow_exponent)),
    OperatorSpec("neg", 1, 1, np.negative, (_minus_one,), _sympy_negative, degree=1),
    _function("sqrt", 1, np.sqrt, _d_sqrt, domain="argument >= 0", degree=Fraction(1, 2)),
    _function("exp", 2, np.exp, _d_exp),
    _function("log", 2, np.log, _d_log, domain="argument > 0"),
    _function("sin", 2, trigonometry.sin, _d_sin),
    _function("cos", 2, trigonometry.cos, _d_cos),
    _function("tan", 3, np.tan, _d_tan, domain="argument not an odd multiple of pi/2"),
    _function("asin", 3, np.arcsin, _d_asin, domain="-1 <= argument <= 1"),
    _function("acos", 3, np.arccos, _d_acos, domain="-1 <= argument <= 1"),
    _function("atan", 3, np.arctan, _d_atan),
    _function("sinh", 3, np.sinh, _d_sinh),
    _function("cosh", 3, np.cosh, _d_cosh),
    _function("tanh", 3, np.tanh, _d_tanh),
    _function("abs", 2, np.abs, _d_abs, sympy="Abs", c="fabs", degree=1),
)

OPERATORS: dict[str, OperatorSpec] = {spec.name: spec for spec in _BUILT_IN}
BUILT_IN_NAMES = frozenset(OPERATORS)

# Read, never written: other spellings of the same functions.
SPELLINGS = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "ln": "log",
    "Abs": "abs",
}


def shown_name(operator: str) -> str:
    """What formulas call an operator; one that is in no table, of a derivation, by its name."""
    spec = OPERATORS.get(operator)
    return operator if spec is None or spec.definition is None else spec.definition.name


def register(spec: OperatorSpec) -> None:
    """Add a row to the table.

    More than eight parameters: the columns of the operator table, most of them with a default.

    Raises
    ------
    ValueError
        If the name is taken, is no identifier, or the row contradicts itself.
    """
    if spec.name in OPERATORS or spec.name in SPELLINGS:
        raise ValueError(f"operator {spec.name!r} exists already; choose another name")
    if not spec.name.isidentifier():
        raise ValueError(f"operator name {spec.name!r} is no identifier")
    if spec.arity not in (1, 2) or len(spec.derivatives) != spec.arity:
        raise ValueError(f"operator {spec.name!r}: arity must be 1 or 2, with one derivative per argument")
    if spec.infix is not None:
        raise ValueError(
            f"operator {spec.name!r}: new operators are written as functions, without an infix sign"
        )
    OPERATORS[spec.name] = spec
