"""Whether small changes of a law fit the rows better: score tests.

A law is changed in many ways, each by one more number that is 0 for the law as it is: a column is bent, the
value is bent, and polynomials of the columns are added to the value or multiplied with it. If the law holds,
the slope of the law by such a number, without what the slopes by the constants explain, is unrelated to the
residuals (score tests [1]_). Nothing is fitted.

References
----------
.. [1] C. R. Rao, "Large sample tests of statistical hypotheses concerning several parameters with
   applications to problems of estimation", Proc. Camb. Phil. Soc. 44 (1948).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, evaluate, value_and_jacobian
from physdiffuser.expressions.tree import free_constants, variables


@dataclass(frozen=True)
class MisfitPolicy:
    """Which changes of a law are tested, and on how many rows.

    Set on the recorded answers of docs/calibration.md.
    """

    max_rows: int = 5_000
    """More rows are sampled down to this many."""
    max_columns: int = 6
    """Columns in which the law is changed, its own first."""
    degree: int = 3
    """Of the polynomials of one column."""
    step: float = 1e-4
    """Of the difference quotients by which the law is bent, relative to half the range of a column."""
    max_nats: float = 60.0
    """Smaller chances count as this."""
    pattern: float = 7.0
    """So many nats show that the law is not complete: one chance in a thousand. Of the recorded answers
    none of 650 laws had so many, and 189 of 694 other formulas did."""
    explained: float = 1e-6
    """A change whose slope is to this share that of the constants is none."""


POLICY = MisfitPolicy()
# Of the value, to which constant, Poisson and relative errors are in proportion.
EXPONENTS = (0.0, 0.5, 1.0)


class Misfit(NamedTuple):
    """What speaks against a law.

    Attributes
    ----------
    nats
        Minus the logarithm of the least p-value times the number of tests; 0 or more.
    change
        The change of the law with that p-value, for people: "a further term in x". Empty if nothing speaks
        against it.
    """

    nats: float
    change: str


NOTHING = Misfit(0.0, "")


@np.errstate(all="ignore")
def misfit(law: Expression, problem: Problem) -> Misfit:
    """What speaks most against a law.

    Parameters
    ----------
    law
        With the constants that were fitted to the rows.
    problem
        The rows, with the weights of their noise. Without weights it is not known how the noise is spread:
        the law must fail under constant, Poisson and relative errors.
    """
    rows = problem.generator(17).permutation(problem.rows)[: POLICY.max_rows]
    inputs = problem.inputs[rows]
    skeleton, constants = free_constants(law)
    value, jacobian = value_and_jacobian(skeleton, inputs, np.array(constants, dtype=np.float64))
    largest = float(np.abs(value).max())
    if not 0 < largest < np.inf:
        return NOTHING
    names, slopes_of_changes = zip(*_changes(law, inputs, value / largest, problem.names), strict=True)
    changes = _unit(np.column_stack(slopes_of_changes))
    residuals, slopes = (problem.target[rows] - value) / largest, _unit(jacobian.T)
    if problem.weights is not None:
        weightings = [np.sqrt(problem.weights[rows])]
    else:
        sizes = np.abs(value) / largest
        weightings = [sizes**-exponent for exponent in (EXPONENTS if sizes.min() > 0 else EXPONENTS[:1])]
    nats, place = min(_against(residuals, slopes, changes, roots) for roots in weightings)
    return Misfit(nats, names[place]) if nats > 0 else NOTHING


def _against(
    residuals: FloatArray, slopes: FloatArray, changes: FloatArray, roots: FloatArray
) -> tuple[float, int]:
    """Nats against a law with these residuals and slopes by its constants, and by which change.

    Parameters
    ----------
    roots
        Factors of the rows.
    """
    free = len(residuals) - slopes.shape[1] - 1
    if free < 1 or not (np.isfinite(slopes).all() and np.isfinite(residuals).all()):
        return 0.0, 0
    basis, _ = np.linalg.qr(_unit(roots[:, None] * slopes))
    left = _unit((roots * residuals)[:, None])[:, 0]
    left = left - basis @ (basis.T @ left)
    along = _unit(roots[:, None] * changes)
    along = along - basis @ (basis.T @ along)
    lengths, size = np.linalg.norm(along, axis=0), float(np.linalg.norm(left))
    some = np.isfinite(lengths) & (lengths > POLICY.explained)
    if not some.any() or not size > 0:
        return 0.0, 0
    correlations = np.abs(left @ along[:, some]) / (lengths[some] * size)
    nats = -_log_p_value(float(correlations.max()), free) - math.log(np.count_nonzero(some))
    return max(nats, 0.0), int(np.flatnonzero(some)[np.argmax(correlations)])


def _changes(
    law: Expression, inputs: FloatArray, value: FloatArray, names: Sequence[str]
) -> Iterator[tuple[str, FloatArray]]:
    """Each change, and the slope of the changed law by its further number, shape (rows,).

    Parameters
    ----------
    value
        Of the law, at most 1.
    """
    own = sorted(variables(law))
    others = [column for column in range(inputs.shape[1]) if column not in own]
    units: list[tuple[str, FloatArray]] = []
    for place, column in enumerate([*own, *others][: POLICY.max_columns]):
        values = inputs[:, column]
        low, half = float(values.min()), 0.5 * float(np.ptp(values))
        if not half > 0:
            continue
        unit = (values - low) / half - 1
        units.append((names[column], unit))
        if place < len(own):
            bends = [half * (unit * unit - 1)]
            if low > 0:
                logs = np.log(values)
                bends.append(values * (logs - logs.mean()))
            for bend in bends:
                yield f"another shape in {names[column]}", _bent(law, inputs, column, bend)
        for power in np.polynomial.chebyshev.chebvander(unit, POLICY.degree).T[1:]:
            yield f"a further term in {names[column]}", power
            yield f"a further factor in {names[column]}", value * power
    for (one, first), (other, second) in combinations(units, 2):
        yield f"a further term in {one} and {other}", first * second
        yield f"a further factor in {one} and {other}", value * first * second
    yield "another function of the whole", value * value
    if (value > 0).all() or (value < 0).all():
        yield "another function of the whole", value * np.log(np.abs(value))


def _bent(law: Expression, inputs: FloatArray, column: int, bend: FloatArray) -> FloatArray:
    """The slope of the law when a column is moved along `bend`."""
    above, below = inputs.copy(), inputs.copy()
    above[:, column] += POLICY.step * bend
    below[:, column] -= POLICY.step * bend
    return evaluate(law, above) - evaluate(law, below)


def _unit(columns: FloatArray) -> FloatArray:
    """Columns of length 1."""
    largest = np.abs(columns).max(axis=0, initial=0.0)
    columns = columns / np.where(largest > 0, largest, 1.0)
    lengths = np.linalg.norm(columns, axis=0)
    return np.asarray(columns / np.where(lengths > 0, lengths, 1.0))


def _log_p_value(correlation: float, free: int) -> float:
    """Logarithm of the chance that noise has so large a correlation (Student's distribution)."""
    from scipy.stats import t

    ratio = correlation * math.sqrt(free / max(1.0 - correlation**2, 1e-300))
    return math.log(2.0) + max(float(t.logsf(ratio, free)), -POLICY.max_nats)
