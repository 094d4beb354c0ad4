"""Units of measurement as exponent vectors, and the text they are written in.

A unit is a mapping from base symbols to rational exponents. The base is the SI's seven units, but open:
any other base symbol (a currency, a pixel) may occur, written in brackets. Sizes are not kept: what the
search needs is that a formula balances, and values stay as the table has them.

The grammar, so that nothing from outside is ever evaluated:

    unit     := power (("*" | "/" | " ") power)*      left to right; not both "/" and " "
    power    := atom (("**" | "^")? exponent)?         also m2, s-1 and m²
    atom     := name | "[" name "]" | "1" | "(" unit ")"
    exponent := integer | decimal | "(" integer "/" integer ")"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible
from physdiffuser.units.unit_names import SI_BASE, named_unit

FEYNMAN_BASE = ("m", "s", "kg", "K", "V")
"""The base in which the Feynman Symbolic Regression Database gives its exponents."""

MAX_LENGTH = 200
MAX_EXPONENT = 100
Exponent = int | Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A product of powers of base units; immutable and hashable.

    Attributes
    ----------
    exponents
        Pairs of base symbol and exponent, sorted by symbol, no exponent zero. Equal units are equal
        objects whatever they were made from.

    Examples
    --------
    >>> Unit.parse("kg*m**2/s^2") == Unit.parse("J") == Unit.of({"m": 2, "kg": 1, "s": -2})
    True
    >>> str(Unit.parse("N") / Unit.parse("kg"))
    'm/s**2'
    """

    exponents: tuple[tuple[str, Fraction], ...] = ()

    @classmethod
    def of(cls, exponents: Mapping[str, Exponent] | Iterable[tuple[str, Exponent]]) -> Unit:
        """Unit from base symbols and exponents; zeros are dropped."""
        pairs = exponents.items() if isinstance(exponents, Mapping) else exponents
        total: dict[str, Fraction] = {}
        for symbol, exponent in pairs:
            total[symbol] = total.get(symbol, Fraction(0)) + Fraction(exponent)
        return cls(tuple(sorted((symbol, exponent) for symbol, exponent in total.items() if exponent)))

    @classmethod
    def from_vector(cls, exponents: Sequence[Exponent], base: Sequence[str] = SI_BASE) -> Unit:
        """Unit from a list of exponents over `base`, which may hold derived units such as V.

        Raises
        ------
        UsageError
            If the two differ in length.
        """
        if len(exponents) != len(base):
            raise UsageError(f"{len(exponents)} exponents for {len(base)} base units ({' '.join(base)})")
        unit = DIMENSIONLESS
        for symbol, exponent in zip(base, exponents, strict=True):
            unit = unit * _atom(symbol).unit ** Fraction(exponent)
        return unit

    @classmethod
    def parse(cls, text: str) -> Unit:
        """Unit from text such as `kg*m**2/s^2`; its size is dropped (see `parse_unit`).

        Raises
        ------
        UsageError
            If the text is no unit, or names one that is not known.
        """
        return parse_unit(text).unit

    def exponent(self, symbol: str) -> Fraction:
        """Exponent of one base symbol."""
        return dict(self.exponents).get(symbol, Fraction(0))

    def __mul__(self, other: Unit) -> Unit:
        return Unit.of((*self.exponents, *other.exponents))

    def __truediv__(self, other: Unit) -> Unit:
        return self * other**-1

    def __pow__(self, exponent: Exponent) -> Unit:
        return Unit.of((symbol, value * exponent) for symbol, value in self.exponents)

    def __str__(self) -> str:
        above = [_power_text(symbol, value) for symbol, value in self.exponents if value > 0]
        below = [_power_text(symbol, -value) for symbol, value in self.exponents if value < 0]
        text = "*".join(above) or "1"
        if below:
            text += "/" + (below[0] if len(below) == 1 else f"({'*'.join(below)})")
        return text


def _power_text(symbol: str, exponent: Fraction) -> str:
    name = symbol if symbol in SI_BASE else f"[{symbol}]"
    if exponent == 1:
        return name
    return f"{name}**{exponent}" if exponent.denominator == 1 else f"{name}**({exponent})"


DIMENSIONLESS = Unit()


@dataclass(frozen=True, slots=True)
class ParsedUnit:
    """A unit with its size.

    Attributes
    ----------
    unit
        The exponents.
    factor
        How many SI units one of it is: 1000 for km.
    offset
        Whether its zero is not zero (degrees Celsius): ratios of such values mean nothing.
    """

    unit: Unit
    factor: float = 1.0
    offset: bool = False

    def __mul__(self, other: ParsedUnit) -> ParsedUnit:
        return ParsedUnit(self.unit * other.unit, self.factor * other.factor, self.offset or other.offset)

    def __pow__(self, exponent: Fraction) -> ParsedUnit:
        return ParsedUnit(self.unit**exponent, self.factor ** float(exponent), self.offset)


