"""Attempts with equations of first and second order, without and with the time in them; one is chosen."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from physdiffuser.dynamics.options import DynamicsOptions
from physdiffuser.dynamics.schedule import POLICY as SCHEDULE
from physdiffuser.dynamics.schedule import Period
from physdiffuser.dynamics.search.candidates import Candidate, Preparation
from physdiffuser.dynamics.search.choice import Choice, Rival, Shortlist, shortlist
from physdiffuser.dynamics.search.coarse import has_exact_values, may_be_exact, system_of_exact_values
from physdiffuser.dynamics.search.constants import parameter_errors, with_exact_constants
from physdiffuser.dynamics.search.selection import POLICY as SELECTION
from physdiffuser.dynamics.search.selection import Fitted, Selector
from physdiffuser.dynamics.search.weak import weak_form
from physdiffuser.dynamics.trajectories.runs import Division, Trajectories, divide
from physdiffuser.dynamics.trajectories.smoothing import Curve, interpolated, smooth_all
from physdiffuser.dynamics.verification.simulation import Simulation, simulate_all
from physdiffuser.dynamics.verification.verdict import POLICY as VERDICT
from physdiffuser.dynamics.verification.verdict import (
    SystemVerdict,
    judge_system,
    leaves_only_noise,
    with_check,
)
from physdiffuser.errors import NothingFoundError
from physdiffuser.expressions import Variable
from physdiffuser.options import SolveOptions
from physdiffuser.search.parallel.workers import ForkedWorkers

DECISIVE = 20.0
"""Nats by which equations of second order must describe trajectories better that neither order explains."""

MIN_TIME = 0.4
"""Share of the time of the first attempt that another one takes at least."""

Selected = tuple[Preparation, list[list[Candidate]], Selector, Fitted, list[Rival]]
"""What was prepared, candidates of each state, what fitted the best system, that system and its rivals."""


@dataclass(frozen=True)
class Plan:
    """Order of the equations, whether the time may stand in them, and whether only sums are tried."""

    order: int
    explicit_time: bool
    only_sums: bool = False


@dataclass(frozen=True, eq=False)
class Attempt:
    """The best system of one plan.

    Attributes
    ----------
    plan
        What was tried.
    table, everything
        All rows, with derivatives as states for equations of second order, and what was prepared from them.
    division, selector
        What was fitted.
    found, rivals
        Candidates of each state, and those that take part in other systems.
    fitted, exact
        The system before and after constants were set to special values.
    simulation, judged
        The checks.
    seconds
        How long it took.
    """

    plan: Plan
    table: Trajectories
    everything: Preparation
    division: Division
    selector: Selector
    found: Sequence[Sequence[Candidate]]
    rivals: Sequence[Rival]
    fitted: Fitted
    exact: Fitted
    simulation: Simulation
    judged: SystemVerdict
    seconds: float

    @property
    def explains(self) -> bool:
        """Whether the fitted rows are met within the noise."""
        return leaves_only_noise(self.fitted, self.selector.prepared.exact)

    @property
    def predicts(self) -> bool:
        """Whether the held-out rows are met as well, as far as there are any."""
        agrees = self.simulation.agrees
        known = agrees is not None or not self.plan.explicit_time
        return self.explains and known and agrees is not False and not self.simulation.diverged

    @property
    def is_refuted(self) -> bool:
        """Whether held-out rows are missed that have neither noise nor chaos."""
        simulation = self.simulation
        missed = simulation.diverged or simulation.agrees is False
        return missed and self.selector.prepared.exact and simulation.horizon is None

    def nats(self) -> float:
        """Description length of the trajectories in short segments, comparable between orders."""
        selector, best = self.selector, self.fitted
        short = selector.fit(
            best.skeletons,
            best.parts(),
            min(SELECTION.short, selector.longest),
            best.substeps,
            tolerance=1e-3,
        )
        if not math.isfinite(short.fit.chi_square):
            return math.inf
        squares, counts = short.fit.squares()
        rows = int(np.isfinite(np.concatenate([run.states for run in selector.prepared.table.runs])).sum())
        starts = 0 if selector.segments(short.intervals).fixed else short.fit.initial.size
        left = max(float(counts.sum()) - starts - short.fit.parameters.size, 1.0)
        formulas = selector.length(best.skeletons, short.fit) - selector.left(short.fit)
        return 0.5 * rows * math.log(max(float(squares.sum()) / left, 1e-8)) + formulas

    def nats_below(self, other: Attempt) -> float:
        """By how much this description of whole runs is shorter than another one."""
        own, others = self.whole_nats, other.whole_nats
        return others - own if math.isfinite(own) else -math.inf

    @cached_property
    def whole_nats(self) -> float:
        """Description length of the trajectories in whole runs, with their initial states."""
        fitted = self.exact
        if fitted.intervals < self.selector.longest:
            fitted = self.selector.fit(
                fitted.skeletons, fitted.parts(), self.selector.longest, fitted.substeps
            )
        values = max(float(fitted.fit.squares()[1].sum()), 2.0)
        return fitted.length + 0.5 * math.log(values) * fitted.fit.initial.size


def plans(order: int | str) -> list[Plan]:
    """What is tried, in this order: the time comes in only where nothing else explains the trajectories."""
    orders = (1, 2) if order == "auto" else (int(order),)
    return [Plan(one, explicit) for explicit in (False, True) for one in orders]


def best_attempt(
    table: Trajectories, options: DynamicsOptions, period: Period, workers: ForkedWorkers | None = None
) -> Attempt:
    """The first plan that explains the trajectories, or the one that describes them best.

    Raises
    ------
    NothingFoundError
        If no plan gives a system of finite equations that follows the trajectories.
    """
    tried: list[Attempt] = []
    failure: NothingFoundError | None = None
    every = plans(options.order)
    for number, plan in enumerate(every):
        if tried and not _has_time(period, tried[0]):
            break
        # Half of the time that is left is for the plans that follow.
        share = 1.0 if number == len(every) - 1 else 0.5
        try:
            attempt = attempted(table, options, plan, period.of_rest(share), workers)
        except NothingFoundError as error:
            failure = failure or error
            continue
        attempt.selector.stop = period.is_over
        margin = DECISIVE if plan.explicit_time else 0.0
        enough = plan == every[0] and attempt.explains and not attempt.is_refuted
        alone = not tried or (tried[0].is_refuted and not plan.explicit_time)
        if enough or (attempt.predicts and (alone or attempt.nats_below(tried[0]) > margin)):
            return _beside_second_order(attempt, table, options, period, workers)
        tried.append(attempt)
    autonomous = [one for one in tried if not one.plan.explicit_time] or tried[:1]
    if not autonomous:
        raise failure or NothingFoundError("no system of equations follows the trajectories.")
    first = autonomous[0]
    if len(autonomous) > 1 and _is_better(autonomous[1], first):
        return autonomous[1]
    return first


def _beside_second_order(
    attempt: Attempt,
    table: Trajectories,
    options: DynamicsOptions,
    period: Period,
    workers: ForkedWorkers | None,
) -> Attempt:
    """A system of first order that is not proven, or the one of second order that is, or is far better.

    Along one orbit the velocities may be functions of the positions, in equations that hold nowhere else.
    Such forces are sums of terms nearly always, so that these alone are tried first.
    """
    first = attempt.plan == Plan(1, False) and options.order == "auto"
    exact = attempt.selector.prepared.exact
    if not first or (exact and attempt.judged.verdict == "verified"):
        return attempt
    no_time = "there was no time to compare with equations of second order"
    if table.has_several_orbits or any(
        isinstance(expression, Variable) for expression in attempt.exact.expressions
    ):
        return attempt  # a velocity was measured as well
    if not _has_time(period, attempt):
        return replace(attempt, judged=with_check(attempt.judged, False, no_time))
    try:
        second = attempted(table, options, Plan(2, False, only_sums=True), period.part(1.0), workers)
        if second.explains and second.nats_below(attempt) > -VERDICT.min_gap:
            second = attempted(table, options, Plan(2, False), period.part(1.0), workers)
    except NothingFoundError:
        return attempt
    gap = -second.nats_below(attempt) if second.explains else math.inf
    no_worse = second.simulation.square <= attempt.simulation.square
    if second.predicts and no_worse and gap < -DECISIVE:
        return second
    if exact and second.judged.verdict == "verified":
        return second
    close = "equations of second order describe the trajectories nearly as well"
    apart = "no equations of second order describe the trajectories nearly as well"
    holds = not gap < VERDICT.min_gap
    if period.is_over():
        holds, close = False, no_time
    return replace(attempt, judged=with_check(attempt.judged, holds, apart if holds else close))


def _has_time(period: Period, before: Attempt) -> bool:
    """Whether there is time for another attempt: those parts that cannot be cut short take about as long."""
    return period.left is None or period.left > MIN_TIME * before.seconds


def _is_better(second: Attempt, first: Attempt) -> bool:
    """Whether a description is shorter by far, and the simulation of the held-out rows no worse."""
    missed = [one.simulation.square for one in (second, first)]
    if not missed[0] <= missed[1] and not math.isnan(missed[1]):
        return False
    # A simulation that misses the rows by more than their mean does is no description to hold on to.
    follows = bool((first.simulation.r2_fitted > 0.0).all())
    return second.nats() < first.nats() - (DECISIVE if follows else 0.0)


def attempted(
    table: Trajectories,
    options: DynamicsOptions,
    plan: Plan,
    period: Period,
    workers: ForkedWorkers | None = None,
) -> Attempt:
    """Search, selection, exact constants and checks for one plan."""
    started = clock.monotonic()
    if plan.order == 2:
        table = table.second_order()
    division = divide(table)
    prepared, found, selector, best, rivals = _selected(
        division.fitted, options, plan, period.part(SCHEDULE.searched), workers
    )
    if not np.isfinite(best.length):
        raise NothingFoundError(
            "no system of equations follows the trajectories. Give more time (--time) or steps (--steps), "
            "or check that the states are all that the system depends on."
        )
    selector.stop = period.part(SCHEDULE.exact).is_over
    exact = with_exact_constants(selector, best)
    selector.stop = period.is_over
    everything = prepare(table, options, plan.explicit_time, prepared.exact)
    simulation = simulate_all(table, division, selector, exact, everything.curves, options.seed)
    errors = parameter_errors(selector, exact)
    judged = judge_system(exact, simulation, [gap for _, _, gap in rivals], prepared.exact, errors)
    return Attempt(
        plan,
        table,
        everything,
        division,
        selector,
        found,
        rivals,
        best,
        exact,
        simulation,
        judged,
        clock.monotonic() - started,
    )


def _selected(
    rows: Trajectories,
    options: DynamicsOptions,
    plan: Plan,
    period: Period,
    workers: ForkedWorkers | None,
) -> Selected:
    """The best system for the rows, its rivals, and the candidates it was chosen from."""
    prepared = prepare(rows, options, plan.explicit_time)
    if may_be_exact(prepared):
        exact = prepare(rows, options, plan.explicit_time, exact=True)
        selected = _by_exact_values(Selector(exact, period.is_over))
        if selected is not None:
            return selected
    search = None if plan.only_sums else options.search()
    shortlists = _all_candidates(prepared, search, period.part(SCHEDULE.candidates), workers)
    found = [list(one.found) for one in shortlists]
    selector = Selector(prepared, period.is_over)
    best, rivals = Choice(selector).choose(shortlists)
    best = selector.lengthened(best)
    if has_exact_values(prepared) and not leaves_only_noise(best, exact=True):
        selected = _by_exact_values(selector)
        if selected is not None:
            return selected
    return prepared, found, selector, best, rivals


def _by_exact_values(selector: Selector) -> Selected | None:
    """The system that meets all values as they are, if sums of terms lead to one."""
    system = system_of_exact_values(selector, VERDICT.exact_fit)
    if system is None:
        return None
    beam, rivals = system
    return selector.prepared, beam.lists, selector, beam.best, rivals


def prepare(
    table: Trajectories, options: DynamicsOptions, explicit_time: bool = False, exact: bool = False
) -> Preparation:
    """Smooth the states (interpolate them where they are known to be exact), and set up the weak form."""
    by_state: list[list[Curve]] = []
    for state in range(table.measured):
        series = []
        for run in table.runs:
            known = np.isfinite(run.states[:, state])
            series.append((run.times[known], run.states[known, state]))
        by_state.append(
            [interpolated(*one) for one in series] if exact else smooth_all(series, options.noise_model)
        )
    if table.order == 2:
        by_state += [[curve.derivative() for curve in own] for own in by_state]
    curves = [[own[number] for own in by_state] for number in range(len(table.runs))]
    exact = all(curve.interpolates for own in by_state for curve in own)
    columns = tuple(range(len(table.names) - (0 if explicit_time else 1)))
    return Preparation(table, curves, weak_form(table, curves, exact), exact, columns)


def _all_candidates(
    prepared: Preparation, search: SolveOptions | None, period: Period, workers: ForkedWorkers | None
) -> list[Shortlist]:
    """Candidates for every state, each in an equal share of the period, in as many processes as there are."""
    count = len(prepared.table.states)
    rounds = math.ceil(count / workers.processes) if workers is not None else count
    at_once = math.ceil(count / rounds)
    every = [(prepared, state, search, period.share(state // at_once, rounds)) for state in range(count)]
    shortlists = (
        [shortlist(*arguments) for arguments in every]
        if workers is None or count == 1
        else workers.map(shortlist, every)
    )
    for own, column in zip(shortlists, prepared.table.states, strict=True):
        if not own.found:
            text = f"no equation with finite values was found for '{column.shown}'. Give more time."
            raise NothingFoundError(text)
    return shortlists
