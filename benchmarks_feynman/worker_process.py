"""The worker: reads one task a line, writes one message a line, until its input ends.

Messages have a `stage`: `solving` (the table is drawn), `judging` (with the answer as `result`, so that
it is not lost if the judge dies) and `done` (with the whole `result`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from benchmarks_feynman.export import units_of
from benchmarks_feynman.judge import judge, unjudged
from benchmarks_feynman.sampling import Table, sample
from benchmarks_feynman.suites import MEASURED, Law, select
from benchmarks_feynman.systems import load_system
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.tasks import KNOWN_SYSTEM, Settings, Task
from physdiffuser.expressions import to_text

Emit = Callable[[dict[str, Any]], None]
_TRACEBACK_LINES = 12
_WATCH_SECONDS = 1.0
# What is kept of a peer's own answer when its constants were snapped besides.
_UNSNAPPED = (
    "expression",
    "status",
    "seconds",
    "complexity",
    "max_relative_error",
    "exact_numbers",
    "strict",
    "srbench",
    "form",
    "recovered",
    "r2_test",
    "tree_distance",
)


class _Prepared:
    """The systems that have been imported and warmed in this process."""

    def __init__(self) -> None:
        self._done: set[tuple[str, bool]] = set()

    def prepare(self, system: str, settings: Settings) -> None:
        key = (system, settings.cold)
        if key not in self._done:
            load_system(system).prepare(settings)
            self._done.add(key)


def handle(task: Task, prepared: _Prepared, emit: Emit) -> None:
    """Solve and judge one task, reporting how far it has come."""
    (law,) = select([task.suite], [task.id])
    settings = task.settings
    rows, dummy = settings.rows_for(law), settings.dummy_for(law)
    try:
        table = sample(law, rows=rows, seed=task.seed, noise=task.noise, dummy=dummy)
        prepared.prepare(task.system, settings)
        system = load_system(task.system)
        emit({"stage": "solving", "patience": getattr(system, "PATIENCE", 1.0)})
        used = _cpu_seconds()
        answer = system.solve(table, task, units_of(law, dummy) if settings.units else None)
        used = _cpu_seconds() - used
    except Exception as error:
        emit({"stage": "done", "result": unjudged(law) | _failure(error)})
        return
    raw: Answer | None = None
    if settings.snap_peers and task.system != KNOWN_SYSTEM and answer.expression is not None:
        raw, answer = answer, _snapped(answer, table)
    result = _answered(answer, table.names, rows, dummy) | {"cpu_seconds": used}
    emit({"stage": "judging", "result": unjudged(law) | result})
    test_rows = max(_test_rows(rows), 1)
    if law.suite == MEASURED:
        emit({"stage": "done", "result": result | _scored(law, answer)})
        return
    try:
        result |= judge(law, answer.expression, seed=task.seed, dummy=dummy, test_rows=test_rows)
        result = finish(law, result)
        if raw is not None:
            emit({"stage": "judging", "result": result})  # a new limit, and what is known so far
            verdict = judge(law, raw.expression, seed=task.seed, dummy=dummy, test_rows=test_rows)
            before = {"expression": _text(raw, table.names), "seconds": raw.seconds, "status": raw.status}
            whole = finish(law, before | verdict)
            result["unsnapped"] = {name: whole[name] for name in _UNSNAPPED}
    except Exception as error:
        failed = _failure(error)
        emit({"stage": "done", "result": unjudged(law) | result | {"judge_error": failed["error"]}})
        return
    emit({"stage": "done", "result": result})


def _scored(law: Law, answer: Answer) -> dict[str, Any]:
    """The score of an answer to a measured table; without one, with the reason, where that fails."""
    from benchmarks_feynman.measured.score import score

    try:
        return score(law, answer.expression, answer.status, answer.details)
    except Exception as error:
        return unjudged(law) | {"judge_error": _failure(error)["error"]}


def _snapped(answer: Answer, table: Table) -> Answer:
    """The answer with its constants snapped; as it was, with the reason, where that fails."""
    from benchmarks_feynman.systems.snapped import snapped

    assert answer.expression is not None
    try:
        return snapped(answer, table, answer.expression)
    except Exception as error:
        details = {**answer.details, "snapping_error": f"{type(error).__name__}: {error}"}
        return replace(answer, details=details)


def _cpu_seconds() -> float:
    """Processor time of this process and of the children it has waited for."""
    return sum(os.times()[:4])


def _test_rows(rows: int) -> int:
    """A quarter of all rows, as in SRBench's split."""
    return math.ceil(rows / 3)


def _text(answer: Answer, names: tuple[str, ...]) -> str | None:
    return None if answer.expression is None else to_text(answer.expression, names)


def _answered(answer: Answer, names: tuple[str, ...], rows: int, dummy: int) -> dict[str, Any]:
    return {
        "status": answer.status,
        "expression": _text(answer, names),
        "seconds": answer.seconds,
        "details": answer.details,
        "table": {"rows": rows, "dummy": dummy, "columns": list(names)},
        "machine": machine(),
    }


@cache
def machine() -> dict[str, Any]:
    """Where and with what the answer was found."""
    import numpy

    from physdiffuser import __version__

    return {
        "platform": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "physdiffuser": __version__,
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def finish(law: Law, result: dict[str, Any]) -> dict[str, Any]:
    """Add what follows from the answer and the verdicts together."""
    numbers = result["exact_numbers"] and result["exact_outside"] is not False
    right = numbers or result["strict"] == "verified"
    claimed = result["status"] == "exact"
    # A law with noise has no exact numbers to find: there, the form is what a claim can be right about.
    return result | {"recovered": right, "confident_wrong": claimed and not right and not result["form"]}


def _failure(error: Exception) -> dict[str, Any]:
    lines = "".join(traceback.format_exception(error)).strip().splitlines()[-_TRACEBACK_LINES:]
    return {"status": "error", "error": f"{type(error).__name__}: {error}", "traceback": lines}


def plain(value: Any) -> Any:
    """The same data with null for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def end_with_parent() -> None:
    """End this process and what it started when its parent dies, even in the middle of a problem."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os.killpg(os.getpgrp(), signal.SIGKILL)

    # Only as the leader of its own group: anything else in the group would not be ours to end.
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        threading.Thread(target=watch, daemon=True).start()


def main() -> None:
    """Serve tasks from standard input."""
    end_with_parent()
    cpus = [int(argument) for argument in sys.argv[1:]]
    if cpus and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):  # a CPU taken away since: better unbound than not run
            os.sched_setaffinity(0, cpus)
    # Libraries that print must not end up between the messages.
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def emit(message: dict[str, Any]) -> None:
        channel.write(json.dumps(plain(message), allow_nan=False).encode() + b"\n")

    prepared = _Prepared()
    for line in sys.stdin:
        handle(Task.from_document(json.loads(line)), prepared, emit)


if __name__ == "__main__":
    main()
