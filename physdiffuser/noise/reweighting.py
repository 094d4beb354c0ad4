"""How measurements scatter: the same everywhere or in proportion to the value, and which rows are far off.

Before any law is known, each row is predicted from its neighbours by a local linear fit, in logarithms where
the numbers allow it. How the errors of these predictions depend on the value tells what kind of noise it
is: readings with an error of a few percent over several decades need weights, without which the largest
values decide alone. Rows much farther off than all others are misprints or the like: where rows are plenty
they are left out of the search, and the law found is held against them at the end.

The predictions need rows enough, or a target that is nearly a power law of the columns; where there is
neither, nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from physdiffuser.data.checks import weights_of
from physdiffuser.errors import DataError
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.fitting.losses import root_mean_square
from physdiffuser.noise.models import SMALLEST_COUNT, NoiseModel

if TYPE_CHECKING:
    from physdiffuser.core.problem import Loss, NoiseModelName
    from physdiffuser.data.dataset import Dataset

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Tables on which it is tried: with few columns neighbours are close, and with few rows wrong weights do harm.
MOST_ROWS, FEWEST_ROWS, MOST_COLUMNS = 10_000, 8, 6
# Weights are for tables that a person wrote down, where a wrong guess can be seen.
WEIGHED_ROWS, WEIGHED_COLUMNS = 300, 3
# With fewer rows a misprint is told from a narrow peak by nobody: it stays, and counts less.
ENOUGH_ROWS = 30
# The target must span this ratio for weights to matter, and at most the other: no instrument reads thirty
# decades equally well, and the tail of a peak would count for all.
SPAN, MOST_SPAN = 6.0, 1e12
# Log-likelihood by which errors in proportion must be the better description.
DECISIVE = 3.0
# Usual errors of the predictions, as a share of what the median leaves over: neighbours must say something
# for a row to be off, and much for the way errors depend on the value.
LEFT_OVER, WEIGHED_LEFT_OVER = 0.6, 0.3
# Scatter is on either side of the law: of neighbours at most this share may err to the same side.
SAME_SIDE = 0.6
# Errors smaller than this, relative, are nobody's noise.
NO_NOISE = 1e-6
# A row is off when its error is so many times the usual one, and larger than this share of the value.
FAR, FAR_SHARE = 8.0, 0.3
# At most this share of the rows may be off: more is a law that neighbours do not tell. So is a heap of them.
MOST_OFF = 0.16
MOST_TOGETHER = 0.6
# Rows of the other sign are no misprints where the usual one is smaller than this share of the usual value.
SMALL = 0.5
# In each round those are judged to be off whose error is at least this share of the largest.
ROUND = 0.5
# What is off matters only if it makes up most of the squared error.
MATTERS = 4.0
# Usual errors within which a law agrees with a row.
AGREES = 5.0
# Logarithm of half of the largest double.
LARGEST_LOGARITHM = float(np.log(np.finfo(np.float64).max / 2))
# Neighbours are looked for among so many rows.
REFERENCES = 1_000
BLOCK = 500


@dataclass(frozen=True)
class Look:
    """What the rows say of their errors.

    Attributes
    ----------
    weights
        Shape (rows,), 1/value**2 with mean 1, where errors are in proportion to the value; else None.
    off
        Numbers of the rows that lie far from what their neighbours say.
    """

    weights: FloatArray | None
    off: tuple[int, ...]


NOTHING = Look(None, ())
# Rows named in a warning.
MOST_NAMED = 5
# Why rows were left out.
BY_NEIGHBOURS, BY_LAW = "the neighbouring rows and from the law", "the law that the other rows follow"


@dataclass(frozen=True)
class Reweighted:
    """A table made ready by what its rows say of their errors.

    Attributes
    ----------
    dataset
        With weights where errors are in proportion, and without the rows that are off.
    loss
        To be minimised.
    said
        What to tell the user, unless the law turns out to be exact.
    full_dataset
        The table with the rows that are off, None when none were left out.
    numbers
        Their numbers in it.
    note
        What to say of them.
    why
        Why they were left out, as a part of that.
    """

    dataset: Dataset
    loss: Loss
    said: tuple[str, ...] = ()
    full_dataset: Dataset | None = None
    numbers: tuple[int, ...] = ()
    note: str | None = None
    why: str = BY_NEIGHBOURS


def reweight(dataset: Dataset, loss: Loss | Literal["auto"], noise_model: NoiseModelName) -> Reweighted:
    """Make a table ready for the search.

    Raises
    ------
    DataError
        If relative errors are asked for and the target is zero somewhere.
    """
    found = NOTHING
    if dataset.weights is None and "auto" in (loss, noise_model):
        found = look(dataset.inputs, dataset.target)
    name = dataset.target_column.name
    weights, said = dataset.weights, []
    if weights is None and noise_model == "relative":
        if (dataset.target == 0).any():
            raise DataError(
                f"errors cannot be in proportion to {name}, which is 0 in some rows: give --weights"
            )
        weights = weights_of(np.abs(dataset.target))
    elif weights is None and noise_model == "poisson":
        size = np.abs(dataset.target)
        weights = weights_of(np.sqrt(np.maximum(size, SMALLEST_COUNT * float(np.median(size)) or 1.0)))
    elif weights is None and noise_model == "auto" and found.weights is not None and found.off:
        # Without rows that are off the noise model is chosen together with the law.
        weights = found.weights
        said.append(
            f"errors of {name} seem to be in proportion to its value: rows were weighted by 1/{name}**2 "
            "(--noise-model constant to count all rows alike)"
        )
    dataset = replace(dataset, weights=weights)
    if noise_model == "robust" and loss == "auto":
        loss = "robust"
    if loss != "auto":
        return Reweighted(dataset, loss, tuple(said))
    if not found.off:
        return Reweighted(dataset, "squared", tuple(said))
    if dataset.rows < ENOUGH_ROWS:
        said.append(
            f"{_named(dataset, found.off)} far from the neighbouring rows: such rows count less "
            "(--loss squared to count all alike)"
        )
        return Reweighted(dataset, "robust", tuple(said))
    return _without(dataset, found.off, tuple(said))


def with_noise_model(reweighted: Reweighted, model: NoiseModel, advantage: float) -> Reweighted:
    """The same with a remark about the noise model that the rows were weighted by."""
    name = reweighted.dataset.target_column.name
    what, weight = {
        "constant": ("are constant", "1"),
        "relative": ("are proportional to its value", f"1/{name}**2"),
        "poisson": ("grow with the square root of its value, as those of counts do", f"1/{name}"),
        "mixed": (
            f"have a constant and a proportional part, equal at {model.ratio:.2g}",
            f"1/({model.ratio:.2g}**2 + {name}**2)",
        ),
        "robust": ("", ""),
    }[model.kind]
    if model.kind == "robust":
        said = (
            f"errors of {name} have heavy tails, as Student's t with {model.freedom:g} degrees of freedom: "
            "rows far from the law count less, which describes the table in "
            f"{advantage:.0f} nats less than normal errors (--noise-model constant to count all rows alike)"
        )
        return replace(reweighted, loss="robust", said=(*reweighted.said, said))
    said = (
        f"errors of {name} {what}: rows are weighted by {weight}, which describes the table in "
        f"{advantage:.0f} nats less than equal weights (--noise-model constant to count all rows alike)"
    )
    return replace(reweighted, said=(*reweighted.said, said))


def _without(whole: Dataset, numbers: tuple[int, ...], said: tuple[str, ...]) -> Reweighted:
    kept = whole.take(np.delete(np.arange(whole.rows), numbers))
    return Reweighted(kept, "squared", said, whole, numbers)


def without_outliers(reweighted: Reweighted, rows: tuple[int, ...]) -> Reweighted:
    """Leave out rows that a law found for the others contradicts; nothing where there are none."""
    if not rows:
        return reweighted
    whole = reweighted.dataset
    # The last remark on a table searched with the robust loss is that such rows count less.
    said = reweighted.said[:-1] if reweighted.loss == "robust" else reweighted.said
    return replace(_without(whole, rows, said), why=BY_LAW)


def put_back(reweighted: Reweighted, law: Expression) -> Reweighted:
    """Put back the rows that a law found without them agrees with."""
    if reweighted.full_dataset is None:
        return reweighted
    whole = reweighted.full_dataset
    error = np.abs(whole.target - evaluate(law, whole.inputs))
    usual = root_mean_square(np.delete(error, reweighted.numbers))
    away = ~(error <= np.maximum(AGREES * usual, 1e-9 * np.abs(whole.target)))
    numbers = tuple(number for number in reweighted.numbers if away[number])
    if not numbers:
        return replace(reweighted, dataset=whole, full_dataset=None, numbers=())
    note = (
        f"{_named(whole, numbers)} far from {reweighted.why}, and did not count "
        "(--loss squared to count all rows alike)"
    )
    return replace(_without(whole, numbers, reweighted.said), note=note, why=reweighted.why)


def _named(dataset: Dataset, rows: tuple[int, ...]) -> str:
    # As the user has them: gaps may have been left out, and rows sorted.
    numbers = rows if dataset.row_numbers is None else sorted(map(int, dataset.row_numbers[list(rows)]))
    text = ", ".join(str(row + 1) for row in numbers[:MOST_NAMED])
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    return f"data row{'s' if len(rows) > 1 else ''} {text}{more} {'lie' if len(rows) > 1 else 'lies'}"


def look(inputs: FloatArray, target: FloatArray) -> Look:
    """Judge the scatter of a table.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    """
    rows, columns = inputs.shape
    if not FEWEST_ROWS <= rows <= MOST_ROWS or not 1 <= columns <= MOST_COLUMNS:
        return NOTHING
    choices = [
        (_left_over(image, unit), number, image, unit)
        for number, (image, unit) in enumerate(product(_images(target), _coordinates(inputs)))
    ]
    _, _, image, unit = min(choices, key=lambda choice: choice[:2])
    if rows > REFERENCES:
        # Where a thousand rows have no misprint, the others are not worth the time.
        some = _spread_out(np.arange(rows), REFERENCES)
        first = _off(image.at(some), unit[some])
        if first is None or first.kept.all():
            return NOTHING
    seen = _off(image, unit)
    if seen is None or seen.left_over > LEFT_OVER:
        return NOTHING
    weights = None
    few = rows <= WEIGHED_ROWS and columns <= WEIGHED_COLUMNS
    if few and image.logarithmic and seen.usual > NO_NOISE and seen.left_over < WEIGHED_LEFT_OVER:
        weights = None if _bends(unit, seen) else _weights(seen)
    off = np.flatnonzero(~seen.kept)
    error = target - image.back(seen.predicted)
    # In units of the largest: the squares of 1e200 are no numbers.
    square = np.square(error / (np.abs(error).max() or 1.0)) * (1.0 if weights is None else weights)
    if len(off) and (square[off].sum() < MATTERS * square[seen.kept].sum() or _together(unit, seen.kept)):
        return Look(weights, ())
    return Look(weights, tuple(int(row) for row in off))


@dataclass(frozen=True)
class _Image:
    """The target or its logarithm.

    Attributes
    ----------
    sign
        Of the target, where the logarithm is taken; 0 for the target as it is.
    values, possible
        The numbers, and the rows that have the sign.
    """

    sign: int
    values: FloatArray
    possible: npt.NDArray[np.bool_]

    @property
    def logarithmic(self) -> bool:
        return self.sign != 0

    def at(self, rows: IntArray) -> _Image:
        """The image of some rows."""
        return _Image(self.sign, self.values[rows], self.possible[rows])

    def back(self, values: FloatArray) -> FloatArray:
        """The target's values for values of the image."""
        result: FloatArray = self.sign * _exp(values) if self.sign else values
        return result


