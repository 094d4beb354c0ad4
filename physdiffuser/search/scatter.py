"""How measurements scatter: the same everywhere or in proportion to the value, and which rows are far off.

Before any law is known, each row is predicted from its neighbours by a local linear fit, in logarithms where
the numbers allow it. How the errors of these predictions depend on the value tells what kind of noise it
is: readings with an error of a few percent over several decades need weights, without which the largest
values decide alone. Rows much farther off than all others are misprints or the like.

The predictions need rows enough, or a target that is nearly a power law of the columns; where there is
neither, nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from physdiffuser.errors import DataError

if TYPE_CHECKING:
    from physdiffuser.data.dataset import Dataset
    from physdiffuser.search.problem import Loss

FloatArray = npt.NDArray[np.float64]
Scatter = Literal["auto", "constant", "relative"]

# Tables on which it is tried: with few columns neighbours are close, and with few rows wrong weights or a
# misprint do most harm.
MOST_ROWS, FEWEST_ROWS, MOST_COLUMNS = 300, 8, 3
# The target must span this ratio for weights to matter.
SPAN = 6.0
# Log-likelihood by which errors in proportion must be the better description.
DECISIVE = 3.0
# The neighbours must explain this share of the variance of the logarithm.
EXPLAINED = 0.9
# Errors smaller than this, relative, are nobody's noise.
NO_NOISE = 1e-6
# A row is off when its error is so many times the usual one, and larger than this share of the value.
FAR, FAR_SHARE = 8.0, 0.3
# At most this share of the rows may be off: more is a law that neighbours do not tell.
MOST_OFF = 0.06


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


def weigh(
    dataset: Dataset, loss: Loss | Literal["auto"], scatter: Scatter
) -> tuple[Dataset, Loss, tuple[str, ...]]:
    """The dataset with the weights its scatter asks for, the loss to minimise, and what to tell the user.

    Raises
    ------
    DataError
        If relative errors are asked for and the target is zero somewhere.
    """
    found = NOTHING
    if dataset.weights is None and "auto" in (loss, scatter):
        found = look(dataset.inputs, dataset.target)
    name = dataset.target_column.name
    weights, said = dataset.weights, []
    if weights is None and scatter == "relative":
        if (dataset.target == 0).any():
            raise DataError(
                f"errors cannot be in proportion to {name}, which is 0 in some rows: give --weights"
            )
        weights = 1 / np.square(dataset.target / np.abs(dataset.target).min())
        weights = weights / weights.mean()
    elif weights is None and scatter == "auto" and found.weights is not None:
        weights = found.weights
        said.append(
            f"errors of {name} seem to be in proportion to its value: rows were weighted by 1/{name}**2 "
            "(--scatter constant to count all rows alike)"
        )
    if loss == "auto":
        loss = "huber" if found.off else "squared"
        if found.off:
            rows = ", ".join(str(row + 1) for row in found.off[:MOST_NAMED])
            more = f" and {len(found.off) - MOST_NAMED} more" if len(found.off) > MOST_NAMED else ""
            said.append(
                f"data row{'s' if len(found.off) > 1 else ''} {rows}{more} far from the neighbouring rows: "
                "such rows count less (--loss squared to count all alike)"
            )
    return replace(dataset, weights=weights), loss, tuple(said)


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
    if not ((target > 0).all() or (target < 0).all()):
        return NOTHING
    size = np.log(np.abs(target))
    kept = np.ones(rows, bool)
    while True:
        predicted = min(
            (_predicted(unit, size, kept) for unit in _coordinates(inputs)),
            key=lambda values: float(np.median(np.abs(values - size)[kept])),
        )
        error = size - predicted
        usual = 1.4826 * float(np.median(np.abs(error[kept])))
        absolute = np.abs(np.exp(size) - np.exp(predicted))
        # Small values may be far off in proportion without being wrong.
        far = np.abs(error) > np.maximum(FAR * usual, FAR_SHARE)
        far &= absolute > FAR * 1.4826 * np.median(absolute[kept])
        worst = int(np.argmax(np.where(kept & far, np.abs(error), -1.0)))
        if not (kept & far)[worst]:
            break
        # One at a time: a row that is off pulls its neighbours' predictions along.
        kept[worst] = False
    off = np.flatnonzero(~kept)
    if len(off) > max(1, MOST_OFF * rows):
        return NOTHING
    explained = 1 - float(np.median(np.square(error[kept]))) / max(float(size[kept].var()), 1e-300)
    if explained < EXPLAINED:
        return NOTHING
    weights = None
    if usual > NO_NOISE and np.ptp(predicted[kept]) > np.log(SPAN):
        # Laplace's distribution for the errors of the logarithm, with a width that is the same everywhere or
        # falls as 1/value.
        same = np.mean(np.abs(error[kept]))
        value = np.exp(predicted[kept] - predicted[kept].mean())
        falling = np.mean(np.abs(error[kept]) * value)
        if kept.sum() * np.log(falling / same) - np.log(value).sum() > DECISIVE:
            weights = np.exp(-2 * (predicted - predicted.max()))
            weights = weights / weights.mean()
    return Look(weights, tuple(int(row) for row in off))


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


def _predicted(unit: FloatArray, values: FloatArray, kept: npt.NDArray[np.bool_]) -> FloatArray:
    """Each row's value by a local linear fit to its nearest kept neighbours, itself left out."""
    rows, columns = unit.shape
    square = np.square(unit).sum(axis=1)
    distance = np.sqrt(np.maximum(square[:, None] + square[None, :] - 2 * unit @ unit.T, 0.0))
    np.fill_diagonal(distance, np.inf)
    distance[:, ~kept] = np.inf
    count = min(int(kept.sum()) - 1, 3 * columns + 5)
    near = np.argsort(distance, axis=1, kind="stable")[:, :count]
    reach = np.take_along_axis(distance, near, axis=1)
    kernel = (1 - (reach / (1.01 * reach[:, -1:] + 1e-300)) ** 3) ** 3
    offset = unit[near] - unit[:, None, :]
    design = np.concatenate([np.ones((rows, count, 1)), offset], axis=2)
    weighted = design * kernel[:, :, None]
    wanted = values[near]
    # Three rounds of reweighting: one misprint must not spoil all its neighbours' fits.
    robust = np.ones_like(wanted)
    fitted = np.zeros(rows)
    for _ in range(3):
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
    return fitted
