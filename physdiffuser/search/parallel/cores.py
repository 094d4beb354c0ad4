"""How many processes a run may use."""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import threading
from pathlib import Path

from physdiffuser.errors import UsageError

JOBS_VARIABLE = "PHYSDIFFUSER_JOBS"
"""Environment variable: the default of `--jobs`."""

# Threads of the program itself in which a search may use all cores.
OWN_THREADS = "physdiffuser-"


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and the limit of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _group_limit())))


def default_jobs() -> int:
    """Processes of a run that names no number: one for each core, one inside of other parallel work.

    Raises
    ------
    UsageError
        If the environment variable `PHYSDIFFUSER_JOBS`, which sets another default, is no such number.
    """
    given = os.environ.get(JOBS_VARIABLE, "")
    if given:
        if not given.isdigit() or int(given) < 1:
            raise UsageError(f"{JOBS_VARIABLE}={given!a}: must be a whole number of processes above 0")
        return int(given)
    return 1 if is_nested() or not can_fork() else usable_cores()


def can_fork() -> bool:
    """Whether worker processes can be forked safely.

    Apple's numeric libraries cannot be used after a fork, and Windows has none.
    """
    return sys.platform.startswith("linux")


def is_nested() -> bool:
    """Whether this is a worker of joblib, dask or multiprocessing, or a thread of somebody's pool."""
    thread = threading.current_thread()
    own = thread is threading.main_thread() or thread.name.startswith(OWN_THREADS)
    return not own or multiprocessing.parent_process() is not None or multiprocessing.current_process().daemon


def _group_limit(root: Path = Path("/sys/fs/cgroup")) -> float:
    """Cores that the control group allows; inf where it sets no limit."""
    try:
        quota, period = (root / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return math.inf
    try:
        return float(quota) / float(period) if float(quota) > 0 else math.inf
    except (ValueError, ZeroDivisionError):
        return math.inf
