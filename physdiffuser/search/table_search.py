"""From a table to what the search has found in it: pose the problem, prepare the rows, run the generators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator, GeneratorSpec
from physdiffuser.core.problem import Problem
from physdiffuser.data.checks import mean_error, weights_of
from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import PluginError
from physdiffuser.expressions import evaluate
from physdiffuser.fitting.effective_variance import effective_fit
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.noise.reweighting import (
    ENOUGH_ROWS,
    Reweighted,
    put_back,
    reweight,
    with_noise_model,
    without_outliers,
)
from physdiffuser.options import SolveOptions
from physdiffuser.search import noise_inference
from physdiffuser.search.loop import SearchLoop, SearchResult
from physdiffuser.search.noise_inference import (
    decided_law,
    grows_surely,
    is_wide,
    needs_other_search,
    relative_weights,
    spans_decades,
)
from physdiffuser.search.outliers import search_with_outliers
from physdiffuser.search.posing import build_generators, initial_candidates, pose
from physdiffuser.search.run_control import Reporter, RunControl
from physdiffuser.search.sampling import Split, split_rows
from physdiffuser.search.settings import SearchSettings

if TYPE_CHECKING:
    from physdiffuser.plugin_system.manager import Plugins

# Rows from which reading is what takes time.
LARGE_TABLE = 100_000
# Seconds for the solution after the user has stopped the search.
AFTER_STOP = 0.3


@dataclass(frozen=True)
class PosedTable:
    """A table, the problem that it and the options pose on all rows, and formulas to start from."""

    dataset: Dataset
    problem: Problem
    initial: Sequence[str]
    loaded: Plugins
    warnings: tuple[str, ...]

    @property
    def is_constant(self) -> bool:
        """Whether the target has the same value in every row."""
        return bool(np.ptp(self.dataset.target) == 0)


@dataclass(frozen=True)
class PreparedSearch:
    """A posed table with weighted rows, divided into those for search, fit and test, and its generators."""

    dataset: Dataset
    problem: Problem
    reweighted: Reweighted
    split: Split
    initial: Sequence[str]
    generators: dict[str, Generator]
    specs: tuple[GeneratorSpec, ...]
    loaded: Plugins
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """What the search leaves to be finalized.

    Attributes
    ----------
    dataset, problem, reweighted, split
        As prepared, with the outliers that the search has identified taken out or put back.
    loop, result
        The search that was run last, and its result.
    warnings
        For the user.
    seed
        Random seed.
    """

    dataset: Dataset
    problem: Problem
    reweighted: Reweighted
    split: Split
    loop: SearchLoop
    result: SearchResult
    warnings: tuple[str, ...]
    seed: int


def pose_table(dataset: Dataset, options: SolveOptions, control: RunControl) -> PosedTable:
    """Load the plugins, and pose the problem."""
    from physdiffuser.plugin_system.manager import load_plugins

    initial = options.formulas(dataset)
    # Before the problem is posed: operators of plugins join the table of operators.
    loaded = load_plugins(options.plugins, time=options.time_limit or float("inf"))
    with control.limit.pace.measured():
        dataset, problem, warnings = pose(dataset, options, loaded)
    return PosedTable(dataset, problem, initial, loaded, warnings)


def prepare(posed: PosedTable, options: SolveOptions, control: RunControl) -> PreparedSearch:
    """Weight the rows by the noise model, divide them, and build the generators."""
    limit, warnings = control.limit, posed.warnings
    with limit.pace.measured():
        reweighted = reweight(posed.dataset, options.loss, options.noise_model)
        dataset = reweighted.dataset
        # Rows and weights are taken from the dataset, by `on_rows`.
        problem = replace(posed.problem, loss=reweighted.loss)
        split = split_rows(dataset, options.seed)
        generators, refused = _generators(posed.loaded, options)
    specs = [record.spec for name, record in posed.loaded.generators.items() if name in generators]
    used = limit.begin_search()
    if used is not None and options.time_limit is not None:
        warnings = (*warnings, _used_up(used, options.time_limit, dataset.rows))
    return PreparedSearch(
        dataset,
        problem,
        reweighted,
        split,
        posed.initial,
        generators,
        tuple(specs),
        posed.loaded,
        (*warnings, *refused),
    )


def search_table(
    prepared: PreparedSearch,
    options: SolveOptions,
    control: RunControl,
    candidates: Sequence[Candidate] = (),
) -> Found:
    """Run the generators until the law is settled or the budget is spent.

    Parameters
    ----------
    candidates
        Formulas to start from, beside those in the options.

    Raises
    ------
    PluginError
        If every generator that was asked for by name has failed.
    """
    first = initial_candidates(prepared.initial, options, prepared.dataset, prepared.problem)
    first += candidates
    result = None
    if prepared.dataset.input_errors is not None:
        prepared, loop, paused = _search_with_input_errors(prepared, first, options, control)
        result, first = paused if paused.settled else None, []
    elif _noise_is_unknown(prepared, options):
        prepared, loop, paused = _search_with_noise_models(prepared, first, options, control)
        result, first = paused if paused.settled else None, []
    else:
        loop = _loop(prepared, options, control)
    dataset, split, reweighted = prepared.dataset, prepared.split, prepared.reweighted
    problem = prepared.problem
    if options.loss == "auto" and reweighted.full_dataset is None:
        loop, result, rows = search_with_outliers(
            loop, lambda: _generators(prepared.loaded, options)[0], options.steps, first, result
        )
        reweighted = without_outliers(reweighted, rows)
        problem = replace(problem, loss=reweighted.loss)
    elif result is None:
        result = loop.run(options.steps, float("inf"), first)
    if options.generators and set(prepared.generators) <= loop.failed:
        raise PluginError("; ".join(result.warnings))
    if reweighted.full_dataset is not None and loop.best is not None:
        reweighted = put_back(reweighted, loop.best.candidate.expression)
        dataset = reweighted.dataset
        split = split_rows(dataset, options.seed)
    if loop.cancelled():
        control.limit.end_within(AFTER_STOP)
    warnings = (
        *prepared.warnings,
        *result.warnings,
        *result.archive.faults,
        *prepared.loaded.faults,
    )
    return Found(dataset, problem, reweighted, split, loop, result, warnings, options.seed)


def _noise_is_unknown(prepared: PreparedSearch, options: SolveOptions) -> bool:
    dataset, model = prepared.dataset, options.noise_model
    if dataset.weights is not None or prepared.reweighted.full_dataset is not None:
        return False
    if prepared.problem.loss != "squared" or options.loss == "squared":
        return False
    return model == "mixed" or (model == "auto" and (is_wide(dataset.target) or dataset.rows >= ENOUGH_ROWS))


def _pauses(
    options: SolveOptions, control: RunControl
) -> Callable[[float, Callable[[], int]], Callable[[], bool]]:
    """Makes functions that say whether a share of the budget is spent."""
    steps, begun, end = options.steps, control.clock(), control.limit.search_until

    def pause(share: float, spent: Callable[[], int]) -> Callable[[], bool]:
        until = begun + share * (end - begun) if end < float("inf") else end
        most = float("inf") if steps is None else share * steps
        return lambda: spent() >= most or control.clock() >= until

    return pause


def _search_with_input_errors(
    prepared: PreparedSearch, first: Sequence[Candidate], options: SolveOptions, control: RunControl
) -> tuple[PreparedSearch, SearchLoop, SearchResult]:
    """Search, and go on with the effective variances of the best law; returns the search to be continued."""
    loop, pause = _loop(prepared, options, control), _pauses(options, control)
    over = pause(noise_inference.POLICY.first_share, lambda: loop.spent)
    result = loop.run(options.steps, float("inf"), first, over)
    dataset, best = prepared.dataset, loop.best
    if best is None or dataset.input_errors is None or loop.cancelled():
        return prepared, loop, result
    fit = effective_fit(
        best.candidate.expression,
        dataset.inputs,
        dataset.target,
        dataset.input_errors,
        dataset.stated_errors,
    )
    if fit is None:
        return prepared, loop, result
    table = _weighted(prepared, weights_of(np.sqrt(fit.variance)), options)
    chosen = _loop(table, options, control)
    known = [Candidate(fit.expression, best.candidate.generator, best.candidate.derivation)]
    known += [entry.candidate for entry in loop.archive.front()]
    left = None if options.steps is None else max(1, options.steps - loop.spent)
    return table, chosen, chosen.run(left, float("inf"), known)


def _search_with_noise_models(
    prepared: PreparedSearch, first: Sequence[Candidate], options: SolveOptions, control: RunControl
) -> tuple[PreparedSearch, SearchLoop, SearchResult]:
    """Search with equal weights and, where it matters, with those of relative errors; choose the noise model.

    Returns the search to be continued, with its weights and its loss in the prepared table.
    """
    steps, pause = options.steps, _pauses(options, control)
    shares, target = noise_inference.POLICY, prepared.dataset.target
    loops: list[SearchLoop] = []

    def weighted(earlier_steps: int = 0) -> SearchLoop:
        table = _weighted(prepared, relative_weights(target), options)
        return _loop(table, options, control, earlier_steps)

    if spans_decades(target):
        # Equal weights would follow the few largest values only.
        early = weighted()
        over = pause(shares.early_share, lambda: early.spent)
        result = early.run(steps, float("inf"), first, lambda: over() or early.spent >= shares.early_steps)
        first = [entry.candidate for entry in early.archive.front()]
        loops.append(early)
    before = sum(one.spent for one in loops)
    loop = _loop(prepared, options, control, before)
    if not (loops and result.settled and grows_surely(loops[0])):
        result = loop.run(steps, float("inf"), first, pause(shares.first_share, lambda: loop.spent + before))
        if (loop.exact and loop.meets_digits) or loop.cancelled():
            return prepared, loop, result
        wide = options.noise_model == "mixed" or (is_wide(target) and needs_other_search(loop))
        if wide and not loops:
            late = weighted(loop.spent)
            known = [entry.candidate for entry in loop.archive.front()]
            over = pause(shares.second_share, lambda: loop.spent + late.spent)
            late.run(steps, float("inf"), known, over)
            loops.append(late)
        loops.insert(0, loop)
    law = decided_law(loops, options.noise_model)
    if law is None:
        return prepared, loop, result
    with np.errstate(all="ignore"):
        weights = law.model.weights(evaluate(law.expression, prepared.dataset.inputs))
    table = _weighted(prepared, None if law.model.kind == "robust" else weights, options)
    reweighted = with_noise_model(table.reweighted, law.model, law.advantage)
    table = replace(table, reweighted=reweighted, problem=replace(table.problem, loss=reweighted.loss))
    # Formulas of all searches are judged with the weights of the chosen model, by the prediction of its law.
    spent = sum(one.spent for one in loops)
    chosen = _loop(table, options, control, spent)
    left = None if steps is None else max(1, steps - spent)
    known = [entry.candidate for one in loops for entry in one.archive.front()]
    return table, chosen, chosen.run(left, float("inf"), known)


def _weighted(prepared: PreparedSearch, weights: FloatArray | None, options: SolveOptions) -> PreparedSearch:
    """The same search with other weights, and new instances of the generators."""
    dataset = replace(prepared.dataset, weights=weights)
    return replace(
        prepared,
        dataset=dataset,
        reweighted=replace(prepared.reweighted, dataset=dataset),
        generators=_generators(prepared.loaded, options)[0],
    )


def on_rows(problem: Problem, dataset: Dataset, rows: IndexArray) -> Problem:
    """The same rules on other rows of the table."""
    weights = None
    if dataset.weights is not None:
        weights = dataset.weights[rows]
        weights = weights / weights.mean()
    errors = dataset.stated_errors
    return replace(
        problem,
        inputs=dataset.inputs[rows],
        target=dataset.target[rows],
        weights=weights,
        sigma=None if errors is None else mean_error(errors[rows]),
    )


def _generators(loaded: Plugins, options: SolveOptions) -> tuple[dict[str, Generator], tuple[str, ...]]:
    return build_generators(options.generators, loaded, attention=options.attention, device=options.device)


def _loop(
    prepared: PreparedSearch, options: SolveOptions, control: RunControl, earlier_steps: int = 0
) -> SearchLoop:
    dataset, problem, split = prepared.dataset, prepared.problem, prepared.split
    search_problem = replace(on_rows(problem, dataset, split.search), exact_tried=earlier_steps > 0)
    if split.fit.size > split.search.size:
        search_problem = replace(search_problem, full_problem=on_rows(problem, dataset, split.fit))

    def named(role: str) -> Collection[str]:
        return [spec.name for spec in prepared.specs if spec.role == role]

    settings = SearchSettings(
        # Generators that the user has named do not wait.
        deferred=named("deferred") if options.generators is None else (),
        refiners=named("refiner"),
        specs=prepared.specs,
        tolerance=decimal_precision(search_problem.target),
        limit=control.limit,
        cancelled=control.cancelled,
        on_better=Reporter(dataset, control),
        workers=control.workers,
        clock=control.clock,
        earlier_steps=earlier_steps,
    )
    return SearchLoop(search_problem, prepared.generators, settings)


def _used_up(seconds: float, time_limit: float, rows: int) -> str:
    # On a few rows it is the start of the program that took long, on a machine with much else to do.
    what, faster = (
        ("reading the table", ", or a Parquet file, which is read faster")
        if rows >= LARGE_TABLE
        else ("the start of the program", "")
    )
    return (
        f"{what} took {seconds:.1f} s of the {time_limit:g} s given, so there was hardly any search: "
        f"give more time (--time){faster}"
    )
