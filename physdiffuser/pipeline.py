"""The whole way of the data: table, problem, search, conclusion, solution."""

from __future__ import annotations

import time as clock_module
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from physdiffuser.data import load_dataset
from physdiffuser.data.dataset import Dataset
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
from physdiffuser.expressions.latex import to_latex
from physdiffuser.expressions.tree import walk
from physdiffuser.report.solution import Equation, Solution, sample_fit_points
from physdiffuser.report.summary import summaries
from physdiffuser.search.archive import Entry, ParetoArchive
from physdiffuser.search.conclusion import on_rows, rivals, work_out
from physdiffuser.search.contenders import Asked, first_judge
from physdiffuser.search.doubts import ENOUGH_ROWS, doubts, shows_pattern
from physdiffuser.search.exactness import Exactness, exactness
from physdiffuser.search.loop import SearchLoop, SearchResult
from physdiffuser.search.posing import (
    FOLLOWING_GENERATORS,
    LATE_GENERATORS,
    build_generators,
    check_options,
    initial_candidates,
    pose,
)
from physdiffuser.search.precision import decimal_precision
from physdiffuser.search.problem import Loss, Problem
from physdiffuser.search.sampling import Split, split_rows
from physdiffuser.search.scatter import Scatter, Weighed, put_back, weigh
from physdiffuser.search.scoring import equation
from physdiffuser.search.shown_rows import left_out, rows_to_show

if TYPE_CHECKING:
    import os

    import pandas

    from physdiffuser.data.unit_files import UnitSource

# Share of the time, and most seconds, kept for fitting, snapping and checking at the end.
CONCLUSION_SHARE = 0.15
CONCLUSION_SECONDS = 4.0
# Share of it in which the formulas get their final constants; what is left is for verifying the chosen one.
WORKING_OUT_SHARE = 0.7
VERIFYING_SECONDS = 3.0
PROGRESS_INTERVAL = 0.1
# Seconds that a search gets however long reading the table took.
LEAST_SEARCH = 2.0
# Rows from which reading is what takes time.
LARGE_TABLE = 100_000


@dataclass(frozen=True)
class Progress:
    """How far a search has come.

    Attributes
    ----------
    elapsed, budget
        Seconds since the start, and in all (None when only steps limit the run).
    best, loss, complexity, generator
        The best formula so far, as text, and where it came from.
    front
        Formulas of the Pareto front, simple ones first.
    """

    elapsed: float
    budget: float | None
    best: str
    loss: float
    complexity: int
    generator: str
    front: tuple[str, ...] = ()


def solve(
    source: str | os.PathLike[str] | pandas.DataFrame,
    *,
    target: str | None = None,
    inputs: Sequence[str] | None = None,
    weights: str | None = None,
    errors: str | None = None,
    units: UnitSource | None = None,
    units_row: bool = False,
    encoding: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    thousands: str | None = None,
    **options: Any,
) -> Solution:
    """Find the law behind a table.

    Parameters
    ----------
    source
        A path, `-` for standard input, or a pandas DataFrame.
    target, inputs, weights, errors
        Names of the columns; the last column is the target when none is named. Weights are 1/sigma**2, errors
        are sigma, the standard deviation of the target in each row.
    units
        A JSON or YAML file, or a mapping: column name to unit.
    units_row
        The table's second row holds the units.
    encoding, delimiter, header, thousands
        How the file is written, where that cannot be seen from it.
    **options
        As for `solve_dataset`: time, steps, seed, generators, operators, ...

    Returns
    -------
    Solution
        `best`, `pareto`, `derivation`, `warnings` and the rest.

    Raises
    ------
    PhysdiffuserError
        With one message, when the table, a file or an option cannot be used.
    """
    # Reading counts: a caller who gives a minute wants an answer after a minute.
    started = clock_module.monotonic()
    dataset = load_dataset(
        source,
        target=target,
        inputs=inputs,
        weights=weights,
        errors=errors,
        encoding=encoding,
        delimiter=delimiter,
        header=header,
        thousands=thousands,
        units_row=units_row,
    )
    return solve_dataset(dataset, units=units, units_row=units_row, started=started, **options)


