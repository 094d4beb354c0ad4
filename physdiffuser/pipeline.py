"""The way of the data: table, problem, search, finalization, solution."""

from __future__ import annotations

import time as clock_module
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from physdiffuser.core.progress import Progress
from physdiffuser.core.solution import Solution
from physdiffuser.data.arrays import ColumnRequest, load_dataset_from
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.limits import reading_seconds
from physdiffuser.data.ranges import parse_ranges
from physdiffuser.data.statements.input_errors import with_input_errors
from physdiffuser.errors import UsageError
from physdiffuser.expressions import to_text
from physdiffuser.finalize.guess_outcomes import guess_outcomes
from physdiffuser.finalize.next_measurements import next_measurements
from physdiffuser.finalize.rescaling.magnitudes import Magnitudes, solve_in_moderate_units
from physdiffuser.finalize.rescaling.origins import origin_note, solve_with_origins
from physdiffuser.finalize.solution import build_solution, constant_solution
from physdiffuser.groups.solving import solve_groups
from physdiffuser.losses.likelihoods import Loss, loss_of
from physdiffuser.losses.solving import solve_with_loss
from physdiffuser.options import DEFAULTS, SolveOptions
from physdiffuser.plugin_system.manager import load_plugins
from physdiffuser.report.notebook_progress import notebook_progress
from physdiffuser.search.interruption import STOPPED, StopRequest, interruptible
from physdiffuser.search.parallel.workers import workers_of
from physdiffuser.search.posing import check_options
from physdiffuser.search.refinement.guesses import Guess, fitted_guesses
from physdiffuser.search.run_control import RunControl
from physdiffuser.search.table_search import pose_table, prepare, search_table
from physdiffuser.search.timing import TimeLimit
from physdiffuser.search.vocabulary import definitions, vocabulary
from physdiffuser.templates.grouped import solve_template_groups
from physdiffuser.templates.solving import solve_template, template_of
from physdiffuser.templates.with_loss import solve_template_with_loss
from physdiffuser.verification.patience import symbolic_patience
from physdiffuser.verification.worker import shared_worker

if TYPE_CHECKING:
    from physdiffuser.data.arrays import ColumnOrValues, GroupsOrValues, Source

# Options of `solve` that say how a file is written; the search sees the last one as well.
READING_OPTIONS = ("encoding", "delimiter", "header", "thousands", "units_row")
# Arguments of `solve` that are passed on to `solve_dataset`.
PASSED_ON = ("on_progress", "on_improvement", "progress", "cancelled", "report_seconds")


def solve(
    source: Source,
    y: object = None,
    *,
    names: Sequence[str] | None = None,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    weights: ColumnOrValues = None,
    errors: ColumnOrValues = None,
    groups: GroupsOrValues = None,
    **options: Any,
) -> Solution:
    """Find the law behind a table.

    Parameters
    ----------
    source
        A path, `-` for standard input, a pandas DataFrame, anything that has `to_pandas()` (polars,
        pyarrow), or a mapping of column names to values. With `y`: the inputs as an array, a sequence of
        rows, a Series or any of these tables, of shape (rows, columns) or (rows,).
    y
        Values of the target, shape (rows,), when `source` holds only the inputs.
    names
        Names of the columns of the inputs, with `y`. By default the names that a table has, or x1, x2, ...
    target
        Name of the target. Without `y` the name of a column; the last column of numbers when None. With `y`
        the name to call it; the name of the Series or `y` when None.
    inputs
        Names of the columns that may occur in the law; all others when None.
    weights, errors
        Name of a column, or with `y` also values of shape (rows,). Weights are 1/sigma**2, errors are sigma,
        the standard deviation of the target in each row.
    groups
        Name of a column, or names of several, of text or numbers: the law then has one form for all groups of
        rows, and constants that they share or have of their own. With `y` also one value per row.
    **options
        For the search, as in `physdiffuser.options.SolveOptions`: time, steps, seed, units, generators,
        operators, ... For reading a file, as in `physdiffuser.data.load_dataset`: encoding, delimiter,
        header, thousands, units_row. `on_improvement`, `progress`, `on_progress`, `cancelled`, `started` and
        `report_seconds` are passed to `solve_dataset`.

    Returns
    -------
    Solution
        `best`, `pareto`, `derivation`, `warnings` and the rest. After Ctrl-C it holds the best laws so far,
        and a warning says that the search was stopped.

    Raises
    ------
    PhysdiffuserError
        With one message, when the table, a file or an option cannot be used.
    KeyboardInterrupt
        After a second Ctrl-C, or a first one before any formula was found.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0.1, 3, 40)
    >>> solve(t, 9.81 * t**2 / 2, names=["t"], target="s", time=10).best.text
    '4.905*t**2'
    """
    # Reading counts: a caller who gives a minute wants an answer after a minute.
    started = options.pop("started", None)
    started = clock_module.monotonic() if started is None else started
    reading = {name: options.pop(name) for name in READING_OPTIONS if name in options}
    passed_on = {name: options.pop(name) for name in PASSED_ON if name in options}
    search = DEFAULTS.changed(**options, units_row=reading.get("units_row", False))
    columns = ColumnRequest(names, target, inputs, weights, errors, search.input_errors, groups)
    dataset = load_dataset_from(source, y, columns, seconds=reading_seconds(search.time_limit), **reading)
    return solve_dataset(dataset, search, **passed_on, started=started)


