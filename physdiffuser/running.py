"""A search in the background: `start` returns at once, the search can be watched, stopped and awaited."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from physdiffuser.core.progress import Progress
from physdiffuser.core.solution import Solution
from physdiffuser.pipeline import solve

if TYPE_CHECKING:
    from physdiffuser.data.arrays import Source


class RunningSearch:
    """A search in a thread of its own.

    Made by `start`. `await search` gives the solution; cancelling the task that awaits it stops the search.

    Parameters
    ----------
    work
        Solves, given what to call with each better formula, and whether to stop.
    """

    def __init__(self, work: Callable[[Callable[[Progress], bool], Callable[[], bool]], Solution]) -> None:
        self._stopped = threading.Event()
        self._progress: Progress | None = None
        self._future: Future[Solution] = Future()
        self._work = work
        self._thread = threading.Thread(target=self._run, name="physdiffuser-search", daemon=True)
        self._thread.start()

    @property
    def progress(self) -> Progress | None:
        """The latest report of the search; None before its first formula."""
        return self._progress

    @property
    def best(self) -> str | None:
        """The best formula so far, as text; None before the first one."""
        return None if self._progress is None else self._progress.best

    @property
    def front(self) -> tuple[str, ...]:
        """Formulas of the Pareto front so far, as text, simple ones first."""
        return () if self._progress is None else self._progress.front

    @property
    def done(self) -> bool:
        """Whether there is a solution or an error."""
        return self._future.done()

    def stop(self) -> None:
        """End the search soon; `result` then has the best law so far."""
        self._stopped.set()

    def result(self, timeout: float | None = None) -> Solution:
        """The solution, once there is one.

        Parameters
        ----------
        timeout
            Seconds to wait at most; no limit when None.

        Raises
        ------
        TimeoutError
            If there is none after that time. The search goes on.
        PhysdiffuserError
            As `solve` does.
        """
        return self._future.result(timeout)

    def __await__(self) -> Generator[Any, None, Solution]:
        return self._awaited().__await__()

    async def _awaited(self) -> Solution:
        try:
            # Shielded: the thread cannot be cancelled, it is asked to stop.
            return await asyncio.shield(asyncio.wrap_future(self._future))
        except asyncio.CancelledError:
            self.stop()
            raise

    def __repr__(self) -> str:
        state = "done" if self.done else "running"
        return f"RunningSearch({state}, best={self.best!r})"

    def _improved(self, progress: Progress) -> bool:
        self._progress = progress
        return self._stopped.is_set()

    def _run(self) -> None:
        try:
            self._future.set_result(self._work(self._improved, self._stopped.is_set))
        except BaseException as error:  # whoever asks for the result gets it
            self._future.set_exception(error)


def start(source: Source, y: object = None, **options: Any) -> RunningSearch:
    """Begin to solve a table in the background.

    Parameters
    ----------
    source, y, **options
        As for `physdiffuser.solve`. `on_improvement` is called in the thread of the search.

    Returns
    -------
    RunningSearch
        `best`, `front`, `stop()`, `result()`; it can be awaited.

    Examples
    --------
    >>> search = start({"t": [1.0, 2.0, 3.0, 4.0], "s": [5.0, 20.0, 45.0, 80.0]}, steps=20)
    >>> search.result().best.text
    '5*t**2'
    """
    theirs = options.pop("on_improvement", None)

    def work(improved: Callable[[Progress], bool], stopped: Callable[[], bool]) -> Solution:
        def both(progress: Progress) -> bool:
            wanted = theirs is not None and bool(theirs(progress))
            return improved(progress) or wanted

        return solve(source, y, on_improvement=both, cancelled=stopped, **options)

    return RunningSearch(work)
