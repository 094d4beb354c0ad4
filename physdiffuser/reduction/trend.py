"""How a table goes on the whole: a polynomial in what a reduction lets its law depend on.

In the logarithms of features and target, where they have one sign, so that a power law is a plane. What the
polynomial does not explain distinguishes reductions: the right one has fewer features and leaves as little.
"""

from __future__ import annotations

from math import comb

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.reduction.surrogate import degree_for, fit_slopes

# Rows looked at.
ROWS = 600
# A polynomial tells slopes where it leaves less than this share of the target's spread.
PREDICTS = 0.3
# Where so many rows have one sign the others are noise around zero, and so are those this small.
ONE_SIGN, SMALL = 0.95, 0.03
# A reduction is given up when its polynomial is so many times worse than another's, and not nearly exact.
IMPLAUSIBLE, NEGLIGIBLE = 2.0, 2e-3


def image_of(target: FloatArray) -> tuple[FloatArray, bool]:
    """The logarithm of a target of one sign, or the target itself; and whether it is a logarithm."""
    logarithmic = bool((target > 0).all() or (target < 0).all())
    return np.log(np.abs(target)) if logarithmic else target, logarithmic


def trend(values: FloatArray, target: FloatArray) -> tuple[FloatArray | None, float]:
    """Slopes of the polynomial, None where it explains little, and the unexplained share.

    Parameters
    ----------
    values
        Of the features, shape (features, rows).
    target
        Shape (rows,).

    Returns
    -------
    slopes
        Of `image_of` the target, along the logarithms of positive features and along others as they are,
        (rows, features).
    error
        Relative to the target, for each degree of freedom.
    """
    image, logarithmic = image_of(target)
    if not np.isfinite(image).all() or not np.ptp(image) > 0:
        return None, float("inf")
    rows, columns = len(target), len(values)
    slopes: FloatArray | None = np.empty((rows, 0))
    error = 1.0
    if columns:
        coordinates = [np.log(value) if (value > 0).all() else value for value in values]
        slopes, error = fit_slopes(np.stack(coordinates, axis=1), image, with_error=True)
    degree = degree_for(rows, columns)
    free = rows - comb(columns + degree, degree)
    if free <= 0:
        return None, float("inf")
    more = float(np.sqrt(rows / free))
    # Errors of logarithms are relative as they stand.
    size = float(image.std()) / (1.0 if logarithmic else float(np.sqrt(np.square(image).mean())))
    return slopes if error * more < PREDICTS else None, error * size * more


def divided(problem: Problem, reduction: Reduction) -> tuple[FloatArray, FloatArray] | None:
    """Features, (features, rows), and target divided by the reduction's factor; None where one has no value.

    On some rows of the problem, the same for every reduction, without those whose logarithm is noise.
    """
    rows = problem.generator(6).permutation(problem.rows)[:ROWS]
    inputs, target = problem.inputs[rows], problem.target[rows]
    values = reduction.values(inputs).T
    with np.errstate(all="ignore"):
        left = target / reduction.product(inputs)
    if not (np.isfinite(values).all() and np.isfinite(left).all()):
        return None
    sign = float(np.sign(np.median(left)))
    if sign and float((sign * left > 0).mean()) >= ONE_SIGN:
        sure = sign * left > SMALL * float(np.median(sign * left))
        return values[:, sure], left[sure]
    return values, left


def plausible(problem: Problem, reductions: list[Reduction]) -> list[Reduction]:
    """The reductions that a polynomial in their features follows about as well as in any other's.

    Those that divide nothing out stay, and all do where no polynomial follows the rows.
    """
    errors: list[float] = []
    informative = False
    for reduction in reductions:
        found = divided(problem, reduction)
        slopes, error = (None, float("inf")) if found is None else trend(*found)
        informative |= slopes is not None
        errors.append(error)
    if not informative:
        return reductions
    enough = IMPLAUSIBLE * min(errors) + NEGLIGIBLE
    return [
        reduction
        for reduction, error in zip(reductions, errors, strict=True)
        if error <= enough or not reduction.factors
    ]
