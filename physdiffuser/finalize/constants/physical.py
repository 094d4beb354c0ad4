"""Fitted constants that agree with a physical constant, or with a product of powers of some.

Without units a fitted number is compared with the values in SI. The number of products tried counts: only an
agreement that hardly any arbitrary number would show is reported (docs/calibration.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.data.statements.constants import PHYSICAL_CONSTANTS
from physdiffuser.expressions import Expression, Number, Symbol, to_text
from physdiffuser.expressions.tree import distinct_constants, substitute
from physdiffuser.fitting.exact_constants.forms import write_form
from physdiffuser.fitting.uncertainty import uncertainty

Factors = tuple[tuple[Symbol, Fraction], ...]

MAX_ODDS = 0.005
"""Largest expected number of products, no less simple, that are as near to an arbitrary number."""
FARTHEST = 2.5
"""Standard errors by which the values may differ."""
_WINDOW = math.log(10.0)
"""Products are counted within a decade to both sides, in logarithms."""
_SAME = 1e-9
_ROUNDING = 2e-14
"""Of logarithms of up to 80, and of products of powers."""

# In products of several constants, and by themselves.
_COMMON = ("G", "h", "hbar", "e", "k_B", "N_A", "R", "epsilon_0", "mu_0", "sigma_SB", "m_e", "m_p", "g_n")
_ONE, _HALF = Fraction(1), Fraction(1, 2)
_POWER_COST = {_ONE: 0.0, Fraction(2): 1.0, Fraction(3): 2.0, Fraction(4): 2.0, _HALF: 1.5}
# Factors p/q*pi**(k/2) as (p/q, k), with their price.
_FACTOR_COST: dict[tuple[Fraction, int], float] = {
    (_ONE, 0): 0.0,
    (Fraction(2), 0): 1.0,
    (_HALF, 0): 1.0,
    (Fraction(4), 2): 1.0,
    (Fraction(1, 4), -2): 1.0,
    (Fraction(2), 2): 1.0,
    (_HALF, -2): 1.0,
    (_ONE, 2): 1.5,
    (_ONE, -2): 1.5,
    (Fraction(4), 0): 1.5,
    (Fraction(1, 4), 0): 1.5,
    (Fraction(3, 2), 0): 1.5,
    (Fraction(2, 3), 0): 1.5,
    (Fraction(8), 2): 2.0,
    (Fraction(1, 8), -2): 2.0,
    (Fraction(3), 0): 2.0,
    (Fraction(1, 3), 0): 2.0,
    (Fraction(8), 0): 2.0,
    (Fraction(1, 8), 0): 2.0,
    (Fraction(4, 3), 2): 2.5,
}
_RARE_COST, _MORE_COST, _MAX_COST = 1.0, 2.0, 5.5


@dataclass(frozen=True)
class Agreement:
    """A product of physical constants that a fitted number agrees with.

    Attributes
    ----------
    expression
        The product.
    value
        In SI.
    odds
        Expected number of products, no less simple, that are as near to an arbitrary number.
    """

    expression: Expression
    value: float
    odds: float


class _Table:
    """All products, sorted by the logarithm of their values; of equal ones the simplest."""

    def __init__(self) -> None:
        self._products = list(_products())
        self._factors = list(_FACTOR_COST)
        factor_logs = [math.log(number) + 0.5 * power * math.log(math.pi) for number, power in self._factors]
        logs = np.add.outer([log for _, log, _ in self._products], factor_logs).ravel()
        costs = np.add.outer([cost for _, _, cost in self._products], list(_FACTOR_COST.values())).ravel()
        usable = np.flatnonzero(costs <= _MAX_COST)
        order = usable[np.argsort(logs[usable], kind="stable")]
        # Products of one value are neighbours; of each group the cheapest stays.
        group = np.concatenate([[0], np.cumsum(np.diff(logs[order]) > _SAME)])
        first = np.lexsort((costs[order], group))
        kept = order[first[np.concatenate([[True], np.diff(group[first]) > 0])]]
        self.logs: FloatArray = logs[kept]
        self.costs: FloatArray = costs[kept]
        self._kept = kept

    def row(self, position: int) -> tuple[tuple[Fraction, int], Factors]:
        """The number and power of pi of a product, and its constants."""
        product_index, factor = divmod(int(self._kept[position]), len(self._factors))
        return self._factors[factor], self._products[product_index][0]

    def near(self, value: float, width: float) -> range:
        """Positions of the products within a relative distance of a value."""
        size = math.log(abs(value))
        low, high = np.searchsorted(self.logs, (size - width, size + width))
        return range(int(low), int(high))

    def density(self, value: float, cost: float) -> float:
        """Products of at most a price around a value, per unit of its logarithm."""
        some = self.near(value, _WINDOW)
        return int((self.costs[some.start : some.stop] <= cost).sum()) / (2.0 * _WINDOW)


@cache
def _table() -> _Table:
    return _Table()


def _products() -> Iterator[tuple[Factors, float, float]]:
    """Products of one to three constants: factors with exponents, logarithm of the value, price."""
    symbols = [Symbol(name, constant.value) for name, constant in PHYSICAL_CONSTANTS.items()]
    common = [Symbol(name, PHYSICAL_CONSTANTS[name].value) for name in (*_COMMON, "c")]
    every = [sign * size for size in _POWER_COST for sign in (1, -1)]
    plain = (_ONE, -_ONE)
    for chosen, powers in (
        *((some, every) for some in (*combinations(symbols, 1), *combinations(common, 2))),
        *((some, plain) for some in combinations(common, 3)),
    ):
        rare = sum(_RARE_COST for symbol in chosen if symbol not in common)
        for exponents in product(powers, repeat=len(chosen)):
            cost = rare + _MORE_COST * (len(chosen) - 1) + sum(_POWER_COST[abs(one)] for one in exponents)
            log = sum(float(e) * math.log(s.value) for s, e in zip(chosen, exponents, strict=True))
            yield tuple(zip(chosen, exponents, strict=True)), log, cost


def agreement(value: float, error: float | None) -> Agreement | None:
    """The product of physical constants that a fitted number agrees with, if it is no coincidence.

    Parameters
    ----------
    value, error
        The fitted number and its standard error; None where it is not known.
    """
    if error is None or not (0.0 < error < 0.05 * abs(value) < math.inf):
        return None
    table = _table()
    relative = error / abs(value)
    best: Agreement | None = None
    size = math.log(abs(value))
    for position in table.near(value, FARTHEST * math.hypot(relative, _ROUNDING)):
        log, cost = float(table.logs[position]), float(table.costs[position])
        (number, half_pi), factors = table.row(position)
        uncertain = math.hypot(relative, _uncertainty(factors), _ROUNDING)
        away = abs(log - size)
        if away > FARTHEST * uncertain:
            continue
        odds = 2.0 * max(away, uncertain) * table.density(value, cost)
        if odds <= MAX_ODDS and (best is None or odds < best.odds):
            signed = number if value > 0 else -number
            exact = math.copysign(math.exp(log), value)
            best = Agreement(write_form(signed, 1, half_pi, 0, factors), exact, odds)
    return best


def _uncertainty(factors: Factors) -> float:
    """Relative standard uncertainty of a product of measured constants."""
    squares = 0.0
    for symbol, exponent in factors:
        constant = PHYSICAL_CONSTANTS[symbol.name]
        squares += (float(exponent) * constant.uncertainty / constant.value) ** 2
    return math.sqrt(squares)


def agreement_text(value: float, error: float | None) -> str | None:
    """The product that a fitted number agrees with, as text."""
    found = agreement(value, error)
    return None if found is None else to_text(found.expression)


def with_named_constants(expression: Expression, problem: Problem) -> tuple[Expression, tuple[str, ...]]:
    """The formula with physical constants for the fitted numbers that agree with them, and what changed."""
    skeleton, values = distinct_constants(expression)
    if not values or problem.rows <= len(values):
        return expression, ()
    known = uncertainty(skeleton, np.array(values), problem.inputs, problem.target, weights=problem.weights)
    errors = dict(zip(values, map(float, known.standard_errors), strict=True))
    found = {value: agreement(value, error) for value, error in errors.items()}
    changes = tuple(
        f"{value:.6g} (standard error {errors[value]:.1g}) agrees with {to_text(one.expression)}"
        for value, one in found.items()
        if one is not None
    )

    def rewrite(node: Expression) -> Expression | None:
        if not isinstance(node, Number) or node.exact:
            return None
        one = found[float(node.value)]
        return None if one is None else one.expression

    return (substitute(expression, rewrite), changes) if changes else (expression, ())
