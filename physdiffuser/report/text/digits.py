"""Numbers as a report shows them: as many digits as mean something."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from physdiffuser.core.solution import ConstantEstimate, Equation
from physdiffuser.expressions.printing.format import number_text

DEFAULT_DIGITS = 6
FEWEST_DIGITS, MOST_DIGITS = 3, 16
# A formula in the Pareto table shows so many at least; a double is read back from so many at most.
TABLE_DIGITS, ALL_DIGITS = 4, 17
# Correlations are known to about so much: constants that hang together more closely show all digits.
_LEAST_EIGENVALUE = 1e-14
MISSING = "-"
_RELIABLE = 14


def short(value: float | None, digits: int = 3) -> str:
    """A number in a few significant digits; a dash for what is missing or not finite."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:.{digits}g}"


def aligned(value: float | None) -> str:
    """A number in three significant digits, zeros kept, for a column of a table."""
    if value is None or not math.isfinite(value):
        return MISSING
    return "0" if value == 0 else f"{value:#.3g}".removesuffix(".")


def r_squared(value: float) -> str:
    """Enough nines to tell 0.99 from 0.9999, 1 only for 1, and 0 for what is 0 but for rounding.

    Examples
    --------
    >>> r_squared(0.99996), r_squared(2.2e-16), r_squared(-123456.0)
    ('0.99996', '0.0000', '-1.235e+05')
    """
    if not value < 1.0:
        return short(value, 6)
    if value < -10.0:
        return short(value, 4)
    if abs(value) < 1e-12:
        return "0.0000"
    for digits in range(4, 16):
        text = f"{value:.{digits}f}"
        if float(text) < 1.0:
            return text.removeprefix("-") if float(text) == 0.0 else text
    return "1"


def half_width(constant: ConstantEstimate) -> float | None:
    """Half the 95 % confidence interval; None when there is none."""
    if constant.low is None or constant.high is None:
        return None
    width = (constant.high - constant.low) / 2
    return width if math.isfinite(width) and width > 0 else None


def shown_digits(equation: Equation) -> Callable[[float], int]:
    """Significant digits for the fitted constants of a formula, by value.

    A constant shows its uncertainty to two digits, and `Equation.extra_digits` beyond that where the formula
    needs them to give the error that is printed beside it. Where constants hang together (a prefactor and the
    exponent beside it) they are known much better together than alone, and rounding one by its own
    uncertainty would spoil the formula: it then shows what a reader needs to compute with it.
    """
    fitted = [constant for constant in equation.constants if not constant.is_set]
    together = tightening(equation.covariance, len(fitted))
    digits: dict[float, int] = {}
    for constant, factor in zip(fitted, together, strict=True):
        width = half_width(constant)
        if width is not None and constant.value:
            needed = _places(width / factor) + math.floor(math.log10(abs(constant.value))) + 1
            size = abs(constant.value)
            digits[size] = max(digits.get(size, FEWEST_DIGITS), min(needed, MOST_DIGITS))
    more = max(0, equation.extra_digits)
    return lambda value: min(digits.get(abs(value), DEFAULT_DIGITS) + more, ALL_DIGITS)


def table_digits(equation: Equation) -> int:
    """Significant digits for the fitted constants of a formula in the Pareto table."""
    return max(TABLE_DIGITS, min(equation.table_digits, ALL_DIGITS))


def tightening(covariance: tuple[tuple[float, ...], ...] | None, count: int) -> list[float]:
    """How much smaller the error of each constant is when the others are held."""
    if covariance is None or len(covariance) != count or count < 2:
        return [1.0] * count
    matrix = np.array(covariance)
    with np.errstate(all="ignore"):
        size = np.sqrt(np.diag(matrix))
        correlation = matrix / np.outer(size, size)
    if not np.isfinite(correlation).all():
        return [1.0] * count
    values, vectors = np.linalg.eigh(correlation)
    inverse = np.square(vectors) @ (1.0 / np.maximum(values, _LEAST_EIGENVALUE))
    return [float(factor) for factor in np.sqrt(np.maximum(inverse, 1.0))]


