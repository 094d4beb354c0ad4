"""With how many digits were the numbers of a column written?"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray

# Relative accuracy of values computed in double precision by a short formula.
DOUBLE = 1e-10
# Half of the rows are met if they lie within this many halves of a unit of their last digit: constants and
# inputs are rounded as well.
_HALF_UNITS = 10.0


def decimal_precision(values: FloatArray) -> float:
    """Relative rounding of the numbers: `DOUBLE`, or more when they were written with fewer digits.

    Numbers written with few significant digits all equal themselves when rounded to that many.

    Parameters
    ----------
    values
        Shape (rows,).
    """
    some = values[:200][values[:200] != 0]
    if not some.size:
        return DOUBLE
    for digits in range(1, 11):
        with np.errstate(over="ignore", invalid="ignore"):  # powers of ten have an end
            size = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(some))))
            rounded = np.round(some * size) / size
        if np.allclose(rounded, some, rtol=1e-14, atol=0):
            return float(0.5 * 10.0 ** (1 - digits))
    return DOUBLE


def meets_digits(target: FloatArray, prediction: FloatArray, tolerance: float) -> bool:
    """Whether a formula meets the numbers of the target to about the digits with which they were written.

    Half of the rows must be met, each to its own last digit. The mean squared residual does not show this
    where values span many decades: it can be as small as the rounding of the largest ones while all others
    are far off.

    Parameters
    ----------
    target, prediction
        Shape (rows,).
    tolerance
        Relative rounding of a number that begins with a 1, as of `decimal_precision`.
    """
    if tolerance <= DOUBLE:
        return True
    some = target != 0
    if not some.any():
        return True
    half = tolerance * 10.0 ** np.floor(np.log10(np.abs(target[some])))
    residual = np.abs(target[some] - prediction[some])
    return bool(np.mean(residual <= _HALF_UNITS * half) >= 0.5)
