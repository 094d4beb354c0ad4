"""With how many digits were the numbers of a column written?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Relative accuracy of values computed in double precision by a short formula.
DOUBLE = 1e-10


def decimal_precision(values: npt.NDArray[np.float64]) -> float:
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
