"""Tree to MathML, which browsers and screen readers read without any library."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from html import escape
from typing import TypeAlias

from physdiffuser.expressions.operators import shown_name
from physdiffuser.expressions.printing.format import Digits, is_decimal, number_text
from physdiffuser.expressions.tree import Apply, Expression, Number, Parameter, Symbol, Variable

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)

_TIMES = '<mo lspace="0.15em" rspace="0.15em">⋅</mo>'
_INVISIBLE_TIMES = '<mo lspace="0.08em" rspace="0.08em">&#x2062;</mo>'
# Letters and digits of a term from which on it is divided into its factors.
_LONG = 30
_APPLIED = "<mo>&#x2061;</mo>"
_ARC = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
# Names that Unicode spells otherwise, or has two letters for.
_LETTERS = {
    "lambda": "λ",
    "lambd": "λ",
    "Lambda": "Λ",
    "hbar": "ℏ",
    "h_bar": "ℏ",
    "ell": "ℓ",
    "varepsilon": "ε",
    "vartheta": "ϑ",
    "varphi": "φ",
    "varrho": "ϱ",
}
_GREEK = frozenset(
    [
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "mu", "nu"),
        *("xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
    ]
)
_Part: TypeAlias = tuple[str, int]


def to_mathml(
    expression: Expression, names: Sequence[str] | None = None, digits: Digits | None = None
) -> str:
    """Write an expression as MathML, without the `<math>` around it.

    Parameters
    ----------
    names
        Variable names in column order; `x1`, `x2`, ... when not given. Subscripts and Greek letters
        are written as such, everything else is escaped.
    digits
        Significant digits of fitted constants, or a function that gives them for a value; all when None.

    Examples
    --------
    >>> from physdiffuser.expressions import parse
    >>> to_mathml(parse("a/2", ["a"]), ["a"])
    '<mfrac><mi>a</mi><mn>2</mn></mfrac>'
    """
    return _write(expression, names, digits)[0]


def mathml_terms(
    expression: Expression, names: Sequence[str] | None = None, digits: Digits | None = None
) -> list[str]:
    """The terms of a sum, each with its sign, so that a long formula can be broken between them.

    A formula that is no sum has one term. A long term is divided into its factors. Parameters as for
    `to_mathml`.
    """
    terms: list[str] = []
    while isinstance(expression, Apply) and expression.operator in ("add", "sub"):
        left, right = expression.arguments
        # At the start of an element a sign would be drawn close to what follows.
        sign = f'<mo form="infix">{"+" if expression.operator == "add" else "−"}</mo>'
        first, *rest = _factors(right, names, digits)
        if rest and not first.startswith("<mo>−</mo>"):
            terms += [*rest[::-1], f"{sign}{first}"]
        else:
            terms.append(f"{sign}{_term(right, names, digits)}")
        expression = left
    terms += _factors(expression, names, digits)[::-1]
    return terms[::-1]


def _factors(expression: Expression, names: Sequence[str] | None, digits: Digits | None) -> list[str]:
    """The factors of a long product, each but the last with the sign behind it; otherwise one part."""
    whole, _ = _write(expression, names, digits)
    shown = re.sub(r"<[^>]*>|&#x206[12];", "", whole)
    if len(shown) <= _LONG or not (isinstance(expression, Apply) and expression.operator == "mul"):
        return [whole]
    left, right = expression.arguments
    *before, last = _factors(left, names, digits)
    if not before:
        last = _wrap(_write(left, names, digits), _PRODUCT)
    sign, after = _times(last, _write(right, names, digits))
    return [*before, f"{last}{sign}", after]


def name_mathml(name: str) -> str:
    """A column's name, with subscripts and Greek letters."""
    if name in _LETTERS:
        return f"<mi>{_LETTERS[name]}</mi>"
    match = re.fullmatch(r"([^\W\d_]+)_?([0-9]+)", name) or re.fullmatch(r"([^\W_]+)_([^\W_]+)_?", name)
    if match:
        return f"<msub>{_word(match[1])}{_word(match[2])}</msub>"
    return _word(name)


def _word(text: str) -> str:
    if text.isdigit():
        return f"<mn>{escape(text)}</mn>"
    letter = _LETTERS.get(text)
    if letter is None and text.lower() in _GREEK and text in (text.lower(), text.capitalize()):
        kind = "CAPITAL" if text[0].isupper() else "SMALL"
        letter = unicodedata.lookup(f"GREEK {kind} LETTER {text.upper()}")
    return f"<mi>{escape(letter or text)}</mi>"


def _number(value: int | Fraction | float, digits: Digits | None) -> _Part:
    if isinstance(value, Fraction) and not is_decimal(value):
        fraction = f"<mfrac><mn>{abs(value.numerator)}</mn><mn>{value.denominator}</mn></mfrac>"
        return (f"<mo>−</mo>{fraction}", _SIGN) if value < 0 else (fraction, _PRODUCT)
    text = number_text(value, digits)
    sign = text.startswith("-")
    mantissa, _, exponent = text.lstrip("-").partition("e")
    written = f"<mn>{escape(mantissa)}</mn>"
    if exponent:
        above = str(int(exponent)).replace("-", "−")
        written = f"{written}<mo>×</mo><msup><mn>10</mn><mn>{above}</mn></msup>"
    if sign:
        return f"<mo>−</mo>{written}", _SIGN
    return written, _PRODUCT if exponent else _ATOM


