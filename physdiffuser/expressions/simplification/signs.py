"""What can be said about the sign of a value from what is known of the columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from physdiffuser.expressions.simplification.normal_form import (
    CALL,
    EULER,
    LEAF,
    NUMBER,
    SUM,
    Base,
    Power,
    Product,
    Sum,
)
from physdiffuser.expressions.tree import Number, Symbol, Variable

Interval = tuple[float, float]
ANY: Interval = (-math.inf, math.inf)
_NEVER_NEGATIVE = frozenset({"abs", "cosh", "acos", "exp", "sqrt"})
_SIGN_OF_ARGUMENT = frozenset({"sinh", "tanh", "atan", "asin"})


class Signs:
    """Signs of bases and sums, from positive columns or from the ranges of the columns.

    Parameters
    ----------
    positive
        Columns known not to be negative.
    ranges
        Lowest and highest value of each column, or None. Signs then also follow from interval
        arithmetic: `c - v` is positive for c in (3, 10) and v in (1, 2).
    """

    def __init__(
        self, positive: frozenset[int] = frozenset(), ranges: Sequence[Interval] | None = None
    ) -> None:
        self.ranges = ranges
        if ranges is not None:
            positive = positive | {index for index, (low, _) in enumerate(ranges) if low >= 0.0}
        self.positive = positive

    def of_base(self, base: Base) -> int:
        """1 if the base is never negative, -1 if it is never positive, 0 if that is not known."""
        if base.sign is None:
            base.sign = self._of_base(base)
        return base.sign

    def _of_base(self, base: Base) -> int:
        match base.kind:
            case 0:  # NUMBER
                return 1 if isinstance(base.leaf, Number) and base.leaf.value > 0 else -1
            case 1:  # LEAF
                if isinstance(base.leaf, Symbol):
                    return 1 if base.leaf.value > 0 else -1
                if isinstance(base.leaf, Variable) and base.leaf.index in self.positive:
                    return 1
            case 3:  # CALL
                if base.name in _NEVER_NEGATIVE:
                    return 1
                if base.name in _SIGN_OF_ARGUMENT:
                    return self.of_sum(base.arguments[0])
            case 4:  # SUM
                return self.of_sum(base.sum)
        return self._from_interval(self._base_interval(base))

    def of_sum(self, value: Sum) -> int:
        """Sign of a value in the same terms."""
        signs = {self.of_product(term) for term in value.terms}
        if len(signs) == 1:
            sign = signs.pop()
            if sign:
                return sign
        return self._from_interval(self.interval(value)) if self.ranges is not None else 0

    def of_product(self, product: Product) -> int:
        """Sign of a product in the same terms."""
        sign = 1 if product.coefficient > 0 else -1
        for base, power in product.factors:
            # A base under a fractional power cannot be negative where the product is defined.
            if isinstance(power, int):
                if power % 2:
                    sign *= self.of_base(base)
                    if not sign:
                        return 0
            elif isinstance(power, Sum) and not self.of_base(base) > 0:
                return 0
        return sign

    def _from_interval(self, interval: Interval) -> int:
        return 1 if interval[0] >= 0.0 else -1 if interval[1] <= 0.0 else 0

    def interval(self, value: Sum) -> Interval:
        """Bounds of a value over the ranges; infinite where nothing is known."""
        low = high = 0.0
        for term in value.terms:
            bounds = self._product_interval(term)
            low, high = low + bounds[0], high + bounds[1]
        # Rounding must not turn a zero into a sign, except for plain numbers, which are exact.
        slack = 1e-13 * max(abs(low), abs(high)) if math.isfinite(low) and math.isfinite(high) else 0.0
        return (low - slack, high + slack) if len(value.terms) > 1 else (low, high)

    def _product_interval(self, product: Product) -> Interval:
        try:
            factor = float(product.coefficient)
        except OverflowError:
            return ANY
        bounds: Interval = (factor, factor)
        for base, power in product.factors:
            bounds = _times(bounds, self._power_interval(base, power))
        return bounds

    def _power_interval(self, base: Base, power: Power) -> Interval:
        if base.kind == EULER:
            low, high = self.interval(power) if isinstance(power, Sum) else (float(power), float(power))
            return (_exp(low), _exp(high))
        low, high = self._base_interval(base)
        if isinstance(power, Sum):
            return (0.0, math.inf) if low >= 0.0 else ANY
        if isinstance(power, int) and power % 2 == 0 and low < 0.0:
            low, high = (0.0, max(-low, high)) if high > 0.0 else (-high, -low)
        elif not isinstance(power, int):
            low = max(low, 0.0)
        if high < low:
            return ANY
        exponent = float(power)
        if exponent < 0.0:
            if low < 0.0 < high or (low < 0.0 and high == 0.0):
                return ANY
            return (_pow(high, exponent), _pow(low, exponent))
        return (_pow(low, exponent), _pow(high, exponent))

    def _base_interval(self, base: Base) -> Interval:
        if base.kind == NUMBER and isinstance(base.leaf, Number):
            return (float(base.leaf.value), float(base.leaf.value))
        if base.kind == LEAF:
            if isinstance(base.leaf, Symbol):
                return (base.leaf.value, base.leaf.value)
            if isinstance(base.leaf, Variable):
                if self.ranges is not None and base.leaf.index < len(self.ranges):
                    return self.ranges[base.leaf.index]
                return (0.0, math.inf) if base.leaf.index in self.positive else ANY
            return ANY
        if base.kind == SUM:
            return self.interval(base.sum)
        if base.kind == CALL and len(base.arguments) == 1:
            return _call_interval(base.name, self.interval(base.arguments[0]))
        return (math.e, math.e) if base.kind == EULER else ANY


def _call_interval(name: str, inner: Interval) -> Interval:
    low, high = inner
    match name:
        case "sin":
            # The sine is known not to change sign on (0, pi), and to rise up to pi/2.
            if low >= 0.0 and high <= math.pi:
                return (min(math.sin(low), math.sin(high)), 1.0)
            return (-1.0, 1.0)
        case "cos":
            if low >= -math.pi / 2 and high <= math.pi / 2:
                return (min(math.cos(low), math.cos(high)), 1.0)
            return (-1.0, 1.0)
        case "log":
            return (
                math.log(low) if 0.0 < low < math.inf else -math.inf,
                math.log(high) if 0.0 < high < math.inf else math.inf,
            )
        case "abs":
            return (0.0 if low <= 0.0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))
        case "tanh" | "atan":
            apply = math.tanh if name == "tanh" else math.atan
            return (apply(low), apply(high))
        case "asin":
            return (math.asin(min(max(low, -1.0), 1.0)), math.asin(min(max(high, -1.0), 1.0)))
        case "acos":
            return (math.acos(min(max(high, -1.0), 1.0)), math.acos(min(max(low, -1.0), 1.0)))
        case "cosh":
            return (1.0, math.inf)
        case "sinh":
            return (0.0 if low >= 0.0 else -math.inf, 0.0 if high <= 0.0 else math.inf)
        case _:
            return ANY


def _exp(value: float) -> float:
    return math.exp(value) if value < 700.0 else math.inf


def _pow(base: float, exponent: float) -> float:
    if base == 0.0 and exponent < 0.0:
        return math.inf
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        return math.inf if base > 0.0 else -math.inf


def _times(left: Interval, right: Interval) -> Interval:
    # 0 * inf is 0 here: an end point that is never reached.
    products = [0.0 if 0.0 in (a, b) else a * b for a in left for b in right]
    return (min(products), max(products))
