"""A problem as the networks read it: which columns, which rows, in which places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, checked
from physdiffuser.models.features.encoding import Scaling, choose_scaling, to_half
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

if TYPE_CHECKING:
    from physdiffuser.core.problem import Problem


SUMMARY_ROWS = 512
_BINS = 12


@dataclass(frozen=True)
class Reading:
    """One way to show a table to the encoder.

    Attributes
    ----------
    rows
        (rows, 10) float16; the first of them are read in full, all of them are summarised.
    used
        (9,) bool, places that hold a column.
    columns
        For each place, the column of the problem that stands there, or -1.
    """

    rows: npt.NDArray[np.float16]
    used: BoolArray
    columns: tuple[int, ...]


@checked
def relevant_columns(
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    count: int = MAX_VARIABLES,
) -> list[int]:
    """The columns that explain most of the target one by one, in their order.

    The score is the correlation ratio (share of the variance of the target's ranks between bins of the
    column): it sees any dependence on one column, not only straight lines.
    """
    if inputs.shape[1] <= count:
        return list(range(inputs.shape[1]))
    rows = len(target)
    ranks = np.argsort(np.argsort(target, kind="stable"), kind="stable").astype(np.float64)
    ranks -= ranks.mean()
    scores = np.zeros(inputs.shape[1])
    bins = max(2, min(_BINS, rows // 8))
    for column in range(inputs.shape[1]):
        if np.ptp(inputs[:, column]) == 0.0:
            continue
        place = np.argsort(np.argsort(inputs[:, column], kind="stable"), kind="stable") * bins // rows
        sums = np.bincount(place, ranks, minlength=bins)
        counts = np.maximum(np.bincount(place, minlength=bins), 1)
        scores[column] = (sums**2 / counts).sum()
    best = np.argsort(-scores, kind="stable")[:count]
    return sorted(int(column) for column in best)


class Reader:
    """Shows a problem's table to the encoder in several ways.

    The places of the columns and the rows read in full are drawn at random for each way: networks
    are not indifferent to either, and their votes over several ways are better than one.
    """

    def __init__(self, problem: Problem) -> None:
        self.chosen = relevant_columns(problem.inputs, problem.target)
        inputs = problem.inputs[:, self.chosen]
        self.scaling: Scaling = choose_scaling(inputs, problem.target)
        self.inputs, self.target = self.scaling.apply(inputs, problem.target)

    def read(self, rng: np.random.Generator) -> Reading:
        """One way to show the table."""
        rows = len(self.target)
        picked = rng.permutation(rows)[:SUMMARY_ROWS]
        slots = rng.permutation(MAX_VARIABLES)[: len(self.chosen)]
        columns = [-1] * MAX_VARIABLES
        for position, slot in enumerate(slots):
            columns[int(slot)] = position
        used = np.zeros(MAX_VARIABLES, dtype=np.bool_)
        used[slots] = True
        half = to_half(self.inputs[picked], self.target[picked], slots.astype(np.intp))
        return Reading(half, used, tuple(columns))