def _write(expression: Expression, names: Sequence[str] | None, digits: Digits | None) -> _Part:
    match expression:
        case Number(value=value):
            return _number(value, digits)
        case Symbol(name=name):
            return name_mathml(name), _ATOM
        case Variable(index=index):
            return name_mathml(names[index] if names is not None else f"x{index + 1}"), _ATOM
        case Parameter(index=index):
            return name_mathml(f"c{index + 1}"), _ATOM
        case Apply(operator="div", arguments=(above, below)):
            return _fraction(above, below, names, digits)
        case Apply(operator="pow", arguments=(base, exponent)):
            return _power(base, exponent, names, digits)
        case Apply(operator="add" | "sub" as operator, arguments=(left, right)):
            sign = "+" if operator == "add" else "−"
            return f"{_write(left, names, digits)[0]}<mo>{sign}</mo>{_term(right, names, digits)}", _SUM
        case Apply(operator="mul", arguments=(left, right)):
            return _product(_write(left, names, digits), _write(right, names, digits)), _PRODUCT
        case Apply(operator="neg", arguments=(inner,)):
            return f"<mo>−</mo>{_term(inner, names, digits)}", _SIGN
        case Apply(operator="sqrt", arguments=(inner,)):
            return f"<msqrt>{_write(inner, names, digits)[0]}</msqrt>", _ATOM
        case Apply(operator="abs", arguments=(inner,)):
            return f"<mrow><mo>|</mo>{_write(inner, names, digits)[0]}<mo>|</mo></mrow>", _ATOM
        case Apply(operator="exp", arguments=(inner,)):
            return f"<msup><mi>e</mi>{_row(_write(inner, names, digits)[0])}</msup>", _POWER
        case Apply(operator=operator, arguments=arguments):
            inside = "<mo>,</mo>".join(_write(argument, names, digits)[0] for argument in arguments)
            name = _ARC.get(operator, shown_name(operator))
            return f"<mi>{escape(name)}</mi>{_APPLIED}{_brackets(inside)}", _ATOM


def _term(expression: Expression, names: Sequence[str] | None, digits: Digits | None) -> str:
    """What follows a sign: a sum, or something with a sign of its own, needs brackets."""
    text, precedence = _write(expression, names, digits)
    needs = precedence == _SUM or text.startswith("<mo>−</mo>")
    return _brackets(text) if needs else text


def _row(text: str) -> str:
    return f"<mrow>{text}</mrow>"


def _brackets(text: str) -> str:
    return f"<mrow><mo>(</mo>{text}<mo>)</mo></mrow>"


def _wrap(part: _Part, least: int) -> str:
    text, precedence = part
    return text if precedence >= least else _brackets(text)


def _product(left: _Part, right: _Part) -> str:
    before = _wrap(left, _PRODUCT)
    sign, after = _times(before, right)
    return f"{before}{sign}{after}"


def _times(before: str, right: _Part) -> tuple[str, str]:
    """The sign between two factors, and the second one with its brackets."""
    after = _wrap(right, _PRODUCT)
    if after.startswith("<mo>−</mo>"):
        after = _brackets(after)
    # Numbers side by side would read as one, and words as one word.
    begins_with_word = re.match(r"(<\w+>)*<mi>[^<]{2,}</mi>(?!<mo>&#x2061;)", after)
    ends_with_word = re.search(r"<mi>[^<]{2,}</mi>(</\w+>)*$", before)
    clear = after.startswith(("<mn>", "<mfrac><mn>")) or "<mn>" in after[:11]
    return _TIMES if clear or begins_with_word or ends_with_word else _INVISIBLE_TIMES, after


def _fraction(
    above: Expression, below: Expression, names: Sequence[str] | None, digits: Digits | None
) -> _Part:
    top, precedence = _write(above, names, digits)
    bottom, _ = _write(below, names, digits)
    sign = ""
    if precedence != _SUM and top.startswith("<mo>−</mo>"):
        sign, top = "<mo>−</mo>", top.removeprefix("<mo>−</mo>")
    return f"{sign}<mfrac>{_single(top)}{_single(bottom)}</mfrac>", _SIGN if sign else _PRODUCT


def _single(text: str) -> str:
    """One element as it is, several in a row: `<mfrac>` and `<msup>` count their children."""
    return text if re.fullmatch(r"<(\w+)>[^<]*</\1>", text) else _row(text)


def _power(
    base: Expression, exponent: Expression, names: Sequence[str] | None, digits: Digits | None
) -> _Part:
    above, _ = _write(exponent, names, digits)
    if isinstance(exponent, Number) and isinstance(exponent.value, Fraction):
        value = exponent.value
        minus = "<mo>−</mo>" if value < 0 else ""
        above = f"{minus}<mn>{abs(value.numerator)}</mn><mo>/</mo><mn>{value.denominator}</mn>"
    called = isinstance(base, Apply) and base.operator in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "log")
    whole = isinstance(exponent, Number) and isinstance(exponent.value, int) and exponent.value > 0
    if called and whole and isinstance(base, Apply):
        inner, _ = _write(base.arguments[0], names, digits)
        function = f"<msup><mi>{base.operator}</mi>{_single(above)}</msup>"
        return f"{function}{_APPLIED}{_brackets(inner)}", _ATOM
    below = _wrap(_write(base, names, digits), _ATOM)
    return f"<msup>{_single(below)}{_single(above)}</msup>", _POWER
