"""The chi-square of a law whose errors are stated: whether the errors and the law agree.

The errors are used as they are stated, in weights and in confidence intervals. If they are right and the
law is complete, the sum of squared residuals in units of the errors follows the chi-square distribution
(Bevington and Robinson, *Data Reduction and Error Analysis for the Physical Sciences*, ch. 11).
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Equation

# A chi-square that is this improbable, in one tail, gives a warning.
IMPROBABLE = 1e-3


def reduced_chi_square(residual: FloatArray, errors: FloatArray, degrees_of_freedom: int) -> float | None:
    """Chi-square over its degrees of freedom; None where there are none, or where it is no number.

    Parameters
    ----------
    residual, errors
        Shape (rows,).
    """
    with np.errstate(all="ignore"):
        value = float(np.square(residual / errors).sum()) / max(degrees_of_freedom, 1)
    return value if degrees_of_freedom > 0 and np.isfinite(value) else None


def chi_square_warning(best: Equation) -> str | None:
    """What an improbable chi-square says about the stated errors and the law; None for a probable one."""
    reduced, freedom = best.reduced_chi_square, best.degrees_of_freedom
    if reduced is None or freedom is None:
        return None
    from scipy.special import chdtr, chdtrc

    above = float(chdtrc(freedom, reduced * freedom))
    below = float(chdtr(freedom, reduced * freedom))
    if min(above, below) >= IMPROBABLE:
        return None
    cause = (
        "the stated errors are too small, or the law is not complete"
        if above < below
        else "the stated errors are larger than the residuals show"
    )
    return (
        f"the reduced chi-square is {reduced:.3g} with {freedom} degrees of freedom "
        f"(probability {min(above, below):.1g}): {cause}"
    )
