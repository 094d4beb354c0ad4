"""Checks of a formula on rows: those of the test set, and those at the boundary of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.expressions import Expression
from physdiffuser.expressions.evaluate import value_and_jacobian
from physdiffuser.expressions.tree import distinct_constants
from physdiffuser.fitting.accuracy import max_relative_error
from physdiffuser.verification.checks import Check

_EDGE = 0.1
_MIN_ROWS = 5
_TOO_MUCH = ", more than chance explains"


class Errors:
    """Errors of a prediction, absolute and relative."""

    def __init__(
        self,
        prediction: FloatArray,
        target: FloatArray,
        train_rows: IndexArray,
        weights: FloatArray | None,
    ) -> None:
        self.weights = None if weights is None else weights / weights.mean()
        root = 1.0 if self.weights is None else np.sqrt(self.weights)
        with np.errstate(all="ignore"):
            self.absolute = np.abs(prediction - target) * root
            size = np.abs(target)
            # For ratios alone: beside a target of zero the table's own scale stands in.
            floor = 1e-12 * float(np.abs(target).max(initial=0.0)) or 1.0
            self.relative = self.absolute / np.maximum(size, floor)
        self.finite = np.isfinite(prediction)
        self.exact = np.zeros(target.shape, dtype=np.bool_)
        self.prediction, self.target = prediction, target
        self.train = train_rows

    def largest(self, rows: IndexArray) -> float:
        """Largest relative error."""
        return max_relative_error(self.target[rows], self.prediction[rows])

    def rms(self, errors: FloatArray, rows: IndexArray) -> float:
        """Root mean square over some rows, safe for very large and very small numbers."""
        chosen = errors[rows]
        if chosen.size == 0:
            return 0.0
        scale = float(chosen.max())
        if scale == 0.0 or not math.isfinite(scale):
            return scale
        return scale * float(np.sqrt(np.mean(np.square(chosen / scale))))

    def size(self, rows: IndexArray) -> float:
        """Root mean square error in the unit of the target, weighted."""
        share = 1.0 if self.weights is None else float(self.weights[rows].mean())
        return self.rms(self.absolute, rows) / math.sqrt(share)


def _allowance(count: int, reference: int) -> float:
    """How far the ratio of two root mean squares may exceed 1 by chance: four standard errors."""
    return 1.0 + 4.0 * math.sqrt(0.5 / max(count, 1) + 0.5 / max(reference, 1))


def check_test_set(errors: Errors, rows: IndexArray) -> Check:
    """Whether the error on the test set agrees with that on the training rows."""
    count = int(rows.size)
    where = f"{count:,} test {'row' if count == 1 else 'rows'}"
    if count == 0:
        return Check(
            "open",
            "test set: not checked, too few rows to hold any out",
            "the table is too small for a test set",
        )
    if not errors.finite[rows].all():
        missing = int((~errors.finite[rows]).sum())
        return Check(
            "failed",
            f"test set: no value on {missing:,} of {count:,}",
            "it has no value on some test rows",
        )
    if errors.exact[rows].all():
        return Check("passed", f"test set: largest relative error {errors.largest(rows):.1g} on {where}")
    allowed = _allowance(count, int(errors.train.size))
    expected = errors.rms(errors.absolute, errors.train)
    ratio = errors.rms(errors.absolute, rows) / expected if expected else math.inf
    holds, size = ratio <= allowed, f"{errors.size(rows):.3g}"
    if not holds:
        # Noise that grows with the target: a few large rows may carry all of the absolute error.
        expected = errors.rms(errors.relative, errors.train)
        relative = errors.rms(errors.relative, rows)
        if expected > 0.0 and relative / expected <= allowed:
            holds, ratio, size = True, relative / expected, percent(relative)
    sentence = f"test set: rms error {size} on {where}; test/training ratio {ratio:.2g}"
    if holds:
        return Check("passed", sentence)
    return Check("failed", sentence + _TOO_MUCH, "the error on the test rows is too large")


def left_out(errors: Errors, final: Expression, inputs: FloatArray) -> str | None:
    """How well the other rows predict each row, where there are too few to set some aside.

    The constants are not fitted again: to first order the error of a row that is left out is its residual
    divided by one less its leverage (Cook and Weisberg, Residuals and Influence in Regression, 1982). This
    tests the constants, not the choice of the formula, which has seen every row: it earns no verdict.
    """
    skeleton, values = distinct_constants(final)
    if not 0 < len(values) < errors.absolute.size or not errors.finite.all():
        return None
    _, jacobian = value_and_jacobian(skeleton, inputs, np.array(values))
    root = 1.0 if errors.weights is None else np.sqrt(errors.weights)
    size = np.abs(jacobian).max(axis=1, keepdims=True)
    if not np.isfinite(jacobian).all() or not size.all():
        return None
    orthogonal = np.linalg.qr((root * jacobian / size).T)[0]
    leverage = np.square(orthogonal).sum(axis=1)
    rows = np.arange(errors.absolute.size)
    fitted = errors.rms(errors.absolute, rows)
    if leverage.max() > 1.0 - 1e-9 or fitted == 0.0:
        return None
    return left_out_sentence(errors.rms(errors.absolute / (1.0 - leverage), rows) / fitted)


def left_out_sentence(ratio: float) -> str:
    """What is said of rows left out in turn; `ratio` is their error over that of the fit."""
    return (
        "test set: not checked, too few rows to hold any out; with each row left out in turn "
        f"the others predict it with {ratio:.2g} times the rms error of the fit"
    )


def check_boundary(
    errors: Errors, inputs: FloatArray, columns: list[int], names: Sequence[str] | None
) -> Check:
    """Whether the formula holds in the outermost tenth of each column's range as in its middle."""
    if not columns:
        return Check(
            "open",
            "boundary check: not checked, no column occurs in the formula",
            "the answer is a constant, not a law",
        )
    worst_ratio, worst_name, checked = 0.0, "", 0
    largest = 0.0
    holds = all_exact = True
    for column in columns:
        values = inputs[:, column]
        low, high = float(values.min()), float(values.max())
        if not low < high:
            continue
        # A tenth at either end; of the scaled range, since high - low may overflow.
        place = values / 2.0 - low / 2.0
        place = place / float(place.max())
        outer = (place <= _EDGE) | (place >= 1.0 - _EDGE)
        edge, bulk = np.flatnonzero(outer), np.flatnonzero(~outer)
        if edge.size < _MIN_ROWS or bulk.size < _MIN_ROWS:
            continue
        checked += 1
        name = names[column] if names is not None else f"x{column + 1}"
        if not errors.finite[edge].all():
            return Check(
                "failed",
                f"boundary check: no value in the outermost tenth of {name}",
                f"it has no value at the boundary of {name}",
            )
        exact = bool(errors.exact[edge].all())
        all_exact = all_exact and exact
        largest = max(largest, errors.largest(edge))
        ratio = _edge_ratio(errors, edge, bulk)
        if ratio > worst_ratio:
            worst_ratio, worst_name = ratio, name
        if not exact:
            holds = holds and ratio <= _allowance(int(edge.size), int(bulk.size))
    if not checked:
        return Check("open", "boundary check: not checked, too few rows there", "there are too few rows")
    if all_exact:
        tenths = "the outermost tenth of each range"
        return Check("passed", f"boundary check: largest relative error {largest:.1g} in {tenths}")
    sentence = (
        f"boundary check: the error in the outermost tenth of {worst_name} is {worst_ratio:.2g} times "
        "that elsewhere"
    )
    if holds:
        return Check("passed", sentence)
    return Check("failed", sentence + _TOO_MUCH, f"the error at the boundary of {worst_name} is too large")


def _edge_ratio(errors: Errors, edge: IndexArray, bulk: IndexArray) -> float:
    """Error at the edge over that in the bulk, by the kind of noise under which it is smaller."""
    ratios = []
    for kind in (errors.absolute, errors.relative):
        inside = errors.rms(kind, bulk)
        outside = errors.rms(kind, edge)
        ratios.append(outside / inside if inside > 0.0 else (math.inf if outside > 0.0 else 0.0))
    return min(ratios)


def percent(share: float) -> str:
    """A share in percent, to two or three digits."""
    percent = 100.0 * share
    return f"{percent:.2g} %" if percent < 99.5 else f"{percent:.3g} %"