def solve_dataset(
    dataset: Dataset,
    options: SolveOptions = DEFAULTS,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    on_improvement: Callable[[Progress], bool | None] | None = None,
    progress: bool | None = None,
    cancelled: Callable[[], bool] | None = None,
    started: float | None = None,
    report_seconds: float = 0.0,
    **changes: Any,
) -> Solution:
    """Find the law behind a dataset.

    Parameters
    ----------
    dataset
        The table.
    options
        Options of the search.
    on_progress
        Called with each better formula, at most ten times a second.
    on_improvement
        Called like `on_progress`; if it returns True, the search stops, and the solution is the best so far.
    progress
        Whether to show a bar with the best law so far; None: only in a notebook.
    cancelled
        Asked often whether to stop.
    started
        Clock reading from which the time counts.
    report_seconds
        Seconds that the caller needs on an idle machine to write its report. Where other programs slow this
        one down, time is reserved for it.
    **changes
        Single options, in place of those in `options`.

    Returns
    -------
    Solution
        The answer as plain data.
    """
    options = options.changed(**changes)
    check_options(options)
    if options.auto_origin:

        def part(table: Dataset, own: SolveOptions, shown: bool) -> Solution:
            return solve_dataset(
                table,
                own,
                on_progress=on_progress if shown else None,
                on_improvement=on_improvement if shown else None,
                progress=progress,
                cancelled=cancelled,
                report_seconds=report_seconds,
            )

        return solve_with_origins(part, dataset, options, started or clock_module.monotonic())
    loss = loss_of(options.loss)
    # Before formulas are read: operators of plugins join the table of operators.
    loaded = load_plugins(options.plugins, time=options.time_limit or float("inf"))
    dataset = with_input_errors(dataset, options.input_errors)
    started = clock_module.monotonic() if started is None else started
    stop = StopRequest(cancelled or (lambda: False))
    control = RunControl(TimeLimit(options.time_limit, started, report_seconds), started, stop)
    with (
        vocabulary(options, dataset, loaded),
        interruptible(stop),
        symbolic_patience(options.time_limit, stop),
        notebook_progress(progress, options.time_limit) as show,
        workers_of(options.jobs, options.scheduler) as workers,
    ):
        control = replace(control, workers=workers)
        listeners = [one for one in (show, on_progress) if one is not None]

        def improved(better: Progress) -> None:
            for listener in listeners:
                listener(better)
            if on_improvement is not None and on_improvement(better):
                stop.request()

        watched = improved if listeners or on_improvement is not None else None
        solution = _searched(dataset, options, loss, replace(control, on_progress=watched))
    return _ended(solution, stop, options)


