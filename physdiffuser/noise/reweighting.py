"""A table made ready for the search: weights from the noise model, and rows that are far off left out.

Misprints and the like are left out of the search where rows are plenty, and the law found is compared with
them at the end. Before a law is known, neighbouring rows decide (`physdiffuser.noise.neighbour_report`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from physdiffuser.data.checks import weights_of
from physdiffuser.errors import DataError
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.fitting.losses import root_mean_square
from physdiffuser.noise.models import POLICY as NOISE_MODELS
from physdiffuser.noise.models import NoiseModel
from physdiffuser.noise.neighbour_report import NOTHING, judge_by_neighbours

if TYPE_CHECKING:
    from physdiffuser.core.problem import Loss, NoiseModelName
    from physdiffuser.data.dataset import Dataset

# With fewer rows a misprint cannot be distinguished from a narrow peak: it stays, and counts less.
ENOUGH_ROWS = 30
# Usual errors within which a law agrees with a row.
AGREES = 5.0
# Rows named in a warning.
MAX_NAMED = 5
# Why rows were left out.
BY_NEIGHBOURS, BY_LAW = "the neighbouring rows and from the law", "the law that the other rows follow"


@dataclass(frozen=True)
class Reweighted:
    """A table with weights, and without the rows that are far off.

    Attributes
    ----------
    dataset
        The rows to be searched, with their weights.
    loss
        To be minimised.
    said
        Remarks for the user, dropped if the law turns out to be exact.
    full_dataset
        The table with the rows that were left out, None when there are none.
    numbers
        Their numbers in it.
    note
        The remark on them.
    why
        Why they were left out, a part of the remark.
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
        found = judge_by_neighbours(dataset.inputs, dataset.target)
    name = dataset.target_column.name
    weights, said = dataset.weights, []
    if weights is None and noise_model == "relative":
        check_relative(dataset)
        weights = weights_of(np.abs(dataset.target))
    elif weights is None and noise_model == "poisson":
        size = np.abs(dataset.target)
        weights = weights_of(
            np.sqrt(np.maximum(size, NOISE_MODELS.min_count * float(np.median(size)) or 1.0))
        )
    elif weights is None and noise_model == "auto" and found.weights is not None and found.outliers:
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
    if not found.outliers:
        return Reweighted(dataset, "squared", tuple(said))
    if dataset.rows < ENOUGH_ROWS:
        said.append(
            f"{_named(dataset, found.outliers)} far from the neighbouring rows: such rows count less "
            "(--loss squared to count all alike)"
        )
        return Reweighted(dataset, "robust", tuple(said))
    return _without(dataset, found.outliers, tuple(said))


def check_relative(dataset: Dataset) -> None:
    """Refuse errors in proportion to the target where it is 0.

    Raises
    ------
    DataError
        If the target is 0 in some row.
    """
    if (dataset.target == 0).any():
        name = dataset.target_column.name
        raise DataError(f"errors cannot be in proportion to {name}, which is 0 in some rows: give --weights")


def with_noise_model(reweighted: Reweighted, model: NoiseModel, advantage: float) -> Reweighted:
    """The same with a remark about the noise model that the rows were weighted by."""
    said = (*reweighted.said, noise_remark(reweighted.dataset.target_column.name, model, advantage))
    return replace(reweighted, loss="robust" if model.kind == "robust" else reweighted.loss, said=said)


def noise_remark(name: str, model: NoiseModel, advantage: float) -> str:
    """What is said of a noise model that was used for the target `name`."""
    # A model that was asked for need not be the better one.
    nats = f"{abs(advantage):.0f} nats {'better' if advantage >= 0 else 'worse'}"
    if model.kind == "robust":
        return (
            f"errors of {name} have heavy tails, as Student's t with {model.freedom:g} degrees of freedom: "
            f"rows far from the law count less ({nats} than normal errors; "
            "--noise-model constant gives all rows equal weight)"
        )
    what, weight = {
        "constant": ("are constant", "1"),
        "relative": ("are proportional to its value", f"1/{name}**2"),
        "poisson": ("grow with the square root of its value, as those of counts do", f"1/{name}"),
        "mixed": (
            f"have a constant and a proportional part, equal at {model.ratio:.2g}",
            f"1/({model.ratio:.2g}**2 + {name}**2)",
        ),
    }[model.kind]
    return (
        f"errors of {name} {what}: rows are weighted by {weight} ({nats} than equal "
        "weights; --noise-model constant gives all rows equal weight)"
    )


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
    # In units of the error of each row: where errors are relative, the largest value has the largest one.
    roots = np.ones(whole.rows) if whole.weights is None else np.sqrt(whole.weights)
    error = roots * np.abs(whole.target - evaluate(law, whole.inputs))
    usual = root_mean_square(np.delete(error, reweighted.numbers))
    away = ~(error <= np.maximum(AGREES * usual, 1e-9 * roots * np.abs(whole.target)))
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
    text = ", ".join(str(row + 1) for row in numbers[:MAX_NAMED])
    more = f" and {len(rows) - MAX_NAMED} more" if len(rows) > MAX_NAMED else ""
    return f"data row{'s' if len(rows) > 1 else ''} {text}{more} {'lie' if len(rows) > 1 else 'lies'}"
