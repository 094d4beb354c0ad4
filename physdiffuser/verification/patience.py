"""How long a run waits for symbolic work.

What sympy finishes within some seconds depends on the machine and on its other work. A run that is limited by
steps gives the same answer everywhere: it waits so much longer that only work without an end is broken off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Times the usual limit. In golden runs, and in tests with templates and constraints
# no answer took a tenth of this.
PATIENCE = 12.0


def _always() -> bool:
    return True


_in_a_hurry: ContextVar[Callable[[], bool]] = ContextVar("in_a_hurry", default=_always)


@contextmanager
def symbolic_patience(time_limit: float | None, stopped: Callable[[], bool]) -> Iterator[None]:
    """Limits of symbolic work for one run.

    Parameters
    ----------
    time_limit
        Of the run, in seconds; None if only its steps are limited.
    stopped
        Whether the user wants the answer now.
    """
    token = _in_a_hurry.set(stopped if time_limit is None else _always)
    try:
        yield
    finally:
        _in_a_hurry.reset(token)


def allowed(seconds: float) -> float:
    """Seconds that symbolic work may take, from those it may take in a run with a time limit."""
    return seconds if _in_a_hurry.get()() else PATIENCE * seconds
