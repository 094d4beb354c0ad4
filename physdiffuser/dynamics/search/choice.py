"""Which system to believe: combinations of candidates, compared by the description length of trajectories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from physdiffuser.dynamics.integration.shooting import RANKING_TOLERANCE, TOLERANCE
from physdiffuser.dynamics.schedule import POLICY as SCHEDULE
from physdiffuser.dynamics.schedule import Period, Stop, never
from physdiffuser.dynamics.search.candidates import Candidate, Preparation, candidates, renumbered
from physdiffuser.dynamics.search.form_code import form_nats
from physdiffuser.dynamics.search.linearised import finite_terms, linearised_sums
from physdiffuser.dynamics.search.selection import POLICY as SELECTION
from physdiffuser.dynamics.search.selection import Fitted, Selector, mean_square
from physdiffuser.dynamics.search.terms import (
    library,
    products,
    shorter_sums,
    term_sum,
    with_signed_squares,
)
from physdiffuser.expressions import Expression, Parameter, evaluate
from physdiffuser.expressions.tree import mul
from physdiffuser.options import SolveOptions
from physdiffuser.selection.description_length import DescriptionLength


@dataclass(frozen=True)
class ChoicePolicy:
    """How many systems are tried.

    Set on the development systems (docs/dynamics.md).
    """

    joint: int = 4
    weak_joint: int = 4
    exact_joint: int = 5
    """Candidates of a state that are tried in systems: by their fits, by the weak form, and of exact
    values."""
    linearised: int = 3
    rounds: int = 2
    """Sums of products, and of any terms, that the trajectories choose for each equation, and how often."""
    near: float = 15.0
    """Nats by which systems may be worse on short segments and still be compared on longer ones."""
    same_exact: float = 1e-6
    same_noisy: float = 0.02
    """Right-hand sides that differ by so little of the spread of the rate are no rivals."""


POLICY = ChoicePolicy()


Rival = tuple[int, Candidate, float]
"""A state, a candidate that takes part in another system, and the nats by which that system is worse."""


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Candidates of a state, and those of them that take part in systems."""

    found: Sequence[Candidate]
    chosen: Sequence[Candidate]


def shortlist(prepared: Preparation, state: int, search: SolveOptions | None, period: Period) -> Shortlist:
    """Find candidates for a state, and choose by its trajectory, with the others as measured.

    Parameters
    ----------
    search
        Options of the search for formulas; None for sums of terms alone.
    """
    found = candidates(prepared, state, search, period.part(SCHEDULE.found))
    if prepared.exact or len(found) <= 1:
        return Shortlist(found, found[: POLICY.exact_joint])
    driven = [one for _, one in Selector(prepared, period.is_over).by_trajectory(state, found)]
    if len(prepared.table.states) == 1:
        return Shortlist(found, driven[: POLICY.joint + POLICY.weak_joint])
    # Curves of the other states bias the fits that they drive.
    weak = sorted(found, key=lambda one: one.length)
    further = [one for one in weak if one not in driven[: POLICY.joint]][: POLICY.weak_joint]
    return Shortlist(found, [*driven[: POLICY.joint], *further])


@dataclass(eq=False)
class Beam:
    """The best system so far, and those that differ from it in one equation.

    Attributes
    ----------
    lists
        Candidates of each state.
    chosen
        Places in these of the equations of the best system.
    best
        That system.
    tried
        Systems with another candidate (state, place in its list) in place of one equation.
    """

    lists: list[list[Candidate]]
    chosen: list[int]
    best: Fitted
    tried: dict[tuple[int, int], Fitted] = field(default_factory=dict)

    def offer(self, state: int, number: int, fitted: Fitted) -> bool:
        """Take note of a system, as the best one if its description is shorter."""
        self.tried[state, number] = fitted
        if not fitted.length < self.best.length:
            return False
        self.tried[state, self.chosen[state]] = self.best
        self.chosen[state], self.best = number, fitted
        return True


def renumbered_products(columns: Sequence[int]) -> list[Expression]:
    """Products of up to three variables, up to two of many."""
    names = dict(enumerate(columns))
    return [renumbered(term, names) for term in products(len(columns), 3 if len(columns) <= 3 else 2)]


def _settings(fitted: Fitted) -> tuple[int, int]:
    return fitted.intervals, fitted.substeps


