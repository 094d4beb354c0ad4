"""What stands between a stranger's code and the search: time limits, checks, and a count of faults.

A plugin's mistake costs its own candidates and nothing else. Exceptions, `SystemExit`, values that are
not what was asked for, changed inputs and hangs in Python code are contained; code that ends the process
or hangs inside a C extension while it holds the interpreter's lock is not.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from physdiffuser.errors import PluginError
from physdiffuser.expressions.operators import OPERATORS, OperatorSpec
from physdiffuser.expressions.tree import Apply, Number, Parameter, Symbol, Variable, size, walk
from physdiffuser.search.candidate import Candidate

if TYPE_CHECKING:
    from physdiffuser.generation.protocol import Generator, GeneratorSpec
    from physdiffuser.search.archive import ParetoArchive
    from physdiffuser.search.problem import Budget, Problem

FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")

FAULTS_ALLOWED = 20
"""Bad candidates, or failed calls of an operator, after which a plugin is switched off."""

GRACE = 0.5
"""Seconds a generator may run past its deadline, or past the user's wish to stop."""

SILENCE = 60.0
"""Seconds between two candidates of a plugin after which, without a deadline, it counts as hanging."""

BUILD_LIMIT = 60.0
MAX_NODES = 1000
_POLL = 0.05


class _Worker:
    """One daemon thread that runs calls for us, so that a call that never returns can be left behind."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="physdiffuser-plugin", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                self._answers.put((call(), None))
            except BaseException as error:  # SystemExit and the like, too: it is the plugin's, not ours
                self._answers.put((None, error))

    def call(self, function: Callable[[], T], give_up: Callable[[float], bool]) -> T:
        """Run a call; raises what it raises, or TimeoutError once `give_up(seconds waited)`."""
        waited = 0.0
        # The document on stdout is ours alone.
        with contextlib.redirect_stdout(sys.stderr):
            self._calls.put(function)
            while True:
                try:
                    value, error = self._answers.get(timeout=_POLL)
                    break
                except queue.Empty:
                    waited += _POLL
                    if give_up(waited):
                        self.abandon()
                        raise TimeoutError from None
        if error is None:
            return value  # type: ignore[no-any-return]
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"it raised {type(error).__name__}({', '.join(map(repr, error.args))})") from error

    def abandon(self) -> None:
        """Ask the thread to end; it does at its next step of Python code, and is a daemon in any case."""
        self._calls.put(None)
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(self._thread.ident), ctypes.py_object(SystemExit)
            )

    def close(self) -> None:
        """Let the thread end."""
        self._calls.put(None)


def call_with_limit(function: Callable[[], T], limit: float) -> T:
    """Call a function in a thread of its own; TimeoutError if it takes longer than `limit` seconds."""
    worker = _Worker()
    try:
        return worker.call(function, lambda waited: waited >= limit)
    finally:
        worker.close()


def candidate_fault(candidate: object, problem: Problem) -> str | None:
    """What is wrong with a candidate, in words; None if nothing is.

    Its accuracy is not looked at: a formula that is not finite on the rows is merely a bad one.
    """
    if not isinstance(candidate, Candidate):
        return f"it yielded {type(candidate).__name__}, not a Candidate"
    derivation = candidate.derivation
    if not isinstance(derivation, tuple) or not all(isinstance(step, str) for step in derivation):
        return "the derivation is not a tuple of texts"
    try:
        if size(candidate.expression) > MAX_NODES:
            return f"the expression has more than {MAX_NODES} nodes"
        for node in walk(candidate.expression):
            fault = _node_fault(node, problem)
            if fault is not None:
                return fault
    except (TypeError, AttributeError, RecursionError) as error:
        return f"the expression is malformed ({type(error).__name__}: {error})"
    return None


def _node_fault(node: object, problem: Problem) -> str | None:
    match node:
        case Number(value=value):
            if isinstance(value, float) and not np.isfinite(value):
                return f"the expression holds the number {value}"
            if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
                return f"the expression holds a number of type {type(value).__name__}"
        case Variable(index=index):
            if not isinstance(index, int) or not 0 <= index < problem.columns:
                return f"the expression holds the variable {index}, of {problem.columns}"
        case Symbol(name=name):
            if name != "pi" and name not in {constant.name for constant in problem.constants}:
                return f"the expression holds the unknown constant {name!a}"
        case Apply(operator=operator, arguments=arguments):
            spec = OPERATORS.get(operator)
            if spec is None:
                return f"the expression holds the unknown operator {operator!a}"
            if not isinstance(arguments, tuple) or len(arguments) != spec.arity:
                return f"{operator} has {len(arguments)} arguments, not {spec.arity}"
        case Parameter():
            return "the expression holds a parameter without a value; fit the constants first"
        case _:
            return f"the expression holds a {type(node).__name__}"
    return None


class GuardedGenerator:
    """A plugin's generator, as the search sees it.

    Raises
    ------
    PluginError
        From `propose` or on construction: the generator misbehaved and must not be called again.
    """

    def __init__(self, package: str, spec: GeneratorSpec, **options: Any) -> None:
        self.name = spec.name
        self.package = package
        self._faults = 0
        self._worker = _Worker()
        self._rows: tuple[Problem, Problem] | None = None

        def build() -> Generator:
            return spec.build(**options)

        self._inner: Generator = self._call(build, lambda waited: waited >= BUILD_LIMIT, "could not be built")
        if not callable(getattr(self._inner, "propose", None)):
            raise self._error(f"build returned {type(self._inner).__name__}, which has no propose()")

    def _error(self, reason: str) -> PluginError:
        self._worker.close()
        return PluginError(f"plugin package {self.package}: generator {self.name!r} {reason}")

    def _call(self, function: Callable[[], T], give_up: Callable[[float], bool], what: str) -> T:
        try:
            return self._worker.call(function, give_up)
        except TimeoutError:
            raise self._error("hangs, and is switched off") from None
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise self._error(f"{what}, and is switched off ({type(error).__name__}: {text})") from error

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        """Pass on what the plugin proposes, one at a time, as long as it is well formed."""
        protected = self._protected(problem)

        def start() -> Iterator[Candidate]:
            return iter(self._inner.propose(protected, archive, budget))

        def step() -> object:
            return next(proposals, _END)

        overdue_since: list[float] = []

        def give_up(waited: float) -> bool:
            if budget.deadline == float("inf") and waited >= SILENCE:
                return True
            if budget.clock() >= budget.deadline or budget.cancelled():
                overdue_since.append(waited)
                return waited - overdue_since[0] >= GRACE
            return False

        proposals = self._call(start, give_up, "raised an error")
        while True:
            overdue_since.clear()
            candidate = self._call(step, give_up, "raised an error")
            if candidate is _END:
                return
            fault = candidate_fault(candidate, problem)
            if fault is None:
                assert isinstance(candidate, Candidate)
                yield candidate
                continue
            self._faults += 1
            if self._faults >= FAULTS_ALLOWED:
                raise self._error(
                    f"proposed {self._faults} malformed candidates, and is switched off; {fault}"
                )

    def _protected(self, problem: Problem) -> Problem:
        """The same problem with arrays of its own that cannot be written to."""
        if self._rows is None or self._rows[0] is not problem:
            copies = {}
            for name in ("inputs", "target", "weights"):
                array = getattr(problem, name)
                if array is not None:
                    copies[name] = array.copy()
                    copies[name].flags.writeable = False
            self._rows = (problem, replace(problem, **copies))
        return self._rows[1]


_END = object()


class GuardedNumeric:
    """An elementwise function of a plugin's operator: nan where the function fails.

    Arguments are passed read-only. After `FAULTS_ALLOWED` failed calls it is not called any more.
    """

    def __init__(self, function: Callable[..., FloatArray], arguments: int) -> None:
        self.function = function
        self.arguments = arguments
        self.faults = 0
        self.reason = ""

    def __call__(self, *arguments: FloatArray) -> FloatArray:
        shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
        if self.faults < FAULTS_ALLOWED:
            try:
                value = np.asarray(self.function(*map(_read_only, arguments)))
                if value.dtype == np.float64 and value.shape == shape:
                    return value
                self.reason = f"returned {value.dtype} of shape {value.shape}, not float64 of shape {shape}"
            except (Exception, SystemExit) as error:
                self.reason = f"raised {type(error).__name__}: {' '.join(str(error).split())[:200]}"
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
                off = ", and is switched off" if numeric.faults >= FAULTS_ALLOWED else ""
                return f"plugin package {self.package}: operator {self.name!r} {numeric.reason}{off}"
        return None
