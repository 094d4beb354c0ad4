"""The search loop: turns of the generators, candidates polished and archived, until there is no need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from physdiffuser.core.archive import Entry
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.formula_fits import with_exact_constants
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.work import MeteredGenerator
from physdiffuser.errors import PhysdiffuserError, PluginError
from physdiffuser.expressions import evaluate
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.noise.precision import meets_digits
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.parallel.ahead import AheadGenerator, ahead
from physdiffuser.search.refinement.polishing import Polisher
from physdiffuser.search.scheduler import Scheduler
from physdiffuser.search.settings import DEFAULT_SETTINGS, SearchSettings
from physdiffuser.search.stopping import StoppingRule
from physdiffuser.search.timing import TimeLimit
from physdiffuser.selection.description_length import rounding_loss, shortest


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
    generators
        By name, in order of preference.
    **changes
        Single settings, in place of those in `settings`.
    """

    def __init__(
        self,
        problem: Problem,
        generators: Mapping[str, Generator],
        settings: SearchSettings = DEFAULT_SETTINGS,
        **changes: Any,
    ) -> None:
        self.settings = settings = replace(settings, **changes)
        self.problem = problem
        self.archive = ParetoArchive(problem)
        steps_ahead = {spec.name: spec.ahead for spec in settings.specs}
        self.generators = {
            name: ahead(
                generator,
                steps_ahead.get(name, 0),
                settings.cancelled,
                settings.workers,
                apart=name in settings.deferred,
            )
            for name, generator in generators.items()
        }
        self.refiners = [name for name in self.generators if name in settings.refiners]
        self._after_deferred = {spec.name for spec in settings.specs if spec.after_deferred}
        self.limit = settings.limit or TimeLimit(None, 0.0, clock=settings.clock)
        done = set(self.refiners)
        if settings.earlier_steps and self.limit.comparing:
            done |= set(settings.deferred)
        primary = [name for name in self.generators if name not in done]
        self._scheduler = Scheduler(primary, settings.deferred, settings.specs)
        self.cancelled, self.clock = settings.cancelled, settings.clock
        self.floor = rounding_loss(problem.target, settings.tolerance)
        self.description_length = replace(self.archive.description_length, floor=self.floor)
        self.stopping = StoppingRule(
            problem,
            self.archive,
            self.floor,
            settings.tolerance,
            lambda entry: self._length(entry),
            settings.earlier_steps,
        )
        self._polisher = Polisher(problem, self.archive, self.floor)
        self._best: Entry | None = None
        # Length of the best description when competitors were last noted.
        self._compared = float("inf")
        self._spent = 0
        self._budget: Budget | None = None
        # The step at which it was last asked within a turn whether the law is settled, and the answer.
        self._asked_at = -1, False
        # The step at which refiners were last asked, for which formula each was, and the steps they took.
        self._refined = 0
        self._refined_entry: dict[str, Entry | None] = dict.fromkeys(self.refiners)
        self._refiner_steps = dict.fromkeys(self.refiners, 0)
        self.failed: set[str] = set()
        self._warnings: list[str] = []

    def restarted(self, problem: Problem, generators: Mapping[str, Generator]) -> SearchLoop:
        """A new search of another problem with the same settings and new instances of the generators."""
        return SearchLoop(problem, generators, self.settings, limit=self.limit)

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
        scheduler, policy = self._scheduler, self.stopping.policy
        settled = False
        with np.errstate(all="ignore"):
            for candidate in initial:
                self._offer(candidate)
            while not self._over(steps, deadline) and not pause():
                self._note_competitors()
                self._try_conclusion()
                if self._spent >= policy.deferred_steps:
                    self._admit_deferred(deadline)
                turn = scheduler.next()
                if turn is None and self._admit_deferred(deadline):
                    turn = scheduler.next()
                if turn is None:
                    if self._refine(steps, deadline, alone=True):
                        continue
                    break
                name, granted = turn
                if steps is not None:
                    granted = min(granted, steps - self._spent)
                before = self._length(self._best)
                with self._measured(name):
                    used, finished = self._turn(name, granted, self._until(deadline))
                self._spent += used
                for candidate in self._polisher.constrained(lambda: self._over(None, deadline)):
                    self._offer(candidate)
                self._budget = None
                gain = before - self._length(self._best)
                scheduler.record(name, used, min(gain, 1e6) if np.isfinite(before) else 1e3)
                if finished:
                    scheduler.finish(name)
                if self.stopping.settled(self._best, self._spent):
                    if self._refine(steps, deadline):
                        continue
                    if not self.stopping.is_certain(self._best) and self._admit_deferred(deadline):
                        continue
                    settled = True
                    break
                if self._spent >= self._refined + policy.refiner_interval:
                    self._refine(steps, deadline)
                self._begin_ahead(deadline)
        self._note_competitors()
        return SearchResult(
            self.archive, settled, tuple(self._warnings), scheduler.steps | self._refiner_steps
        )

    def _note_competitors(self) -> None:
        """Note what is known when the best description is shorter by a nat, from `competitor_steps` on."""
        length = self._length(self._best)
        steps = self._now + self.settings.earlier_steps
        if steps >= self.stopping.policy.competitor_steps and length < self._compared - 1.0:
            self._compared = length
            self.archive.note_competitors()

    def _refine(self, steps: int | None, deadline: float, alone: bool = False) -> bool:
        """Have the best formulas varied; whether that made the shortest description clearly shorter.

        `alone` when the other generators have finished: then the refiners' own formulas are varied again.
        """
        asked = self._best
        due = [name for name in self.refiners if self._may_refine(name, alone)]
        if self.exact or not due:
            return False
        before = self._length(asked)
        for name in due:
            if not self._over(steps, deadline):
                used, _ = self._turn(name, self.stopping.policy.refiner_steps, self._until(deadline))
                self._spent += used
                self._refiner_steps[name] += used
                self._budget = None
        # Their formulas are not varied again at once: that was tried, and found no more.
        self._refined = self._spent
        self._refined_entry.update(dict.fromkeys(due, self._best))
        return self._length(self._best) < before - 1.0

    def _may_refine(self, name: str, alone: bool) -> bool:
        """Whether a refiner takes part, and has not been asked about the best formula."""
        waits = name in self._after_deferred and bool(self.settings.deferred) and not self.limit.comparing
        return (
            not waits and name not in self.failed and (alone or self._refined_entry[name] is not self._best)
        )

    def _begin_ahead(self, deadline: float) -> None:
        """Have generators that may work ahead begin, once the first turn of all has not settled the law."""
        for name, generator in self.generators.items():
            if isinstance(generator, AheadGenerator) and (
                name not in self.settings.deferred or self._has_time_for_deferred(deadline)
            ):
                generator.begin(self.problem, self.archive)

    def _has_time_for_deferred(self, deadline: float) -> bool:
        needed = self.stopping.policy.deferred_seconds * self.limit.pace.slowdown
        return not self.exact and self._until(deadline) - self.clock() >= needed

    def _admit_deferred(self, deadline: float) -> bool:
        """Give waiting deferred generators their turns if there is time; whether there were any."""
        if not self._has_time_for_deferred(deadline) or not self._scheduler.admit():
            return False
        # The networks that they have loaded compare the formulas at the end, which takes time as well.
        self.limit.comparing = True
        return True

    def must_end(self) -> bool:
        """Whether the time for the search is spent, or the caller stops it."""
        return self._over(None, float("inf"))

    def _over(self, steps: int | None, deadline: float) -> bool:
        spent = steps is not None and self._spent >= steps
        return spent or self.clock() >= self._until(deadline) or self.cancelled()

    def _until(self, deadline: float) -> float:
        """The deadline, or when time has to be left for finalization by what was measured so far."""
        return min(deadline, self.limit.search_until)

    def _measured(self, name: str) -> AbstractContextManager[None]:
        """Measures the pace while a generator works that waits for nothing but a processor."""
        generator = self.generators[name]
        if isinstance(generator, AheadGenerator):
            if generator.waits:
                return nullcontext()
            generator = generator.inner
        works = isinstance(generator, MeteredGenerator)
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
        # Deferred generators are asked because the law seems settled: that must not end their turn.
        settles = name not in self.settings.deferred and name not in self.refiners
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
        if self._compared == float("inf"):
            # In the middle of a turn: how long turns are depends on the steps that are asked for.
            self._note_competitors()
        if not self._polisher.offer(candidate, self._length(self._best)):
            return
        best = self.best
        if best is not None and best is not self._best:
            self._best = best
            self.stopping.improved(best, self._now)
            if self.settings.on_better is not None:
                self.settings.on_better(self.archive, best)

    @property
    def best(self) -> Entry | None:
        """The entry with the shortest description."""
        front = self.archive.front()
        return front[shortest(self._length(entry) for entry in front)] if front else None

    @property
    def exact(self) -> bool:
        """Whether some formula is as good as the numbers are written."""
        return self.archive.best_loss <= self.floor

    @property
    def meets_digits(self) -> bool:
        """Whether the chosen formula meets about as many digits of each row as were written."""
        rows, best = self.problem.all_rows, self.best
        if best is None:
            return False
        prediction = evaluate(best.candidate.expression, rows.inputs)
        return meets_digits(rows.target, prediction, self.settings.tolerance)

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
        if self._asked_at[0] != self._now:
            self._asked_at = self._now, self.stopping.settled(self._best, self._now)
        return self._asked_at[1]
