r"""Tree to LaTeX: fractions, roots, Greek letters and subscripts from the names of the columns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

from physdiffuser.expressions.operators import shown_name
from physdiffuser.expressions.printing.format import Digits, is_decimal, number_text
from physdiffuser.expressions.tree import Apply, Expression, Number, Parameter, Symbol, Variable

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)

_GREEK = frozenset(
    [
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu", "nu"),
        *(
            "xi",
            "pi",
            "rho",
            "sigma",
            "tau",
            "upsilon",
            "phi",
            "chi",
            "psi",
            "omega",
            "varepsilon",
            "vartheta",
        ),
        *(
            "varphi",
            "varrho",
            "Gamma",
            "Delta",
            "Theta",
            "Lambda",
            "Xi",
            "Pi",
            "Sigma",
            "Upsilon",
            "Phi",
            "Psi",
        ),
        *("Omega", "hbar", "ell"),
    ]
)
_GREEK_SPELLINGS = {
    "lambda": "lambda",
    "lambd": "lambda",
    "lambda_": "lambda",
    "hbar": "hbar",
    "h_bar": "hbar",
}
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_OWN_COMMAND = frozenset({"exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh"})
_ARC = {"asin": r"\arcsin", "acos": r"\arccos", "atan": r"\arctan"}


def to_latex(expression: Expression, names: Sequence[str] | None = None, digits: Digits | None = None) -> str:
    r"""Write an expression as LaTeX, for math mode.

    Parameters
    ----------
    names
        Variable names in column order; `x_{1}`, `x_{2}`, ... when not given. `theta` becomes
        `\theta`, `v0` and `v_0` become `v_{0}`; what has a meaning in LaTeX is escaped.
    digits
        Significant digits of fitted constants, or a function that gives them for a value; all when None.
    """
    return _write(expression, names, digits)[0]


def latex_name(name: str) -> str:
    """A column's name for math mode, with subscripts and Greek letters."""
    match = re.fullmatch(r"([^\W\d_]+)_?([0-9]+)", name) or re.fullmatch(r"([^\W_]+)_([^\W_]+)_?", name)
    if name in _GREEK_SPELLINGS:
        return f"\\{_GREEK_SPELLINGS[name]}"
    if match:
        return f"{_word(match[1])}_{{{_word(match[2])}}}"
    return _word(name)


def _word(text: str) -> str:
    spelled = _GREEK_SPELLINGS.get(text, text)
    if spelled in _GREEK or spelled == "lambda":
        return f"\\{spelled}"
    if len(text) == 1 and (text.isascii() and text.isalnum()):
        return text
    if len(text) == 1:
        # A Greek letter itself: its Unicode name spells the command.
        words = unicodedata.name(text, "").split()
        if words[:1] == ["GREEK"] and len(words) == 4 and words[2] == "LETTER":
            command = words[3].lower().replace("lamda", "lambda")
            command = command if words[1] == "SMALL" else command.capitalize()
            if command in _GREEK or command in ("lambda", "Lambda"):
                return f"\\{command}"
    if text.isdigit():
        return text
    return "\\mathrm{" + "".join(_ESCAPES.get(letter, letter) for letter in text) + "}"


def _number(value: int | Fraction | float, digits: Digits | None) -> tuple[str, int]:
    if isinstance(value, Fraction) and not is_decimal(value):
        sign = "-" if value < 0 else ""
        text = f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
        return text, _SIGN if sign else _PRODUCT
    text = number_text(value, digits)
    mantissa, _, exponent = text.partition("e")
    if exponent:
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}", _SIGN if text.startswith("-") else _PRODUCT
    return text, _SIGN if text.startswith("-") else _ATOM


def _write(expression: Expression, names: Sequence[str] | None, digits: Digits | None) -> tuple[str, int]:
    match expression:
        case Number(value=value):
            return _number(value, digits)
        case Symbol(name=name):
            return latex_name(name), _ATOM
        case Variable(index=index):
            return (latex_name(names[index]) if names is not None else f"x_{{{index + 1}}}"), _ATOM
        case Parameter(index=index):
            return f"c_{{{index + 1}}}", _ATOM
        case Apply(operator=operator, arguments=arguments):
            if operator == "div":
                return _fraction(arguments, names, digits)
            if operator == "pow":
                return _power(arguments, names, digits)
            parts = [_write(argument, names, digits) for argument in arguments]
            match operator:
                case "add" | "sub":
                    sign = "+" if operator == "add" else "-"
                    right = _wrap(parts[1], _PRODUCT)
                    if right.startswith("-"):
                        right = _brackets(right)
                    return f"{parts[0][0]} {sign} {right}", _SUM
                case "mul":
                    return _product(parts), _PRODUCT
                case "neg":
                    inner = _wrap(parts[0], _PRODUCT)
                    if inner.startswith("-"):
                        inner = _brackets(inner)
                    return f"-{inner}", _SIGN if parts[0][1] > _PRODUCT else _PRODUCT
                case "sqrt":
                    return f"\\sqrt{{{parts[0][0]}}}", _ATOM
                case "abs":
                    return f"\\left|{parts[0][0]}\\right|", _ATOM
                case "exp":
                    return f"e^{{{parts[0][0]}}}", _POWER
            inner = ", ".join(text for text, _ in parts)
            command = (
                f"\\{operator}"
                if operator in _OWN_COMMAND
                else _ARC.get(operator, f"\\operatorname{{{_escaped(shown_name(operator))}}}")
            )
            return f"{command}{_brackets(inner)}", _ATOM


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(letter, letter) for letter in text)


def _brackets(text: str) -> str:
    return f"\\left({text}\\right)"


def _wrap(part: tuple[str, int], least: int) -> str:
    text, precedence = part
    return text if precedence >= least else _brackets(text)


def _product(parts: Sequence[tuple[str, int]]) -> str:
    left, right = _wrap(parts[0], _PRODUCT), _wrap(parts[1], _PRODUCT)
    if right.startswith("-"):
        right = _brackets(right)
    # Two numbers side by side would read as one.
    sign = r" \cdot " if right[:1].isdigit() or right.startswith((".", r"\frac{1")) else " "
    return f"{left}{sign}{right}"


def _fraction(
    arguments: Sequence[Expression], names: Sequence[str] | None, digits: Digits | None
) -> tuple[str, int]:
    top, precedence = _write(arguments[0], names, digits)
    bottom, _ = _write(arguments[1], names, digits)
    sign = ""
    if top.startswith("-") and precedence != _SUM:
        sign, top = "-", top[1:]
    return f"{sign}\\frac{{{top}}}{{{bottom}}}", _PRODUCT


def _power(
    arguments: Sequence[Expression], names: Sequence[str] | None, digits: Digits | None
) -> tuple[str, int]:
    base, exponent = arguments
    above, _ = _write(exponent, names, digits)
    if isinstance(exponent, Number) and isinstance(exponent.value, Fraction):
        value = exponent.value
        above = f"{value.numerator}/{value.denominator}"
    if isinstance(base, Apply) and base.operator in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log"):
        whole = isinstance(exponent, Number) and isinstance(exponent.value, int) and exponent.value > 0
        if whole:
            inner, _ = _write(base.arguments[0], names, digits)
            return f"\\{base.operator}^{{{above}}}{_brackets(inner)}", _ATOM
    below = _write(base, names, digits)
    return f"{_wrap(below, _ATOM)}^{{{above}}}", _POWER
