"""The whole way of the data: table, problem, search, conclusion, solution."""

from __future__ import annotations

import time as clock_module
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from physdiffuser.core.archive import Entry
from physdiffuser.core.problem import Problem
from physdiffuser.core.progress import Progress
from physdiffuser.core.solution import Equation, Solution, sample_fit_points
from physdiffuser.data.arrays import ColumnRequest, load_dataset_from
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.limits import reading_seconds
from physdiffuser.errors import PluginError
from physdiffuser.expressions import (
    PI,
    Expression,
    Number,
    Symbol,
    complexity,
    evaluate,
    to_text,
)
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import walk
from physdiffuser.finalize.diagnostics import ENOUGH_ROWS, diagnostics, shows_pattern
from physdiffuser.finalize.exactness import Exactness, exactness
from physdiffuser.finalize.finalists import ConditionalFormPrior, conditional_form_prior
from physdiffuser.finalize.finalize import finalize, on_rows, rivals
from physdiffuser.finalize.magnitudes import solve_in_moderate_units
from physdiffuser.finalize.scoring import equation
from physdiffuser.finalize.shown_rows import left_out, rows_to_show
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.noise.reweighting import Reweighted, put_back, reweight, without_outliers
from physdiffuser.options import DEFAULTS, SolveOptions
from physdiffuser.report.summary import summaries
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop, SearchResult
from physdiffuser.search.outliers import search_with_outliers
from physdiffuser.search.posing import (
    build_generators,
    check_options,
    initial_candidates,
    pose,
)
from physdiffuser.search.sampling import Split, split_rows
from physdiffuser.search.timing import TimeLimit

if TYPE_CHECKING:
    from physdiffuser.data.arrays import ColumnOrValues, Source

# Options of `solve` that say how a file is written; the search sees the last one as well.
READING_OPTIONS = ("encoding", "delimiter", "header", "thousands", "units_row")
# Arguments of `solve` that are passed on to `solve_dataset`.
PASSED_ON = ("on_progress", "cancelled", "report_seconds")

# Share of the time for the conclusion in which the formulas get their final constants; the rest is for
# verifying the chosen one.
WORKING_OUT_SHARE = 0.7
VERIFYING_SECONDS = 3.0
LEAST_VERIFYING = 0.2
PROGRESS_INTERVAL = 0.1
# Rows from which reading is what takes time.
LARGE_TABLE = 100_000