_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_TOKEN = re.compile(
    r"(?P<space>\s*)(?:(?P<name>[^\W\d_]+(?:_[^\W\d_]+)*|%|°[^\W\d_]*|Å|\[[^\[\]]{1,40}\])"
    r"|(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<power>\*\*|\^)|(?P<sign>[*/()·⋅]))"
)
_WORDS_FOR_ONE = frozenset({"", "1", "-", "—", "none", "dimensionless"})


@lru_cache(maxsize=4096)
def parse_unit(text: str) -> ParsedUnit:
    """Read a unit and its size.

    Parameters
    ----------
    text
        Such as `m/s`, `kg*m**2/s^2`, `kg m2 s-2`, `W/(m*K)`, `1`. SI base units and the SI's derived
        units with a symbol are known by themselves; prefixed and other ones (`km`, `eV`) need pint.

    Raises
    ------
    UsageError
        If the text is no unit, or names one that is not known.
    """
    if len(text) > MAX_LENGTH:
        raise UsageError(f"unit of {len(text)} characters; at most {MAX_LENGTH} are read")
    stripped = text.strip()
    if stripped.lower() in _WORDS_FOR_ONE:
        return ParsedUnit(DIMENSIONLESS)
    try:
        parsed = _Parser(stripped).parse()
    except OverflowError:
        parsed = None
    if parsed is None or not 1e-300 < parsed.factor < 1e300:
        raise UsageError(f"unit '{visible(text)}': its size in SI units is out of range")
    return parsed


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, bool]] = []
        # A superscript is an exponent: "m²" reads as "m^2", and then only digits remain to be read.
        marked = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", lambda match: "^" + match[1].translate(_SUPERSCRIPT), text)
        at = 0
        while at < len(marked):
            match = _TOKEN.match(marked, at)
            if match is None or match.lastgroup is None:
                raise self._error(f"unexpected character {marked[at:].lstrip()[:1]!a}")
            kind = match.lastgroup
            self.tokens.append((kind, match[kind], bool(match["space"])))
            at = match.end()
        self.tokens.append(("end", "", False))
        self.position = 0

    def _error(self, what: str) -> UsageError:
        return UsageError(f"unit '{visible(self.text)}': {what}; write it like kg*m**2/s**2")

    def _peek(self) -> tuple[str, str, bool]:
        return self.tokens[self.position]

    def _next(self) -> tuple[str, str, bool]:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def parse(self) -> ParsedUnit:
        unit = self._product(0)
        kind, value, _ = self._peek()
        if kind != "end":
            raise self._error(f"unexpected {value!a}")
        return unit

    def _product(self, depth: int) -> ParsedUnit:
        if depth > 20:
            raise self._error("too many parentheses")
        unit = self._power(depth)
        divided = spaced = False
        while True:
            kind, value, _ = self._peek()
            if value in ("*", "·", "⋅") and kind == "sign":
                self._next()
                unit = unit * self._power(depth)
            elif value == "/" and kind == "sign":
                self._next()
                divided = True
                unit = unit * self._power(depth) ** Fraction(-1)
            elif kind == "name" or value == "(":
                spaced = True
                unit = unit * self._power(depth)
            else:
                break
        if divided and spaced:
            raise self._error("'/' with a product written as a space is ambiguous: use '*' and parentheses")
        return unit

    def _power(self, depth: int) -> ParsedUnit:
        kind, value, _ = self._next()
        if kind == "name":
            unit = _atom(value)
        elif kind == "number" and Fraction(value) == 1:
            unit = ParsedUnit(DIMENSIONLESS)
        elif value == "(":
            unit = self._product(depth + 1)
            if self._next()[1] != ")":
                raise self._error("missing ')'")
        else:
            raise self._error(f"expected a unit where {value!a} stands" if value else "it ends too early")
        kind, value, spaced = self._peek()
        if kind == "power":
            self._next()
            return unit ** self._exponent()
        if kind == "number" and not spaced:
            self._next()
            return unit ** self._checked(value)
        return unit

    def _exponent(self) -> Fraction:
        kind, value, _ = self._next()
        if kind == "number":
            return self._checked(value)
        if value != "(":
            raise self._error("expected an exponent after '**'")
        kind, value, _ = self._next()
        if kind != "number":
            raise self._error("expected a number in the exponent")
        exponent = self._checked(value)
        if self._peek()[1] == "/":
            self._next()
            kind, value, _ = self._next()
            if kind != "number" or Fraction(value) == 0:
                raise self._error("expected a number other than 0 below the fraction bar")
            exponent /= self._checked(value)
        if self._next()[1] != ")":
            raise self._error("missing ')'")
        return exponent

    def _checked(self, text: str) -> Fraction:
        exponent = Fraction(text)
        if abs(exponent) > MAX_EXPONENT or exponent.denominator > MAX_EXPONENT:
            raise self._error(f"exponent {text} is out of range")
        return exponent


@lru_cache(maxsize=1024)
def _atom(name: str) -> ParsedUnit:
    if name.startswith("["):
        symbol = name[1:-1].strip()
        if not symbol:
            raise UsageError("unit '[]': a base unit of your own needs a name between the brackets")
        return ParsedUnit(Unit.of({symbol: 1}))
    exponents, factor, offset = named_unit(name)
    return ParsedUnit(Unit.of(exponents), factor, offset)
