"""The equations of several states are searched in several processes, with the same answer."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.errors import NothingFoundError
from physdiffuser.search.parallel.cores import can_fork
from physdiffuser.search.parallel.workers import ForkedWorkers

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked safely here")


def _decay() -> dict[str, npt.NDArray[np.float64]]:
    t = np.linspace(0.0, 4.0, 40)
    rng = np.random.default_rng(0)
    states = {"a": 2 * np.exp(-0.6 * t), "b": 3 * np.exp(-1.1 * t)}
    return {"t": t, **{name: values + 0.01 * rng.standard_normal(40) for name, values in states.items()}}


def test_any_number_of_processes_gives_the_same_equations() -> None:
    answers = [solve_dynamics(_decay(), steps=1, order=1, jobs=jobs) for jobs in (1, 2)]
    texts = [[row.text for one in found.equations for row in one.pareto] for found in answers]
    assert texts[0] == texts[1]


def _squared(value: int) -> int:
    return value * value


def _refused(value: int) -> int:
    raise NothingFoundError(f"{value} is refused.")


def _ends_in_a_worker(value: int, parent: int) -> int:
    if os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return -value


def test_answers_come_in_the_order_of_the_arguments() -> None:
    with ForkedWorkers(3) as workers:
        assert workers.map(_squared, [(value,) for value in range(7)]) == [0, 1, 4, 9, 16, 25, 36]


def test_an_exception_of_a_worker_is_raised() -> None:
    with ForkedWorkers(2) as workers, pytest.raises(NothingFoundError, match="is refused"):
        workers.map(_refused, [(1,), (2,)])


def test_work_of_a_worker_that_dies_is_done_again() -> None:
    with ForkedWorkers(2) as workers:
        assert workers.map(_ends_in_a_worker, [(1, os.getpid()), (2, os.getpid())]) == [-1, -2]


def test_the_time_limit_holds_for_a_large_table() -> None:
    """Twice the limit at most, on a machine that is busy with other tests."""
    t = np.linspace(0.0, 400.0, 4000)
    rng = np.random.default_rng(1)
    table = {"t": t} | {
        name: np.sin(rate * t) + 0.3 * np.sin(1.7 * rate * t) ** 3 + 0.05 * rng.standard_normal(t.size)
        for name, rate in (("a", 0.31), ("b", 0.47), ("c", 0.83), ("d", 1.21))
    }
    # Of this thread: those of numpy's matrix products spin while they wait for a processor.
    started = time.thread_time()
    solve_dynamics(table, time=8.0, jobs=1)
    assert time.thread_time() - started < 16.0
