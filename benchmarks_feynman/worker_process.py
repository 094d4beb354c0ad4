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
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks_feynman.export import units_of
from benchmarks_feynman.judge import judge, unjudged
from benchmarks_feynman.sampling import sample
from benchmarks_feynman.suites import Law, select
from benchmarks_feynman.systems import load_system
from benchmarks_feynman.systems.answer import Answer
from benchmarks_feynman.tasks import KNOWN_SYSTEM, Settings, Task
from physdiffuser.expressions import to_text

Emit = Callable[[dict[str, Any]], None]
_TRACEBACK_LINES = 12


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
    """Solve and judge one task, telling how far it has come."""
    (law,) = select([task.suite], [task.id])
    settings = task.settings
    rows, dummy = settings.rows_for(law), settings.dummy_for(law)
    try:
        table = sample(law, rows=rows, seed=task.seed, noise=task.noise, dummy=dummy)
        prepared.prepare(task.system, settings)
        emit({"stage": "solving"})
        answer = load_system(task.system).solve(table, task, units_of(law, dummy) if settings.units else None)
        if settings.snap_peers and task.system != KNOWN_SYSTEM and answer.expression is not None:
            from benchmarks_feynman.systems.snapped import snapped

            answer = snapped(answer, table, answer.expression)
    except Exception as error:
        emit({"stage": "done", "result": unjudged(law) | _failure(error)})
        return
    result = _answered(answer, table.names, rows, dummy)
    emit({"stage": "judging", "result": unjudged(law) | result})
    try:
        verdict = judge(
            law, answer.expression, seed=task.seed, dummy=dummy, test_rows=max(_test_rows(rows), 1)
        )
    except Exception as error:
        failed = _failure(error)
        emit({"stage": "done", "result": unjudged(law) | result | {"judge_error": failed["error"]}})
        return
    emit({"stage": "done", "result": finish(law, result | verdict)})


def _test_rows(rows: int) -> int:
    """A quarter of all rows, as in SRBench's split."""
    return math.ceil(rows / 3)


def _answered(answer: Answer, names: tuple[str, ...], rows: int, dummy: int) -> dict[str, Any]:
    return {
        "status": answer.status,
        "expression": None if answer.expression is None else to_text(answer.expression, names),
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
    right = result["exact_numbers"] or result["strict"] == "verified"
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


def main() -> None:
    """Serve tasks from standard input."""
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