class Choice:
    """Compares systems."""

    def __init__(self, selector: Selector) -> None:
        self.selector, self.prepared = selector, selector.prepared
        self._tolerance = TOLERANCE if self.prepared.exact else RANKING_TOLERANCE
        self._terms: list[Expression] | None = None

    def choose(self, shortlists: Sequence[Shortlist]) -> tuple[Fitted, list[Rival]]:
        """The best system, and what it would cost to have another candidate in place of one equation.

        Systems are compared on short segments, on which fits converge from poor constants, and those that
        are nearly as good on longer ones, which tell more apart: each segment has initial states of its own.
        """
        beam = self.exchanged([list(own.chosen) for own in shortlists])
        if not self.prepared.exact:
            for _ in range(POLICY.rounds):
                if not self.with_linearised(beam):
                    break
            for intervals in (3 * self.selector.first, self.selector.longest):
                longer = min(intervals, self.selector.longest)
                if longer <= beam.best.intervals or self.selector.stop() or not self._longer(beam, longer):
                    break
            self._finer(beam)
        self.without_needless_terms(beam)
        return beam.best, self.rivals(beam)

    def exchanged(self, lists: list[list[Candidate]]) -> Beam:
        """The best system of some candidates; the first one is fitted in any case."""
        beam = Beam(lists, [0] * len(lists), self._fit_candidates([own[0] for own in lists], never))
        self._exchange(beam)
        return beam

    def rivals(self, beam: Beam) -> list[Rival]:
        """What it would cost to have another candidate in place of one equation."""
        return [
            (state, beam.lists[state][number], other.length - beam.best.length)
            for (state, number), other in beam.tried.items()
            if number != beam.chosen[state]
            and not any(
                self._same(form, beam.best.expressions[state], state)
                for form in (beam.lists[state][number].expression, other.expressions[state])
            )
        ]

    def _exchange(self, beam: Beam) -> None:
        """Exchange one equation after the other while that shortens the description."""
        improved = True
        while improved:
            improved = False
            for state, own in enumerate(beam.lists):
                for number, one in enumerate(own):
                    if number == beam.chosen[state] or self.selector.stop():
                        continue
                    candidates = [own[place] for own, place in zip(beam.lists, beam.chosen, strict=True)]
                    candidates[state] = one
                    improved |= beam.offer(state, number, self._fit_candidates(candidates))
            if len(beam.lists) == 1:
                break

    def with_linearised(self, beam: Beam) -> bool:
        """Offer sums of terms that the trajectories choose, for one equation after the other."""
        table, improved = self.prepared.table, False
        for state in range(len(table.states)):
            if (table.order == 2 and state < table.measured) or self.selector.stop():
                continue
            if not math.isfinite(beam.best.length):
                break
            known = {one.skeleton for one in beam.lists[state]}
            for one in self._linearised(beam.best, state):
                if one.skeleton in known or not self.prepared.units.balances(one.skeleton, state):
                    continue
                improved |= self._offer(beam, state, one)
        return improved

    def without_needless_terms(self, beam: Beam) -> None:
        """Leave terms out, or change the sign of squares, while that shortens the description."""
        while self._with_variants(beam) and not self.selector.stop():
            pass

    def _with_variants(self, beam: Beam) -> bool:
        """Offer the best system without one of its terms, and with a signed square, for each of these."""
        improved = False
        for state, (skeleton, part) in enumerate(zip(beam.best.skeletons, beam.best.parts(), strict=True)):
            # What was tried with fewer steps of integration may have failed for these.
            now = (beam.best.intervals, beam.best.substeps)
            tried = [n for (own, n), one in beam.tried.items() if own == state and now == _settings(one)]
            known = {beam.lists[state][number].skeleton for number in tried}
            variants = [
                *shorter_sums(skeleton, part),
                *((one, part) for one in with_signed_squares(skeleton)),
            ]
            for variant, values in variants:
                if variant not in known and not self.selector.stop():
                    one = Candidate(variant, values, math.nan, math.nan, "trajectories")
                    improved |= self._offer(beam, state, one)
        return improved

    def _offer(self, beam: Beam, state: int, one: Candidate) -> bool:
        """Fit the best system with another equation for one state; whether it is better."""
        beam.lists[state].append(one)
        skeletons, parts = list(beam.best.skeletons), beam.best.parts()
        skeletons[state], parts[state] = one.skeleton, one.parameters
        best = beam.best
        trial = self.selector.fit(skeletons, parts, best.intervals, best.substeps, tolerance=self._tolerance)
        return beam.offer(state, len(beam.lists[state]) - 1, trial)

    def _linearised(self, best: Fitted, state: int) -> list[Candidate]:
        """The shortest descriptions among sums of products, and among sums of any terms, for one rate."""
        prepared = self.prepared
        terms = self._library()
        usual = set(renumbered_products(prepared.columns))
        groups = [[place for place, term in enumerate(terms) if term in usual], list(range(len(terms)))]
        count = max(float(best.fit.squares()[1].sum()), 2.0)
        measure = DescriptionLength(int(count), len(prepared.columns))
        chosen: dict[Expression, Candidate] = {}
        for sums in linearised_sums(
            best.skeletons,
            best.fit,
            self.selector.segments(best.intervals),
            state,
            terms,
            groups,
            len(prepared.table.inputs),
        ):
            found = []
            for parts, factors, square in sums:
                skeleton = term_sum(parts)
                nats = form_nats(skeleton, len(prepared.columns)) + factors.size * measure.constant_nats
                nats += 0.5 * count * math.log(max(square / count, self.selector.floor))
                found.append(Candidate(skeleton, factors, math.nan, nats, "trajectories"))
            found.sort(key=lambda one: one.length)
            chosen |= {one.skeleton: one for one in found[: POLICY.linearised]}
        return list(chosen.values())

    def _library(self) -> list[Expression]:
        """Terms that have values everywhere along the trajectories."""
        if self._terms is None:
            columns = self.prepared.columns
            names = dict(enumerate(columns))
            every = library(len(columns), len(self.prepared.table.states), self.prepared.table.measured)
            terms = [renumbered(term, names) for term in every]
            terms = [term for term in terms if self.prepared.units.balances(mul(Parameter(0), term), 0)]
            self._terms = finite_terms(terms, self.prepared.weak.nodes)
        return self._terms

    def _longer(self, beam: Beam, intervals: int) -> bool:
        """Compare the system and those nearly as good on longer segments; whether it follows these."""
        before = beam.best
        near = {
            place: other for place, other in beam.tried.items() if other.length < before.length + POLICY.near
        }
        best = self._refit(before, intervals)
        longer = Beam(beam.lists, list(beam.chosen), best)
        for (state, number), other in sorted(near.items(), key=lambda pair: pair[1].length):
            if number == longer.chosen[state] or self.selector.stop():
                continue
            parts, skeletons = longer.best.parts(), list(longer.best.skeletons)
            parts[state], skeletons[state] = other.parts()[state], other.skeletons[state]
            trial = self.selector.fit(
                skeletons, parts, intervals, before.substeps, tolerance=RANKING_TOLERANCE
            )
            longer.offer(state, number, trial)
        if not mean_square(longer.best) <= SELECTION.worse * mean_square(before):
            return False
        beam.best, beam.chosen, beam.tried = longer.best, longer.chosen, longer.tried
        return True

    def _finer(self, beam: Beam) -> None:
        """Compare again with as many steps of integration as the best system needs."""
        finer = self.selector.refined(beam.best)
        if finer.substeps > beam.best.substeps and not self.selector.stop():
            beam.best = finer
            self._longer(beam, finer.intervals)

    def _refit(self, fitted: Fitted, intervals: int) -> Fitted:
        return self.selector.fit(
            fitted.skeletons, fitted.parts(), intervals, fitted.substeps, tolerance=RANKING_TOLERANCE
        )

    def _same(self, one: Expression, other: Expression, state: int) -> bool:
        """Whether two right-hand sides are the same function along the trajectories."""
        nodes = self.prepared.weak.nodes
        with np.errstate(all="ignore"):
            apart = np.abs(evaluate(one, nodes) - evaluate(other, nodes))
        spread = float(self.prepared.weak.rates[:, state].std())
        limit = POLICY.same_exact if self.prepared.exact else POLICY.same_noisy
        return bool(np.nanmax(apart, initial=0.0) <= limit * spread)

    def _fit_candidates(self, chosen: Sequence[Candidate], stop: Stop | None = None) -> Fitted:
        return self.selector.fit(
            [c.skeleton for c in chosen],
            [c.parameters for c in chosen],
            self.selector.first,
            tolerance=self._tolerance,
            stop=stop,
        )
