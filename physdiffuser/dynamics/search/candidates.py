"""Candidate right-hand sides of one state: sums of library terms, and formulas of the search."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.core.archive import Entry
from physdiffuser.data.dataset import Column, Dataset
from physdiffuser.dynamics.schedule import Period
from physdiffuser.dynamics.search.form_code import form_nats
from physdiffuser.dynamics.search.rational import rational_sums
from physdiffuser.dynamics.search.sense import is_sensible
from physdiffuser.dynamics.search.shapes import FittedSum, shaped_sums
from physdiffuser.dynamics.search.terms import library, products, sparse_sums
from physdiffuser.dynamics.search.weak import NODES, WeakForm
from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.dynamics.trajectories.smoothing import Curve
from physdiffuser.dynamics.trajectories.units import RateUnits
from physdiffuser.expressions import Expression, Parameter, Variable, complexity
from physdiffuser.expressions.tree import Apply, bind, free_constants, mul, substitute
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.options import SolveOptions
from physdiffuser.selection.description_length import DescriptionLength


@dataclass(frozen=True)
class CandidatePolicy:
    """Which right-hand sides are compared on the trajectories.

    Set on the development systems (docs/dynamics.md).
    """

    max_candidates: int = 24
    max_usual: int = 8
    """Candidates of a state that are compared, and sums of products of at most two variables, as of mass
    action, among them beside the best of all."""
    max_constants: int = 8
    """Constants of a candidate."""
    solved: float = 1e-13
    few_terms: int = 4
    """Mean squared residual, relative to the variance of the rate, of a sum that explains noise-free rates,
    and the terms of a short one."""
    sampled: int = 300
    """Places along the trajectories at which the parts of formulas are compared."""
    rows: int = 400
    ranked: int = 60
    """Rows of the table of rates that the search of `solve` is given, and formulas of its archive that are
    taken."""


POLICY = CandidatePolicy()


@dataclass(frozen=True, eq=False)
class Candidate:
    """A right-hand side of one state.

    Attributes
    ----------
    skeleton, parameters
        The formula and its constants.
    loss
        Mean squared residual of the weak form, in standard errors.
    length
        Nats to describe the weak form by it.
    source
        `terms` or the name of the generator.
    """

    skeleton: Expression
    parameters: FloatArray
    loss: float
    length: float
    source: str

    @property
    def expression(self) -> Expression:
        """With the constants in place."""
        return bind(self.skeleton, list(self.parameters))


@dataclass(frozen=True, eq=False)
class Preparation:
    """What all states share.

    Attributes
    ----------
    table
        The runs that are fitted.
    curves
        Of each run, one curve for each state.
    weak
        The weak form.
    exact
        Whether the states have no noise.
    columns
        Positions of the variables that formulas may hold.
    """

    table: Trajectories
    curves: list[list[Curve]]
    weak: WeakForm
    exact: bool
    columns: tuple[int, ...]

    @cached_property
    def units(self) -> RateUnits:
        """Which right-hand sides balance."""
        return RateUnits(self.table)

    @cached_property
    def sample(self) -> FloatArray:
        """Some of the nodes of the weak form, shape (rows, variables)."""
        nodes = self.weak.nodes
        return nodes[:: max(nodes.shape[0] // POLICY.sampled, 1)]

    def makes_sense(self, expression: Expression) -> bool:
        """Whether every part of a right-hand side matters somewhere along the trajectories."""
        return is_sensible(expression, self.sample)

    @property
    def measure(self) -> DescriptionLength:
        """Descriptions of the weak form; windows overlap, so rows are counted by their steps."""
        rows = self.weak.windows if self.exact else max(self.weak.windows // 2, 8)
        return DescriptionLength(rows, len(self.columns), POLICY.solved if self.exact else 1e-12)

    def slopes(self, state: int) -> FloatArray:
        """Rates of change of a state at the nodes of the weak form, from the curves, shape (nodes,)."""
        times, begin = self.weak.nodes[:, -1], 0
        rates = np.empty(times.size)
        for run, own in zip(self.table.runs, self.curves, strict=True):
            end = begin + NODES * (run.points - 1)
            rates[begin:end] = own[state].value(times[begin:end], 1)
            begin = end
        return rates


def candidates(
    prepared: Preparation, state: int, options: SolveOptions | None, period: Period
) -> list[Candidate]:
    """Candidates for the rate of one state, the shortest description first.

    Parameters
    ----------
    options
        Of the search for formulas, which has what is left of the period; without them sums of terms alone.
    period
        The time for all of it. Sums of terms are found in any case.
    """
    table = prepared.table
    if table.order == 2 and state < table.measured:
        return [Candidate(Variable(table.measured + state), np.zeros(0), 0.0, 0.0, "definition")]
    found = list(term_candidates(prepared, state))
    few = any(one.loss < POLICY.solved and one.parameters.size <= POLICY.few_terms for one in found)
    solved = options is None or (prepared.exact and few)
    if not (solved or period.is_over()):
        slopes = prepared.slopes(state)
        found += [
            scored(prepared, state, one.skeleton, one.parameters, "quotients", one.loss)
            for one in until(rational_sums(prepared.weak, state, prepared.columns, slopes), period.part(0.3))
        ]
        solved = prepared.exact and any(one.loss < POLICY.solved for one in found)
    if not (solved or period.is_over()):
        time = len(table.names) - 1
        allowed = time if time in prepared.columns else None
        found += [
            scored(prepared, state, shaped.skeleton, shaped.parameters, "functions", shaped.loss)
            for shaped in until(
                shaped_sums(prepared.weak, state, prepared.columns, allowed, period.is_over), period.part(0.6)
            )
        ]
        solved = prepared.exact and any(one.loss < POLICY.solved for one in found)
    if not (solved or period.is_over()) and options is not None:
        found += search_candidates(prepared, state, replace(options, time=period.left))
    found = [one for one in found if prepared.units.balances(one.skeleton, state)]
    # Of few or noisy points many sums fit the smoothed rates; the usual ones are judged by the trajectories.
    usual = ranked(term_candidates(prepared, state, order=2), POLICY.max_usual)
    best, first = ranked(found), 3 if prepared.exact else POLICY.max_candidates // 3
    known = {one.skeleton for one in best[:first]}
    usual = [one for one in usual if one.skeleton not in known]
    return [*best[:first], *usual, *best[first:]]


def until(found: Iterable[FittedSum], period: Period) -> Iterator[FittedSum]:
    """What is found before the end of a period."""
    for one in found:
        yield one
        if period.is_over():
            return


def ranked(found: Iterable[Candidate], most: int = POLICY.max_candidates) -> list[Candidate]:
    """The shortest descriptions, each form once."""
    chosen: list[Candidate] = []
    seen: set[tuple[int, float]] = set()
    for one in sorted(found, key=lambda one: one.length):
        key = (one.parameters.size, float(f"{one.loss:.4g}"))
        if not math.isfinite(one.length) or key in seen:
            continue
        seen.add(key)
        chosen.append(one)
        if len(chosen) == most:
            break
    return chosen


def term_candidates(prepared: Preparation, state: int, order: int | None = None) -> Iterable[Candidate]:
    """Sums of library terms; of products of at most `order` variables alone where that is given."""
    weak, columns = prepared.weak, prepared.columns
    states = len(prepared.table.states)
    names = dict(enumerate(columns))
    every = (
        library(len(columns), states, prepared.table.measured)
        if order is None
        else products(len(columns), order)
    )
    terms = [renumbered(term, names) for term in every]
    terms = [term for term in terms if prepared.units.balances(mul(Parameter(0), term), state)]
    for one in sparse_sums(weak, state, terms):
        yield scored(prepared, state, one.skeleton, one.parameters, "terms", one.loss)


def renumbered(expression: Expression, places: dict[int, int]) -> Expression:
    """The formula with its variables at other positions."""

    def replace_one(node: Expression) -> Expression | None:
        return Variable(places[node.index]) if isinstance(node, Variable) else None

    return substitute(expression, replace_one)


def scored(
    prepared: Preparation,
    state: int,
    skeleton: Expression,
    parameters: FloatArray,
    source: str,
    loss: float | None = None,
) -> Candidate:
    """A candidate with its constants fitted to the weak form, unless its loss is known already."""
    weak, measure = prepared.weak, prepared.measure
    if loss is None:
        parameters, loss = weak.fit(skeleton, parameters, state)
    nats = form_nats(skeleton, len(prepared.columns))
    if not prepared.makes_sense(bind(skeleton, list(parameters))):
        nats = math.inf
    return Candidate(skeleton, parameters, loss, measure.total(nats, parameters.size, loss), source)


def search_candidates(prepared: Preparation, state: int, options: SolveOptions) -> list[Candidate]:
    """Formulas that the search finds for the smoothed derivative."""
    dataset = derivative_table(prepared, state)
    if float(np.ptp(dataset.target)) == 0.0:
        return []
    found: list[Candidate] = []
    places = dict(enumerate(prepared.columns))
    for entry in _searched(dataset, options):
        free = with_freed_constants(entry.candidate.expression)
        skeleton, values = free_constants(free)
        if len(values) > POLICY.max_constants or complexity(skeleton) > options.max_complexity:
            continue
        skeleton = renumbered(skeleton, places)
        one = scored(prepared, state, skeleton, np.array(values), entry.candidate.generator)
        found.append(one)
        if not values and isinstance(skeleton, Apply):
            # `x*(1 - x)` may want a constant in front that is 1 within the errors of the derivative.
            found.append(
                scored(prepared, state, mul(Parameter(0), skeleton), np.ones(1), entry.candidate.generator)
            )
    return found


def derivative_table(prepared: Preparation, state: int) -> Dataset:
    """Smoothed states, inputs and time as inputs, the smoothed derivative as target."""
    table = prepared.table
    inputs, targets, errors = [], [], []
    for run, curves in zip(table.runs, prepared.curves, strict=True):
        times = run.times[spread_places(run.times.size, max(POLICY.rows // len(table.runs), 20))]
        states = [curve.value(times) for curve in curves]
        driving = [np.interp(times, run.times, run.inputs[:, index]) for index in range(run.inputs.shape[1])]
        inputs.append(np.column_stack([*states, *driving, times]))
        targets.append(curves[state].value(times, 1))
        errors.append(curves[state].error(times, 1))
    matrix, target = np.concatenate(inputs), np.concatenate(targets)
    error = np.concatenate(errors)
    spread = float(target.std()) or 1.0
    weights = 1.0 / (error**2 + (1e-8 * spread if prepared.exact else 0.05 * float(np.median(error))) ** 2)
    columns = (*table.states, *table.inputs, table.time)
    name = f"d{table.states[state].alias}_dt"
    unit, time = table.states[state].unit, table.time.unit
    return Dataset(
        matrix[:, list(prepared.columns)],
        target,
        tuple(columns[place] for place in prepared.columns),
        Column(name, name, None if unit is None or time is None else unit / time),
        weights / weights.mean(),
        source=table.source,
    )


def _searched(dataset: Dataset, options: SolveOptions) -> Sequence[Entry]:
    """What is in the archive after the search, without final constants."""
    import time

    from threadpoolctl import threadpool_limits

    from physdiffuser.search.run_control import RunControl
    from physdiffuser.search.table_search import pose_table, prepare, search_table
    from physdiffuser.search.timing import TimeLimit

    started = time.monotonic()
    control = RunControl(TimeLimit(options.time_limit, started, 0.0), started)
    posed = pose_table(dataset, replace(options, noise_model="constant", loss="squared"), control)
    with threadpool_limits(limits=1, user_api="blas"):
        found = search_table(prepare(posed, options, control), options, control)
    archive = found.result.archive
    front, near = archive.front(), archive.near()
    known = {entry.candidate.expression for entry in front}
    return [*front, *(entry for entry in near if entry.candidate.expression not in known)][: POLICY.ranked]
