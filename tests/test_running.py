"""Watching and stopping a search from Python: callbacks, Ctrl-C, and a search in the background."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import numpy as np
import pytest

from physdiffuser import PhysDiffuserRegressor, solve, start
from physdiffuser.core.progress import Progress
from physdiffuser.errors import DataError
from physdiffuser.search.interruption import STOPPED

RNG = np.random.default_rng(3)
X = RNG.uniform(1, 5, (120, 3))
# No law of a few steps: a search of it goes on until it is stopped.
HARD = np.sin(X[:, 0] * X[:, 1]) + np.exp(X[:, 2] / 3) * np.cos(X[:, 1] ** 2) + 0.05 * RNG.normal(size=120)
LIMIT = {"time": 60.0}


def test_a_callback_stops_the_search() -> None:
    seen: list[Progress] = []

    def enough(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 2

    found = solve(X, HARD, on_improvement=enough, **LIMIT)
    assert found.best is not None and found.timing["elapsed_seconds"] < 30
    assert len(seen) == 2, "nothing is reported after the search was asked to stop"
    assert seen[-1].best and seen[-1].best in {text.strip() for text in (seen[-1].best, *seen[-1].front)}
    assert seen[-1].front and seen[-1].latex


def test_a_callback_that_returns_nothing_stops_nothing() -> None:
    told = solve(X, X[:, 0] ** 2, steps=5, on_improvement=lambda progress: None)
    silent = solve(X, X[:, 0] ** 2, steps=5)
    assert told.pareto == silent.pareto


def interrupt(progress: Progress) -> None:
    signal.raise_signal(signal.SIGINT)


def test_ctrl_c_returns_the_best_law_so_far() -> None:
    before = signal.getsignal(signal.SIGINT)
    found = solve(X, HARD, on_improvement=interrupt, **LIMIT)
    assert found.best is not None and STOPPED in found.warnings
    assert signal.getsignal(signal.SIGINT) is before, "the handler is put back"
    law = PhysDiffuserRegressor(**LIMIT).fit(X, HARD, on_improvement=interrupt)
    assert STOPPED in law.solution_.warnings and np.isfinite(law.predict(X)).all()


def test_a_second_ctrl_c_raises() -> None:
    def twice(progress: Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        solve(X, HARD, on_improvement=twice, **LIMIT)


def test_another_handler_of_ctrl_c_stays() -> None:
    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        found = solve(X, X[:, 0] ** 2, steps=5, on_improvement=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls and STOPPED not in found.warnings


def test_a_search_in_the_background_can_be_watched_and_stopped() -> None:
    better = threading.Event()

    def note(progress: Progress) -> None:
        better.set()

    search = start(X, HARD, on_improvement=note, **LIMIT)
    assert better.wait(30) and not search.done
    with pytest.raises(TimeoutError):
        search.result(timeout=0.001)
    search.stop()
    found = search.result(timeout=30)
    assert search.done and search.front and search.best in repr(search)
    assert found.best is not None and found.timing["elapsed_seconds"] < 30


def test_a_search_in_the_background_finds_what_solve_finds() -> None:
    assert start(X, X[:, 0] ** 2, steps=5).result().pareto == solve(X, X[:, 0] ** 2, steps=5).pareto


def test_errors_reach_whoever_asks_for_the_result() -> None:
    with pytest.raises(DataError):
        start({"x": ["a", "b"], "y": ["c", "d"]}, steps=5).result()


def test_a_search_can_be_awaited_beside_other_work() -> None:
    async def main() -> tuple[Any, int]:
        search, ticks = start(X, X[:, 0] * X[:, 1], steps=20), 0
        waiting = asyncio.ensure_future(_wait(search))
        while not waiting.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return await waiting, ticks

    async def _wait(search: Any) -> Any:
        return await search

    found, ticks = asyncio.run(main())
    assert found.best.text == "x1*x2" and ticks > 1


def test_cancelling_the_task_stops_the_search() -> None:
    async def main() -> Any:
        search = start(X, HARD, **LIMIT)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_wait(search), 0.1)
        return search

    async def _wait(search: Any) -> Any:
        return await search

    assert asyncio.run(main()).result(timeout=30) is not None


def test_progress_can_be_shown_and_leaves_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    solve(X, HARD, steps=8, progress=True)
    shown = capsys.readouterr().err
    assert "error" in shown
    solve(X, X[:, 0] ** 2, steps=3)
    assert capsys.readouterr().err == "", "a script shows nothing unless asked"
