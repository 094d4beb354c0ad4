"""What stands between a stranger's code and the search: time limits, checks, and a count of faults.

A plugin's mistake costs its own candidates and nothing else. Exceptions, `SystemExit`, values that are
not what was asked for, changed inputs, generators that ignore their budget and hangs in Python code are
contained; code that ends the process or hangs inside a C extension while it holds the interpreter's lock is
not.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.errors import PluginError
from physdiffuser.expressions.operators import OperatorSpec
from physdiffuser.plugin_system.calls import PluginWorker
from physdiffuser.plugin_system.candidates import candidate_fault
from physdiffuser.plugin_system.records import describe

if TYPE_CHECKING:
    from physdiffuser.core.archive import Archive, Entry
    from physdiffuser.core.family import FamilySpec, Grid, Use
    from physdiffuser.core.generator import Generator, GeneratorSpec
    from physdiffuser.core.problem import Budget, Problem

T = TypeVar("T")


@dataclass(frozen=True)
class GuardPolicy:
    """How much misbehaviour of a plugin a run tolerates.

    Set by hand (docs/plugins.md).
    """

    faults_allowed: int = 20
    """Bad candidates, or failed calls of an operator, after which a plugin is switched off."""
    grace: float = 0.5
    """Seconds a generator may run past its deadline, or past the user's wish to stop."""
    silence: float = 60.0
    silence_share: float = 0.25
    """Seconds in which a plugin neither yields nor spends, after which it counts as hanging. Where the run
    has a time limit: this share of the time that is left, and at least a second."""
    candidates_charged: int = 200
    candidates_per_step: int = 1000
    """Candidates that a generator may yield without spending, for which it is charged a step; and those that
    it may still yield once its budget is spent, after which its turn is ended."""
    build_limit: float = 60.0
    """Most seconds that building a generator may take."""
    max_tries: int = 5_000
    """Points of a family's grid: each is a row of values on hundreds of rows of the table."""


POLICY = GuardPolicy()


_READABLE = ("best_loss", "is_solved", "offered")


class ArchiveView:
    """What a plugin sees of the archive: formulas can be read, and not offered, changed or removed.

    Attributes
    ----------
    problem
        The problem with arrays that cannot be written to.
    """

    def __init__(self, archive: Archive, problem: Problem) -> None:
        self._archive = archive
        self.problem = problem

    def front(self) -> list[Entry]:
        """Entries of the Pareto front, simple ones first."""
        return self._archive.front()

    def near(self) -> list[Entry]:
        """Formulas with fitted constants that describe the rows in nearly as few nats, best first."""
        return self._archive.near()

    def length(self, entry: Entry) -> float:
        """Nats to describe the rows by an entry."""
        return self._archive.length(entry)

    def __getattr__(self, name: str) -> Any:
        if name in _READABLE:
            return getattr(self._archive, name)
        raise AttributeError(
            f"plugins read the archive and yield their candidates; it has no {name!r} for them"
        )


class CandidateMeter:
    """Counts what a generator yields without spending, so that a budget ends whatever the generator does."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._spent = budget.spent
        self._unspent = 0
        self._beyond = 0

    def count(self) -> bool:
        """Count one candidate; whether the generator has gone on for too long after its budget was spent."""
        budget = self.budget
        self._unspent = self._unspent + 1 if budget.spent == self._spent else 1
        if self._unspent >= POLICY.candidates_charged:
            budget.spend()
            self._unspent = 0
        self._spent = budget.spent
        self._beyond = self._beyond + 1 if budget.exhausted else 0
        return self._beyond >= POLICY.candidates_per_step or budget.clock() >= budget.deadline + POLICY.grace


class Patience:
    """Decides when one call of a generator has lasted too long; called with the seconds waited."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._spent = budget.spent
        self._progress = 0.0
        self._overdue: float | None = None
        left = budget.deadline - budget.clock()
        self._silence = min(POLICY.silence, max(1.0, POLICY.silence_share * left))

    def __call__(self, waited: float) -> bool:
        budget = self._budget
        if budget.spent != self._spent:
            self._spent, self._progress = budget.spent, waited
        if waited - self._progress >= self._silence:
            return True
        if budget.clock() < budget.deadline and not budget.cancelled():
            return False
        self._overdue = waited if self._overdue is None else self._overdue
        return waited - self._overdue >= POLICY.grace


