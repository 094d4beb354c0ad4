"""Turns of generators on the workers of a dask cluster: on this machine, or on many.

    physdiffuser solve table.csv --scheduler local:4
    physdiffuser solve table.csv --scheduler tcp://HOST:PORT

Each generator is an actor of the cluster. What it proposes, and when, is what it would be in this process
(`ahead.py`). If the worker that holds it is lost, it begins again on another with the views that it was
shown, and events that the search already has are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NotYet
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression
from physdiffuser.search.parallel.serving import opened
from physdiffuser.search.parallel.turns import Event, View

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local:"
_LOG = logging.getLogger("distributed")
# Seconds to reach the scheduler, and to place a generator.
_CONNECTING = 20.0
_POLL = 0.05
_JUDGING = 30.0
# Times that a generator is begun again after the loss of its worker.
_RESTARTS = 5


class Actor:
    """A generator on a worker of the cluster."""

    def __init__(self, generator: Generator, problem: Problem, steps: int) -> None:
        self._generator, self._problem = generator, problem
        self._turns = opened(generator, problem, steps)

    def turn(self, view: View) -> list[Event]:
        """The events of a turn."""
        events: list[Event] = []
        with np.errstate(all="ignore"):
            # Steps that are spent come between the candidates.
            for event in self._turns.run(view, events.append):
                events.append(event)  # noqa: PERF402
        return events

    def form_nats(self, formulas: list[Expression]) -> FloatArray:
        """See `FormPrior`."""
        judge: Any = self._generator
        return np.asarray(judge.form_nats(self._problem, formulas))


class DaskWorkers:
    """The workers of a dask cluster, for one run (`physdiffuser.search.parallel.ahead.Workers`).

    Parameters
    ----------
    scheduler
        `local:N` for N processes on this machine, or the address of a running scheduler.

    Raises
    ------
    UsageError
        If dask.distributed is not installed, or the scheduler cannot be reached.
    """

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self._cluster: Any = None

    def __enter__(self) -> DaskWorkers:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise UsageError("--scheduler needs dask.distributed: pip install 'physdiffuser[dask]'") from None
        address: Any = self._scheduler
        count = processes(address) if address.startswith(LOCAL) else 0
        # The end of a run interrupts turns that are not needed any more, which dask reports as errors.
        self._level = _LOG.level
        _LOG.setLevel(logging.CRITICAL)
        try:
            if count:
                self._cluster = address = LocalCluster(
                    n_workers=count, threads_per_worker=1, dashboard_address=None
                )
            self.client: Client = Client(address, timeout=_CONNECTING, set_as_default=False)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"the scheduler {self._scheduler!a} cannot be reached ({error}): give the address that "
                "`dask scheduler` prints, such as tcp://HOST:8786"
            ) from error
        return self

    def __exit__(self, *exception: object) -> None:
        self.client.close()
        if self._cluster is not None:
            self._cluster.close()
        _LOG.setLevel(self._level)

    def open(
        self,
        generator: Generator,
        problem: Problem,
        steps: int,
        cancelled: Callable[[], bool],
        *,
        apart: bool,
    ) -> Distributed | None:
        """See `physdiffuser.search.parallel.ahead.Workers`."""
        placed = Distributed(self, (generator, problem, steps), cancelled)
        return placed if placed.begin() else None


class Distributed:
    """Turns of one generator on a cluster (`physdiffuser.search.parallel.ahead.RemoteSource`).

    Parameters
    ----------
    work
        The generator, the problem, and steps of a turn.
    """

    def __init__(
        self,
        workers: DaskWorkers,
        work: tuple[Generator, Problem, int],
        cancelled: Callable[[], bool],
    ) -> None:
        self.warning: str | None = None
        self._workers, self._work, self._cancelled = workers, work, cancelled
        self._views: list[View] = []
        # Turns whose events have been received, those that are worked off, and losses of a worker.
        self._done, self._turns, self._restarts = 0, list[Any](), 0
        self._events: list[Event] = []

    def begin(self) -> bool:
        """Place the generator; False if that cannot be done."""
        try:
            client = self._workers.client
            future = client.submit(Actor, *self._work, actor=True, pure=False)
            # The proxy of an actor asks for the current client, which need not be the default one.
            with client.as_current():
                self._actor = future.result(timeout=_CONNECTING)
        except Exception:  # whatever a generator holds that cannot be sent, or no worker
            return False
        self._turns = [self._turn(view) for view in self._views]
        return True

    def grant(self, view: View) -> None:
        """See `Source`."""
        self._views.append(view)
        self._turns.append(self._turn(view))

    def _turn(self, view: View) -> Any:
        try:
            return self._actor.turn(view)
        except RuntimeError as error:  # the worker is known to be lost
            return _Lost(error)

    def next(self, budget: Budget) -> Event | None:
        """See `Source`."""
        while not self._events:
            if self._done == len(self._turns):
                return None
            try:
                events = self._turns[self._done].result(timeout=_POLL)
            except (NotYet, TimeoutError):
                if budget.clock() >= budget.deadline or self._cancelled():
                    return None
                continue
            except Exception as error:
                self._restart(error)
                continue
            self._done += 1
            self._events = list(events)
        return self._events.pop(0)

    def form_nats(self, formulas: Sequence[Expression]) -> FloatArray | None:
        """See `RemoteSource`."""
        try:
            actor: Any = self._actor
            answer = actor.form_nats(list(formulas)).result(timeout=_JUDGING)
        except Exception:  # the worker is lost, or the generator fails: it is asked in this process
            return None
        return np.asarray(answer, np.float64)

    def _restart(self, error: Exception) -> None:
        name = self._work[0].name
        what = " ".join(str(error).split())[:200]
        self._restarts += 1
        if self._restarts > _RESTARTS or not self.begin():
            raise RuntimeError(f"its worker was lost {self._restarts} times, the last time by: {what}")
        self.warning = (
            f"a worker of the cluster was lost in a turn of the generator {name!r} ({what}); "
            "the turn was repeated"
        )


class _Lost:
    """A turn that no worker could be asked for."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def result(self, timeout: float) -> list[Event]:
        """Raises what asking has raised."""
        raise self._error


def processes(scheduler: str) -> int:
    """Processes of `local:N`.

    Raises
    ------
    UsageError
        If N is no number above 0.
    """
    text = scheduler.removeprefix(LOCAL)
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"scheduler={scheduler!a}: write local:N with a number of processes above 0")
    return int(text)
