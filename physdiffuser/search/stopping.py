"""When the search is over: the stopping policy and the rule that applies it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Entry
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.models.tokens.skeleton import without_linear_coefficients
from physdiffuser.search.archive import POLICY as ARCHIVE
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.description_length import leaves_noise
from physdiffuser.selection.misfit import POLICY as MISFIT
from physdiffuser.selection.misfit import misfit
from physdiffuser.selection.residual_structure import POLICY as STRUCTURE
from physdiffuser.selection.residual_structure import residual_structure


@dataclass(frozen=True)
class StoppingPolicy:
    """How long the search goes on after a formula has been found that could be the law.

    The values were chosen on development laws with 0, 1 and 10 % noise (docs/search.md).
    """

    grace_share: float = 1.0
    grace_steps: int = 30
    """After the noise floor is reached the search goes on for this share of the steps that it took to get
    there, and at least so many steps, in case something simpler is near."""
    share_per_constant: float = 0.1
    steps_per_constant: int = 4
    max_constants: int = 4
    """Each fitted constant, up to so many, adds to both: a law without it may yet be found, and would have a
    much shorter description."""
    plain_nats: float = 20.0
    plain_share: float = 0.25
    plain_steps: int = 6
    """Where all constants but one are exact and every simpler formula has a description longer by so many
    nats, which does not happen by chance, a smaller share and fewer steps are enough."""
    same_law: float = 2.0
    """A simpler formula whose values differ by at most so many times what the errors of the constants make
    out is the same law with a constant in another place."""
    min_rows: int = 30
    coarse: float = 1e-8
    """In fewer rows every residual passes for noise, also that of a wrong formula for an exact law. There
    noise is taken for granted only if the numbers are rounded more coarsely than this."""
    unexplained: float = 0.03
    unexplained_steps: int = 150
    """A formula that leaves more than this share of the variance may be wrong even if its residuals look like
    noise, as they do after a fast wave in several columns: it is accepted only after so many steps."""
    many_constants_steps: int = 40
    """A formula of many constants that fits exactly may only follow the law: so many steps more for
    others."""
    deferred_steps: int = 60
    deferred_seconds: float = 8.0
    """Deferred generators take seconds to start, in which most laws are found without them. They are asked
    after so many steps, or before a formula with noise in its residuals is accepted, if so many seconds are
    left (on an idle machine; more on a slower one)."""
    certain_nats: float = 16.0
    """A formula whose form takes at most so many nats is accepted without asking deferred generators, if
    every simpler formula has a description longer by `plain_nats`. Only a shorter form could take its place.
    There are at most exp(16), nine million, of these (Kraft's inequality), fewer than the pairs that
    enumeration goes through in a second."""
    competitor_steps: int = 40
    """The probability of the best formula counts the competitors known when it was found, but not before so
    many steps. It was fitted to searches of this length."""
    rival_nats: float = 10.0
    """The same holds for a longer form if no other law has a description longer by less than this: what a
    judge of forms says changes a description by nine nats at most (`selection.description_length`)."""
    again_steps: int = 12
    """Where a table is searched once more with other weights, the steps of the searches before count for the
    formulas that are known from them; but so many have to be made with the new weights."""
    refiner_steps: int = 12
    refiner_interval: int = 30
    """Refiners have a turn of at most so many steps before a formula is accepted, and otherwise after so many
    steps if the shortest description has changed."""


POLICY = StoppingPolicy()


class StoppingRule:
    """Decides whether the search of one problem is over.

    Parameters
    ----------
    floor
        Relative loss that rounding of the target alone causes.
    tolerance
        Relative rounding of the target's numbers.
    length
        Nats of the description by an entry of the archive.
    earlier_steps
        Steps of the searches that found the formulas which are known before the first step.
    """

    def __init__(
        self,
        problem: Problem,
        archive: ParetoArchive,
        floor: float,
        tolerance: float,
        length: Callable[[Entry], float],
        earlier_steps: int = 0,
    ) -> None:
        self.policy = POLICY
        self._problem, self._archive = problem, archive
        self._floor, self._length = floor, length
        self._earlier_steps = earlier_steps
        self._noise_is_visible = problem.rows >= POLICY.min_rows or tolerance > POLICY.coarse
        # The step at which the best description was last shortened by more than a nat, and its length then.
        self._reached = 0
        self._reached_length = float("inf")
        self._noise_checked: dict[Expression, bool] = {}
        self._same: dict[tuple[Expression, Expression], bool] = {}

    def improved(self, best: Entry, step: int) -> None:
        """Note that the best entry has changed."""
        length = self._length(best)
        if length < self._reached_length - 1:
            self._reached, self._reached_length = step or -self._earlier_steps, length

    def settled(self, best: Entry | None, step: int) -> bool:
        """Whether the best entry can be accepted as the law after so many steps."""
        policy = self.policy
        since = step - self._reached
        if best is None:
            return False
        many_are_safe = best.constants <= ARCHIVE.few_constants or since >= policy.many_constants_steps
        if best.loss <= self._floor and many_are_safe:
            return True
        if since < max(policy.plain_steps, policy.plain_share * self._reached):
            return False
        if self._earlier_steps and step < policy.again_steps:
            return False
        if best.loss > policy.unexplained and since < policy.unexplained_steps:
            return False
        expression = best.candidate.expression
        constants = min(fitted_constants(expression), policy.max_constants)
        steps = policy.grace_steps + policy.steps_per_constant * constants
        share = policy.grace_share + policy.share_per_constant * constants
        if since < max(steps, share * self._reached) and not (
            constants <= 1 and self._noise_is_visible and self._is_plain(best)
        ):
            return False
        known = self._noise_checked.get(expression)
        if known is None:
            known = leaves_noise(self._problem, expression) and not self._leaves_structure(expression)
            self._noise_checked[expression] = known
        return known

    def _leaves_structure(self, expression: Expression) -> bool:
        """Whether a smooth function of the columns, or a change of the formula, describes the residuals.

        A formula with such residuals would be called incomplete at the end.
        """
        problem = self._problem
        roots = 1.0 if problem.weights is None else np.sqrt(problem.weights)
        values = evaluate(expression, problem.inputs)
        left = roots * (problem.target - values)
        return (
            residual_structure(left, problem.inputs, values) > STRUCTURE.pattern
            or misfit(expression, problem).nats > MISFIT.pattern
        )

    def is_certain(self, best: Entry | None) -> bool:
        """Whether deferred generators are not asked before an entry is accepted; see `certain_nats`."""
        return (
            best is not None
            and self._noise_is_visible
            and best.constants <= 1
            and (best.nats <= self.policy.certain_nats or not self._has_rival(best))
            and self._is_plain(best)
        )

    def _has_rival(self, best: Entry) -> bool:
        """Whether a judge of forms might prefer another law of those that were found."""
        within = self._length(best) + self.policy.rival_nats
        return any(
            self._length(entry) < within and entry is not best and not self._is_same(entry, best)
            for entry in self._archive.front()
        )

    def _is_plain(self, best: Entry) -> bool:
        """Whether every simpler formula, other than by its constants, has a much longer description."""
        enough = self._length(best) + self.policy.plain_nats
        return all(
            self._length(entry) > enough or self._is_same(entry, best)
            for entry in self._archive.front()
            if entry.complexity < best.complexity
        )

    def _is_same(self, entry: Entry, best: Entry) -> bool:
        """Whether a formula is another up to its factors, or has its values within the errors of the fits.

        `0.4*exp(-0.501*x**2)` is simpler than `0.4*exp(-x**2/2)`, and speaks for it. The mean squared
        difference of two fits of one law to n rows is about s**2/n for each constant.
        """
        one, other = entry.candidate.expression, best.candidate.expression
        if without_linear_coefficients(one) == without_linear_coefficients(other):
            return True
        known = self._same.get((one, other))
        if known is None:
            problem = self._problem
            values = evaluate(other, problem.inputs)
            apart = _mean_square(evaluate(one, problem.inputs) - values, problem)
            left = _mean_square(problem.target - values, problem)
            errors = (1 + entry.constants + best.constants) / problem.rows
            known = bool(apart <= self.policy.same_law * errors * left)
            self._same[one, other] = known
        return known


def _mean_square(values: FloatArray, problem: Problem) -> float:
    return float(np.average(np.square(values + np.zeros(problem.rows)), weights=problem.weights))