def solve_dataset(
    dataset: Dataset,
    *,
    time: float | None = 60.0,
    steps: int | None = None,
    seed: int = 0,
    generators: Sequence[str] | None = None,
    attention: str | None = None,
    device: str = "auto",
    units: UnitSource | None = None,
    units_row: bool = False,
    noise: float | None = None,
    operators: Sequence[str] | None = None,
    max_complexity: int = 60,
    constants: str | Mapping[str, float | str | None] | None = None,
    loss: Loss | Literal["auto"] = "auto",
    scatter: Scatter = "auto",
    plugins: bool = True,
    initial: Sequence[str] = (),
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    started: float | None = None,
) -> Solution:
    """Find the law behind a dataset.

    Parameters
    ----------
    time
        Seconds in all, reading and conclusion included; None for no limit but the steps. The search gets
        two seconds even where reading has used them up, and a warning says so.
    steps
        Most steps of the search; equal steps give equal results on one machine.
    seed
        Start of everything random.
    generators
        Names; the default ones and those of plugins when None.
    attention
        For the learned generators.
    device
        Where pair searches, fits of many formulas and the networks run: "cuda", or "cpu"; "auto" takes a GPU
        for the networks alone. "cpu-torch" does on the processor what "cuda" does, for checks.
    units, units_row
        Units of the columns, given, or read with the table.
    noise
        Relative standard deviation of the target, if known.
    operators
        Names of the operators that may occur; all when None.
    max_complexity
        Larger formulas are not considered.
    constants
        Known constants that may occur, `{"G": 6.674e-11}`.
    loss
        "squared", or "huber" for tables with outliers; "auto" chooses by what neighbouring rows say.
    scatter
        Whether errors of the target are "constant" or "relative" (in proportion to its value, so that rows
        are weighted by 1/value**2); "auto" chooses by what neighbouring rows say. Without effect on a table
        with weights.
    plugins
        Whether to load generators and operators of other packages.
    initial
        Formulas to start from, in the table's aliases.
    on_progress, cancelled
        Called with each better formula, and asked often whether to stop.
    started
        Clock reading from which the time counts.
    """
    from physdiffuser.plugin_manager import load_plugins

    check_options(
        time=time,
        steps=steps,
        noise=noise,
        max_complexity=max_complexity,
        loss=loss,
        scatter=scatter,
        device=device,
        generators=generators,
        operators=operators,
    )
    started = clock_module.monotonic() if started is None else started
    loaded = load_plugins(plugins)  # before the problem is posed: their operators join the table
    dataset, problem, warnings = pose(
        dataset, units, units_row, noise, operators, max_complexity, constants, "squared", seed, loaded
    )
    if np.ptp(dataset.target) == 0:
        return _constant(dataset, seed, started, warnings)
    weighed = weigh(dataset, loss, scatter)
    dataset = weighed.dataset
    # Rows and weights are taken from the dataset, by `on_rows`.
    problem = replace(problem, loss=weighed.loss)
    split = split_rows(dataset, seed)
    search_problem = on_rows(problem, dataset, split.search)
    if split.fit.size > split.search.size:
        search_problem = replace(search_problem, whole=on_rows(problem, dataset, split.fit))
    chosen, refused = build_generators(generators, loaded, attention=attention, device=device)
    reserve = min(CONCLUSION_SECONDS, CONCLUSION_SHARE * time) if time is not None else 0.0
    deadline = float("inf") if time is None else started + time
    now = clock_module.monotonic()
    if time is not None and now - started > time / 2 and deadline - reserve < now + LEAST_SEARCH:
        warnings = (*warnings, _used_up(now - started, time, dataset.rows))
        deadline = now + min(LEAST_SEARCH, time) + reserve
    reporter = _Reporter(dataset, started, time, on_progress)
    if time is not None:
        # sympy takes a second to start in its own process; it may do so while the search runs.
        from physdiffuser.verification.worker import shared_worker

        shared_worker().start()
    loop = SearchLoop(
        search_problem,
        chosen,
        late=LATE_GENERATORS if generators is None else (),
        following=FOLLOWING_GENERATORS,
        tolerance=decimal_precision(search_problem.target),
        cancelled=cancelled or (lambda: False),
        on_better=reporter,
    )
    # Matrices here are small: a second BLAS thread gains little on an idle machine, and waits for its
    # turn on a busy one (a QR of 750 x 200 took 28 ms with two threads and 4 ms with one).
    with threadpool_limits(limits=1, user_api="blas"):
        result = loop.run(steps, deadline - reserve, initial_candidates(initial, dataset, problem))
        if generators is not None and set(chosen) <= loop.failed:
            raise PluginError("; ".join(result.warnings))  # nothing that was asked for could run
        warnings = (*warnings, *refused, *result.warnings, *loaded.operator_faults)
        if weighed.whole is not None and loop.best is not None:
            weighed = put_back(weighed, loop.best.candidate.expression)
            dataset = weighed.dataset
            split = split_rows(dataset, seed)
        # A stopped run has a second to say what it has.
        conclude_by = clock_module.monotonic() + 0.3 if loop.cancelled() else deadline
        judge = first_judge(loop.generators, result.steps, loop.failed, loop.problem)
        return _conclude(
            dataset, split, problem, result, loop.floor, seed, started, conclude_by, warnings, weighed, judge
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
    deadline: float,
    warnings: tuple[str, ...],
    weighed: Weighed,
    judge: Asked | None,
) -> Solution:
    searched = clock_module.monotonic()
    fit_problem = on_rows(problem, dataset, split.fit)
    # Formulas of many constants take long to verify as well.
    worked_out_by = searched + WORKING_OUT_SHARE * (deadline - searched)
    laws, position = (
        work_out(result.archive, fit_problem, floor, worked_out_by, judge=judge)
        if result.archive.front()
        else ([], 0)
    )
    if judge is not None and judge.fault is not None:
        warnings = (*warnings, judge.fault)
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
    verified = _verify(laws[position].fitted, best, dataset, split, deadline, pattern, judged)
    equations = [one for one, _ in made]
    equations[position] = verified
    close = [row + 1 for row in rivals(laws, position, floor)]
    doubtful = doubts(verified, dataset, exact=exact, pattern=pattern, rivals=close, left_out=hidden)
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
            *((weighed.note,) if weighed.note else ()),
            *(() if exact else weighed.said),
            *doubtful,
            *((judged.interpolation,) if judged.interpolation else ()),
        ),
        notes={**solution.notes, **_weighting(weighed, exact)},
        held_out_rows=int(split.held_out.size),
        known_constants=_named_constants(problem, equations),
        timing=_timing(started, searched, result),
        fit_points=sample_fit_points(dataset.target, prediction, held_out, inputs=dataset.inputs),
        summaries=summaries(dataset),
    )


def _weighting(weighed: Weighed, exact: bool) -> dict[str, str]:
    """What the errors of an exact law's table are weighted by; else a warning says so."""
    if not exact or not weighed.said or weighed.dataset.weights is None:
        return {}
    return {
        "errors": f"those of approximate formulas are weighted by 1/{weighed.dataset.target_column.name}**2"
    }


def _verify(
    fitted: Expression,
    best: Equation,
    dataset: Dataset,
    split: Split,
    deadline: float,
    pattern: bool,
    judged: Exactness,
) -> Equation:
    from physdiffuser.verification import verify
    from physdiffuser.verification.worker import shared_worker

    # Whether a law is verified must not depend on how fast the machine is: a start is not counted.
    limit = VERIFYING_SECONDS + shared_worker().starting()
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
        seconds=max(0.2, min(limit, deadline - clock_module.monotonic())),
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
    from physdiffuser import __version__

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
        version=__version__,
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
