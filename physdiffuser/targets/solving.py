"""Solve a table for several targets: one after the other, then again with what the other laws suggest."""

from __future__ import annotations

import time as clock_module
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from physdiffuser.core.progress import Progress
from physdiffuser.core.solution import Solution
from physdiffuser.data.arrays import ColumnRequest, load_datasets_from
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.limits import reading_seconds
from physdiffuser.errors import UsageError
from physdiffuser.options import DEFAULTS, SolveOptions
from physdiffuser.pipeline import PASSED_ON, READING_OPTIONS, solve_dataset
from physdiffuser.targets.answer import TargetSolutions, with_tied_constants
from physdiffuser.targets.parts import proposals, shared_parts
from physdiffuser.targets.ties import find_ties

# Share of the time for the first search of each target; the rest is for the second.
FIRST_SHARE = 0.7
# A law of the second search replaces that of the first if its description is so many nats shorter.
SHORTER = 1.0

OnSolution = Callable[[str, Solution], None]


def solve_targets(
    source: Any,
    y: object = None,
    *,
    targets: Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    weights: Any = None,
    errors: Any = None,
    groups: Any = None,
    on_solution: OnSolution | None = None,
    **options: Any,
) -> TargetSolutions:
    """Find the laws behind several targets of one table.

    Each target is solved by itself; the other targets are no inputs. Parts of the laws found for one are
    then proposed to the others. Constants of different laws that agree within their errors, where that
    is no coincidence, get one value.

    More than eight parameters: those of `physdiffuser.solve` that name columns.

    Parameters
    ----------
    source, names, inputs, weights, errors, groups
        As for `physdiffuser.solve`.
    y
        With inputs as an array: the targets, shape (rows, targets), or a table of them.
    targets
        Names of the columns to explain; with `y` the names to call its columns.
    on_solution
        Called with the name of each target and its solution, after the first search, and again after
        the last.
    **options
        As for `physdiffuser.solve`. `time` is for all targets together, `steps` for each.

    Returns
    -------
    TargetSolutions
        A mapping from target to `Solution`, with `shared`, `ties` and `sentences`.

    Raises
    ------
    PhysdiffuserError
        As `physdiffuser.solve` does, and if two targets have one name, or there is none.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.1, 3, 40)
    >>> found = solve_targets({"t": t, "v": 9.81 * t, "s": 9.81 * t**2 / 2}, targets=["v", "s"], steps=10)
    >>> [solution.best.text for solution in found.solutions.values()]
    ['9.81*t', '4.905*t**2']
    """
    started = options.pop("started", None)
    started = clock_module.monotonic() if started is None else started
    reading = {name: options.pop(name) for name in READING_OPTIONS if name in options}
    passed_on = {name: options.pop(name) for name in PASSED_ON if name in options}
    search = DEFAULTS.changed(**options, units_row=reading.get("units_row", False))
    if isinstance(targets, str):
        raise UsageError(f"targets={targets!r}: must be a list of names, such as [{targets!r}]")
    columns = ColumnRequest(names, None, inputs, weights, errors, search.input_errors, groups)
    datasets = load_datasets_from(
        source, y, targets, columns, seconds=reading_seconds(search.time_limit), **reading
    )
    return solve_datasets(datasets, search, started=started, on_solution=on_solution, **passed_on)


def solve_datasets(
    datasets: Mapping[str, Dataset],
    options: SolveOptions = DEFAULTS,
    *,
    started: float | None = None,
    on_solution: OnSolution | None = None,
    on_improvement: Callable[[Progress], bool | None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    **passed_on: Any,
) -> TargetSolutions:
    """Find the laws of several targets whose tables are read; see `solve_targets`.

    Parameters
    ----------
    datasets
        By the name of the target.
    options
        Of the search.
    started
        Clock reading from which the time counts.
    on_solution, on_improvement, cancelled, **passed_on
        As for `solve_targets` and `solve_dataset`. Where `on_improvement` returns True, all searches stop.
    """
    begun = clock_module.monotonic()
    started = begun if started is None else started
    stop = [False]

    def improved(progress: Progress) -> bool:
        stop[0] = stop[0] or bool(on_improvement is not None and on_improvement(progress))
        return stop[0]

    def over() -> bool:
        return stop[0] or (cancelled is not None and cancelled())

    run = _Run(options, started, {**passed_on, "cancelled": over, "on_improvement": improved})
    solutions: dict[str, Solution] = {}
    for number, (target, dataset) in enumerate(datasets.items()):
        share = FIRST_SHARE / (len(datasets) - FIRST_SHARE * number)
        solutions[target] = run.solve(dataset, run.seconds(share), _proposed(dataset, solutions, options))
        if on_solution is not None:
            on_solution(target, solutions[target])
    # The last one has seen the laws of all others.
    again = [target for target in list(datasets)[:-1] if solutions[target].status != "exact"]
    for number, target in enumerate(again):
        if over():
            break
        proposed = _proposed(datasets[target], {**solutions, target: None}, options)
        if proposed:
            seconds = run.seconds(1 / (len(again) - number))
            found = run.again(datasets[target], seconds, proposed, solutions[target])
            solutions[target] = _better(solutions[target], found)
    ties, tied = find_ties(solutions)
    for target, constants in tied.items():
        solutions[target] = with_tied_constants(solutions[target], constants, ties, datasets[target])
    if on_solution is not None:
        for target, solution in solutions.items():
            on_solution(target, solution)
    elapsed = clock_module.monotonic() - started
    return TargetSolutions(solutions, shared_parts(solutions), ties, {"elapsed_seconds": elapsed})


class _Run:
    """Searches of single targets within the time of all."""

    def __init__(self, options: SolveOptions, started: float, passed_on: dict[str, Any]) -> None:
        self.options, self.started, self.passed_on = options, started, passed_on

    def seconds(self, share: float) -> float | None:
        """A share of the time that is left; None without a limit."""
        limit = self.options.time_limit
        if limit is None:
            return None
        return max(1.0, share * (limit - (clock_module.monotonic() - self.started)))

    def solve(self, dataset: Dataset, seconds: float | None, proposed: Sequence[str]) -> Solution:
        own = self.options.changed(time=seconds, proposed=tuple(proposed))
        return solve_dataset(dataset, own, **self.passed_on)

    def again(
        self, dataset: Dataset, seconds: float | None, proposed: Sequence[str], known: Solution
    ) -> Solution:
        """A second search of half as many steps, from the formulas of the first and from proposals."""
        steps = None if self.options.steps is None else max(1, self.options.steps // 2)
        functions = () if known.template is None else known.template.statements
        formulas = (*(row.text for row in known.pareto), *functions)
        own = self.options.changed(time=seconds, steps=steps, proposed=tuple(proposed), resumed=formulas)
        return solve_dataset(dataset, own, **self.passed_on)


def _proposed(dataset: Dataset, solutions: Mapping[str, Solution | None], options: SolveOptions) -> list[str]:
    laws = [
        (one.best.expression, one.names)
        for one in solutions.values()
        if one is not None and one.best is not None and one.groups is None
    ]
    return proposals(laws, dataset, options.seed) if dataset.groups is None else []


def _better(first: Solution, second: Solution) -> Solution:
    """The second solution where its law has the shorter description."""
    if first.best is None or second.best is None:
        return second if first.best is None else first
    lengths = first.best.description_length, second.best.description_length
    if lengths[0] is None or lengths[1] is None or lengths[1] > lengths[0] - SHORTER:
        return first
    return second
