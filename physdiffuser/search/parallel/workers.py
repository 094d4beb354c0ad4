"""Worker processes of a run: forked from it when they are first needed, and gone when it ends.

A worker holds generators and works off their turns (`turns.py`), several of them in turn. It is a fork of the
run's process, so nothing has to be imported again, and plugins' operators and the table are there without a
copy. Generators and problems, which hold the rows that are searched, are sent through a pipe.

* A worker that dies is replaced. Its generators begin again there with the views that they were shown; events
  that the search already has are left out, so only time is lost.
* Workers ignore Ctrl-C, which the run's process decides about, and are killed when the run ends. When the
  process dies, the kernel kills them; where it cannot, a thread in each sees that the parent has changed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import Expression
from physdiffuser.search.parallel.ahead import Workers
from physdiffuser.search.parallel.cores import can_fork, default_jobs
from physdiffuser.search.parallel.serving import serve
from physdiffuser.search.parallel.turns import Event, View

# Seconds between two looks at the clock and at whether the user wants to stop.
_POLL = 0.05
_JOINING = 1.0
# Times that a generator is begun again after the death of its worker.
_RESTARTS = 2
# Seconds that a worker may take to say how usual formulas are.
_JUDGING = 30.0


T = TypeVar("T")


class WorkerProcess:
    """One worker, as the run's process sees it.

    Parameters
    ----------
    niceness
        How far it stands back behind the run's process where there are too few cores.
    """

    def __init__(self, niceness: int) -> None:
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=serve,
            args=(os.getpid(), theirs, self._connection, niceness),
            name="physdiffuser-worker",
            daemon=True,
        )
        self.inboxes: dict[int, queue.SimpleQueue[Any]] = {}
        self._lock = threading.Lock()
        self.dead = False
        with warnings.catch_warnings():
            # The child uses no thread of the parent, and nothing that one of them may hold.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        theirs.close()
        threading.Thread(target=self._receive, name="physdiffuser-worker", daemon=True).start()

    @property
    def pid(self) -> int | None:
        """Of the process."""
        return self._process.pid

    def inbox(self, number: int) -> queue.SimpleQueue[Any]:
        """Where messages with this number arrive; None in it says that the worker has died."""
        with self._lock:
            box = self.inboxes.setdefault(number, queue.SimpleQueue())
            if self.dead:
                box.put(None)
            return box

    def send(self, message: tuple[Any, ...]) -> None:
        """Send a message. That a worker has died shows in the inboxes."""
        with contextlib.suppress(OSError):
            self._connection.send(message)

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join(_JOINING)

    def death(self) -> str:
        """How it died."""
        self._process.join(_JOINING)
        code = self._process.exitcode
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"

    def _receive(self) -> None:
        # A thread: a worker must never wait for the search to read, nor the search for a worker to listen.
        try:
            with contextlib.suppress(OSError, EOFError):
                while True:
                    number, content = self._connection.recv()
                    self.inbox(number).put(content)
        finally:
            with self._lock:
                self.dead = True
                for box in self.inboxes.values():
                    box.put(None)


class ForkedWorkers:
    """The workers of one run.

    Parameters
    ----------
    jobs
        Processes at work, that of the run included.
    """

    def __init__(self, jobs: int) -> None:
        self._most = jobs - 1
        self._shared: list[WorkerProcess | None] = []
        self._apart: dict[str, WorkerProcess] = {}
        self._opened = self._epoch = 0
        self._problem: Problem | None = None

    def __enter__(self) -> ForkedWorkers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def processes(self) -> int:
        """Processes at work, that of the run included."""
        return self._most + 1

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers."""
        every = [*self._apart.values(), *(one for one in self._shared if one is not None)]
        return [one.pid for one in every if one.pid is not None and not one.dead]

    def open(
        self,
        generator: Generator,
        problem: Problem,
        steps: int,
        cancelled: Callable[[], bool],
        *,
        apart: bool,
    ) -> Forked | None:
        """See `physdiffuser.search.parallel.ahead.Workers`."""
        if apart and "torch" in sys.modules:
            # A network does not run in the fork of a process that may have used one: its threads are missing.
            return None
        self._opened += 1
        if problem is not self._problem:
            self._problem, self._epoch = problem, self._epoch + 1
        slot = None if apart else self._opened
        work = (self._epoch, generator, problem, steps)
        forked = Forked(self, slot, self._opened, work, cancelled)
        return forked if forked.begin() else None

    def map(self, function: Callable[..., T], every: Sequence[tuple[Any, ...]]) -> list[T]:
        """What a function gives for each tuple of arguments; the run's process takes its share.

        Parameters
        ----------
        function
            Of a module, so that it can be sent, as its arguments and answers are.

        Raises
        ------
        Exception
            What the function has raised.
        """
        groups = [every[place :: self.processes] for place in range(self.processes)]
        asked: list[queue.SimpleQueue[Any]] = []
        for place, group in enumerate(groups[1:]):
            self._opened += 1
            worker = self.worker(place, "")
            asked.append(worker.inbox(self._opened))
            # One message for all of a worker's share: it reads the next one when it has done the first.
            worker.send(("call", self._opened, _each, (function, group)))
        answers = [_each(function, groups[0])]
        for inbox, group in zip(asked, groups[1:], strict=True):
            answers.append(self._answer(inbox, partial(_each, function, group)))
        return [answers[place % self.processes][place // self.processes] for place in range(len(every))]

    def _answer(self, inbox: queue.SimpleQueue[Any], again: Callable[[], T]) -> T:
        """What a worker answers; after its death the run's process does its work."""
        while True:
            try:
                answer = inbox.get(timeout=_POLL)
            except queue.Empty:
                continue
            if answer is None:
                return again()
            good, content = answer
            if not good:
                raise content
            return cast(T, content)

    def worker(self, slot: int | None, name: str) -> WorkerProcess:
        """The worker for a place, or for the generator of that name alone."""
        if slot is None:
            if name not in self._apart or self._apart[name].dead:
                self._apart[name] = WorkerProcess(niceness=10)
            return self._apart[name]
        place = slot % self._most
        self._shared += [None] * (place + 1 - len(self._shared))
        known = self._shared[place]
        if known is None or known.dead:
            known = self._shared[place] = WorkerProcess(niceness=2)
        return known

    def close(self) -> None:
        """Kill all workers."""
        for one in (*self._apart.values(), *self._shared):
            if one is not None:
                one.close()
        self._apart, self._shared = {}, []


def _each(function: Callable[..., T], every: Sequence[tuple[Any, ...]]) -> list[T]:
    return [function(*arguments) for arguments in every]


class Forked:
    """Turns of one generator that a worker works off (`physdiffuser.search.parallel.ahead.RemoteSource`).

    Parameters
    ----------
    number
        Of this among all that the workers have opened.
    work
        Number of the search, the generator, the problem, and steps of a turn.
    """

    def __init__(
        self,
        workers: ForkedWorkers,
        slot: int | None,
        number: int,
        work: tuple[int, Generator, Problem, int],
        cancelled: Callable[[], bool],
    ) -> None:
        self.warning: str | None = None
        self._workers, self._slot, self._number, self._work = workers, slot, number, work
        self._name, self._cancelled = work[1].name, cancelled
        self._views: list[View] = []
        self._events: list[Event] = []
        self._received = self._skipped = self._restarts = self._asked = 0

    def begin(self) -> bool:
        """Hand the generator over; False if that cannot be done."""
        self._worker = self._workers.worker(self._slot, self._name)
        self._inbox = self._worker.inbox(self._number)
        try:
            self._worker.send(("open", self._number, *self._work))
        except Exception:  # whatever a generator holds that cannot be sent
            return False
        for view in self._views:
            self._worker.send(("grant", self._number, view))
        return True

    def grant(self, view: View) -> None:
        """See `Source`."""
        self._views.append(view)
        self._worker.send(("grant", self._number, view))

    def next(self, budget: Budget) -> Event | None:
        """See `Source`."""
        while not self._events:
            try:
                message = self._inbox.get(timeout=_POLL)
            except queue.Empty:
                if budget.clock() >= budget.deadline or self._cancelled():
                    return None
                continue
            if message is None:
                self._restart()
                continue
            # After a restart the worker repeats what has been received already.
            repeated = min(self._skipped, len(message))
            self._skipped -= repeated
            self._events += message[repeated:]
            self._received += len(message) - repeated
        return self._events.pop(0)

    def form_nats(self, formulas: Sequence[Expression]) -> FloatArray | None:
        """See `RemoteSource`."""
        self._asked += 1
        # Negative numbers: the answers are no events.
        number = -(self._number * 1000 + self._asked)
        inbox = self._worker.inbox(number)
        self._worker.send(("form_nats", number, self._number, list(formulas)))
        until = time.monotonic() + _JUDGING
        while time.monotonic() < until and not self._cancelled():
            with contextlib.suppress(queue.Empty):
                answer = inbox.get(timeout=_POLL)
                if isinstance(answer, Exception):
                    raise answer
                return None if answer is None else np.asarray(answer, np.float64)
        return None

    def _restart(self) -> None:
        how = self._worker.death()
        self._restarts += 1
        if self._restarts > _RESTARTS:
            raise RuntimeError(f"its worker process died {self._restarts} times, the last time by {how}")
        self.warning = (
            f"a worker process died ({how}) in a turn of the generator {self._name!r}; the turn was repeated"
        )
        self._skipped = self._received
        self.begin()


def workers_of(jobs: int | None, scheduler: str | None = None) -> AbstractContextManager[Workers | None]:
    """The workers of a run.

    Parameters
    ----------
    jobs
        Processes; None: `default_jobs`. With one, there are no workers.
    scheduler
        A dask cluster that has the workers instead.
    """
    if scheduler is not None:
        from physdiffuser.search.parallel.distributed import DaskWorkers

        return DaskWorkers(scheduler)
    return forked_workers(jobs)


def forked_workers(jobs: int | None) -> AbstractContextManager[ForkedWorkers | None]:
    """Workers on this machine.

    Parameters
    ----------
    jobs
        Processes; None: `default_jobs`. With one, or where processes cannot be forked, there are no workers.
    """
    most = default_jobs() if jobs is None else jobs
    return ForkedWorkers(most) if most > 1 and can_fork() else nullcontext()