@dataclass(frozen=True)
class _Seen:
    """Predictions of each row from its neighbours, and the rows that are not off."""

    kept: npt.NDArray[np.bool_]
    predicted: FloatArray
    error: FloatArray
    usual: float
    left_over: float


def _exp(values: FloatArray) -> FloatArray:
    """The exponential, at most half of the largest double: linear predictions of logarithms may exceed it."""
    result: FloatArray = np.exp(np.minimum(values, LARGEST_LOGARITHM))
    return result


def _images(target: FloatArray) -> list[_Image]:
    """The target and, where nearly all of it has one sign, its logarithm."""
    images = [_Image(0, target, np.ones(len(target), bool))]
    for sign in (1, -1):
        possible = sign * target > 0
        if (~possible).sum() <= _most_off(len(target)) and not _around_zero(target, possible):
            images.append(_Image(sign, np.log(np.where(possible, sign * target, 1.0)), possible))
    return images


def _around_zero(target: FloatArray, possible: npt.NDArray[np.bool_]) -> bool:
    """Whether the rows of the other sign are small: then noise reaches zero, and they are no misprints."""
    size = np.abs(target)
    return not possible.all() and bool(np.median(size[~possible]) < SMALL * np.median(size))


def _most_off(rows: int) -> int:
    return max(1, int(MOST_OFF * rows))