def _searched(dataset: Dataset, options: SolveOptions, loss: Loss | None, control: RunControl) -> Solution:
    """The answer of the search that the options ask for: groups, a loss, a template, or the usual one."""
    check_constraints(options, dataset)
    template = template_of(options, dataset)
    with threadpool_limits(limits=1, user_api="blas"):
        if template is not None and loss is not None:
            return solve_template_with_loss(dataset, template, loss, options, control)
        if template is not None:
            solver = solve_template if dataset.groups is None else solve_template_groups
            return solver(dataset, template, options, control)
        guesses = _guesses(dataset, options)
        if loss is not None:
            return solve_with_loss(dataset, loss, guesses, options, control)
    if dataset.groups is not None:
        return solve_groups(dataset, guesses, options, control)[0]
    # With their constants fitted they are formulas like those of an earlier run.
    texts = [to_text(one.expression, dataset.names) for one in guesses if one.expression is not None]
    watched, control = control.on_progress, replace(control, on_progress=None)
    solution = solve_in_moderate_units(
        partial(_solve, control=control), dataset, options.changed(initial=texts), watched
    )
    solution = replace(solution, guesses=guess_outcomes(guesses, solution, dataset))
    hint = origin_note(dataset)
    if hint and "origin" not in solution.notes:
        solution = replace(solution, notes={**solution.notes, "origin": hint})
    return solution


def check_constraints(options: SolveOptions, dataset: Dataset) -> None:
    """Refuse constraints where they cannot be tested.

    Raises
    ------
    UsageError
        If values are so large or small that the table is solved in other units.
    """
    if options.constraints is None:
        return
    if not Magnitudes.of(dataset).usual:
        raise UsageError("with constraints, values must lie between 1e-50 and 1e50: use other units")


def _ended(solution: Solution, stop: StopRequest, options: SolveOptions) -> Solution:
    """The solution with the user's definitions, and with a warning if Ctrl-C has ended the search."""
    own = {one.head: one.text for one in definitions(options.operators)}
    solution = replace(solution, operators=own) if own else solution
    if not stop.interrupted:
        return solution
    if solution.best is None:
        raise KeyboardInterrupt
    return replace(solution, warnings=(*solution.warnings, STOPPED))


def _guesses(dataset: Dataset, options: SolveOptions) -> tuple[Guess, ...]:
    """The formulas that the user starts from, with their constants fitted to the table."""
    if not options.initial:
        return ()
    from physdiffuser.data.statements.constants import parse_constants

    known = parse_constants(options.constants, taken=dataset.names)
    values = {constant.symbol.name: constant.symbol.value for constant in known}
    return fitted_guesses(options.initial, dataset, values, options.seed)


def _solve(
    dataset: Dataset,
    options: SolveOptions,
    on_progress: Callable[[Progress], None] | None,
    *,
    control: RunControl,
) -> Solution:
    control = replace(control, on_progress=on_progress)
    if options.time_limit is not None:
        # sympy takes a second to start in its own process; it may do so while the search runs.
        shared_worker().start()
    ranges = parse_ranges(options.suggest_range, dataset)
    posed = pose_table(dataset, options, control)
    if posed.is_constant:
        return constant_solution(posed, options.seed, control)
    prepared = prepare(posed, options, control)
    # Matrices here are small: a second BLAS thread gains little on an idle machine, and waits for its
    # turn on a busy one (a QR of 750 x 200 took 28 ms with two threads and 4 ms with one).
    with threadpool_limits(limits=1, user_api="blas"):
        found = search_table(prepared, options, control)
        solution = build_solution(found, control)
        if not options.suggest_next:
            return solution
        places = {column.name: index for index, column in enumerate(dataset.columns)}
        wider = {places[name]: ends for name, ends in ranges.items()}
        suggested = next_measurements(solution, found, options.suggest_next, wider)
        return replace(solution, next_measurements=suggested)