class GuardedGenerator:
    """A plugin's generator, as the search sees it.

    Attributes
    ----------
    warning
        A fault that did not cost the plugin its place, for the user; None without one.

    Raises
    ------
    PluginError
        From `propose` or on construction: the generator misbehaved and must not be called again.
    """

    def __init__(
        self,
        package: str,
        spec: GeneratorSpec,
        build_limit: Callable[[], float] = lambda: POLICY.build_limit,
        /,
        **options: Any,
    ) -> None:
        self.name = spec.name
        self.package = package
        self.warning: str | None = None
        self._faults = 0
        self._off: PluginError | None = None
        self._worker = PluginWorker()
        self._rows: tuple[Problem, Problem] | None = None

        def build() -> tuple[Generator, bool]:
            built = spec.build(**options)
            return built, callable(getattr(built, "propose", None))

        limit = build_limit()
        self._inner, usable = self._call(build, lambda waited: waited >= limit, "could not be built")
        if not usable:
            raise self._error(f"build returned {type(self._inner).__name__}, which has no propose()")

    def __del__(self) -> None:
        self._worker.close()

    def _error(self, reason: str) -> PluginError:
        self._worker.close()
        self._off = PluginError(f"plugin package {self.package}: generator {self.name!r} {reason}")
        return self._off

    def _call(self, function: Callable[[], T], give_up: Callable[[float], bool], what: str) -> T:
        try:
            return self._worker.call(function, give_up)
        except TimeoutError:
            raise self._error("hangs, and is switched off") from None
        except Exception as error:
            raise self._error(f"{what}, and is switched off ({describe(error)})") from error

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Pass on what the plugin proposes, one at a time, as long as it is well formed and in its budget."""
        if self._off is not None:
            raise self._off
        protected = self._protected(problem)
        view: Any = ArchiveView(archive, protected)
        proposals: Iterator[Any] = iter(())

        def start() -> None:
            nonlocal proposals
            proposals = iter(self._inner.propose(protected, view, budget))

        def step() -> object:
            return next(proposals, _END)

        patience = Patience(budget)
        meter = CandidateMeter(budget)
        try:
            self._call(start, patience, "raised an error")
            while True:
                patience = Patience(budget)
                candidate = self._call(step, patience, "raised an error")
                if candidate is _END:
                    return
                fault = candidate_fault(candidate, problem)
                if fault is None:
                    assert isinstance(candidate, Candidate)
                    yield Candidate(candidate.expression, candidate.generator, candidate.derivation)
                else:
                    self._count_fault(fault)
                if meter.count():
                    self.warning = (
                        f"plugin package {self.package}: generator {self.name!r} goes on after its budget is "
                        "spent, so its turns are cut short; it must return when budget.spend() answers False"
                    )
                    return
        finally:
            self._close(proposals)

    def _count_fault(self, fault: str) -> None:
        self._faults += 1
        if self._faults >= POLICY.faults_allowed:
            raise self._error(f"proposed {self._faults} malformed candidates, and is switched off; {fault}")

    def _close(self, proposals: Iterator[Any]) -> None:
        """Run what the plugin's generator has in its `finally` blocks, with a time limit as well."""
        if self._off is not None or not hasattr(proposals, "close"):
            return
        try:
            self._call(
                proposals.close, lambda waited: waited >= POLICY.grace, "raised an error when it was closed"
            )
        except PluginError as error:
            self.warning = str(error)  # raised by the next call

    def _protected(self, problem: Problem) -> Problem:
        """The same problem with arrays of its own that cannot be written to."""
        if self._rows is None or self._rows[0] is not problem:
            self._rows = (problem, read_only_problem(problem))
        return self._rows[1]


def read_only_problem(problem: Problem) -> Problem:
    """A problem with copies of all arrays, which cannot be written to."""
    copies: dict[str, Any] = {}
    for name in ("inputs", "target", "weights"):
        array = getattr(problem, name)
        if array is not None:
            copies[name] = array.copy()
            copies[name].flags.writeable = False
    if problem.full_problem is not None:
        copies["full_problem"] = read_only_problem(problem.full_problem)
    return replace(problem, **copies)


