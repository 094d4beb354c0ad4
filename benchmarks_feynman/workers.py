"""A process per problem that can be killed, kept warm from one problem to the next.

The worker is a program of its own (`python -m benchmarks_feynman.worker_process`) that reads tasks and writes
messages, one JSON object a line. Whatever happens in it (an endless loop in a library, a segmentation fault,
no more memory), this side records it and goes on with a fresh one. It needs no multiprocessing, so it also
works inside the daemonic workers of a cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, BinaryIO

from benchmarks_feynman.tasks import Task

Message = dict[str, Any]

START_LIMIT = 300.0
SOLVE_GRACE = 60.0
JUDGE_LIMIT = 180.0
_LOG_TAIL = 1500
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Worker:
    """One warm worker process; started when first needed, started again after it was killed.

    Parameters
    ----------
    cores
        CPU cores for a problem: the number of threads that numeric libraries may use.
    cpus
        Numbers of the CPUs it is bound to; not bound when empty.
    solve_grace, judge_limit
        Seconds after the task's time at which solving, and after which judging, is given up. A system that
        counts processor time gets its `PATIENCE` times the task's time.
    """

    def __init__(
        self,
        *,
        cores: int = 1,
        cpus: Sequence[int] = (),
        solve_grace: float = SOLVE_GRACE,
        judge_limit: float = JUDGE_LIMIT,
    ) -> None:
        self.cores = cores
        self.cpus = tuple(cpus)
        self.solve_grace = solve_grace
        self.judge_limit = judge_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._log: BinaryIO | None = None
        self._closed = False
        self._guard = threading.Lock()

    def run(self, task: Task) -> Message:
        """Solve and judge one task.

        Returns
        -------
        The entries of its result. Its `status` is the system's (`exact`, `approximate`, `none`), or
        `error`, `crashed` or `timeout`, with `error` saying what happened. An answer whose judge died keeps
        the answer, with verdicts unknown.
        """
        message: Message = {}
        try:
            process = self._start()
            assert process.stdin is not None
            process.stdin.write(json.dumps(task.document()).encode() + b"\n")
            process.stdin.flush()
        except OSError as error:
            return self._ended(message, f"the worker could not be started: {error}", timed_out=False)
        limit = START_LIMIT
        while True:
            reply, timed_out = self._read(process, limit)
            if reply is None:
                where = message.get("stage", "starting")
                return self._ended(message.get("result", {}), f"while {where}", timed_out=timed_out)
            message = {**message, **reply}
            match reply["stage"]:
                case "solving":
                    limit = task.settings.time * reply.get("patience", 1.0) + self.solve_grace
                case "judging":
                    limit = self.judge_limit
                case _:
                    return dict(message["result"])

    def close(self) -> None:
        """Kill the process, from any thread; later tasks fail instead of starting another."""
        with self._guard:
            self._closed = True
        self._kill()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._guard:
            if self._closed:
                raise OSError("the run was stopped")
            if self._process is not None and self._process.poll() is None:
                return self._process
            environment = {**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(self.cores))}
            # The child imports what this process imports, wherever that was found.
            environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
            self._log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "benchmarks_feynman.worker_process",
                    *map(str, self.cpus),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                # Ctrl-C is for this process, which then decides; the group is what gets killed.
                start_new_session=True,
            )
            return self._process

    def _read(self, process: subprocess.Popen[bytes], limit: float) -> tuple[Message | None, bool]:
        assert process.stdout is not None
        fired = threading.Event()

        def expire() -> None:
            fired.set()
            self._kill()

        timer = threading.Timer(limit, expire)
        timer.daemon = True
        timer.start()
        try:
            line = process.stdout.readline()
        except (OSError, ValueError):  # closed by another thread
            line = b""
        finally:
            timer.cancel()
        if not line.endswith(b"\n"):
            return None, fired.is_set()
        return json.loads(line), False

    def _ended(self, partial: Message, where: str, *, timed_out: bool) -> Message:
        process, log = self._process, self._log
        self._kill()
        code = process.wait() if process is not None else None
        tail = ""
        if log is not None and not log.closed:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _LOG_TAIL))
            tail = log.read().decode("utf-8", "replace").strip()
            log.close()
        if timed_out:
            reason = f"killed at its time limit {where}"
        elif code is not None and code < 0:
            known = {member.value: member.name for member in signal.Signals}
            reason = f"ended by signal {known.get(-code, -code)} {where}"
        else:
            reason = f"ended with exit code {code} {where}"
        error = reason if not tail else f"{reason}; {tail}"
        if partial:
            return {**partial, "judge_error": error}
        return {"status": "timeout" if timed_out else "crashed", "error": error}

    def _kill(self) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
