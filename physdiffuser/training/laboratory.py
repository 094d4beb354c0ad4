"""Random laws with the habits of fitted curves: few columns, many free constants.

A decay on a background, a saturation, a resonance, a logistic curve, a power law with a free exponent, alone
or as products and sums. Every such law stays of its kind when a column is measured in another unit, so
its columns can have any scale (`Law.free`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

from physdiffuser.expressions import ONE, Apply, Expression, Number, Variable
from physdiffuser.expressions.tree import call, mul, power
from physdiffuser.models.tokens.arrangement import Factor, Term, negated, product, total
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES
from physdiffuser.training.laws import Draws, Law

_COLUMNS = ((1, 2, 3), (52, 33, 15))
ONCE, HALF = Fraction(1), Fraction(1, 2)
Piece = Callable[[Variable], Factor]


class LaboratorySampler(Draws):
    """Draws random laws of few columns and many constants."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self._offset = False
        pieces: tuple[tuple[float, Piece], ...] = (
            (12, lambda x: _whole(call("exp", negated(self._scaled(x))))),
            (4, lambda x: _whole(call("exp", self._scaled(x)))),
            (5, lambda x: _whole(call("exp", negated(self._power(x))))),
            (3, lambda x: _whole(call("exp", negated(self._inverse(x))))),
            (2, lambda x: _whole(call("exp", negated(call("exp", self._straight(x)))))),
            (5, lambda x: _whole(call("exp", negated(mul(self._constant(), self._centred(x)))))),
            (3, lambda x: _whole(total([(1, ONE), (-1, call("exp", negated(self._scaled(x))))]))),
            (6, lambda x: (total([(1, ONE), (1, call("exp", self._straight(x)))]), -ONCE)),
            (10, lambda x: _whole(self._freely(x))),
            (6, lambda x: (total([(1, ONE), (1, self._power(x))]), -ONCE)),
            (4, lambda x: _whole(self._freely(self._shifted(x)))),
            (5, lambda x: self._logarithm(self._shifted(x))),
            (3, self._logarithm),
            (2, lambda x: _whole(call("log", total([(1, ONE), (1, self._scaled(x))])))),
            (9, lambda x: _whole(call("sin", total([(1, self._scaled(x)), (1, self._constant())])))),
            (4, lambda x: _whole(call(self.source.choice(("sin", "cos")), self._scaled(x)))),
            (3, lambda x: _whole(call("tanh", self._scaled(x)))),
            (2, lambda x: _whole(call("tanh", self._straight(x)))),
            (2, lambda x: _whole(call("atan", self._scaled(x)))),
            (9, lambda x: (self._shifted(x), -ONCE)),
            (2, lambda x: (self._shifted(x), -2 * ONCE)),
            (4, lambda x: (self._shifted(x), HALF)),
            (8, lambda x: _whole(product([(x, ONCE), (self._shifted(x), -ONCE)]))),
            (4, lambda x: (total([(1, self._constant()), (1, self._centred(x))]), -ONCE)),
            (4, lambda x: (total([(1, self._constant()), (1, power(x, Number(2)))]), HALF)),
            (3, lambda x: (self._parabola(x), -ONCE)),
            (18, lambda x: (x, self.source.choice(_POWERS))),
        )
        self._weights = [weight for weight, _ in pieces]
        self._pieces = [piece for _, piece in pieces]

    def sample(self) -> Law:
        """One law; every variable drawn for it occurs."""
        count = self.source.choices(*_COLUMNS)[0]
        places = self.source.sample(range(MAX_VARIABLES), count)
        columns = [Variable(place) for place in places]
        self._constants, self._offset = 0, False
        kind = self.source.random()
        if count > 1 and kind < 0.30:
            factors: list[list[Factor]] = [self._joint(columns)]
        elif kind < 0.65:
            factors = [[self._piece(column) for column in columns]]
        else:
            factors = [[self._piece(column)] for column in columns]
        # A second factor or a second term in one of the columns: a damped wave, a peak on a slope.
        column = self.source.choice(columns)
        more = self.source.random()
        if more < 0.20:
            self.source.choice(factors).append(self._piece(column))
        elif more < (0.62 if count == 1 else 0.40):
            factors.append([self._piece(column)])
            if count > 1 and self._chance(0.4):
                factors[-1].append((self.source.choice(columns), ONCE))
        terms = list(dict.fromkeys(product(part) for part in factors))
        if self._offset or self._chance(0.35):
            terms.append(ONE)
        signs: list[Term] = [(1, term) for term in dict.fromkeys(terms)]
        return Law(tuple(signs), tuple(places), self._constants, free=True)

    def _piece(self, column: Variable) -> Factor:
        return self.source.choices(self._pieces, self._weights)[0](column)

    def _scaled(self, column: Variable) -> Expression:
        return mul(self._constant(), column)

    def _shifted(self, column: Expression) -> Expression:
        return total([(1, self._constant()), (1, column)])

    def _straight(self, column: Variable) -> Expression:
        return total([(1, self._constant()), (self.source.choice((1, -1)), self._scaled(column))])

    def _centred(self, column: Variable) -> Expression:
        return power(total([(1, column), (-1, self._constant())]), Number(2))

    def _freely(self, column: Expression) -> Expression:
        return Apply("pow", (column, self._constant()))

    def _power(self, column: Variable) -> Expression:
        return mul(self._constant(), self._freely(column))

    def _inverse(self, column: Variable) -> Expression:
        return product([(self._constant(), ONCE), (column, -ONCE)])

    def _parabola(self, column: Variable) -> Expression:
        return total([(1, self._shifted(column)), (1, mul(self._constant(), power(column, Number(2))))])

    def _logarithm(self, argument: Expression) -> Factor:
        # In another unit of the column a logarithm has an additive constant.
        self._offset = True
        return call("log", argument), ONCE

    def _joint(self, columns: list[Variable]) -> list[Factor]:
        """Factors in which two columns stand together; each of the others has one of its own."""
        first, second, *others = columns
        either = self.source.choice((ONCE, -ONCE))
        forms: tuple[Callable[[], list[Factor]], ...] = (
            lambda: [(first, ONCE), (total([(1, self._shifted(first)), (1, self._scaled(second))]), -ONCE)],
            lambda: [(first, ONCE), (second, ONCE), (total([(1, first), (1, self._scaled(second))]), -ONCE)],
            lambda: [(self._shifted(first), ONCE), (self._shifted(second), -ONCE)],
            lambda: [_whole(call("exp", negated(self._together(first, second, either))))],
            lambda: [(total([(1, ONE), (1, self._together(first, second, either))]), either)],
            lambda: [(total([(1, ONE), (1, call("exp", self._plane(first, second)))]), -ONCE)],
            lambda: [_whole(self._freely(first)), _whole(self._freely(second))],
            lambda: [(self._ellipse(first, second), self.source.choice((HALF, -HALF, -ONCE)))],
            lambda: [_whole(call(self.source.choice(("sin", "cos")), self._wave(first, second)))],
        )
        return self.source.choice(forms)() + [self._piece(column) for column in others]

    def _together(self, first: Variable, second: Variable, exponent: Fraction) -> Expression:
        return mul(self._constant(), product([(first, ONCE), (second, exponent)]))

    def _plane(self, first: Variable, second: Variable) -> Expression:
        return total([(1, self._straight(first)), (1, self._scaled(second))])

    def _wave(self, first: Variable, second: Variable) -> Expression:
        return total([(1, self._scaled(first)), (self.source.choice((1, -1)), self._scaled(second))])

    def _ellipse(self, first: Variable, second: Variable) -> Expression:
        squares = (power(first, Number(2)), mul(self._constant(), power(second, Number(2))))
        return total([(1, square) for square in squares])


def _whole(expression: Expression) -> Factor:
    return expression, ONCE


_POWERS = tuple(Fraction(value) for value in (1, 1, 1, 2, 2, 3, -1, -1, -2, 0.5, 0.5, -0.5))
