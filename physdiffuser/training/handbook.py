"""Random laws with the idioms of handbooks: saturations, weighted means, parallel sums, ratios of sums.

A law is one or two pieces, often with a product of powers in front or a further term. A piece is a template:
a formula whose letters are filled with columns, small products of columns and constants. The function
families of the search (`physdiffuser.functions.families`) are templates as well. What was written is brought
into the arrangement of the other training laws (`physdiffuser.models.tokens.canonical_skeleton`).
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from functools import cache

from physdiffuser.expressions import Apply, Expression, Number, Parameter, Variable, parse
from physdiffuser.expressions.tree import add, call, div, mul, power, sub, substitute, walk
from physdiffuser.functions.table import compiled_built_in
from physdiffuser.models.tokens.canonical_skeleton import canonical_skeleton
from physdiffuser.models.tokens.skeleton import terms
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES
from physdiffuser.training.laws import Draws, Law

# Weight and formula. The letters n and m are exponents, all others are quantities.
_TEMPLATES: tuple[tuple[float, str], ...] = (
    (8, "a/(a + b)"), (4, "1/(1 + a)"), (4, "a**n/(a**n + b**n)"), (3, "1/(1 + a**n)"), (2, "1/(1 + a)**2"),
    (3, "1/sqrt(1 + a**2)"), (2, "a/sqrt(a**2 + b**2)"), (3, "1/(1 + a + b)"), (2, "1/(1 + a + a**2/b)"),
    (2, "a/(b*(1 + c) + a)"), (2, "a*b/(1 + a + b)"), (1, "a/(1 + a)**n"), (2, "a/(1 - b + b*a)"),
    (5, "1 - exp(-a)"), (6, "exp(-a)"), (2, "exp(-a**n)"), (2, "a*exp(-a)"), (2, "exp(-a**2)"),
    (2, "exp(-a*t) - exp(-b*t)"), (2, "a + b*exp(-c)"), (1.5, "1/(exp(a) - 1)"), (2, "exp(-b*exp(-a))"),
    (2, "exp(a*(1/b - 1/c))"), (3, "1/(1 + exp((a - b)/c))"), (2, "a/(1 + (a/b - 1)*exp(-c))"),
    (2, "tanh(a)"), (3, "log(1 + a)"), (3, "log(a/b)"), (1, "log((a + b)/c)"), (1, "1/log(a/b)"),
    (2, "a + b*log(c)"), (1.5, "atan(a)"), (1.5, "asin(a)"), (1, "1/tanh(a) - 1/a"), (1, "sin(a)/a"),
    (3, "exp(-a)*cos(b)"), (3, "exp(-a*t)*cos(b*t + c)"), (2, "1 - a*cos(b)"), (2, "sin(a)**2"),
    (2, "a*cos(b) + c*sin(b)"), (1.5, "sqrt(a**2 - sin(b)**2)"), (1, "tan(a)/tan(a + b)"),
    (1, "1 - cos(a)"), (3, "1 + a"), (4, "1 - a"), (2, "(1 - a)**2"), (2, "1 - a**2"),
    (2, "sqrt(1 - a**2)"), (2, "a/(1 - a)"), (3, "(1 + a)**n"), (2, "(1 - a)**n"), (2, "a*(1 - a)"),
    (2, "1 + a*b + c*b**2"), (2, "((1 + a)**n - 1)/a"), (2, "1/a - 1/b"), (3, "a**n - b**n"),
    (2, "a**4 - b**4"), (2, "sqrt(a**2 - b**2)"), (2, "sqrt(a**2 + b**2)"), (2, "sqrt(a + b**2) - b"),
    (1.5, "sqrt(1 + a) - 1"), (1, "(a**3 - b**3)/(a**2 - b**2)"), (1, "a**n + b**n"), (3, "1/(1/a + 1/b)"),
    (2, "1/(1/a + 1/b + 1/c)"), (1, "1/sqrt(1/a**2 + 1/b**2)"), (2, "1/(a + b/c)"),
    (3, "(a*c + b*d)/(a + b)"), (3, "a*c + (1 - a)*d"), (2, "a/b + (1 - a)/c"), (3, "(a + b)/(c + d)"),
    (2, "(a - b)/(a + b)"), (2, "(a - b)/(c + b)"), (2, "(a**2 + b)/(c + a*d)"),
    (2, "(a**2 - b**2)/(a**2 + b**2)"), (2, "(a + b*t)/(1 + c*t)"), (2, "(a + b*t)/(1 + c*t + d*t**2)"),
    (1, "(a*t + b*t**2)/(1 + c*t + d*t**2)"), (3, "a + b*c**n"), (3, "a**n*b**m"), (2, "(a + b)**n"),
    (2, "a**n/(b + c)"), (1, "a**(b - 1)*(1 - a)"),
)  # fmt: skip
_WEIGHTS = [weight for weight, _ in _TEMPLATES]
_EXPONENT_NAMES = ("n", "m")
_COLUMNS = ((1, 2, 3, 4, 5, 6, 7), (14, 24, 26, 18, 10, 5, 3))
_MAX_CONSTANTS = 5
_FROM_FAMILIES = 0.15
_LETTER = re.compile(r"\b[a-z]\b")


@dataclass(frozen=True)
class _Template:
    """A formula with the names of its slots, in the order of the tree's variables."""

    tree: Expression
    slots: tuple[str, ...]


@cache
def _templates() -> tuple[_Template, ...]:
    found = []
    for _, text in _TEMPLATES:
        slots = tuple(dict.fromkeys(_LETTER.findall(text)))
        found.append(_Template(parse(text, slots), slots))
    return tuple(found)