def _places(width: float) -> int:
    """Decimal places that show two digits of an uncertainty."""
    return 1 - math.floor(math.log10(width))


def with_uncertainty(value: float, width: float) -> tuple[str, str]:
    """A value and its uncertainty to two digits, both to the same last place.

    A value smaller than its uncertainty is shown to three digits, as it stands in the formula.

    Examples
    --------
    >>> with_uncertainty(0.73104, 0.00123)
    ('0.7310', '0.0012')
    >>> with_uncertainty(299792458.0, 1200.0)
    ('2.997925e+08', '1.2e+03')
    >>> with_uncertainty(0.4763, 74.0)
    ('0.476', '74')
    """
    if 0.0 < abs(value) < width:
        return number_text(value, FEWEST_DIGITS), number_text(width, 2)
    places = _places(width)
    if -3 <= places <= 8 and (abs(value) >= 1e-3 or width >= 1e-3) and max(abs(value), width) < 1e7:
        shown = max(places, 0)
        return f"{round(value, places):.{shown}f}", f"{round(width, places):.{shown}f}"
    size = math.floor(math.log10(max(abs(value), width)))
    digits = min(
        _RELIABLE, max(0, size + places)
    )  # after the point: a double has fifteen that can be relied on
    return f"{value:.{digits}e}", f"{width:.1e}"


def concise(value: float, error: float | None) -> str:
    """A value with the standard error of its last digits in brackets; six digits where none is known.

    The error has two digits where it begins with 1, else one.

    Examples
    --------
    >>> concise(1.7304, 0.0041), concise(4.00071, 0.0011), concise(6.6743e-11, 2e-14), concise(1481.2, 210.0)
    ('1.730(4)', '4.0007(11)', '6.674(2)e-11', '1500(200)')
    >>> concise(12.34, 1.2), concise(0.7310412, None)
    ('12.3(1.2)', '0.731041')
    """
    if error is None or not math.isfinite(error) or error <= 0.0:
        return number_text(value, DEFAULT_DIGITS)
    leading = f"{error:.1e}"
    digits = 1 if leading.startswith("1") else 0
    places = digits - math.floor(math.log10(float(f"{error:.{digits}e}")))
    if -5 <= places <= 8 and 1e-3 <= max(abs(value), error) < 1e6:
        shown = max(places, 0)
        return f"{round(value, places):.{shown}f}({_bracket(round(error, places), shown)})"
    size = math.floor(math.log10(max(abs(value), error)))
    shown = max(size + places, 0)
    if shown > _RELIABLE:  # a double has fifteen digits that can be relied on
        return number_text(value, _RELIABLE)
    text = f"{value / 10.0**size:.{shown}f}" if abs(size) < 300 else f"{value:.{shown}e}".partition("e")[0]
    return f"{text}({_bracket(float(f'{error:.{digits}e}') / 10.0**size, shown)})e{size:+03d}"


def constant_note(constant: ConstantEstimate) -> str:
    """What to say beside a constant: whether it is proved, what was fitted, or what it agrees with."""
    if constant.exact:
        return "exact"
    if constant.is_set:
        known = constant.fitted is not None and constant.sigma is not None
        return f"fitted {concise(constant.fitted, constant.sigma)}" if known else ""  # type: ignore[arg-type]
    if constant.agrees_with is not None:
        return f"agrees with {constant.agrees_with}"
    return "not determined" if constant.low is None else ""


def _bracket(error: float, places: int) -> str:
    """An error in units of the last place; with its point where that is not the last digit before it."""
    return f"{error:.{places}f}" if error >= 1.0 else f"{error * 10.0**places:.0f}"


def in_percent(probability: float | None) -> str:
    """A probability in whole per cent, rounded down; never 0 or 100, which no calibration can show."""
    if probability is None or not math.isfinite(probability):
        return "-"
    if probability < 0.01:
        return "<1 %"
    return ">99 %" if probability > 0.99 else f"{math.floor(100 * probability + 1e-9)} %"
