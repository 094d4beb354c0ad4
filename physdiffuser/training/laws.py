"""Random laws with the habits of physics.

A law is a product of powers, often with one or two factors that are more: a sum raised to a power
(`1 - v**2/c**2` under a root, `r1**2 + r2**2` below a line), a function of a small product (`exp(-t/(R*C))`,
`cos(k*x - w*t)`), or `1 +- cos`; or a sum of such products; now and then all inside an outer function.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

from physdiffuser.expressions import ONE, Expression, Number, Parameter, Variable
from physdiffuser.expressions.tree import call, mul, power
from physdiffuser.models.tokens.arrangement import Factor, Term, difference, negated, product, total
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES


def _fractions(*values: float) -> tuple[Fraction, ...]:
    return tuple(Fraction(value) for value in values)


_VARIABLE_COUNT = ((1, 2, 3, 4, 5, 6, 7, 8, 9), (6, 18, 24, 22, 13, 8, 4, 2, 1))
_EXPONENT = (
    _fractions(1, -1, 2, -2, 3, -3, 4, -4, 0.5, -0.5, 1.5, -1.5),
    (46, 26, 11, 6, 1.5, 2, 0.7, 0.5, 2.5, 2.5, 0.5, 0.3),
)
_SUM_EXPONENT = (
    _fractions(1, -1, 2, -2, 0.5, -0.5, 1.5, -1.5),
    (48, 24, 5, 3, 9, 9, 1, 1),
)
_ROOT_EXPONENT = (_fractions(0.5, -0.5, 1, -1, -1.5, 1.5), (34, 38, 10, 12, 4, 2))
_FUNCTION = (
    ("sin", "cos", "exp", "log", "tanh", "sinh", "cosh", "tan", "asin", "acos", "atan"),
    (24, 24, 30, 8, 5, 1.5, 1.5, 1.5, 2, 1, 1.5),
)
_EXTRAS = ((1, 2, 3), (74, 21, 5))
_OUTER = (("asin", "acos", "log", "sqrt", "exp", "atan", "sin"), (3, 1, 3, 3, 2, 1, 1))


@dataclass(frozen=True)
class Law:
    """A random law before numbers are chosen.

    Attributes
    ----------
    terms
        Terms of the outermost sum, each to be multiplied by a coefficient.
    places
        Positions of the variables, out of nine: a law may use x2, x5 and x7.
    constants
        Number of parameters inside the terms.
    free
        Whether the law is of the same kind in any unit of its columns: its constants take up every scale.
    exponents
        Which of the parameters are exponents; their values are often thirds, quarters and tenths.
    """

    terms: tuple[Term, ...]
    places: tuple[int, ...]
    constants: int
    free: bool = False
    exponents: frozenset[int] = frozenset()


class Draws:
    """Random draws, with a count of the constants of the law that is being drawn.

    Parameters
    ----------
    source
        Where all randomness comes from.
    """

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self._constants = 0

    def _chance(self, probability: float) -> bool:
        return self.source.random() < probability

    def _constant(self) -> Parameter:
        self._constants += 1
        return Parameter(self._constants - 1)


class LawSampler(Draws):
    """Draws random laws."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self._free: list[int] = []
        self._used: list[int] = []

    def _pick(self, table: tuple[tuple[object, ...], tuple[float, ...]]) -> object:
        return self.source.choices(table[0], table[1])[0]

    def sample(self) -> Law:
        """One law; every variable drawn for it occurs."""
        count = int(self._pick(_VARIABLE_COUNT))  # type: ignore[call-overload]
        self._free = self.source.sample(range(MAX_VARIABLES), count)
        self._used, self._constants = [], 0
        kind = self.source.random()
        if kind < 0.30:
            terms = [(1, product(self._monomial(count)))]
        elif kind < 0.70:
            terms = [(1, self._compound(self.source.choices(*_EXTRAS)[0], everything=True))]
        elif kind < 0.92:
            terms = self._outermost_sum()
        else:
            outer = str(self._pick(_OUTER))
            inner = self._compound(1, everything=True) if self._chance(0.5) else total(self._outermost_sum())
            terms = [(1, call(outer, inner))]
        return Law(tuple(terms), tuple(self._used), self._constants)

    def _variable(self) -> Variable:
        # Mostly a new one; a variable that returns elsewhere in the formula is common in physics too.
        if self._free and (not self._used or self._chance(0.88)):
            self._used.append(self._free.pop())
            return Variable(self._used[-1])
        return Variable(self.source.choice(self._used))

    def _monomial(self, count: int) -> list[Factor]:
        return [(self._variable(), self._pick(_EXPONENT)) for _ in range(max(count, 1))]  # type: ignore[misc]

    def _small(self, largest: int = 3) -> Expression:
        """A product of one to three variables, as stands inside functions."""
        count = self.source.choices((1, 2, 3), (50, 36, 14))[0]
        factors = self._monomial(min(count, largest))
        if all(exponent < 0 for _, exponent in factors):
            factors = [(base, -exponent) for base, exponent in factors]
        result = product(factors)
        return self._variable() if result == ONE else result

    def _compound(self, extras: int, everything: bool = False) -> Expression:
        """A product of powers with `extras` further factors."""
        factors = [self._extra() for _ in range(extras)]
        left = len(self._free) if everything else self.source.choice((0, 1, 1, 2, 2, 3))
        if left:
            factors = [*self._monomial(left), *factors]
        return product(factors)

    def _outermost_sum(self) -> list[Term]:
        count = self.source.choices((2, 3, 4), (66, 28, 6))[0]
        terms: list[Term] = []
        for position in range(count):
            share = max(1, round(len(self._free) / (count - position)))
            if self._chance(0.26):
                extras = [self._extra() for _ in range(1 + self._chance(0.25))]
                expression = product([*self._monomial(max(share - 2, 0)), *extras])
            else:
                expression = product(self._monomial(share))
            if expression != ONE:
                terms.append((self.source.choices((1, -1), (3, 1))[0], expression))
        distinct = {expression: sign for sign, expression in terms}
        return [(sign, expression) for expression, sign in distinct.items()] or [(1, self._variable())]

    def _extra(self) -> Factor:
        kind = self.source.random()
        if kind < 0.52:
            return self._sum()
        if kind < 0.88:
            function = self._function()
            return function, Fraction(self.source.choices((1, 2, -1), (82, 12, 6))[0])
        if kind < 0.91:
            return self._difference(), Fraction(1)
        if kind < 0.96:
            sign = self.source.choice((1, -1))
            wave = call(self.source.choice(("cos", "cos", "sin")), self._argument())
            coefficient = self.source.random()
            if coefficient < 0.35:
                wave = mul(self._variable(), wave)
            return total([(1, ONE), (sign, wave)]), Fraction(self.source.choices((1, -1, 2), (70, 25, 5))[0])
        grown = call("exp", self._small())
        return total([(1, grown), (self.source.choice((1, -1, -1)), ONE)]), Fraction(
            self.source.choices((-1, 1), (65, 35))[0]
        )

    def _difference(self) -> Expression:
        """One function of two arguments that share a variable (`exp(-a*t) - exp(-b*t)`), or `1 - x**n`."""
        shared = self._variable()
        if self._chance(0.35):
            powered = power(shared, self._variable())
            return total([(1, ONE), (self.source.choice((1, -1)), powered)])
        name = self.source.choice(("exp", "exp", "cos", "sin"))
        pair: list[Expression] = []
        for _ in range(2):
            exponent = Fraction(self.source.choices((1, -1), (70, 30))[0])
            argument = product([(shared, Fraction(1)), (self._variable(), exponent)])
            pair.append(call(name, negated(argument) if name == "exp" else argument))
        return self._together([(1, pair[0]), (self.source.choice((1, -1, -1)), pair[1])])

    def _sum(self) -> Factor:
        """A sum and the power it is raised to; sums of squares stand under roots more often than others."""
        kind = self.source.random()
        sign = self.source.choice((1, -1))
        usual: Fraction = self._pick(_SUM_EXPONENT)  # type: ignore[assignment]
        rooted: Fraction = self._pick(_ROOT_EXPONENT)  # type: ignore[assignment]
        if kind < 0.13:  # 1 - v**2/c**2
            first, second = self._variable(), self._variable()
            ratio = product([(first, Fraction(2)), (second, Fraction(-2))])
            return self._together([(1, ONE), (self.source.choice((1, -1, -1)), ratio)]), rooted
        if kind < 0.33:  # 1 +- u
            inner = self._small()
            if self._chance(0.25):
                inner = mul(self._constant(), inner)
            return self._together([(1, ONE), (sign, inner)]), usual
        if kind < 0.52:  # a +- b
            return self._together([(1, self._variable()), (sign, self._variable())]), usual
        if kind < 0.63:  # a**2 +- b**2
            count = self.source.choices((2, 3), (72, 28))[0]
            squares: list[Term] = [(1, power(self._variable(), Number(2))) for _ in range(count)]
            squares[-1] = (self.source.choices((1, -1), (2, 1))[0], squares[-1][1])
            return self._together(squares), self.source.choice((usual, rooted))
        if kind < 0.70:  # squared distances
            count = self.source.choices((1, 2, 3), (50, 38, 12))[0]
            parts: list[Term] = []
            for _ in range(count):
                left, right = self._variable(), self._variable()
                if left != right:
                    parts.append((1, power(difference(left, right), Number(2))))
            if len(parts) == 1 or not parts:
                parts.append((1, power(self._variable(), Number(2))))
            return self._together(parts), self.source.choice((usual, rooted))
        if kind < 0.78:  # a constant and what varies: C + u, C + u + C*u**2
            varying = self._variable()
            terms: list[Term] = [(1, self._constant()), (sign, varying)]
            if self._chance(0.4):
                terms.append((1, mul(self._constant(), power(varying, Number(2)))))
            return self._together(terms), self.source.choice((usual, Fraction(-1)))
        count = self.source.choices((2, 3), (75, 25))[0]
        terms = []
        for _ in range(count):
            piece = self._small()
            if self._chance(0.12):
                piece = product([(piece, Fraction(1)), (self._function(), Fraction(1))])
            if self._chance(0.08):
                piece = mul(Number(2), piece)
            terms.append((self.source.choices((1, -1), (2, 1))[0], piece))
        return self._together(terms), usual

    def _together(self, terms: list[Term]) -> Expression:
        distinct = {expression: sign for sign, expression in terms}
        if len(distinct) == 1:
            distinct[ONE if ONE not in distinct else self._variable()] = 1
        pairs = [(sign, expression) for expression, sign in distinct.items()]
        # The overall sign of a factor belongs to the coefficient in front of the law.
        if all(sign < 0 for sign, _ in pairs):
            pairs = [(1, expression) for _, expression in pairs]
        return total(pairs)

    def _function(self) -> Expression:
        name = str(self._pick(_FUNCTION))
        argument = self._argument()
        if name == "exp" and self._chance(0.7):
            argument = negated(argument)
        return call(name, argument)

    def _argument(self) -> Expression:
        kind = self.source.random()
        if kind < 0.72:
            return self._small()
        if kind < 0.78:
            return mul(Number(2), self._small(2))
        if kind < 0.89:
            return mul(self._constant(), self._small(2))
        first, second = self._small(2), self._small(2)
        if first == second:
            return first
        if self._chance(0.5):
            return total([(1, first), (1, second)])
        return difference(first, second)
