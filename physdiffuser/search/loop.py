"""The search loop: turns of the generators, candidates polished and archived, until there is no need."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from physdiffuser.core.archive import Entry
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator, GeneratorSpec
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.work import MeteredGenerator
from physdiffuser.errors import PhysdiffuserError, PluginError
from physdiffuser.expressions import Expression
from physdiffuser.expressions.simplification.arrange import arrange
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.fitting import refit
from physdiffuser.models.tokens.skeleton import without_linear_coefficients
from physdiffuser.search.archive import FEW_CONSTANTS, ParetoArchive
from physdiffuser.search.exact_constants import with_exact_constants
from physdiffuser.search.limiting_forms import limiting_form
from physdiffuser.search.rewriting import small_phases, tame, without_powers, worth_arranging, worth_rounding
from physdiffuser.search.scheduler import Scheduler
from physdiffuser.search.timing import TimeLimit
from physdiffuser.selection.description_length import leaves_noise, rounding_loss, shortest

# After the noise floor is reached the search goes on for this share of what it took to get there, and at
# least so many steps, in case something simpler is near.
GRACE_SHARE = 1.0
GRACE_STEPS = 30
# Each constant that was fitted asks for more of both: a law without it may yet be found, and would need much
# less to describe it.
SHARE_OF_CONSTANT = 0.1
STEPS_OF_CONSTANT = 4
MOST_CONSTANTS = 4
# Where all constants but one are exact and every simpler formula describes the rows in this many nats more,
# chance does not do that, and fewer steps will do.
PLAIN_NATS = 20.0
# In fewer rows anything passes for noise, also what a wrong formula leaves over of an exact law: only where
# numbers are written more coarsely than this can noise be taken for granted.
ROWS_TO_TELL = 30
COARSE = 1e-8
PLAIN_SHARE = 0.25
PLAIN_STEPS = 6
# A formula that leaves more than this share of the variance over may be no law even if the rest looks like
# noise, as a fast wave in several columns does: so many steps are spent before that is believed.
UNEXPLAINED = 0.5
STEPS_UNEXPLAINED = 150
# Simpler ways to write a formula are looked for where it is at most so many nats longer than the shortest.
WORTH_ARRANGING = 60.0
# Late generators take seconds to start, in which most laws are found without them. They are asked after so
# many steps, or before a formula that leaves noise over is believed, if so many seconds are left (of an idle
# machine; on a slower one that many times more).
LATE_AFTER = 60
LATE_SECONDS = 8.0
# Followers, which vary what is in the archive, have a turn of at most so many steps before noise is believed,
# and while nothing leaves just noise over so often if the shortest description has changed.
FOLLOWING_TURN = 12
FOLLOWING_EVERY = 30
# A formula of many constants that leaves nothing over may follow the law and not be it: others have so many
# steps more.
STEPS_OF_MANY = 40


@dataclass(frozen=True)
class SearchResult:
    """What the search leaves behind.

    Attributes
    ----------
    settled
        Whether the search ended because the law is exact or as good as the noise allows, rather than
        because the budget was spent.
    warnings
        Generators that were switched off, and why.
    steps
        Steps spent by each generator.
    """

    archive: ParetoArchive
    settled: bool
    warnings: tuple[str, ...]
    steps: Mapping[str, int]


class SearchLoop:
    """Runs generators on a problem.

    Parameters
    ----------
    problem
        Rows and rules.
    generators
        By name, in order of preference.
    late
        Names of those that wait until the others have found what leaves nothing but noise, or too little.
    following
        Names of those that vary what others have found: asked whenever a formula would be believed.
    tolerance
        Relative rounding of the target's numbers.
    limit
        When the search has to end, measured while it runs; the deadline given to `run` counts as well.
    on_better
        Called with the archive's best entry whenever it changes.
    """

    def __init__(
        self,
        problem: Problem,
        generators: Mapping[str, Generator],
        *,
        deferred: Collection[str] = (),
        refiners: Collection[str] = (),
        specs: Sequence[GeneratorSpec] = (),
        tolerance: float = 1e-10,
        limit: TimeLimit | None = None,
        cancelled: Callable[[], bool] = lambda: False,
        on_better: Callable[[ParetoArchive, Entry], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.problem = problem
        self.archive = ParetoArchive(problem)
        self.generators = dict(generators)
        self.deferred = frozenset(deferred)
        self.refiners = [name for name in self.generators if name in refiners]
        self._scheduler = Scheduler(
            [name for name in self.generators if name not in self.refiners], self.deferred, specs
        )
        self.specs = specs
        self.limit = limit or TimeLimit(None, 0.0, clock=clock)
        self.cancelled = cancelled
        self.on_better = on_better
        self.clock = clock
        self._tolerance = tolerance
        self.floor = rounding_loss(problem.target, tolerance)
        self.description_length = replace(self.archive.description_length, floor=self.floor)
        self.positive = problem.positive
        self.tells_noise = problem.rows >= ROWS_TO_TELL or tolerance > COARSE
        self._best: Entry | None = None
        self._spent = 0
        self._budget: Budget | None = None
        # The step at which the best description was last shortened by more than a nat, and its length then.
        self._reached = 0
        self._reached_length = float("inf")
        # The step at which it was last asked within a turn whether the law is settled, and the answer.
        self._looked = -1, False
        # When followers were last asked, for which formula, and the steps that they took.
        self._followed: tuple[int, Entry | None] = (0, None)
        self._refiner_steps = dict.fromkeys(self.refiners, 0)
        self.failed: set[str] = set()
        self._warnings: list[str] = []
        self._noise_checked: dict[Expression, bool] = {}

    def restarted(self, problem: Problem, generators: Mapping[str, Generator]) -> SearchLoop:
        """A new search of another problem with the same settings.

        Parameters
        ----------
        problem
            Rows and rules.
        generators
            New instances of this loop's generators.
        """
        return SearchLoop(
            problem,
            generators,
            deferred=self.deferred,
            refiners=self.refiners,
            specs=self.specs,
            tolerance=self._tolerance,
            limit=self.limit,
            cancelled=self.cancelled,
            on_better=self.on_better,
            clock=self.clock,
        )

    @property
    def spent(self) -> int:
        """Steps spent."""
        return self._spent

    def run(
        self,
        steps: int | None,
        deadline: float,
        initial: Sequence[Candidate] = (),
        pause: Callable[[], bool] = lambda: False,
    ) -> SearchResult:
        """Search until the law is settled, the steps are spent or the deadline is reached.

        A further call continues the search; `steps` counts from the first one. `pause` is asked between the
        turns of the generators whether to return before the end.
        """
        scheduler = self._scheduler
        settled = False
        with np.errstate(all="ignore"):
            for candidate in initial:
                self._offer(candidate)
            while not self._over(steps, deadline) and not pause():
                self._try_conclusion()
                if self._spent >= LATE_AFTER:
                    self._asks(scheduler, deadline)
                turn = scheduler.next()
                if turn is None and self._asks(scheduler, deadline):
                    turn = scheduler.next()
                if turn is None:
                    if self._follow(steps, deadline, alone=True):
                        continue
                    break
                name, granted = turn
                if steps is not None:
                    granted = min(granted, steps - self._spent)
                before = self._length(self._best)
                with self._measured(name):
                    used, finished = self._turn(name, granted, self._until(deadline))
                self._spent += used
                self._budget = None
                gain = before - self._length(self._best)
                scheduler.record(name, used, min(gain, 1e6) if np.isfinite(before) else 1e3)
                if finished:
                    scheduler.finish(name)
                if self._settled():
                    if self._follow(steps, deadline) or self._asks(scheduler, deadline):
                        continue
                    settled = True
                    break
                if self._spent >= self._followed[0] + FOLLOWING_EVERY:
                    self._follow(steps, deadline)
        return SearchResult(
            self.archive, settled, tuple(self._warnings), scheduler.steps | self._refiner_steps
        )

    def _follow(self, steps: int | None, deadline: float, alone: bool = False) -> bool:
        """Have the best formulas varied; whether that made the shortest description clearly shorter.

        `alone` when nobody else has anything left to do: then what followers made is varied again.
        """
        if self.exact or (self._followed[1] is self._best and not alone):
            return False
        before = self._length(self._best)
        for name in self.refiners:
            if name not in self.failed and not self._over(steps, deadline):
                used, _ = self._turn(name, FOLLOWING_TURN, self._until(deadline))
                self._spent += used
                self._refiner_steps[name] += used
                self._budget = None
        # What followers made of it is not varied at once: that was tried, and found no more.
        self._followed = self._spent, self._best
        return self._length(self._best) < before - 1.0

    def _asks(self, scheduler: Scheduler, deadline: float) -> bool:
        """Whether there are late generators that have not been asked; now they are, if there is time."""
        needed = LATE_SECONDS * self.limit.pace.slowdown
        if self.exact or self._until(deadline) - self.clock() < needed or not scheduler.admit():
            return False
        # What they have loaded compares the formulas at the end, which takes time as well.
        self.limit.comparing = True
        return True

    def _over(self, steps: int | None, deadline: float) -> bool:
        spent = steps is not None and self._spent >= steps
        return spent or self.clock() >= self._until(deadline) or self.cancelled()

    def _until(self, deadline: float) -> float:
        """The deadline, or when time has to be left for the conclusion by what was measured so far."""
        return min(deadline, self.limit.search_until)

    def _measured(self, name: str) -> AbstractContextManager[None]:
        """Measures the pace while a generator works that waits for nothing but a processor."""
        works = isinstance(self.generators[name], MeteredGenerator)
        return self.limit.pace.measured() if works else nullcontext()

    def _try_conclusion(self) -> None:
        """Measure at times how long the constants of the best formula will take at the end."""
        best = self._best
        if best is not None and fitted_constants(best.candidate.expression):
            self.limit.trial(
                best, partial(with_exact_constants, best.candidate.expression, self.problem.all_rows)
            )

    def _turn(self, name: str, granted: int, deadline: float) -> tuple[int, bool]:
        """One turn; steps used, and whether the generator is done for good."""
        # Late generators are asked because the law seems settled: that must not end their turn.
        settles = name not in self.deferred and name not in self.refiners
        budget = Budget(
            granted,
            deadline,
            self.clock,
            lambda: self.cancelled() or (settles and self._settled_within()),
        )
        self._budget = budget
        generator = self.generators[name]
        try:
            for candidate in generator.propose(self.problem, self.archive, budget):
                self._offer(candidate)
                if self.clock() >= deadline or self.cancelled():
                    break  # whether or not the generator looks at its budget
                if self.exact and self.archive.is_solved and budget.spent:
                    # Finish the piece of work in hand, which may hold a simpler form, not the turn.
                    budget.steps = min(budget.steps, budget.spent + 1)
        except PluginError as error:
            self.failed.add(name)
            if str(error) not in self._warnings:
                self._warnings.append(str(error))
            return max(budget.spent, 1), True
        except PhysdiffuserError:
            raise
        except Exception as error:
            # One broken generator must not cost the user the others' finds; it is said, not hidden.
            what = " ".join(str(error).split())[:200]
            package = getattr(generator, "package", None)
            prefix = "" if package is None else f"plugin package {package}: "
            self._warnings.append(
                f"{prefix}generator {name!r} failed and was switched off ({type(error).__name__}: {what})"
            )
            return max(budget.spent, 1), True
        warning = getattr(generator, "warning", None)
        if warning is not None and warning not in self._warnings:
            self._warnings.append(warning)
        return max(budget.spent, 1), not budget.exhausted

    def _offer(self, candidate: Candidate) -> None:
        with self.limit.pace.measured():
            self._take(candidate)

    def _take(self, candidate: Candidate) -> None:
        candidate = replace(candidate, expression=small_phases(self._permitted(candidate.expression)))
        if self.archive.offer(candidate):
            self._vary(candidate)
        elif self.archive.cancelled:
            self._offer_limit(candidate)
        else:
            return
        best = self.best
        if best is not None and best is not self._best:
            self._best = best
            length = self._length(best)
            if length < self._reached_length - 1:
                self._reached, self._reached_length = self._now, length
            if self.on_better is not None:
                self.on_better(self.archive, best)

    def _vary(self, candidate: Candidate) -> None:
        """Offer a formula of the archive with its constants refitted, and in simpler forms."""
        expression = candidate.expression
        if fitted_constants(expression) and self.archive.best_loss > self.floor:
            expression = self._refitted(expression)
        if expression != candidate.expression:
            self.archive.offer(replace(candidate, expression=expression))
        if self.archive.latest <= self._length(self._best) + WORTH_ARRANGING:
            for form in self._arranged(expression):
                self.archive.offer(replace(candidate, expression=form))

    def _offer_limit(self, candidate: Candidate) -> None:
        """In place of a formula whose terms cancel, the formula that it approaches."""
        limit = limiting_form(candidate.expression, self.problem.inputs)
        if limit is not None and worth_arranging(limit):
            limit = self._refitted(arrange(limit, positive=self.positive))
            self.archive.offer(replace(candidate, expression=self._permitted(limit)))

    def _arranged(self, expression: Expression) -> list[Expression]:
        """Simpler ways to write a formula, and what it stands for if its constants are at a limit."""
        forms = [expression]
        limit = limiting_form(expression, self.problem.inputs)
        if limit is not None and worth_arranging(limit):
            # A function at its limit stands for a simpler one.
            limit = arrange(self._refitted(limit), positive=self.positive)
            forms += [limit, worth_rounding(limit)]
        for form in dict.fromkeys((*forms, worth_rounding(expression))):
            if worth_arranging(form):
                arranged = self._permitted(arrange(form, positive=self.positive))
                if tame(arranged, form):
                    forms.append(arranged)
        return forms[1:]

    def _permitted(self, expression: Expression) -> Expression:
        return expression if "pow" in self.problem.operators else without_powers(expression)

    def _refitted(self, expression: Expression) -> Expression:
        problem = self.problem
        fit = refit(expression, problem.inputs, problem.target, weights=problem.weights, loss=problem.loss)
        return fit.expression

    @property
    def best(self) -> Entry | None:
        """The entry with the shortest description."""
        front = self.archive.front()
        return front[shortest(self._length(entry) for entry in front)] if front else None

    @property
    def exact(self) -> bool:
        """Whether some formula is as good as the numbers are written."""
        return self.archive.best_loss <= self.floor

    def _length(self, entry: Entry | None) -> float:
        if entry is None:
            return float("inf")
        return self.description_length.total(entry.nats, entry.constants, entry.loss)

    @property
    def _now(self) -> int:
        """Steps spent, those of the turn in progress included."""
        return self._spent + (0 if self._budget is None else self._budget.spent)

    def _settled_within(self) -> bool:
        """Whether the law is settled in the middle of a turn; asked after each piece of work."""
        if self.exact:
            return False  # the piece of work in hand is finished first
        if self._looked[0] != self._now:
            self._looked = self._now, self._settled()
        return self._looked[1]

    def _settled(self) -> bool:
        best, reached = self._best, self._reached
        since = self._now - reached
        if best is None:
            return False
        if best.loss <= self.floor and (best.constants <= FEW_CONSTANTS or since >= STEPS_OF_MANY):
            return True
        if since < max(PLAIN_STEPS, PLAIN_SHARE * reached):
            return False
        if best.loss > UNEXPLAINED and since < STEPS_UNEXPLAINED:
            return False
        expression = best.candidate.expression
        constants = min(fitted_constants(expression), MOST_CONSTANTS)
        steps = GRACE_STEPS + STEPS_OF_CONSTANT * constants
        share = GRACE_SHARE + SHARE_OF_CONSTANT * constants
        if since < max(steps, share * reached) and not (
            constants <= 1 and self.tells_noise and self._plain(best)
        ):
            return False
        known = self._noise_checked.get(expression)
        if known is None:
            known = leaves_noise(self.problem, expression)
            self._noise_checked[expression] = known
        return known

    def _plain(self, best: Entry) -> bool:
        """Whether all that is simpler, and not only in its factors, describes the rows much worse."""
        enough, form = self._length(best) + PLAIN_NATS, without_linear_coefficients(best.candidate.expression)
        return all(
            self._length(entry) > enough or without_linear_coefficients(entry.candidate.expression) == form
            for entry in self.archive.front()
            if entry.complexity < best.complexity
        )
