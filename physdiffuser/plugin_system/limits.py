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


@dataclass(frozen=True)
class LoadPolicy:
    """How long plugins may take to load.

    Set by hand (docs/plugins.md); importing torch takes about 2 s of processor time.
    """

    working: float = 4.0
    """Seconds of processor time for loading one plugin."""
    idle: float = 2.0
    progress: float = 1e-3
    """Seconds without progress, and processor time in them that counts as progress."""
    wall: float = 20.0
    """Seconds on the clock for all plugins."""
    share: float = 0.5
    """None of these is more than this share of a run's time."""
    negligible: float = 1.0
    """Seconds used up by earlier plugins that are neglected."""


POLICY = LoadPolicy()


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

    working: float = POLICY.working
    idle: float = POLICY.idle
    left: float = POLICY.wall
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
        share = POLICY.share * seconds
        return cls(min(POLICY.working, share), min(POLICY.idle, share / 2), min(POLICY.wall, share))

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
        self._first = limit.left >= limit.total - POLICY.negligible

    def __call__(self, waited: float) -> bool:
        limit = self._limit
        if limit.fixed is not None:
            return self._over(waited, limit.fixed, "s")
        cpu = self._worker.cpu_seconds()
        if cpu is not None:
            if cpu > self._cpu + POLICY.progress:
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
