"""What a worker process does: it works off turns of the generators that it was given."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Problem
from physdiffuser.reduction.analysis import SharedAnalysis
from physdiffuser.search.parallel.turns import Event, TurnEnd, Turns, View, ViewedArchive

# Seconds between two looks at whether the parent is still there.
_WATCH = 0.5
# Events are sent together if they come within so many seconds.
_TOGETHER = 0.02
# prctl(PR_SET_PDEATHSIG, SIGKILL)
_DEATH_SIGNAL = 1


@dataclass
class _Opened:
    """A generator with its problem, the turns that it may have, and the one that it is in.

    Attributes
    ----------
    epoch
        Number of the search among those of the run: turns of the latest come first.
    granted
        When each turn was granted, and its view.
    events
        What has not been sent.
    """

    epoch: int
    generator: Generator
    problem: Problem
    turns: Turns
    granted: list[tuple[int, View]] = field(default_factory=list)
    running: Iterator[Candidate | TurnEnd] | None = None
    events: list[Event] = field(default_factory=list)
    sent: float = 0.0


def opened(generator: Generator, problem: Problem, steps: int) -> Turns:
    """Turns of a generator with an analysis of its own."""
    faults: list[str] = []
    return Turns(generator, ViewedArchive(problem, SharedAnalysis(problem, faults), faults), steps)


def serve(parent: int, connection: Connection, parents: Connection, niceness: int) -> None:
    """Work until the parent closes the connection or dies; never returns.

    Parameters
    ----------
    parent
        Process id of the parent.
    connection, parents
        The two ends of a pipe: the worker's, and the parent's, which the fork has copied.
    niceness
        Added to that of the parent.
    """
    parents.close()
    _end_with_parent(parent)
    _leave_signals_to_parent()
    with contextlib.suppress(OSError):
        os.nice(niceness)
    try:
        with np.errstate(all="ignore"):
            _Server(connection).work()
    except (EOFError, OSError):
        pass
    finally:
        # What the parent has registered for its own end is not the worker's to do.
        os._exit(0)


class _Server:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._opened: dict[int, _Opened] = {}
        self._grants = 0

    def work(self) -> None:
        """Take messages first, then go on with the turn that was granted first in the latest search."""
        while True:
            waiting = [number for number, one in self._opened.items() if one.granted]
            if not waiting or self._connection.poll():
                self._take(*self._connection.recv())
                continue
            self._go_on(
                min(
                    waiting,
                    key=lambda number: (-self._opened[number].epoch, self._opened[number].granted[0][0]),
                )
            )

    def _take(self, kind: str, number: int, *rest: Any) -> None:
        if kind == "open":
            epoch, generator, problem, steps = rest
            self._opened[number] = _Opened(epoch, generator, problem, opened(generator, problem, steps))
        elif kind == "grant":
            self._grants += 1
            self._opened[number].granted.append((self._grants, *rest))
        elif kind == "call":
            self._call(number, *rest)
        else:
            self._judge(number, *rest)

    def _go_on(self, number: int) -> None:
        """Work until the next candidate of a turn, or to its end."""
        one = self._opened[number]

        def note(steps: int) -> None:
            one.events.append(steps)
            if time.monotonic() >= one.sent + _TOGETHER:
                self._send(number, one)

        if one.running is None:
            one.running = one.turns.run(one.granted[0][1], note)
        event = next(one.running)
        one.events.append(event)
        if isinstance(event, TurnEnd):
            one.running = None
            del one.granted[: None if event.finished else 1]
            self._send(number, one)

    def _send(self, number: int, one: _Opened) -> None:
        events, one.events = one.events, []
        try:
            self._connection.send((number, events))
        except OSError:
            raise
        except Exception as error:  # an exception that cannot be sent
            what = RuntimeError(f"{type(error).__name__}: {error}")
            self._connection.send((number, [*events[:-1], TurnEnd(True, what)]))
        one.sent = time.monotonic()

    def _judge(self, number: int, of: int, formulas: list[Any]) -> None:
        one = self._opened[of]
        judge: Callable[..., Any] = one.generator.form_nats  # type: ignore[attr-defined]
        try:
            answer = np.asarray(judge(one.problem, formulas))
        except Exception as error:
            self._connection.send((number, RuntimeError(f"{type(error).__name__}: {error}")))
        else:
            self._connection.send((number, answer))

    def _call(self, number: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            answer = (True, function(*arguments))
        except Exception as error:
            answer = (False, error)
        try:
            self._connection.send((number, answer))
        except OSError:
            raise
        except Exception as error:  # an answer that cannot be sent
            self._connection.send((number, (False, RuntimeError(f"{type(error).__name__}: {error}"))))


def _end_with_parent(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    threading.Thread(target=watch, name="physdiffuser-parent", daemon=True).start()


def _leave_signals_to_parent() -> None:
    with contextlib.suppress(ValueError):
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
