"""What may be put into a place of a formula: small expressions, their values, and what writing them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Variable
from physdiffuser.expressions.batch import Evaluator
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.functions.blocks import with_constants
from physdiffuser.library.expression_library import LARGEST, NEVER, Library
from physdiffuser.library.ranking import row_blocks
from physdiffuser.library.terms import fill
from physdiffuser.reduction.factors import relevant_columns
from physdiffuser.selection.description_length import NATS_PER_UNIT


@dataclass(frozen=True)
class BuildingBlockPolicy:
    """Sizes of the library that neighbours are built from.

    Set on development laws: a step takes a tenth of a second or so (docs/search.md).
    """

    without_constants: int = 6_000
    factors: int = 24
    """Entries without constants inside, and how many of the simplest are factors."""
    max_columns: int = 50
    """Of more columns only the relevant ones are taken."""
    curved_columns: int = 8
    curve_cost: int = 3
    """Columns of which functions with a constant inside are among the entries too, and the search cost of one
    beside the constant."""
    constant_units: int = 2
    """Units of complexity that a constant brings along: the number and the operator that joins it."""
    piece: int = 500
    """Entries of one price that are compared at once, so that their residuals stay in the cache."""


POLICY = BuildingBlockPolicy()


class BuildingBlocks:
    """Entries by their cost: a library of expressions without constants, and curves of single columns.

    Attributes
    ----------
    values, squares
        Shape (entries, rows), single precision: each entry at unit root mean square, so that its squares
        are numbers.
    sizes
        Shape (entries,): what values were divided by.
    nats
        Shape (entries,), ascending: cost of each entry.
    pieces
        Cost and slice of runs of entries of one cost.
    factors
        The cheapest entries without constants.
    constant_nats
        Cost of one more fitted constant.
    """

    def __init__(self, inputs: FloatArray, problem: Problem) -> None:
        self.constant_nats = 0.5 * float(np.log(problem.rows)) + POLICY.constant_units * NATS_PER_UNIT
        every = range(problem.columns)
        columns = (
            every if len(every) <= POLICY.max_columns else relevant_columns(problem.inputs, problem.target)
        )
        self._library = _library(inputs, columns, problem.operators)
        order = np.argsort(self._library.costs, kind="stable")
        plain = order[self._library.costs[order] < NEVER][: POLICY.without_constants]
        curves, drawn = _curves(inputs, columns[: POLICY.curved_columns], problem)
        constants = np.array([fitted_constants(curve) for curve in curves])
        prices = (
            NATS_PER_UNIT * self._library.costs[plain],
            NATS_PER_UNIT * POLICY.curve_cost + self.constant_nats * constants,
        )
        nats = np.concatenate(prices)
        order = np.argsort(nats, kind="stable")
        entries: list[int | Expression] = [*plain.tolist(), *curves]
        self._entries = [entries[place] for place in order.tolist()]
        values = np.concatenate([self._library.values[plain], drawn])[order]
        self.sizes = np.sqrt(np.square(values).mean(axis=1))
        self._columns: FloatArray = values
        self.values = (values / self.sizes[:, None]).astype(np.float32)
        self.squares = np.square(self.values)
        self.nats: FloatArray = nats[order]
        levels, level = np.unique(self.nats, return_inverse=True)
        self.pieces = [(float(levels[rank]), piece) for rank, piece in row_blocks(level, POLICY.piece)]
        self.factors = np.flatnonzero(order < len(plain))[: POLICY.factors].tolist()

    def expression(self, entry: int) -> Expression:
        """The tree of an entry."""
        made = self._entries[entry]
        return self._library.expression(made) if isinstance(made, int) else made

    def column(self, entry: int) -> FloatArray:
        """The values of an entry, shape (rows,)."""
        values: FloatArray = self._columns[entry]
        return values


def _library(inputs: FloatArray, columns: Sequence[int], operators: frozenset[str]) -> Library:
    library = Library(inputs[:, list(columns)], tuple(map(Variable, columns)), operators)
    fill(library, POLICY.without_constants // 2)
    for _ in library.grow(POLICY.without_constants):
        pass
    return library


def _curves(
    inputs: FloatArray, columns: Sequence[int], problem: Problem
) -> tuple[list[Expression], FloatArray]:
    """Functions of one column with a constant on a grid, and their values, shape (curves, rows)."""
    curves = [
        curve
        for index in columns
        for curve in with_constants(index, inputs[:, index])
        if problem.admits(curve)
    ]
    with np.errstate(all="ignore"):
        # (curves, rows), also without curves
        values = np.array(Evaluator(inputs)(curves), np.float64).reshape(-1, len(inputs))
        varies = np.ptp(values, axis=1)
    good = np.flatnonzero((varies > 0.0) & (varies < LARGEST))
    return [curves[place] for place in good.tolist()], values[good]
