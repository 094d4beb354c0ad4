"""How long loading plugins may take.

A plugin that waits for something that never comes uses no processor time, one in an endless loop uses nothing
else, and a healthy plugin that imports a large library on a busy machine uses little at a time for long.
So the limits are on processor time and on time without any progress, and only the last one is on the clock.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from physdiffuser.errors import UsageError
from physdiffuser.plugin_system.calls import PluginWorker

LIMIT_VARIABLE = "PHYSDIFFUSER_PLUGIN_LIMIT"
"""Environment variable: seconds on the clock for each plugin, in place of the limits below."""

WORKING_LIMIT = 4.0
"""Seconds of processor time for loading one plugin; importing torch takes about 2."""

IDLE_LIMIT = 2.0
"""Seconds without progress."""

WALL_LIMIT = 20.0
"""Seconds on the clock for all plugins."""

SHARE = 0.5
"""None of these is more than this share of a run's time."""

_PROGRESS = 1e-3
_NEGLIGIBLE = 1.0
HINT = (
    "Give more time (--time), or set another limit in the environment "
    f"({LIMIT_VARIABLE}=SECONDS). A plugin should import heavy libraries inside build"
)


@dataclass
class LoadLimit:
    """The time that plugins may take to load.

    Attributes
    ----------
    working, idle
        Seconds of processor time, and without progress, for each plugin.
    left
        Seconds on the clock for all that are still to be loaded; each gets at least `idle`.
    fixed
        Seconds on the clock for each plugin, the only limit where it is given.
    reason
        Why the last plugin was given up.
    """

    working: float = WORKING_LIMIT
    idle: float = IDLE_LIMIT
    left: float = WALL_LIMIT
    fixed: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        self.total = self.left

    @classmethod
    def for_run(cls, seconds: float) -> LoadLimit:
        """The limits in a run of so many seconds, inf for one without a time limit.

        Raises
        ------
        UsageError
            If the environment variable is no number of seconds.
        """
        text = os.environ.get(LIMIT_VARIABLE, "")
        if text:
            return cls(fixed=_seconds(text))
        share = SHARE * seconds
        return cls(min(WORKING_LIMIT, share), min(IDLE_LIMIT, share / 2), min(WALL_LIMIT, share))

    def watch(self, worker: PluginWorker) -> Watch:
        """Watch the loading of one plugin."""
        return Watch(self, worker)


class Watch:
    """Decides when one plugin has been loading for too long; called with the seconds waited."""

    def __init__(self, limit: LoadLimit, worker: PluginWorker) -> None:
        self._limit = limit
        self._worker = worker
        self._started = time.monotonic()
        self._cpu = 0.0
        self._progress = 0.0
        self._first = limit.left >= limit.total - _NEGLIGIBLE

    def __call__(self, waited: float) -> bool:
        limit = self._limit
        if limit.fixed is not None:
            return self._over(waited, limit.fixed, "s")
        cpu = self._worker.cpu_seconds()
        if cpu is not None:
            if cpu > self._cpu + _PROGRESS:
                self._cpu, self._progress = cpu, waited
            if self._over(cpu, limit.working, "s of processor time"):
                return True
            if self._over(waited - self._progress, limit.idle, "s, in which it did nothing"):
                return True
        what = "s" if self._first else "s, the time that the plugins before it have left"
        return self._over(waited, max(limit.left, limit.idle), what)

    def _over(self, used: float, allowed: float, what: str) -> bool:
        if used < allowed:
            return False
        self._limit.reason = f"it did not finish loading within {allowed:.2g} {what}. {HINT}"
        return True

    def end(self) -> None:
        """Charge the time that the plugin took."""
        self._limit.left -= time.monotonic() - self._started


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise UsageError(f"{LIMIT_VARIABLE}={text!a}: must be a number of seconds above 0")
    return seconds
