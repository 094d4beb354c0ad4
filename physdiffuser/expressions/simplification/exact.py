"""Exact arithmetic on the numbers of a formula, with limits on their size.

Integers and fractions stay exact as long as they are small; a float absorbs what it meets. Nothing
here ever computes `9**9**9`: a power whose result would be large is left to stand as a power.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

Value: TypeAlias = int | Fraction | float

# An exact result above this many bits is not computed; 512 bits still convert to a double.
MAX_BITS = 512
_SMALL_PRIMES_UP_TO = 1000


def tidy(value: Value) -> Value:
    """The same number in its simplest type: a whole fraction becomes an integer.

    An exact number beyond the size limit becomes a float, as do the floats 1.0, -1.0 and 0.0 the
    other way: a factor of exactly one is not a fitted constant.
    """
    if type(value) is int:
        return value if -_LIMIT < value < _LIMIT else _to_float(value)
    if type(value) is Fraction:
        if value.denominator == 1:
            return tidy(value.numerator)
        if value.denominator >= _LIMIT or abs(value.numerator) >= _LIMIT:
            return _to_float(value)
        return value
    return int(value) if value in (1.0, -1.0, 0.0) else float(value)


_LIMIT = 1 << MAX_BITS


def _to_float(value: int | Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def tidy_exponent(value: Value) -> Value:
    """Like `tidy`, and floats that are whole halves (2.0, 0.5, -1.5) become exact."""
    if isinstance(value, float):
        if abs(value) <= 64.0 and (2.0 * value).is_integer():
            return tidy(Fraction(value))
        return value
    return tidy(value)


def add(left: Value, right: Value) -> Value:
    """`left + right`."""
    if type(left) is int and type(right) is int:
        return left + right
    return tidy(left + right)


def multiply(left: Value, right: Value) -> Value:
    """`left * right`."""
    if left == 1:
        return right
    if right == 1:
        return left
    return tidy(left * right)


def magnitude(value: Value) -> Value:
    """`abs(value)`, with a type that checkers can follow."""
    return -value if value < 0 else value


def is_integer(value: Value) -> bool:
    """Whether the number is an exact integer."""
    return type(value) is int


def bits(value: int | Fraction) -> int:
    """Bits of the larger of numerator and denominator."""
    return max(abs(value.numerator).bit_length(), value.denominator.bit_length())


def whole_power(base: Value, exponent: int) -> Value | None:
    """`base ** exponent` for a whole exponent, or None when it is undefined or too large to be exact."""
    if base == 0 and exponent < 0:
        return None
    if isinstance(base, float):
        try:
            result = base**exponent
        except OverflowError:
            return None
        return tidy(result) if math.isfinite(result) and (result != 0.0 or base == 0.0) else None
    if base in (0, 1):
        return base if exponent else 1
    if base == -1:
        return -1 if exponent % 2 else 1
    if abs(exponent) * bits(base) > MAX_BITS:
        return None
    return tidy(Fraction(base) ** exponent)


@lru_cache(maxsize=4096, typed=True)
def prime_factors(value: int) -> tuple[tuple[int, int], ...]:
    """Prime factors of a positive integer with their multiplicities.

    Only primes below 1000 are looked for; a cofactor without such primes stays as it is, so the
    cost is bounded and the result is still the same for the same number.
    """
    factors: list[tuple[int, int]] = []
    prime = 2
    while prime * prime <= value and prime < _SMALL_PRIMES_UP_TO:
        count = 0
        while value % prime == 0:
            value //= prime
            count += 1
        if count:
            factors.append((prime, count))
        prime += 1 if prime == 2 else 2
    if value > 1:
        factors.append((value, 1))
    return tuple(factors)


def rational_power(base: int | Fraction, exponent: Fraction) -> tuple[Value, dict[int, Fraction]]:
    """`base ** exponent` for a positive base, as `coefficient * product(prime ** fraction)`.

    Returns
    -------
    The coefficient, and the primes with exponents strictly between 0 and 1.
    """
    coefficient: Fraction = Fraction(1)
    roots: dict[int, Fraction] = {}
    for number, sign in ((base.numerator, 1), (base.denominator, -1)):
        for prime, count in prime_factors(number):
            total = exponent * count * sign
            whole = math.floor(total)
            if abs(whole) * prime.bit_length() > MAX_BITS:
                roots[prime] = roots.get(prime, Fraction(0)) + total
                continue
            coefficient *= Fraction(prime) ** whole
            if total != whole:
                roots[prime] = total - whole
    return tidy(coefficient), roots


def whole_root(value: Value, degree: int) -> int | Fraction | None:
    """The exact root of a positive exact number, or None when there is none or it is not rational."""
    if isinstance(value, float) or value <= 0:
        return None
    if degree == 1:
        return value
    parts = []
    for part in (value.numerator, value.denominator):
        root = round(part ** (1.0 / degree)) if part < 1 << 512 else 0
        if root**degree != part:
            return None
        parts.append(root)
    result = Fraction(parts[0], parts[1])
    return int(result) if result.denominator == 1 else result