def solve(
    source: Source,
    y: object = None,
    *,
    names: Sequence[str] | None = None,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    weights: ColumnOrValues = None,
    errors: ColumnOrValues = None,
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
    **options
        For the search, as in `physdiffuser.options.SolveOptions`: time, steps, seed, units, generators,
        operators, ... For reading a file, as in `physdiffuser.data.load_dataset`: encoding, delimiter,
        header, thousands, units_row. `on_progress`, `cancelled`, `started` and `report_seconds` are passed
        to `solve_dataset`.

    Returns
    -------
    Solution
        `best`, `pareto`, `derivation`, `warnings` and the rest.

    Raises
    ------
    PhysdiffuserError
        With one message, when the table, a file or an option cannot be used.

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
    columns = ColumnRequest(names, target, inputs, weights, errors)
    dataset = load_dataset_from(source, y, columns, seconds=reading_seconds(search.time_limit), **reading)
    return solve_dataset(dataset, search, **passed_on, started=started)


def solve_dataset(
    dataset: Dataset,
    options: SolveOptions = DEFAULTS,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    started: float | None = None,
    report_seconds: float = 0.0,
    **changes: Any,
) -> Solution:
    """Find the law behind a dataset.

    Parameters
    ----------
    options
        Options of the search.
    on_progress, cancelled
        Called with each better formula, and asked often whether to stop.
    started
        Clock reading from which the time counts.
    report_seconds
        Seconds that the caller needs on an idle machine to write its report. Where other programs slow this
        one down, time is reserved for it.
    **changes
        Single options, in place of those in `options`.
    """
    options = options.changed(**changes)
    check_options(options)
    started = clock_module.monotonic() if started is None else started
    limit = TimeLimit(options.time_limit, started, report_seconds, clock=clock_module.monotonic)
    solve_table = partial(_solve, cancelled=cancelled or (lambda: False), started=started, limit=limit)
    return solve_in_moderate_units(solve_table, dataset, options, on_progress)


def _solve(
    dataset: Dataset,
    options: SolveOptions,
    on_progress: Callable[[Progress], None] | None,
    *,
    cancelled: Callable[[], bool],
    started: float,
    limit: TimeLimit,
) -> Solution:
    from physdiffuser.plugin_system.manager import load_plugins

    time, seed, generators = options.time_limit, options.seed, options.generators
    initial = options.formulas(dataset)
    if time is not None:
        # sympy takes a second to start in its own process; it may do so while the search runs.
        from physdiffuser.verification.worker import shared_worker

        shared_worker().start()
    loaded = load_plugins(options.plugins, time=time or float("inf"))  # first: their operators join the table
    begun = limit.pace.mark()
    dataset, problem, warnings = pose(dataset, options, loaded)
    if np.ptp(dataset.target) == 0:
        return _constant(dataset, seed, started, warnings)
    reweighted = reweight(dataset, options.loss, options.scatter)
    dataset = reweighted.dataset
    # Rows and weights are taken from the dataset, by `on_rows`.
    problem = replace(problem, loss=reweighted.loss)
    split = split_rows(dataset, seed)
    search_problem = on_rows(problem, dataset, split.search)
    if split.fit.size > split.search.size:
        search_problem = replace(search_problem, full_problem=on_rows(problem, dataset, split.fit))
    chosen, refused = build_generators(generators, loaded, attention=options.attention, device=options.device)
    specs = [record.spec for name, record in loaded.generators.items() if name in chosen]
    limit.pace.record(begun)
    used = limit.begin_search()
    if used is not None and time is not None:
        warnings = (*warnings, _used_up(used, time, dataset.rows))
    reporter = _Reporter(dataset, started, time, on_progress)
    loop = SearchLoop(
        search_problem,
        chosen,
        deferred=[spec.name for spec in specs if spec.role == "deferred" and generators is None],
        refiners=[spec.name for spec in specs if spec.role == "refiner"],
        specs=specs,
        tolerance=decimal_precision(search_problem.target),
        limit=limit,
        cancelled=cancelled,
        on_better=reporter,
        clock=clock_module.monotonic,
    )
    # Matrices here are small: a second BLAS thread gains little on an idle machine, and waits for its
    # turn on a busy one (a QR of 750 x 200 took 28 ms with two threads and 4 ms with one).
    with threadpool_limits(limits=1, user_api="blas"):
        first = initial_candidates(initial, dataset, problem)
        if options.loss == "auto" and reweighted.full_dataset is None:
            loop, result, rows = search_with_outliers(
                loop,
                lambda: build_generators(
                    generators, loaded, attention=options.attention, device=options.device
                )[0],
                options.steps,
                first,
            )
            reweighted = without_outliers(reweighted, rows)
            problem = replace(problem, loss=reweighted.loss)
        else:
            result = loop.run(options.steps, float("inf"), first)
        if generators is not None and set(chosen) <= loop.failed:
            raise PluginError("; ".join(result.warnings))  # nothing that was asked for could run
        warnings = (*warnings, *refused, *result.warnings, *result.archive.faults, *loaded.operator_faults)
        if reweighted.full_dataset is not None and loop.best is not None:
            reweighted = put_back(reweighted, loop.best.candidate.expression)
            dataset = reweighted.dataset
            split = split_rows(dataset, seed)
        # A stopped run has a second to say what it has.
        if loop.cancelled():
            limit.end_within(0.3)
        form_prior = conditional_form_prior(loop.generators, result.steps, loop.failed, loop.problem)
        return _conclude(
            dataset,
            split,
            problem,
            result,
            loop.floor,
            seed,
            started,
            limit,
            warnings,
            reweighted,
            form_prior,
        )


def _used_up(seconds: float, time: float, rows: int) -> str:
    # On a few rows it is the start of the program that took long, on a machine with much else to do.
    what, faster = (
        ("reading the table", ", or a Parquet file, which is read faster")
        if rows >= LARGE_TABLE
        else ("the start of the program", "")
    )
    return (
        f"{what} took {seconds:.1f} s of the {time:g} s given, so there was hardly any search: "
        f"give more time (--time){faster}"
    )


def _named_constants(problem: Problem, equations: Sequence[Equation]) -> dict[str, float]:
    """The constants the user gave, and those of nature that occur in a formula."""
    named = {symbol.name: symbol.value for symbol in problem.constants}
    for one in equations:
        for node in walk(one.expression):
            if isinstance(node, Symbol) and node != PI:
                named[node.name] = node.value
    return named


class _Reporter:
    """Tells the caller of better formulas, not more often than is useful."""

    def __init__(
        self,
        dataset: Dataset,
        started: float,
        budget: float | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.dataset = dataset
        self.started = started
        self.budget = budget
        self.on_progress = on_progress
        self._last = float("-inf")

    def __call__(self, archive: ParetoArchive, best: Entry) -> None:
        now = clock_module.monotonic()
        if self.on_progress is None or now < self._last + PROGRESS_INTERVAL:
            return
        self._last = now
        names = self.dataset.names
        self.on_progress(
            Progress(
                elapsed=now - self.started,
                budget=self.budget,
                best=to_text(best.candidate.expression, names, digits=6),
                loss=best.loss,
                complexity=best.complexity,
                generator=best.candidate.generator,
                front=tuple(to_text(entry.candidate.expression, names) for entry in archive.front()),
            )
        )


def _conclude(
    dataset: Dataset,
    split: Split,
    problem: Problem,
    result: SearchResult,
    floor: float,
    seed: int,
    started: float,
    limit: TimeLimit,
    warnings: tuple[str, ...],
    reweighted: Reweighted,
    form_prior: ConditionalFormPrior | None,
) -> Solution:
    searched, deadline, slowdown = clock_module.monotonic(), limit.conclude_by, limit.slowdown
    fit_problem = on_rows(problem, dataset, split.fit)
    # Formulas of many constants take long to verify as well.
    worked_out_by = searched + WORKING_OUT_SHARE * (deadline - searched)
    laws, position = (
        finalize(
            result.archive,
            fit_problem,
            floor,
            worked_out_by,
            clock=clock_module.monotonic,
            form_prior=form_prior,
            slowdown=slowdown,
        )
        if result.archive.front()
        else ([], 0)
    )
    if form_prior is not None and form_prior.fault is not None:
        warnings = (*warnings, form_prior.fault)
    made = [equation(law, dataset, split, dataset.names, fit_problem) for law in laws]
    scale = float(np.abs(dataset.target).max())
    rounding = float(np.sqrt(floor) * (dataset.target / scale).std()) * scale
    scored = [row for row, _ in made]
    shown = rows_to_show(scored, position, rounding)
    hidden = [scored[row] for row in left_out(scored, position, rounding)] if scored else []
    laws, made = [laws[row] for row in shown], [made[row] for row in shown]
    position = shown.index(position) if made else 0
    solution = _frame(dataset, seed, warnings)
    if not made:
        return replace(solution, timing=_timing(started, searched, result))
    best, prediction = made[position]
    judged = exactness(best.expression, dataset, prediction)
    exact = judged.exact
    pattern = laws[position].loss > floor and not exact and shows_pattern(dataset, prediction)
    left = max(slowdown * LEAST_VERIFYING, deadline - clock_module.monotonic())
    verified = _verify(laws[position].fitted, best, dataset, split, left, slowdown, pattern, judged)
    equations = [one for one, _ in made]
    equations[position] = verified
    close = [row + 1 for row in rivals(laws, position, floor)]
    doubtful = diagnostics(verified, dataset, exact=exact, pattern=pattern, rivals=close, left_out=hidden)
    held_out = np.zeros(dataset.rows, bool)
    held_out[split.held_out] = True
    return replace(
        solution,
        status="exact" if exact else "approximate",
        best=verified,
        pareto=tuple(equations),
        derivation=verified.derivation,
        # What was made of the scatter matters only where there is some.
        warnings=(
            *warnings,
            *((reweighted.note,) if reweighted.note else ()),
            *(() if exact else reweighted.said),
            *doubtful,
            *((judged.interpolation,) if judged.interpolation else ()),
        ),
        notes={**solution.notes, **_weighting(reweighted, exact)},
        held_out_rows=int(split.held_out.size),
        known_constants=_named_constants(problem, equations),
        timing=_timing(started, searched, result),
        fit_points=sample_fit_points(dataset.target, prediction, held_out, inputs=dataset.inputs),
        summaries=summaries(dataset),
    )


def _weighting(reweighted: Reweighted, exact: bool) -> dict[str, str]:
    """What the errors of an exact law's table are weighted by; else a warning says so."""
    if not exact or not reweighted.said or reweighted.dataset.weights is None:
        return {}
    target = reweighted.dataset.target_column.name
    return {"errors": f"those of approximate formulas are weighted by 1/{target}**2"}


def _verify(
    fitted: Expression,
    best: Equation,
    dataset: Dataset,
    split: Split,
    left: float,
    slowdown: float,
    pattern: bool,
    judged: Exactness,
) -> Equation:
    from physdiffuser.verification import verify
    from physdiffuser.verification.worker import shared_worker

    # Whether a law is verified must not depend on how fast the machine is: a start is not counted.
    limit = slowdown * VERIFYING_SECONDS + shared_worker().starting()
    checked = verify(
        fitted,
        best.expression,
        dataset.inputs,
        dataset.target,
        split.fit,
        split.held_out,
        names=dataset.names,
        weights=dataset.weights,
        pattern=pattern if dataset.rows >= ENOUGH_ROWS and not judged.exact else None,
        interpolation=judged.interpolation,
        seconds=min(limit, left),
    )
    return replace(best, verdict=checked.verdict, verification=checked.sentences)


def _timing(started: float, searched: float, result: SearchResult | None) -> dict[str, float]:
    now = clock_module.monotonic()
    timing = {
        "elapsed_seconds": now - started,
        "search_seconds": searched - started,
        "conclusion_seconds": now - searched,
    }
    if result is not None:
        timing |= {f"steps_{name}": float(steps) for name, steps in result.steps.items()}
    return timing


def _frame(dataset: Dataset, seed: int, warnings: tuple[str, ...]) -> Solution:
    """A solution without an equation."""
    from physdiffuser.version import version

    return Solution(
        target=dataset.target_column.name,
        status="none",
        best=None,
        pareto=(),
        names=dataset.names,
        columns=tuple(column.name for column in dataset.columns),
        aliases=dataset.aliases,
        warnings=warnings,
        notes=dataset.notes,
        rows=dataset.rows,
        seed=seed,
        version=version(),
    )


def _constant(dataset: Dataset, seed: int, started: float, warnings: tuple[str, ...]) -> Solution:
    """A target that never changes needs no search."""
    value = float(dataset.target[0])
    number = Number(int(value)) if value == int(value) and abs(value) < 1e15 else Number(value)
    names = dataset.names
    law = Equation(
        expression=number,
        text=to_text(number, names),
        latex=to_latex(number, names),
        complexity=complexity(number),
        rmse=0.0,
        r2=float("nan"),
        max_relative_error=float(np.abs(evaluate(number, dataset.inputs[:1])[0] - value)),
        verdict="verified",
        verification=("every row has this value",),
        derivation=("the target is the same in every row",),
        generator="constant",
    )
    prediction = np.full(dataset.rows, value)
    return replace(
        _frame(dataset, seed, warnings),
        status="exact",
        best=law,
        pareto=(law,),
        derivation=law.derivation,
        timing=_timing(started, clock_module.monotonic(), None),
        fit_points=sample_fit_points(
            dataset.target, prediction, np.zeros(dataset.rows, bool), inputs=dataset.inputs
        ),
        summaries=summaries(dataset),
    )
