"""Reductions from a power law fitted in noise: the columns that follow it are factored out, the others stay.

Where the noise is the same in all rows and the target spans decades, most rows are nothing but noise beside
the largest, and slopes of polynomials in the logarithms drown. A power law fitted to the target itself, by
nonlinear least squares from a straight line in the logarithms, still gives every exponent with its error.
Columns whose exponents are whole or half within that error are taken for factors. Of the three that agree
worst some stay as features: the law is a power of the others times any function of them. Which of the three
is left open: where the law is no power law in one column, exponents of the others are a little off, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, Parameter, Variable
from physdiffuser.expressions.tree import mul, power
from physdiffuser.fitting import fit_constants, uncertainty
from physdiffuser.reduction.factors import POLICY as FACTORS


@dataclass(frozen=True)
class PowerLawPolicy:
    """When exponents are believed that a fit of a power law to noisy rows gives.

    Set on noisy development laws (docs/methods/reduction.md).
    """

    max_turned: float = 0.05
    """At most this share of the sum of squares may be of the other sign: noise turns the smallest values
    only."""
    rows_of_column: int = 10
    max_left: int = 3
    """Rows for each column, and columns that may stay."""
    max_error: float = 0.12
    near: float = 0.12
    """An exponent is known when its error is less than this, and half-integer when it is so near to one."""
    min_error: float = 1e-3
    """Errors are taken to be at least so large, for a law is hardly ever a power law in all its columns."""
    rarer: float = 1.5
    """Standard errors by which a half exponent must agree better than a whole one, being rarer."""
    iterations: int = 40
    """Most iterations of the fit."""


POLICY = PowerLawPolicy()


def power_law_reductions(problem: Problem) -> list[Reduction]:
    """Reductions of a power law times a function of few columns, read off a fit that noise does not mislead.

    Returns
    -------
    list of Reduction
        With one, two and three of the positive columns as features, besides all columns that are not
        positive; at most seven, and most of them wrong. There are none where more than three columns
        are no powers, where the target changes sign, or where no power law fits better than the mean.
    """
    inputs = problem.inputs
    positive = [column for column in range(problem.columns) if (inputs[:, column] > 0).all()]
    if len(positive) < 2:
        return []
    fit = _fitted(problem, np.log(inputs[:, positive]))
    if fit is None:
        return []
    exponents, errors = fit
    nearest = np.clip(np.round(2 * exponents) / 2, -FACTORS.max_exponent, FACTORS.max_exponent)
    off = np.abs(exponents - nearest)
    known = errors < POLICY.max_error
    # The worst agreement first; what cannot be a factor at all before any other.
    half = POLICY.rarer * (nearest % 1 != 0)
    doubt = np.where(known & (off < POLICY.near), off / np.maximum(errors, POLICY.min_error) + half, np.inf)
    ranking = np.argsort(-doubt, kind="stable")
    doubtful, sure = ranking[: POLICY.max_left], ranking[POLICY.max_left :]
    if not np.isfinite(doubt[sure]).all():
        return []
    others = [column for column in range(problem.columns) if column not in positive]
    found: list[Reduction] = []
    for left in range(1, len(doubtful) + 1):
        for stays in combinations(doubtful.tolist(), left):
            gone = [place for place in range(len(positive)) if place not in stays]
            factors = tuple(
                (positive[place], Fraction(float(nearest[place]))) for place in gone if nearest[place]
            )
            if factors and known[gone].all():
                features = sorted([*(positive[place] for place in stays), *others])
                found.append(Reduction.of_columns(factors, features))
    return found


def _fitted(problem: Problem, logarithms: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The exponents of the columns and their standard errors; None where no power law fits."""
    columns = logarithms.shape[1]
    largest = float(np.abs(problem.target).max())
    if not largest > 0:
        return None
    unit = problem.target / largest
    sign = 1.0 if unit.sum() > 0 else -1.0
    usable = sign * unit > 0
    turned = np.square(unit[~usable]).sum() > POLICY.max_turned * np.square(unit).sum()
    if turned or usable.sum() < POLICY.rows_of_column * columns:
        return None
    # Columns about 1, whatever their units, leave the exponents as they are.
    about_zero = logarithms - logarithms.mean(axis=0)
    # Large values are known best in proportion; the smallest are nothing but noise, if there is any.
    size = np.abs(unit[usable])
    root = size / (size + size.mean())
    design = np.column_stack([np.ones(usable.sum()), about_zero[usable]])
    start = np.linalg.lstsq(design * root[:, None], np.log(size) * root, rcond=None)[0]
    skeleton: Expression = Parameter(0)
    for column in range(columns):
        skeleton = mul(skeleton, power(Variable(column), Parameter(column + 1)))
    fit = fit_constants(
        skeleton,
        np.exp(about_zero),
        unit,
        weights=problem.weights,
        loss=problem.loss,
        initial=[sign * float(np.exp(start[0])), *start[1:]],
        starts=1,
        iterations=POLICY.iterations,
        tolerance=1e-8,
    )
    if not np.isfinite(fit.loss) or fit.loss > 1:
        return None
    known = uncertainty(skeleton, fit.parameters, np.exp(about_zero), unit, weights=problem.weights)
    return fit.parameters[1:], known.standard_errors[1:]
