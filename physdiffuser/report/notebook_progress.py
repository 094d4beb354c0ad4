"""The progress of a search in a notebook: a bar, and the best law so far."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from physdiffuser.core.progress import Progress
from physdiffuser.io.display import visible

INTERVAL = 0.2
_FORMULA_LENGTH = 120


def in_notebook() -> bool:
    """Whether this program is the kernel of a notebook."""
    # Not imported for this question: a notebook has imported it.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def notebook_progress(
    shown: bool | None, budget: float | None
) -> Iterator[Callable[[Progress], None] | None]:
    """Show the progress while the context lasts; gives what to call with each better formula.

    Parameters
    ----------
    shown
        Whether to show it; None: in a notebook.
    budget
        Seconds in all; None when only steps limit the search.
    """
    if not (in_notebook() if shown is None else shown):
        yield None
        return
    bar = _Bar(budget)
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    """A tqdm bar that a thread moves on, and the law under it where there is a display for it."""

    def __init__(self, budget: float | None) -> None:
        from tqdm.auto import tqdm

        style = "{desc}" if budget is None else "{n:.0f}/{total:.0f} s |{bar}| {desc}"
        self._bar: Any = tqdm(total=budget, leave=False, bar_format=style)
        self._budget, self._started, self._text = budget, time.monotonic(), "searching"
        self._law = _display("searching") if in_notebook() else None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="physdiffuser-progress", daemon=True)
        self._thread.start()

    def update(self, progress: Progress) -> None:
        """Show a better formula."""
        error = f"error {max(progress.loss, 0.0) ** 0.5:.1e}"
        self._text = error if self._law is not None else f"{error}  {visible(progress.best, _FORMULA_LENGTH)}"
        if self._law is not None:
            self._law.update(_Law(progress))

    def close(self) -> None:
        """Remove the bar and the law: the answer takes their place."""
        self._closed.set()
        self._thread.join()
        self._bar.close()
        if self._law is not None:
            self._law.update(_Text(""))

    def _tick(self) -> None:
        while not self._closed.wait(INTERVAL):
            elapsed = time.monotonic() - self._started
            self._bar.n = elapsed if self._budget is None else min(elapsed, self._budget)
            prefix = f"{elapsed:.0f} s  " if self._budget is None else ""
            self._bar.set_description_str(prefix + self._text, refresh=True)


class _Text:
    """Plain text for a display."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _Law(_Text):
    """A formula for a display: LaTeX where that can be shown."""

    def __init__(self, progress: Progress) -> None:
        super().__init__(visible(progress.best, 20_000))
        self.latex = visible(progress.latex, 20_000)

    def _repr_latex_(self) -> str | None:
        return f"$\\displaystyle {self.latex}$" if self.latex else None


def _display(text: str) -> Any:
    from IPython.display import display

    return display(_Text(text), display_id=True)
