"""The line on stderr that shows what the search has found so far."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from physdiffuser.data.display import visible

if TYPE_CHECKING:
    from physdiffuser.pipeline import Progress

_FORMULA_LENGTH = 200
_FORMAT = "{desc}"
_TIMED_FORMAT = "{n:.0f}/{total:.0f} s |{bar:12}| {desc}"


class ProgressLine:
    """A tqdm bar: elapsed of the budget, the best formula and its error.

    Parameters
    ----------
    shown
        Whether to show anything.
    """

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None

    def update(self, progress: Progress) -> None:
        """Show the present state."""
        if not self._shown:
            return
        if self._bar is None:
            self._bar = _bar(progress.budget)
        self._bar.ncols = _width()
        budget = progress.budget
        self._bar.n = progress.elapsed if budget is None else min(progress.elapsed, budget)
        prefix = f"{progress.elapsed:.0f} s  " if budget is None else ""
        self._bar.set_description_str(prefix + _describe(progress), refresh=True)

    def close(self) -> None:
        """Remove the line."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _width() -> int:
    """Columns of the terminal at this moment; some terminals say 0."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def _describe(progress: Progress) -> str:
    if not progress.best:
        return "reading the table"
    # The error is relative to the spread of the target, so it can be read without knowing the units.
    # It stands first: the end of a long formula is cut at the edge of the terminal.
    return f"error {max(progress.loss, 0.0) ** 0.5:.1e}  {visible(progress.best, _FORMULA_LENGTH)}"


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