_END = object()


class GuardedNumeric:
    """An elementwise function of a plugin's operator: nan where the function fails.

    Arguments are passed read-only. After `POLICY.faults_allowed` failed calls it is not called any more.
    """

    def __init__(self, function: Callable[..., FloatArray], arguments: int) -> None:
        self.function = function
        self.arguments = arguments
        self.faults = 0
        self.reason = ""

    def __call__(self, *arguments: FloatArray) -> FloatArray:
        shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
        if self.faults < POLICY.faults_allowed:
            try:
                value = np.asarray(self.function(*map(_read_only, arguments)))
                if value.dtype == np.float64 and value.shape == shape:
                    return value
                self.reason = f"returned {value.dtype} of shape {value.shape}, not float64 of shape {shape}"
            except (Exception, SystemExit, KeyboardInterrupt) as error:
                # Python raises it for Ctrl-C only where its own handler of the signal is in place.
                if isinstance(error, KeyboardInterrupt) and (
                    signal.getsignal(signal.SIGINT) is signal.default_int_handler
                ):
                    raise
                self.reason = f"raised {describe(error)}"
            self.faults += 1
        return np.full(shape, np.nan)


def _read_only(array: FloatArray) -> FloatArray:
    view: FloatArray = np.asarray(array).view()
    view.flags.writeable = False
    return view


class GuardedOperator:
    """The numeric forms of a plugin's operator behind guards."""

    def __init__(self, package: str, spec: OperatorSpec) -> None:
        self.package = package
        self.name = spec.name
        self.evaluate = GuardedNumeric(spec.evaluate, spec.arity)
        self.derivatives = tuple(GuardedNumeric(function, spec.arity + 1) for function in spec.derivatives)

    @property
    def warning(self) -> str | None:
        """What went wrong so far, for the user; None if nothing did."""
        for numeric in (self.evaluate, *self.derivatives):
            if numeric.faults:
                off = ", and is switched off" if numeric.faults >= POLICY.faults_allowed else ""
                return f"plugin package {self.package}: operator {self.name!r} {numeric.reason}{off}"
        return None


def grid_fault(tries: Any, constants: int) -> str | None:
    """What is wrong with the constants that a grid returned; None if nothing is."""
    if not isinstance(tries, np.ndarray) or tries.dtype != np.float64:
        return f"returned {getattr(tries, 'dtype', type(tries).__name__)}, not an array of float64"
    if tries.ndim != 2 or tries.shape[1] != constants:
        return f"returned an array of shape {tries.shape}, not (tries, {constants})"
    if len(tries) > POLICY.max_tries:
        return f"returned {len(tries)} constants to try; at most {POLICY.max_tries} are allowed"
    if not np.isfinite(tries).all():
        return "returned constants that are not finite"
    return None


class GuardedGrid:
    """A grid of a plugin's family behind a guard: no constants to try where it fails.

    Arguments are passed read-only. After `POLICY.faults_allowed` failed calls it is not called any more.
    """

    def __init__(self, package: str, spec: FamilySpec, use: Use, grid: Grid) -> None:
        self.package = package
        self.name = spec.name
        self.use = use
        self.faults = 0
        self.reason = ""
        self._grid = grid
        self._constants = len(spec.constants)

    def __call__(self, *arguments: FloatArray) -> FloatArray:
        if self.faults < POLICY.faults_allowed:
            try:
                tries = self._grid(*map(_read_only, arguments))
            except (Exception, SystemExit) as error:
                self.reason = f"raised {describe(error)}"
            else:
                fault = grid_fault(tries, self._constants)
                if fault is None:
                    return tries
                self.reason = fault
            self.faults += 1
        return np.empty((0, self._constants))

    @property
    def warning(self) -> str | None:
        """What went wrong so far, for the user; None if nothing did."""
        if not self.faults:
            return None
        off = ", and is switched off" if self.faults >= POLICY.faults_allowed else ""
        what = f"plugin package {self.package}: family {self.name!r}, grid for {self.use!r},"
        return f"{what} {self.reason}{off}"