def _left_over(image: _Image, unit: FloatArray) -> float:
    """Usual error of the predictions, as a share of what the median leaves over."""
    few = image.at(some := _spread_out(np.arange(len(unit)), REFERENCES // 2))
    predicted, _ = _predicted(unit[some], few.values, np.arange(len(some)), np.flatnonzero(few.possible), 2)
    error = (few.values - predicted)[few.possible]
    values = image.values[image.possible]
    return _usual(error) / max(_usual(values - np.median(values)), 1e-300)


def _spread_out(rows: IntArray, most: int) -> IntArray:
    """At most so many of the rows, evenly spaced: tables may be sorted."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def _usual(error: FloatArray) -> float:
    return 1.4826 * float(np.median(np.abs(error)))


def _off(image: _Image, unit: FloatArray) -> _Seen | None:
    """Leave out row after row that lies far from what its neighbours say; None if there are too many."""
    kept, values = image.possible.copy(), image.values
    spread = _usual(values[kept] - np.median(values[kept]))
    references = _spread_out(np.flatnonzero(kept), REFERENCES)
    predicted = np.zeros(len(values))
    near = np.zeros((len(values), 0), np.intp)
    while (~kept).sum() <= _most_off(len(values)):
        references = references[kept[references]]
        # Only rows that had one of those left out for a neighbour are predicted anew.
        count = _most_near(unit, references)
        stale = np.flatnonzero((~kept)[near].any(axis=1))
        if near.shape[1] != count:
            stale, near = np.arange(len(values)), np.zeros((len(values), count), np.intp)
        predicted[stale], near[stale] = _predicted(unit, values, stale, references)
        error = values - predicted
        usual = _usual(error[kept])
        far = np.abs(error) > max(FAR * usual, FAR_SHARE * (1.0 if image.logarithmic else spread))
        if image.logarithmic:
            # Small values may be far off in proportion without being wrong.
            absolute = np.abs(_exp(values) - _exp(predicted))
            far &= absolute > FAR * _usual(absolute[kept])
        if not (far & kept).any():
            # Some were off only because of a misprint beside them.
            kept = image.possible & ~far
            return _Seen(kept, predicted, error, usual, usual / max(spread, 1e-300))
        # Not all at once: a row that is off pulls its neighbours' predictions along.
        far &= kept
        kept &= ~(far & (np.abs(error) >= ROUND * np.abs(error[far]).max()))
    return None


def _together(unit: FloatArray, kept: npt.NDArray[np.bool_]) -> bool:
    """Whether the rows that are off lie side by side: then they are a feature of the law, no misprints."""
    off = np.flatnonzero(~kept)
    if len(off) < 2:
        return False
    nearest, _ = _neighbours(unit, off, np.arange(len(unit)), 2)
    beside = (~kept)[nearest].any(axis=1)
    # Of three that are off, two may be neighbours by chance.
    return bool(beside.mean() > MOST_TOGETHER and (beside.sum() > 2 or len(off) == 2))


def _bends(unit: FloatArray, seen: _Seen) -> bool:
    """Whether neighbours err to the same side: then it is a curve that predictions miss, and no scatter."""
    rows = np.flatnonzero(seen.kept)
    near, _ = _neighbours(unit, rows, rows, 2)
    return bool((seen.error[rows, None] * seen.error[near] > 0).mean() > SAME_SIDE)


def _weights(seen: _Seen) -> FloatArray | None:
    """Weights where errors are in proportion to the value."""
    kept, error, predicted = seen.kept, seen.error, seen.predicted
    if not np.log(SPAN) < np.ptp(predicted[kept]) < np.log(MOST_SPAN):
        return None
    # Laplace's distribution for the errors of the logarithm, with a width that is the same everywhere or
    # falls as 1/value.
    same = np.mean(np.abs(error[kept]))
    value = np.exp(predicted[kept] - predicted[kept].mean())
    falling = np.mean(np.abs(error[kept]) * value)
    if not kept.sum() * np.log(falling / same) - np.log(value).sum() > DECISIVE:
        return None
    weights: FloatArray = np.exp(-2 * (predicted - predicted.max()))
    weights /= weights.mean()
    return weights


def _coordinates(inputs: FloatArray) -> list[FloatArray]:
    """The columns as they are, and with logarithms where possible; standardised, without constant ones."""
    plain = inputs / np.maximum(np.abs(inputs).max(axis=0), 1e-300)
    choices = [plain]
    positive = (inputs > 0).all(axis=0)
    if positive.any():
        logarithms = plain.copy()
        logarithms[:, positive] = np.log(plain[:, positive])
        choices.append(logarithms)
    found = []
    for choice in choices:
        spread = choice.std(axis=0)
        found.append((choice - choice.mean(axis=0))[:, spread > 0] / spread[spread > 0])
    return found


def _neighbours(
    unit: FloatArray, rows: IntArray, references: IntArray, count: int
) -> tuple[IntArray, FloatArray]:
    """The nearest references of each row, itself left out, nearest first, with their distances."""
    near = np.empty((len(rows), count), np.intp)
    reach = np.empty((len(rows), count))
    others = unit[references]
    size = np.square(others).sum(axis=1)
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        square = np.square(unit[some]).sum(axis=1)[:, None] + size - 2 * unit[some] @ others.T
        square[some[:, None] == references] = np.inf
        chosen = np.argpartition(square, count - 1, axis=1)[:, :count]
        distance = np.take_along_axis(square, chosen, axis=1)
        order = np.argsort(distance, axis=1, kind="stable")
        near[start : start + BLOCK] = references[np.take_along_axis(chosen, order, axis=1)]
        reach[start : start + BLOCK] = np.sqrt(np.maximum(np.take_along_axis(distance, order, axis=1), 0.0))
    return near, reach


def _most_near(unit: FloatArray, references: IntArray) -> int:
    """How many neighbours a prediction takes."""
    return min(len(references) - 1, 3 * int(unit.shape[1]) + 5)


def _predicted(
    unit: FloatArray, values: FloatArray, rows: IntArray, references: IntArray, rounds: int = 3
) -> tuple[FloatArray, IntArray]:
    """The rows' values by local linear fits to the nearest references, themselves left out; and these."""
    columns, count = unit.shape[1], _most_near(unit, references)
    near, reach = _neighbours(unit, rows, references, count)
    kernel = (1 - (reach / (1.01 * reach[:, -1:] + 1e-300)) ** 3) ** 3
    offset = unit[near] - unit[rows][:, None, :]
    design = np.concatenate([np.ones((len(rows), count, 1)), offset], axis=2)
    weighted = design * kernel[:, :, None]
    wanted = values[near]
    # Rounds of reweighting: one misprint must not spoil all its neighbours' fits.
    robust = np.ones_like(wanted)
    fitted = np.zeros(len(rows))
    for _ in range(rounds):
        gram = (weighted * robust[:, :, None]).transpose(0, 2, 1) @ design
        gram += (
            1e-9 * np.eye(columns + 1) * np.maximum(np.trace(gram, axis1=1, axis2=2), 1e-12)[:, None, None]
        )
        right = (weighted * robust[:, :, None]).transpose(0, 2, 1) @ wanted[:, :, None]
        solved = np.linalg.solve(gram, right)
        fitted = solved[:, 0, 0]
        residual = np.abs(wanted - (design @ solved)[:, :, 0])
        usual = np.median(residual, axis=1, keepdims=True)
        robust = 1.0 / (1.0 + np.square(residual / (4 * usual + 1e-12)))
    return fitted, near
