"""What `solve` may say of a formula: does the final form follow from the fit, and does it hold?

No truth is known here. *verified* means four things: the snapped, simplified formula is the fitted
one with its constants replaced by exact values (shown symbolically); it holds on rows that neither
search nor fit have seen; it holds at the edges of the table, where a formula that only
interpolates fails first; and what it leaves over shows no pattern, where that was looked at.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression, Number, evaluate
from physdiffuser.expressions.evaluate import value_and_jacobian
from physdiffuser.expressions.tree import distinct_constants, free_constants, substitute, variables
from physdiffuser.verification.constants import Polish, exact_floats, has_floats, polish
from physdiffuser.verification.equivalence import Verdict, equivalent, put_exact
from physdiffuser.verification.worker import SymbolicWorker

FloatArray = npt.NDArray[np.float64]
RowArray = npt.NDArray[np.intp]

# Relative error below which a formula counts as exact on a table of doubles.
EXACT = 1e-9
_EDGE = 0.1
# A change of the constants below this says that the fit was already there.
_LITTLE = 0.05
_FEWEST_ROWS = 5
_TOO_MUCH = ", more than chance explains"
_PATTERN = "they still show a pattern in the columns, so the law is not complete"
_NO_PATTERN = "no pattern is left in them"


@dataclass(frozen=True)
class Verification:
    """The verdict and the checks behind it.

    Attributes
    ----------
    verdict
        *verified* if every check passed; *different* if the final formula has been shown not to be
        the fitted one; else *unknown*.
    sentences
        One per check, for the user.
    """

    verdict: Verdict
    sentences: tuple[str, ...]


def verify(
    fitted: Expression,
    final: Expression,
    inputs: FloatArray,
    target: FloatArray,
    train_rows: RowArray,
    held_out_rows: RowArray,
    noise_scale: float | FloatArray | None = None,
    *,
    names: Sequence[str] | None = None,
    weights: FloatArray | None = None,
    pattern: bool | None = None,
    seconds: float = 10.0,
    worker: SymbolicWorker | None = None,
) -> Verification:
    """Check a formula against the fit it came from and against the table.

    Parameters
    ----------
    fitted
        The formula as fitted: floats are fitted constants.
    final
        The formula with exact constants where they were snapped, simplified.
    inputs, target
        The table: shapes (rows, columns) and (rows,).
    train_rows, held_out_rows
        Positions of the rows that search and fit have seen, and of those they have not.
    noise_scale
        Standard deviation of the target's noise in its own unit, one number or one per row; None
        when unknown: the error on the training rows then says what is to be expected.
    names
        Names of the columns, for the sentences.
    weights
        Shape (rows,), positive: errors count by their roots, as in the fit.
    pattern
        Whether the columns still predict what the formula leaves over; None when not looked at.
    seconds
        Limit of the symbolic check.
    """
    ranges = [(float(column.min()), float(column.max())) for column in inputs.T]
    symbolic, sentence = _symbolic(fitted, final, ranges, seconds, worker)
    sentences = [sentence]
    errors = _Errors(evaluate(final, inputs), target, noise_scale, train_rows, weights)
    holds, sentence = _held_out(errors, held_out_rows)
    if not held_out_rows.size:
        sentence = _left_out(errors, final, inputs) or sentence
    sentences.append(sentence)
    edges, sentence = _edges(errors, inputs, sorted(variables(final)), names)
    sentences.append(sentence)
    if pattern is not None:
        sentences.append(f"residuals: {_PATTERN if pattern else _NO_PATTERN}")
    verdict: Verdict = symbolic
    if symbolic == "verified" and not (holds and edges and not pattern):
        verdict = "unknown"
    return Verification(verdict, tuple(sentences))


# ---- symbolically ----


def _symbolic(
    fitted: Expression,
    final: Expression,
    ranges: list[tuple[float, float]],
    seconds: float,
    worker: SymbolicWorker | None,
) -> tuple[Verdict, str]:
    deadline = time.monotonic() + seconds
    if fitted == final:
        return "verified", "algebra: the law is the fitted formula as it stands"
    if not has_floats(fitted):
        verdict = equivalent(fitted, final, ranges, seconds=seconds, worker=worker)
        return verdict, _said(verdict, "the formula that was found")
    skeleton, start = free_constants(fitted)
    # Which exact constants the data allow was decided by the fit's confidence intervals: here they
    # are only to be found again, however far they lie from where the fit ended.
    found = _found_again(skeleton, start, exact_floats(final), ranges, deadline)
    if found is None:
        return (
            "unknown",
            "algebra: not decided, the law and the fitted formula share too few points with a value",
        )
    if not found.met:
        verdict = equivalent(
            fitted, final, ranges, seconds=max(0.0, deadline - time.monotonic()), worker=worker
        )
        return verdict, _said(verdict, "the fitted formula")
    moves = [
        abs(float(new) - old) / (abs(old) or 1.0) for new, old in zip(found.constants, start, strict=True)
    ]
    by_algebra = _by_algebra(skeleton, found, final, ranges, deadline, worker)
    if by_algebra is None:
        return "unknown", (
            "algebra: not decided; law and fitted formula agree to 40 digits with the constants moved, but a "
            "constant has no exact form that was recognised"
        )
    whose = "its constant" if len(moves) == 1 else f"its {len(moves)} constants"
    # Constants that hang together move far and change little: a number would mislead.
    little = f", none moved by more than {_percent(max(moves))}" if max(moves) < _LITTLE else ""
    with_moves = f"the fitted formula with {whose} set to what is shown{little}"
    return by_algebra, _said(by_algebra, with_moves)


def _by_algebra(
    skeleton: Expression,
    found: Polish,
    final: Expression,
    ranges: list[tuple[float, float]],
    deadline: float,
    worker: SymbolicWorker | None,
) -> Verdict | None:
    """Whether the skeleton with exact constants is the law; None when a constant has no exact form.

    Constants with many digits have no short quotients, and make algebra slow. Where they are in the way the
    same formulas with round numbers in their place are compared.
    """
    verdict: Verdict | None = None
    for shown in (final, _with_round_constants(final)):
        if shown is not final:
            again = polish(skeleton, [float(value) for value in found.constants], shown, ranges)
            if again is None or not again.met:
                break
            found = again
        exact = put_exact(skeleton, found)
        if exact is not None:
            left = max(0.0, deadline - time.monotonic())
            verdict = equivalent(exact, shown, ranges, seconds=left / 2, worker=worker)
            if verdict != "unknown":
                break
    return verdict


def _with_round_constants(expression: Expression) -> Expression:
    def rewrite(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not node.exact:
            return Number(Fraction(f"{node.value:.3g}"))
        return None

    return substitute(expression, rewrite)


def _found_again(
    skeleton: Expression,
    start: Sequence[float],
    formula: Expression,
    ranges: list[tuple[float, float]],
    deadline: float,
) -> Polish | None:
    """`polish` from the fit and, where that does not meet, with each constant at zero in turn.

    A constant that the fit could not tell from zero may have ended far from it, and the others with it.
    """
    found = polish(skeleton, start, formula, ranges)
    if found is None or found.met:
        return found
    for index in range(len(start)):
        if time.monotonic() > deadline:
            break
        again = polish(skeleton, [*start[:index], 0.0, *start[index + 1 :]], formula, ranges)
        if again is not None and again.met:
            return again
    return found


def _percent(share: float) -> str:
    percent = 100.0 * share
    return f"{percent:.2g} %" if percent < 99.5 else f"{percent:.3g} %"


def _said(verdict: Verdict, what: str) -> str:
    match verdict:
        case "verified":
            return f"algebra: the law equals {what}"
        case "different":
            return f"algebra: the law differs from {what}"
        case "unknown":
            return f"algebra: not decided whether the law equals {what}"


# ---- numerically ----


class _Errors:
    """Errors of a prediction, and how large noise makes them."""

    def __init__(
        self,
        prediction: FloatArray,
        target: FloatArray,
        noise: float | FloatArray | None,
        train_rows: RowArray,
        weights: FloatArray | None,
    ) -> None:
        self.weights = None if weights is None else weights / weights.mean()
        root = 1.0 if self.weights is None else np.sqrt(self.weights)
        with np.errstate(all="ignore"):
            self.absolute = np.abs(prediction - target) * root
            size = np.abs(target)
            # Beside a target of zero the table's own scale stands in.
            floor = 1e-12 * float(np.abs(target).max(initial=0.0)) or 1.0
            self.relative = self.absolute / np.maximum(size, floor)
        self.finite = np.isfinite(prediction)
        self.train = train_rows
        self.noise = (
            None if noise is None else np.broadcast_to(np.asarray(noise, dtype=np.float64), target.shape)
        )

    def rms(self, errors: FloatArray, rows: RowArray) -> float:
        """Root mean square over some rows, safe for very large and very small numbers."""
        chosen = errors[rows]
        if chosen.size == 0:
            return 0.0
        scale = float(chosen.max())
        if scale == 0.0 or not math.isfinite(scale):
            return scale
        return scale * float(np.sqrt(np.mean(np.square(chosen / scale))))

    def size(self, rows: RowArray) -> float:
        """Root mean square error in the unit of the target, weighted."""
        share = 1.0 if self.weights is None else float(self.weights[rows].mean())
        return self.rms(self.absolute, rows) / math.sqrt(share)


def _allowance(count: int, reference: int) -> float:
    """How far the ratio of two root mean squares may exceed 1 by chance: four standard errors."""
    return 1.0 + 4.0 * math.sqrt(0.5 / max(count, 1) + 0.5 / max(reference, 1))


def _held_out(errors: _Errors, rows: RowArray) -> tuple[bool, str]:
    """Whether the error on rows never seen is what the rows seen, or the noise, lead one to expect."""
    count = int(rows.size)
    where = f"{count:,} {'row' if count == 1 else 'rows'} never seen"
    if count == 0:
        return False, "held-out rows: not checked, the table is too small to set any aside"
    if not errors.finite[rows].all():
        return False, f"held-out rows: no value on {int((~errors.finite[rows]).sum()):,} of {count:,}"
    worst = float(errors.relative[rows].max())
    if worst <= EXACT:
        return True, f"held-out rows: largest relative error {worst:.1g} on {where}"
    allowed = _allowance(count, int(errors.train.size))
    if errors.noise is not None:
        ratio = errors.rms(errors.absolute / np.maximum(errors.noise, 1e-300), rows)
        holds, size = ratio <= allowed, f"{errors.size(rows):.3g}"
        what = f"{ratio:.2g} times the noise given"
    else:
        expected = errors.rms(errors.absolute, errors.train)
        ratio = errors.rms(errors.absolute, rows) / expected if expected else math.inf
        holds, size = ratio <= allowed, f"{errors.size(rows):.3g}"
        if not holds:
            # Noise that grows with the target: a few large rows may carry all of the absolute error.
            expected = errors.rms(errors.relative, errors.train)
            relative = errors.rms(errors.relative, rows)
            if expected > 0.0 and relative / expected <= allowed:
                holds, ratio, size = True, relative / expected, _percent(relative)
        what = f"{ratio:.2g} times that on the rows fitted"
    return holds, f"held-out rows: rms error {size} on {where}, {what}{'' if holds else _TOO_MUCH}"


def _left_out(errors: _Errors, final: Expression, inputs: FloatArray) -> str | None:
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
    ratio = errors.rms(errors.absolute / (1.0 - leverage), rows) / fitted
    return (
        "held-out rows: not checked, the table is too small to set any aside; with each row left out in turn "
        f"the others predict it with {ratio:.2g} times the rms error of the fit"
    )


def _edges(
    errors: _Errors, inputs: FloatArray, columns: list[int], names: Sequence[str] | None
) -> tuple[bool, str]:
    """Whether the formula holds in the outermost tenth of each column's range as in its middle."""
    if not columns:
        return False, "edges: not checked, no column occurs in the formula"
    worst_ratio, worst_name, checked = 0.0, "", 0
    largest = 0.0
    holds = True
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
        if edge.size < _FEWEST_ROWS or bulk.size < _FEWEST_ROWS:
            continue
        checked += 1
        name = names[column] if names is not None else f"x{column + 1}"
        if not errors.finite[edge].all():
            return False, f"edges: no value in the outermost tenth of {name}"
        largest = max(largest, float(errors.relative[edge].max()))
        ratio = _edge_ratio(errors, edge, bulk)
        if ratio > worst_ratio:
            worst_ratio, worst_name = ratio, name
        if float(errors.relative[edge].max()) > EXACT:
            holds = holds and ratio <= _allowance(int(edge.size), int(bulk.size))
    if not checked:
        return False, "edges: not checked, too few rows there"
    if largest <= EXACT:
        return True, f"edges: largest relative error {largest:.1g} in the outermost tenth of each range"
    sentence = (
        f"edges: the error in the outermost tenth of {worst_name} is {worst_ratio:.2g} times that elsewhere"
    )
    return holds, sentence if holds else sentence + _TOO_MUCH


def _edge_ratio(errors: _Errors, edge: RowArray, bulk: RowArray) -> float:
    """Error at the edge over that in the bulk, by the kind of noise under which it is smaller."""
    kinds = [errors.absolute, errors.relative]
    if errors.noise is not None:
        kinds = [errors.absolute / np.maximum(errors.noise, 1e-300)]
    ratios = []
    for kind in kinds:
        inside = errors.rms(kind, bulk)
        outside = errors.rms(kind, edge)
        ratios.append(outside / inside if inside > 0.0 else (math.inf if outside > 0.0 else 0.0))
    return min(ratios)
