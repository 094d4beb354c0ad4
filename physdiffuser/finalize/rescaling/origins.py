"""Columns far from zero, such as years: the search moves their origin, and the law states the shift."""

from __future__ import annotations

import math
import time as clock_module
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data.dataset import Dataset, summaries
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, Number, Variable, complexity, to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import add, sub, substitute
from physdiffuser.io.display import visible
from physdiffuser.options import SolveOptions

Solve = Callable[[Dataset, SolveOptions, bool], Solution]
"""Solves a table; the last argument says whether its better formulas are reported on the way."""

# A column is far from zero if its range is at most this share of its smallest size.
FAR = 0.12
MIN_ROWS = 5
# Share of the budget for the search with moved origins, and nats that a law with a shift must gain: those of
# a difference and a number.
SHARE, SHIFT_NATS = 0.6, 6.0


def proposed_origins(dataset: Dataset) -> dict[int, int]:
    """Whole numbers from which columns far from zero can be counted, by position of the column."""
    found: dict[int, int] = {}
    if dataset.rows < MIN_ROWS:
        return found
    for index, values in enumerate(dataset.inputs.T):
        low, high = float(values.min()), float(values.max())
        least = min(abs(low), abs(high))
        if low * high > 0 and least >= 10 and high - low <= FAR * least and least < 2**53:
            found[index] = math.floor(low)
    return found


def origin_note(dataset: Dataset) -> str:
    """A hint that names the columns whose origin can be moved; empty if there are none."""
    places = proposed_origins(dataset)
    return "; ".join(
        f"column {dataset.columns[index].shown} lies far from 0: --auto-origin also searches with "
        f"{dataset.columns[index].shown} counted from {origin}"
        for index, origin in places.items()
    )


def solve_with_origins(solve: Solve, dataset: Dataset, options: SolveOptions, started: float) -> Solution:
    """Search with moved origins and with the columns as they are; the shorter description is the solution.

    Parameters
    ----------
    dataset, options
        As for `solve_dataset`, with `auto_origin`.
    started
        Clock reading from which the time counts.

    Raises
    ------
    UsageError
        If an option is given whose meaning depends on the origin.
    """
    for name, given in (
        ("--template or --known", bool(options.template or options.known)),
        ("--constraints", options.constraints is not None),
        ("--suggest-next", bool(options.suggest_next)),
    ):
        if given:
            raise UsageError(f"--auto-origin cannot be used together with {name}: leave out one of them")
    plain = options.changed(auto_origin=False)
    origins = proposed_origins(dataset)
    if not origins:
        return solve(dataset, plain, True)
    shift = np.zeros(len(dataset.columns))
    shift[list(origins)] = list(origins.values())
    moved = replace(dataset, inputs=np.asfortranarray(dataset.inputs - shift))
    formulas = options.changed(initial=(), resumed=(), proposed=())
    own = _part(formulas.changed(auto_origin=False), SHARE, started)
    # Formulas on the way would be reported in moved columns: these are not those of the table.
    shifted = _with_shift(solve(moved, own, False), dataset, origins)
    usual = solve(dataset, _part(plain, 1.0 - SHARE, started), True)
    return shifted if _is_shorter(shifted, usual) else usual


def _part(options: SolveOptions, share: float, started: float) -> SolveOptions:
    """The options with a share of the steps, and for the first search of the time."""
    steps = None if options.steps is None else max(1, round(share * options.steps))
    time = options.time_limit
    if time is not None:
        left = time - (clock_module.monotonic() - started)
        time = max(1.0, min(share * time, left) if share == SHARE else left)
    return options.changed(steps=steps, time=time)


def _is_shorter(shifted: Solution, usual: Solution) -> bool:
    if shifted.best is None or usual.best is None:
        return usual.best is None
    lengths = shifted.best.description_length, usual.best.description_length
    if lengths[0] is None or lengths[1] is None:
        return shifted.best.rmse < usual.best.rmse
    return lengths[0] + SHIFT_NATS < lengths[1]


def _with_shift(solution: Solution, dataset: Dataset, origins: Mapping[int, int]) -> Solution:
    """The solution in the columns of the table: `x - origin` in place of `x`."""
    names = dataset.names

    def law(node: Expression) -> Expression | None:
        if not isinstance(node, Variable) or node.index not in origins:
            return None
        origin = origins[node.index]
        return sub(node, Number(origin)) if origin > 0 else add(node, Number(-origin))

    said = [
        f"{names[index]} stands for {to_text(law(Variable(index)) or Variable(index), names)}"
        for index in origins
    ]

    def written(row: Equation) -> Equation:
        expression = substitute(row.expression, law)
        if expression is row.expression:
            return row
        return replace(
            row,
            expression=expression,
            text=to_text(expression, row.names),
            latex=to_latex(expression, row.names),
            complexity=complexity(expression),
            derivation=(*row.derivation, f"in these steps {', '.join(said)}"),
        )

    pareto = tuple(map(written, solution.pareto))
    best = None if solution.best is None else written(solution.best)
    points = solution.fit_points
    if points is not None and points.inputs is not None:
        shift = np.zeros(points.inputs.shape[1])
        shift[list(origins)] = list(origins.values())
        points = replace(points, inputs=points.inputs + shift)
    note = ", ".join(f"{dataset.columns[index].shown} is counted from {at}" for index, at in origins.items())
    return replace(
        solution,
        best=best,
        pareto=pareto,
        derivation=() if best is None else best.derivation,
        fit_points=points,
        notes={**solution.notes, "origin": visible(note, 500)},
        summaries=summaries(dataset),
    )
