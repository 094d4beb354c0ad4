"""Systems fitted to trajectories, and the description length of these by them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.flow import System
from physdiffuser.dynamics.integration.segments import cut, value_errors
from physdiffuser.dynamics.integration.shooting import (
    RANKING_TOLERANCE,
    TOLERANCE,
    Segments,
    ShootingFit,
    fit_segments,
    joined,
)
from physdiffuser.dynamics.schedule import Stop, never
from physdiffuser.dynamics.search.candidates import Candidate, Preparation, renumbered
from physdiffuser.dynamics.search.form_code import system_nats
from physdiffuser.expressions import Expression, Variable
from physdiffuser.expressions.tree import bind, parameter_count, with_parameters
from physdiffuser.selection.description_length import DescriptionLength


@dataclass(frozen=True)
class SelectionPolicy:
    """How systems of equations are compared on the trajectories.

    Set on the development systems (docs/dynamics.md).
    """

    driven: int = 24
    continued: int = 12
    """Candidates of a state that are fitted on its own trajectory, driven by the smoothed others, and the
    best of them, whose fits are continued."""
    first_iterations: int = 2
    further_iterations: int = 6
    """Steps of the first fit and of its continuation."""
    short: int = 12
    medium: int = 24
    exact_second: int = 8
    max_intervals: int = 1_000
    """Intervals of the segments in the first fits, of exact values of second order, and of the longest
    segments: integration is one step after the other."""
    max_substeps: int = 16
    noisy_substeps: int = 4
    """Most steps of integration between two times, without and with noise."""
    settled: float = 0.5
    """Nats by which finer steps may change the description of noisy trajectories that need none."""
    worse: float = 2.0
    """Longer segments are kept while the mean square residual stays below so many times that of shorter
    ones."""
    min_square: float = 1e4
    """Floor of mean squares in units of the errors of exact values: that of computed tables."""


POLICY = SelectionPolicy()


@dataclass(frozen=True, eq=False)
class Fitted:
    """A system fitted jointly on trajectories.

    Attributes
    ----------
    skeletons
        One for each state, each with parameters numbered from 0.
    fit
        All parameters, one equation after the other.
    length
        Nats to describe the trajectories by it.
    intervals
        Length of the segments of the fit.
    substeps
        Integration steps between two times.
    """

    skeletons: tuple[Expression, ...]
    fit: ShootingFit
    length: float
    intervals: int
    substeps: int

    def parts(self) -> list[FloatArray]:
        """Parameters of each equation."""
        counts = [parameter_count(skeleton) for skeleton in self.skeletons]
        return np.split(self.fit.parameters, np.cumsum(counts)[:-1])

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The equations with their numbers."""
        return tuple(bind(s, list(p)) for s, p in zip(self.skeletons, self.parts(), strict=True))


def as_system(skeletons: Sequence[Expression], inputs: int) -> System:
    """One system of several equations; parameters are numbered through."""
    equations, offset = [], 0
    for skeleton in skeletons:
        count = parameter_count(skeleton)
        equations.append(with_parameters(skeleton, range(offset, offset + count)))
        offset += count
    return System(tuple(equations), inputs)


Driven = tuple[float, Candidate, ShootingFit]
"""Description length, candidate and fit of one state, driven by the others."""


