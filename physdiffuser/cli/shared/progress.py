"""The line on stderr that shows what the search has found so far."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from physdiffuser.io.display import visible

if TYPE_CHECKING:
    from physdiffuser.core.progress import Progress

INTERVAL = 0.1
_FORMULA_LENGTH = 200
_FORMAT = "{desc}"
_TIMED_FORMAT = "{n:.0f}/{total:.0f} s |{bar:12}| {desc}"


class ProgressLine:
    """A tqdm bar: elapsed of the budget, the best formula and its error.

    The search reports better formulas only; between them a small thread moves the clock on.

    Parameters
    ----------
    shown
        Whether to show anything.
    budget
        Seconds in all, or None when only steps limit the search.
    """

    def __init__(self, shown: bool, budget: float | None) -> None:
        self._budget = budget
        self._started = time.monotonic()
        self._text = "reading the table"
        self._closed = threading.Event()
        self._bar: Any = _bar(budget) if shown else None
        if self._bar is not None:
            self._thread = threading.Thread(target=self._tick, name="physdiffuser-progress", daemon=True)
            self._thread.start()

    def update(self, progress: Progress) -> None:
        """Show a better formula."""
        if self._bar is not None:
            self._text = _describe(progress)

    def _tick(self) -> None:
        while not self._closed.wait(INTERVAL):
            self._draw()

    def _draw(self) -> None:
        elapsed = time.monotonic() - self._started
        budget = self._budget
        self._bar.ncols = _width()
        self._bar.n = elapsed if budget is None else min(elapsed, budget)
        prefix = f"{elapsed:.0f} s  " if budget is None else ""
        self._bar.set_description_str(prefix + self._text, refresh=True)

    def close(self) -> None:
        """Remove the line; further calls do nothing."""
        if self._bar is None:
            return
        self._closed.set()
        self._thread.join()
        self._bar.close()
        self._bar = None


def _describe(progress: Progress) -> str:
    # The error is relative to the spread of the target, so it can be read without knowing the units.
    # It stands first: the end of a long formula is cut at the edge of the terminal.
    return f"error {max(progress.loss, 0.0) ** 0.5:.1e}  {visible(progress.best, _FORMULA_LENGTH)}"


def _width() -> int:
    """Columns of the terminal at this moment; some terminals say 0."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _bar(budget: float | None) -> Any:
    from tqdm import tqdm

    return tqdm(
        total=budget,
        file=sys.stderr,
        leave=False,
        # Given, because tqdm hides the line on a terminal that says it has no rows.
        ncols=_width(),
        nrows=20,
        bar_format=_FORMAT if budget is None else _TIMED_FORMAT,
    )