@cache
def _families() -> tuple[_Template, ...]:
    """The families with the constants inside as further slots; those with more than three are left out."""
    found = []
    for family in compiled_built_in():
        count = family.constants + len(family.spec.coefficients)
        if not 1 <= count <= 3:
            continue
        arity = family.spec.arity
        names = (*("uv"[:arity]), *("constant" for _ in range(count)))

        def replace(node: Expression, arity: int = arity) -> Expression | None:
            return Variable(arity + node.index) if isinstance(node, Parameter) else None

        found.append(_Template(substitute(family.tree, replace), names))
    return tuple(found)


class HandbookSampler(Draws):
    """Draws random laws of other fields than mechanics and electricity."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self._free: list[int] = []
        self._used: list[int] = []
        self._here: set[int] = set()

    def sample(self) -> Law | None:
        """One law, or None if what was drawn has no column or is more than one formula can hold."""
        self._free = self.source.sample(range(MAX_VARIABLES), self.source.choices(*_COLUMNS)[0])
        self._used, self._constants = [], 0
        law = self._piece()
        kind = self.source.choices(("alone", "times", "two", "sum", "inside"), (22, 33, 17, 18, 10))[0]
        if kind == "times":
            law = self._times(law)
        elif kind == "two":
            law = self._times(mul(law, self._piece()))
        elif kind == "sum":
            first = self._times(law) if self._chance(0.6) else law
            second = self._monomial() if self._chance(0.6) else self._piece()
            law = add(first, second) if self._chance(0.65) else sub(first, second)
        elif kind == "inside":
            name = self.source.choices(("sqrt", "log", "exp", "square", "inverse"), (4, 2, 2, 1, 2))[0]
            law = _outer(name, self._times(law) if self._chance(0.4) else law)
        return self._finished(law) if self._used else None

    def _finished(self, law: Expression) -> Law | None:
        """The law in the usual arrangement, with a parameter of its own wherever a constant stands."""
        skeleton = canonical_skeleton(law)
        count = 0
        exponents: set[int] = set()

        def numbered(node: Expression, exponent: bool = False) -> Expression:
            nonlocal count
            if isinstance(node, Parameter):
                count += 1
                if exponent:
                    exponents.add(count - 1)
                return Parameter(count - 1)
            if not isinstance(node, Apply):
                return node
            parts = [
                numbered(part, node.operator == "pow" and place == 1)
                for place, part in enumerate(node.arguments)
            ]
            return Apply(node.operator, tuple(parts))

        written = numbered(skeleton)
        places = sorted({node.index for node in walk(written) if isinstance(node, Variable)})
        if not places or count > _MAX_CONSTANTS:
            return None
        signs = [1, *(self.source.choice((1, 1, -1)) for _ in terms(written)[1:])]
        signed = tuple(zip(signs, terms(written), strict=True))
        return Law(signed, tuple(places), count, exponents=frozenset(exponents))

    def _piece(self) -> Expression:
        self._here = set()
        if self._chance(_FROM_FAMILIES):
            template = self.source.choice(_families())
        else:
            template = self.source.choices(_templates(), _WEIGHTS)[0]
        filled = [self._filled(slot) for slot in template.slots]
        return substitute(
            template.tree, lambda node: filled[node.index] if isinstance(node, Variable) else None
        )

    def _filled(self, slot: str) -> Expression:
        if slot in _EXPONENT_NAMES:
            return self._exponent()
        kind = self.source.random()
        if slot == "constant":
            return self._constant() if kind < 0.5 else self._variable()
        if kind < 0.60:
            return self._variable()
        if kind < 0.74:
            return div(self._variable(), self._variable())
        if kind < 0.82:
            return mul(self._variable(), self._variable())
        return mul(self._constant(), self._variable()) if kind < 0.92 else self._constant()

    def _exponent(self) -> Expression:
        kind = self.source.random()
        if kind < 0.30:
            return Number(self.source.choice((2, 2, 3, 4)))
        return self._variable() if kind < 0.55 else self._constant()

    def _variable(self) -> Expression:
        """A column that the piece does not have yet, most often a new one; a constant when there is none."""
        if self._free and (not self._used or self._chance(0.9)):
            place = self._free.pop()
            self._used.append(place)
        else:
            others = [place for place in self._used if place not in self._here]
            if not others:
                return self._constant()
            place = self.source.choice(others)
        self._here.add(place)
        return Variable(place)

    def _monomial(self) -> Expression:
        """A product of powers of the columns that are left, or of one of them all."""
        self._here = set()
        count = self.source.choices((1, 2, 3), (55, 32, 13))[0]
        result: Expression | None = None
        for _ in range(count):
            column: Expression = self._variable()
            kind = self.source.random()
            if kind < 0.18:
                column = power(column, Number(2))
            elif kind < 0.24:
                column = call("sqrt", column)
            elif kind < 0.32:
                column = Apply("pow", (column, self._constant()))
            if result is None:
                result = column
            else:
                result = mul(result, column) if self._chance(0.6) else div(result, column)
        assert result is not None
        return result

    def _times(self, piece: Expression) -> Expression:
        return mul(self._monomial(), piece) if self._chance(0.75) else div(piece, self._monomial())


def _outer(name: str, inner: Expression) -> Expression:
    if name == "square":
        return power(inner, Number(2))
    if name == "inverse":
        return div(Number(1), inner)
    return call(name, call("neg", inner) if name == "exp" else inner)
