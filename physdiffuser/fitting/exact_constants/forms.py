"""Exact forms a constant of a law may have, each with the price of writing it down.

A form is `p/q * sqrt(n) * pi**(k/2)`, times e, a logarithm of a small number, or a product of named
constants. Its price is a description length in nats: about the logarithm of how many simpler forms there are.
A form is worth believing only where the data fix the constant so well that meeting it by chance is less
likely than its price allows (`fitting.snapping`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations, product

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.expressions import ONE, PI, Apply, Expression, Number, Symbol
from physdiffuser.expressions.tree import call, chain, div, number_expression, power

_BASE_COST = 1.2
_RADICANDS = (1, 2, 3, 5, 6, 7, 10)
_PI_COST = {0: 0.0, 2: 2.2, -2: 2.4, 4: 4.2, -4: 4.4, 1: 4.4, -1: 4.4, 3: 6.0, -3: 6.0}
"""Prices of pi**(k/2) by k."""

_RARE: tuple[tuple[float, float, Expression], ...] = (
    (math.e, 5.5, call("exp", ONE)),
    (1.0 / math.e, 6.0, call("exp", Number(-1))),
    (math.log(2.0), 5.5, call("log", Number(2))),
    (1.0 / math.log(2.0), 6.0, div(ONE, call("log", Number(2)))),
    (math.log(10.0), 6.0, call("log", Number(10))),
    (1.0 / math.log(10.0), 6.0, div(ONE, call("log", Number(10)))),
)
_MAX_TABLE_COST = 13.0
_HALF_DECADE = 0.5 * math.log(10.0)
_ODD_DENOMINATOR = 1.5
"""Price of sevenths, elevenths and the like, which laws hardly have."""


@dataclass(frozen=True)
class Form:
    """One exact form.

    Attributes
    ----------
    value
        Its value in double precision.
    cost
        Its price in nats.
    expression
        How it is written.
    """

    value: float
    cost: float
    expression: Expression


def integer_cost(number: int) -> float:
    """Price of an integer above that of 1; powers of ten are common in units."""
    if number == 1:
        return 0.0
    plain = 0.3 + 1.4 * math.log(number)
    digits = len(str(number)) - 1
    if number == 10**digits:
        plain = min(plain, 2.5 + 0.7 * digits)
    if number & (number - 1) == 0:
        plain = min(plain, 0.6 + 1.0 * math.log(number))
    return plain


def fraction_cost(number: Fraction) -> float:
    """Price of a fraction, its sign included."""
    if number == 0:
        return _BASE_COST
    cost = _BASE_COST + integer_cost(abs(number.numerator)) + (0.3 if number < 0 else 0.0)
    if number.denominator > 1:
        # Halves, thirds and quarters are the fractions of physics.
        usual = 0.6 if number.denominator <= 4 else 1.0
        cost += 0.2 + usual * integer_cost(number.denominator)
        if not _smooth(number.denominator):
            cost += _ODD_DENOMINATOR
    return cost


def _smooth(number: int) -> bool:
    """Whether 2, 3 and 5 are all its prime factors."""
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number == 1


def decimal_cost(digits: int, exponent: int) -> float:
    """Price of a decimal number of so many digits, times a power of ten."""
    return 2.0 + 2.4 * digits + math.log1p(abs(exponent))


def decimal_nats(digits: int) -> float:
    """Logarithm of the number of decimal numbers of so many digits in a decade, above the price of 1."""
    return _BASE_COST + math.log(0.9) + digits * math.log(10.0)


class FormTable:
    """All forms up to a price, sorted by size, ready to be looked up.

    Parameters
    ----------
    constants
        Named constants that may occur in products.
    """

    def __init__(self, constants: Iterable[Symbol] = ()) -> None:
        self.constants = tuple(constants)
        logs, costs, self._keys = _plain_table()
        self._named: list[tuple[tuple[Symbol, Fraction], ...]] = [()]
        if self.constants:
            logs, costs, self._keys = self._with_names(logs, costs, self._keys)
        order = np.argsort(logs, kind="stable")
        self._logs = logs[order]
        self._costs = costs[order]
        self._keys = self._keys[order]

    def _with_names(
        self, logs: FloatArray, costs: FloatArray, keys: IntArray
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        simple = costs <= _BASE_COST + 4.5
        all_logs, all_costs, all_keys = [logs], [costs], [keys]
        for factors, log, cost in _named_products(self.constants):
            self._named.append(factors)
            chosen = keys[simple].copy()
            chosen[:, 5] = len(self._named) - 1
            all_logs.append(logs[simple] + log)
            all_costs.append(costs[simple] + cost)
            all_keys.append(chosen)
        return np.concatenate(all_logs), np.concatenate(all_costs), np.concatenate(all_keys)

    def near(self, value: float, width: float, count: int) -> list[Form]:
        """The cheapest forms within a distance of a value.

        Parameters
        ----------
        value
            Not 0.
        width
            Largest distance, relative to the value.
        count
            Most forms to return, cheapest first.
        """
        size = math.log(abs(value))
        low = int(np.searchsorted(self._logs, size - width, side="left"))
        high = int(np.searchsorted(self._logs, size + width, side="right"))
        costs = self._costs[low:high]
        if costs.size > count:
            best = np.argpartition(costs, count - 1)[:count]
        else:
            best = np.arange(costs.size)
        best = best[np.argsort(costs[best], kind="stable")]
        sign = -1 if value < 0 else 1
        return [self._form(low + int(position), sign) for position in best]

    def density(self, value: float, cost: float, exponent: bool = False) -> float:
        """How many forms of at most a cost there are around a value, per unit of its logarithm.

        Decimal numbers count as well: there are `9*10**(d - 1)` of `d` digits in each decade, and each costs
        the logarithm of their number. Exponents are fractions.
        """
        size = math.log(abs(value))
        low, high = np.searchsorted(self._logs, (size - _HALF_DECADE, size + _HALF_DECADE))
        simple = self._costs[low:high] <= cost + 1e-9
        if exponent:
            simple &= (self._keys[low:high, 2:] == (1, 0, 0, 0)).all(axis=1)
        forms = int(simple.sum())
        digits = int((cost - decimal_nats(0)) / math.log(10.0) + 1e-9)
        # Many of the shortest decimals are among the forms.
        return max(forms, 9 * 10 ** (digits - 1) if digits > 0 else 0) / (2.0 * _HALF_DECADE)

    def _form(self, position: int, sign: int) -> Form:
        numerator, denominator, radicand, half_pi, rare, named = (int(k) for k in self._keys[position])
        factors = self._named[named]
        expression = write_form(Fraction(sign * numerator, denominator), radicand, half_pi, rare, factors)
        value = sign * numerator / denominator * math.sqrt(radicand) * math.pi ** (half_pi / 2)
        if rare:
            value *= _RARE[rare - 1][0]
        for symbol, exponent in factors:
            value *= symbol.value ** float(exponent)
        return Form(value, float(self._costs[position]) + (0.3 if sign < 0 else 0.0), expression)


@lru_cache(maxsize=8)
def form_table(constants: tuple[Symbol, ...]) -> FormTable:
    """All forms with these named constants; made once."""
    return FormTable(constants)


@cache
def _plain_table() -> tuple[FloatArray, FloatArray, IntArray]:
    """Logarithms, prices and keys (p, q, n, k, rare, 0) of the forms without names."""
    numbers: list[tuple[float, float, int, int]] = []
    for q in range(1, 61):
        for p in range(1, 2001 if q == 1 else 121):
            if q == 1 or math.gcd(p, q) == 1:
                cost = fraction_cost(Fraction(p, q))
                if cost <= _MAX_TABLE_COST:
                    numbers.append((math.log(p / q), cost, p, q))
    numbers += [
        (digits * math.log(10.0), fraction_cost(Fraction(10**digits)), 10**digits, 1)
        for digits in range(4, 19)
    ]
    base = np.array([(log, cost) for log, cost, _, _ in numbers])
    pairs = np.array([(p, q) for _, _, p, q in numbers], dtype=np.int64)
    logs: list[FloatArray] = []
    costs: list[FloatArray] = []
    keys: list[IntArray] = []

    def extend(log: float, cost: float, radicand: int, half_pi: int, rare: int) -> None:
        kept = base[:, 1] + cost <= _MAX_TABLE_COST
        # p*sqrt(n)/q with n dividing q is p/q*n/sqrt(n): keep one writing of each value.
        kept &= (pairs[:, 1] % radicand != 0) | (radicand == 1) | (pairs[:, 0] == 1)
        rows = np.zeros((int(kept.sum()), 6), dtype=np.int64)
        rows[:, :2] = pairs[kept]
        rows[:, 2:5] = radicand, half_pi, rare
        logs.append(base[kept, 0] + log)
        costs.append(base[kept, 1] + cost)
        keys.append(rows)

    for radicand, half_pi in product(_RADICANDS, _PI_COST):
        root_cost = 0.0 if radicand == 1 else 2.2 + integer_cost(radicand)
        extend(
            0.5 * math.log(radicand) + 0.5 * half_pi * math.log(math.pi),
            root_cost + _PI_COST[half_pi],
            radicand,
            half_pi,
            0,
        )
    for index, (value, cost, _) in enumerate(_RARE, start=1):
        extend(math.log(value), cost, 1, 0, index)
    return np.concatenate(logs), np.concatenate(costs), np.concatenate(keys)


def _named_products(
    constants: tuple[Symbol, ...],
) -> Iterable[tuple[tuple[tuple[Symbol, Fraction], ...], float, float]]:
    """Products of up to three named constants: factors with exponents, logarithm, price."""
    usable = [symbol for symbol in constants if symbol.value > 0.0 and math.isfinite(symbol.value)]
    choice = 0.7 * math.log(max(len(usable), 1))
    half = Fraction(1, 2)
    powers = {
        1: (Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), half, -half, Fraction(3), Fraction(4)),
        2: (Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), half, -half),
        3: (Fraction(1), Fraction(-1), Fraction(2), Fraction(-2)),
    }
    # Beyond a dozen names, triples would be more than there are constants worth finding.
    for size in (1, 2, 3) if len(usable) <= 12 else (1, 2):
        for symbols in combinations(usable, size):
            for exponents in product(powers[size], repeat=size):
                log = sum(float(e) * math.log(s.value) for s, e in zip(symbols, exponents, strict=True))
                # One power for all of them, as in sqrt(G*M), is written once.
                powers_cost = sum(_power_cost(exponent) for exponent in set(exponents))
                cost = size * (choice + 0.6) + powers_cost
                yield tuple(zip(symbols, exponents, strict=True)), log, cost


def _power_cost(exponent: Fraction) -> float:
    size = abs(exponent)
    return (0.0 if size == 1 else 1.0 if size == 2 else 1.5) + (0.2 if exponent < 0 else 0.0)


def write_form(
    number: Fraction, radicand: int, half_pi: int, rare: int, factors: tuple[tuple[Symbol, Fraction], ...]
) -> Expression:
    """`p*sqrt(n)*pi**a*.../(q*pi**b*...)`, as short as it goes."""
    above: list[Expression] = []
    below: list[Expression] = []
    root_above: list[Expression] = []
    root_below: list[Expression] = []
    if radicand > 1:
        if number.denominator % radicand == 0:
            # sqrt(2)/2 is 1/sqrt(2).
            number *= radicand
            root_below.append(Number(radicand))
        else:
            root_above.append(Number(radicand))
    powers: list[tuple[Symbol, Fraction]] = [(PI, Fraction(half_pi, 2))] if half_pi else []
    for symbol, exponent in [*powers, *factors]:
        if abs(exponent) == Fraction(1, 2):
            (root_above if exponent > 0 else root_below).append(symbol)
        else:
            (above if exponent > 0 else below).append(_power(symbol, abs(exponent)))
    if root_above:
        inside = chain("mul", root_above)
        above.insert(0, call("sqrt", div(inside, chain("mul", root_below)) if root_below else inside))
    elif root_below:
        below.append(call("sqrt", chain("mul", root_below)))
    if rare:
        above.append(_RARE[rare - 1][2])
    if not above and not below:
        return number_expression(number)
    if abs(number.numerator) != 1 or not above:
        above.insert(0, Number(number.numerator))
    elif number < 0:
        above[0] = Apply("neg", (above[0],))
    if number.denominator != 1:
        below.insert(0, Number(number.denominator))
    product = chain("mul", above)
    return div(product, chain("mul", below)) if below else product


def _power(symbol: Symbol, exponent: Fraction) -> Expression:
    if exponent == 1:
        return symbol
    return power(symbol, number_expression(exponent))
