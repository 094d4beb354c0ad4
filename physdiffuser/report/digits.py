"""Numbers as a report shows them: as many digits as mean something."""

from __future__ import annotations

import math

from physdiffuser.report.solution import ConstantEstimate, Equation

DEFAULT_DIGITS = 6
MISSING = "-"


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


def half_width(constant: ConstantEstimate) -> float | None:
    """Half the 95 % confidence interval; None when there is none."""
    if constant.low is None or constant.high is None:
        return None
    width = (constant.high - constant.low) / 2
    return width if math.isfinite(width) and width > 0 else None


def shown_digits(equation: Equation) -> int:
    """Significant digits for the fitted constants of a formula.

    Enough for the best-known one to show the first two digits of its uncertainty, so that nothing
    measured is rounded away.
    """
    needed = [
        2 + math.ceil(math.log10(abs(constant.value) / width))
        for constant in equation.constants
        if not constant.exact and constant.value and (width := half_width(constant)) is not None
    ]
    return min(17, max(3, *needed)) if needed else DEFAULT_DIGITS


def with_uncertainty(value: float, width: float) -> tuple[str, str]:
    """A value and its uncertainty to two digits, both to the same last place.

    Examples
    --------
    >>> with_uncertainty(0.73104, 0.00123)
    ('0.7310', '0.0012')
    >>> with_uncertainty(299792458.0, 1200.0)
    ('2.997925e+08', '1.2e+03')
    """
    places = 1 - math.floor(math.log10(width))
    if -3 <= places <= 8 and (abs(value) >= 1e-3 or width >= 1e-3) and max(abs(value), width) < 1e7:
        shown = max(places, 0)
        return f"{round(value, places):.{shown}f}", f"{round(width, places):.{shown}f}"
    size = math.floor(math.log10(max(abs(value), width)))
    digits = min(16, max(0, size + places))
    return f"{value:.{digits}e}", f"{width:.1e}"
