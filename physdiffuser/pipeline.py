"""The whole way of the data: table, problem, search, conclusion, solution."""

from __future__ import annotations

import difflib
import time as clock_module
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.data import load_dataset
from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import PluginError, UsageError
from physdiffuser.expressions import OPERATORS, Expression, Number, complexity, evaluate, parse, to_text
from physdiffuser.expressions.latex import to_latex
from physdiffuser.generation.protocol import Generator
from physdiffuser.report.solution import Equation, Solution, sample_fit_points
from physdiffuser.search.archive import Entry, ParetoArchive
from physdiffuser.search.candidate import Candidate
from physdiffuser.search.conclusion import EXACT_ERROR, equation, on_rows, rivals, work_out
from physdiffuser.search.doubts import ENOUGH_ROWS, doubts, shows_pattern
from physdiffuser.search.loop import SearchLoop, SearchResult
from physdiffuser.search.precision import decimal_precision
from physdiffuser.search.problem import Loss, Problem
from physdiffuser.search.sampling import Split, split_rows
from physdiffuser.search.shown_rows import rows_to_show

if TYPE_CHECKING:
    import os

    import pandas

    from physdiffuser.data.unit_files import UnitSource
    from physdiffuser.plugin_manager import Plugins

# Which generators a run uses unless told otherwise, in the order of their first turns.
DEFAULT_GENERATORS = ("enumeration", "sparse", "evolution")
# Share of the time, and most seconds, kept for fitting, snapping and checking at the end.
CONCLUSION_SHARE = 0.15
CONCLUSION_SECONDS = 4.0
PROGRESS_INTERVAL = 0.1


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
    target, inputs, weights
        Names of the columns; the last column is the target when none is named.
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
    started = clock_module.monotonic()
    dataset = load_dataset(
        source,
        target=target,
        inputs=inputs,
        weights=weights,
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
    loss: Loss = "squared",
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
        Seconds in all, the conclusion included; None for no limit but the steps.
    steps
        Most steps of the search; equal steps give equal results on one machine.
    seed
        Start of everything random.
    generators
        Names; `DEFAULT_GENERATORS` and those of plugins when None.
    attention, device
        For the learned generators.
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
        "squared", or "huber" for tables with outliers.
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

    _check(time, steps, noise, max_complexity, loss)
    started = clock_module.monotonic() if started is None else started
    loaded = load_plugins(plugins)  # before the problem is posed: their operators join the table
    dataset, problem, warnings = _pose(
        dataset, units, units_row, noise, operators, max_complexity, constants, loss, seed, loaded
    )
    if np.ptp(dataset.target) == 0:
        return _constant(dataset, seed, started, warnings)
    split = split_rows(dataset, seed)
    search_problem = on_rows(problem, dataset, split.search)
    chosen, refused = _generators(generators, loaded, attention=attention, device=device)
    reserve = min(CONCLUSION_SECONDS, CONCLUSION_SHARE * time) if time is not None else 0.0
    deadline = float("inf") if time is None else started + time
    reporter = _Reporter(dataset, started, time, on_progress)
    if time is not None:
        # sympy takes a second to start in its own process; it may do so while the search runs.
        from physdiffuser.verification.worker import shared_worker

        shared_worker().start()
    loop = SearchLoop(
        search_problem,
        chosen,
        tolerance=decimal_precision(search_problem.target),
        cancelled=cancelled or (lambda: False),
        on_better=reporter,
    )
    result = loop.run(steps, deadline - reserve, _initial(initial, dataset, problem))
    if generators is not None and set(chosen) <= loop.failed:
        raise PluginError("; ".join(result.warnings))  # nothing that was asked for could run
    warnings = (*warnings, *refused, *result.warnings, *loaded.operator_faults)
    # A stopped run has a second to say what it has.
    conclude_by = clock_module.monotonic() + 0.3 if loop.cancelled() else deadline
    return _conclude(dataset, split, problem, result, loop.floor, seed, started, conclude_by, warnings)


def _check(time: object, steps: object, noise: object, max_complexity: object, loss: object) -> None:
    """Refuse options that only a call from Python can get wrong."""

    def above_zero(name: str, value: object, kinds: type | tuple[type, ...], what: str) -> None:
        right = isinstance(value, kinds) and not isinstance(value, bool)
        if not right or not 0 < value < float("inf"):  # type: ignore[operator]
            raise UsageError(f"{name}={value!r}: must be {what} above 0")

    if time is not None:
        above_zero("time", time, (int, float, np.integer, np.floating), "a number of seconds")
    if steps is not None:
        above_zero("steps", steps, (int, np.integer), "a whole number")
    if time is None and steps is None:
        raise UsageError("give time or steps: without either the search would not end")
    if noise is not None and noise != 0:
        above_zero("noise", noise, (int, float, np.integer, np.floating), "a relative standard deviation")
    above_zero("max_complexity", max_complexity, (int, np.integer), "a whole number")
    if loss not in ("squared", "huber"):
        raise UsageError(f"loss={loss!r}: must be 'squared' or 'huber'")


def _pose(
    dataset: Dataset,
    units: UnitSource | None,
    units_row: bool,
    noise: float | None,
    operators: Sequence[str] | None,
    max_complexity: int,
    constants: str | Mapping[str, float | str | None] | None,
    loss: Loss,
    seed: int,
    loaded: Plugins,
) -> tuple[Dataset, Problem, tuple[str, ...]]:
    """The problem that the table and the options pose (on all rows), and warnings."""
    from physdiffuser.data.constants import parse_constants

    known = parse_constants(constants, taken=dataset.names)
    constant_units = {constant.symbol.name: constant.unit for constant in known if constant.unit is not None}
    if units is not None or units_row:
        from physdiffuser.data.unit_files import load_units, units_from_row

        names = [constant.symbol.name for constant in known]
        if units is not None:
            table_units = load_units(units, dataset, constants=names)
        else:
            table_units = units_from_row(dataset.unit_strings, dataset)
        dataset = table_units.attach(dataset)
        constant_units |= table_units.named
    column_units = tuple(column.unit for column in dataset.columns)
    complete = all(unit is not None for unit in column_units) and dataset.target_column.unit is not None
    problem = Problem(
        inputs=dataset.inputs,
        target=dataset.target,
        names=dataset.names,
        weights=dataset.weights,
        operators=_operators(operators, loaded),
        max_complexity=max_complexity,
        constants=tuple(constant.symbol for constant in known),
        units=column_units if complete else None,  # type: ignore[arg-type]
        target_unit=dataset.target_column.unit if complete else None,
        constant_units=constant_units,
        noise=noise,
        loss=loss,
        seed=seed,
        target_name=dataset.target_column.alias,
    )
    return dataset, problem, dataset.warnings


def _operators(names: Sequence[str] | None, loaded: Plugins) -> frozenset[str]:
    if names is None:
        return frozenset(OPERATORS)
    spellings = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "^": "pow"}
    allowed = {spellings.get(name, name) for name in names}
    unknown = sorted(allowed - set(OPERATORS))
    if unknown:
        for failure in loaded.failures:
            if unknown[0] in failure.names:
                raise PluginError(f"operator {unknown[0]!r} cannot be used: {failure.warning}")
        near = difflib.get_close_matches(unknown[0], list(OPERATORS), n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        failed = f". These plugins failed: {'; '.join(loaded.warnings)}" if loaded.failures else ""
        raise UsageError(f"unknown operator {unknown[0]!a}{hint} Known are {' '.join(OPERATORS)}{failed}")
    return frozenset(allowed)


def _generators(
    names: Sequence[str] | None, loaded: Plugins, **options: Any
) -> tuple[dict[str, Generator], tuple[str, ...]]:
    """Instances of the generators of this run, and warnings about those that could not be had."""
    extra = [name for name, record in loaded.generators.items() if not record.origin.built_in]
    wanted = list(names) if names is not None else [*DEFAULT_GENERATORS, *extra]
    learned = {key: value for key, value in options.items() if value is not None}
    instances: dict[str, Generator] = {}
    refused = list(loaded.warnings)
    for name in wanted:
        spec = loaded.generator(name)
        accepted = {key: value for key, value in learned.items() if key in spec.options}
        try:
            instances[name] = spec.build(**{**spec.options, **accepted})
        except PluginError as error:
            if names is not None:
                raise
            refused.append(str(error))
    return instances, tuple(refused)


def _initial(formulas: Sequence[str], dataset: Dataset, problem: Problem) -> list[Candidate]:
    known = {symbol.name: symbol.value for symbol in problem.constants}
    # The mean is finite whatever the rows are: a stopped or short run has an answer, if a poor one.
    mean = Candidate(Number(float(np.average(dataset.target, weights=dataset.weights))), "constant")
    return [mean] + [
        Candidate(parse(formula, dataset.names, known), "earlier run", ("found by an earlier run",))
        for formula in formulas
    ]


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
) -> Solution:
    searched = clock_module.monotonic()
    fit_problem = on_rows(problem, dataset, split.fit)
    laws, position = (
        work_out(result.archive, fit_problem, floor, deadline) if result.archive.front() else ([], 0)
    )
    made = [equation(law, dataset, split, dataset.names, fit_problem) for law in laws]
    rounding = float(np.sqrt(floor) * dataset.target.std())
    shown = rows_to_show([row for row, _ in made], position, rounding)
    laws, made = [laws[row] for row in shown], [made[row] for row in shown]
    position = shown.index(position) if made else 0
    solution = _frame(dataset, seed, warnings)
    if not made:
        return replace(solution, timing=_timing(started, searched, result))
    best, prediction = made[position]
    exact = best.max_relative_error < EXACT_ERROR
    pattern = laws[position].loss > floor and not exact and shows_pattern(dataset, prediction)
    verified = _verify(laws[position].fitted, best, dataset, split, deadline, pattern)
    equations = [one for one, _ in made]
    equations[position] = verified
    close = [row + 1 for row in rivals(laws, position, fit_problem.rows, floor)]
    doubtful = doubts(verified, dataset, exact=exact, pattern=pattern, rivals=close)
    held_out = np.zeros(dataset.rows, bool)
    held_out[split.held_out] = True
    return replace(
        solution,
        status="exact" if exact else "approximate",
        best=verified,
        pareto=tuple(equations),
        derivation=verified.derivation,
        warnings=(*warnings, *doubtful),
        held_out_rows=int(split.held_out.size),
        known_constants={symbol.name: symbol.value for symbol in problem.constants},
        timing=_timing(started, searched, result),
        fit_points=sample_fit_points(dataset.target, prediction, held_out),
    )


def _verify(
    fitted: Expression, best: Equation, dataset: Dataset, split: Split, deadline: float, pattern: bool
) -> Equation:
    from physdiffuser.verification import verify

    checked = verify(
        fitted,
        best.expression,
        dataset.inputs,
        dataset.target,
        split.fit,
        split.held_out,
        names=dataset.names,
        weights=dataset.weights,
        pattern=pattern if dataset.rows >= ENOUGH_ROWS and best.max_relative_error >= EXACT_ERROR else None,
        seconds=max(0.2, min(3.0, deadline - clock_module.monotonic())),
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
        fit_points=sample_fit_points(dataset.target, prediction, np.zeros(dataset.rows, bool)),
    )