class Selector:
    """Fits systems and compares them.

    Parameters
    ----------
    prepared
        Curves and weak form.
    stop
        Asked between fits whether to end with what there is.
    """

    def __init__(self, prepared: Preparation, stop: Stop) -> None:
        self.prepared, self.stop = prepared, stop
        table = prepared.table
        self.errors = value_errors(table, prepared.curves, prepared.exact)
        self.longest = min(max(run.points for run in table.runs) - 1, POLICY.max_intervals)
        self._pieces: dict[tuple[int, tuple[int, ...] | None], Segments] = {}

    def segments(self, intervals: int, driven: tuple[int, ...] | None = None) -> Segments:
        """Segments of a length, made once."""
        key = (intervals, driven)
        if key not in self._pieces:
            self._pieces[key] = cut(
                self.prepared.table,
                self.prepared.curves,
                self.errors,
                intervals,
                fixed=self.prepared.exact and self.prepared.table.order == 1,
                driven=driven,
            )
        return self._pieces[key]

    @property
    def floor(self) -> float:
        """Least mean square that descriptions tell apart."""
        return POLICY.min_square if self.prepared.exact else 1e-8

    @property
    def first(self) -> int:
        """Intervals of the segments in first fits."""
        if self.prepared.exact:
            # The derivative at the first point has to be fitted where it is not measured.
            return 1 if self.prepared.table.order == 1 else min(POLICY.exact_second, self.longest)
        # Curvature shows over longer times than slope.
        return min(POLICY.short * self.prepared.table.order, self.longest)

    def by_trajectory(self, state: int, found: Sequence[Candidate]) -> list[tuple[float, Candidate]]:
        """Candidates of a state by the description length of its trajectory, driven by the others."""
        table = self.prepared.table
        states, inputs = len(table.states), len(table.inputs)
        # A state of second order moves together with its derivative.
        own = (state,) if table.order == 1 else (state - table.measured, state)
        others = [other for other in range(states) if other not in own]
        places = {one: place for place, one in enumerate((*own, *others))}
        places |= {place: place for place in range(states, states + inputs + 1)}
        segments = self.segments(min(POLICY.medium * table.order, self.longest), own)

        scored: list[Driven] = []

        def fitted(one: Candidate, start: FloatArray, initial: FloatArray | None, iterations: int) -> Driven:
            skeleton = renumbered(one.skeleton, places)
            equations = (skeleton,) if table.order == 1 else (Variable(1), skeleton)
            system = System(equations, len(others) + inputs)
            fit = fit_segments(
                system,
                start,
                segments,
                iterations=iterations,
                initial=initial,
                tolerance=RANKING_TOLERANCE,
                stop=self.stop if scored else never,
            )
            return self.length((one.skeleton,), fit), one, fit

        for one in found[: POLICY.driven]:
            if self.stop() and scored:
                break
            scored.append(fitted(one, one.parameters, None, POLICY.first_iterations))
        scored.sort(key=lambda row: row[0])
        for place, (_, one, fit) in enumerate(scored[: POLICY.continued]):
            if self.stop():
                break
            if fit.converged:
                continue
            further = fitted(one, fit.parameters, fit.initial, POLICY.further_iterations)
            scored[place] = further if math.isfinite(further[0]) else scored[place]
        return sorted(((length, one) for length, one, _ in scored), key=lambda pair: pair[0])

    def fit(
        self,
        skeletons: Sequence[Expression],
        parameters: Sequence[FloatArray],
        intervals: int,
        substeps: int = 1,
        initial: FloatArray | None = None,
        tolerance: float = TOLERANCE,
        stop: Stop | None = None,
    ) -> Fitted:
        """Fit a system on segments of a length, from given initial states where there are some.

        It ends when `stop` says so, by default that of the selector.
        """
        system = as_system(skeletons, len(self.prepared.table.inputs))
        segments = self.segments(intervals)
        fit = fit_segments(
            system,
            joined(parameters),
            segments,
            substeps=substeps,
            initial=initial,
            tolerance=tolerance,
            stop=stop or self.stop,
        )
        return Fitted(tuple(skeletons), fit, self.length(skeletons, fit), intervals, substeps)

    def length(self, skeletons: Sequence[Expression], fit: ShootingFit) -> float:
        """Nats to describe the trajectories, up to a constant of the table.

        Infinite where a part of an equation does not matter.
        """
        counts = [parameter_count(skeleton) for skeleton in skeletons]
        parts = np.split(fit.parameters, np.cumsum(counts)[:-1])
        for skeleton, part in zip(skeletons, parts, strict=True):
            if not self.prepared.makes_sense(bind(skeleton, list(part))):
                return math.inf
        measure = DescriptionLength(max(int(fit.squares()[1].sum()), 2), len(self.prepared.columns))
        nats = system_nats(skeletons, len(self.prepared.columns))
        return self.left(fit) + nats + fit.parameters.size * measure.constant_nats

    def left(self, fit: ShootingFit) -> float:
        """Nats to describe the residuals of a fit."""
        squares, counts = fit.squares()
        if not math.isfinite(fit.chi_square):
            return math.inf
        mean = np.maximum(squares / np.maximum(counts, 1.0), self.floor)
        return 0.5 * float(counts @ np.log(mean))

    def lengthened(self, fitted: Fitted) -> Fitted:
        """The same system on the longest segments that it follows: whole runs, if it is not chaotic."""
        best = self.refined(fitted)
        if self.prepared.exact:
            return best
        for intervals in (3 * self.first, self.longest):
            if intervals <= best.intervals or self.stop():
                continue
            intervals = min(intervals, self.longest)
            trial = self.fit(best.skeletons, best.parts(), intervals, best.substeps)
            if not math.isfinite(trial.length) or _mean_square(trial) > POLICY.worse * _mean_square(best):
                break
            best = trial
        return best

    def refined(self, fitted: Fitted) -> Fitted:
        """With as many integration steps as the accuracy of the data asks for."""
        best = fitted
        while (
            best.substeps < (POLICY.max_substeps if self.prepared.exact else POLICY.noisy_substeps)
            and not self.stop()
        ):
            finer = self.fit(
                best.skeletons, best.parts(), best.intervals, 2 * best.substeps, best.fit.initial
            )
            with np.errstate(invalid="ignore"):  # where both have diverged
                change = np.abs(finer.fit.residuals - best.fit.residuals)
            finite = np.isfinite(change)
            settled = not finite.any() or float(change[finite].max()) < 0.05
            if not self.prepared.exact:
                # Where the noise is overrated, small errors of integration still decide between systems.
                settled &= abs(self.left(finer.fit) - self.left(best.fit)) < POLICY.settled
            if _mean_square(finer) < 0.5 * _mean_square(best) or not settled:
                best = finer
                continue
            break
        return best


def _mean_square(fitted: Fitted) -> float:
    squares, counts = fitted.fit.squares()
    if not math.isfinite(fitted.fit.chi_square):
        return math.inf
    return float(squares.sum() / max(counts.sum(), 1.0))


def mean_square(fitted: Fitted) -> float:
    """Mean squared residual in standard deviations."""
    return _mean_square(fitted)
