"""A process for symbolic work that can be killed.

Some sympy calls never return, and no alarm interrupts them inside native code, so they run in a
process of their own. Jobs and answers are JSON behind a four-byte length; formulas travel as prefix
tokens. Nothing is pickled, and nothing is forked: the process is a fresh interpreter, so it is safe
beside threads and works from scripts, notebooks and tests.

The process never outlives its use:

* a job over its limit is killed from outside;
* the parent's death closes the pipe, which kills the process even inside native code (SIGIO, on
  Linux); elsewhere, and as a second line, each job arms the kernel's alarm clock a second past its
  limit;
* its memory is limited where the system can do that.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import struct
import subprocess
import sys
import threading
import time
from typing import IO, Any

_HEADER = struct.Struct(">I")
_MEMORY_LIMIT = 4 << 30
_ALARM_GRACE = 0.5
_DYING = 0.2
_JOINING = 5.0
# Importing sympy takes a second, and several where files are read for the first time or others are at work.
_START_SECONDS = 5.0
Job = dict[str, Any]


# Streams are unbuffered: a buffer's lock, held by a reading thread, would stay locked after a fork.


def _send(stream: IO[bytes], message: Job) -> None:
    body = json.dumps(message).encode()
    data = memoryview(_HEADER.pack(len(body)) + body)
    while data:
        data = data[stream.write(data) :]


def _receive(stream: IO[bytes]) -> Job | None:
    """The next message, or None at the end of the stream."""
    header = _read_exactly(stream, _HEADER.size)
    if header is None:
        return None
    (length,) = _HEADER.unpack(header)
    body = _read_exactly(stream, length)
    message = None if body is None else json.loads(body)
    return message if isinstance(message, dict) else None


def _read_exactly(stream: IO[bytes], count: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < count:
        part = stream.read(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)


class SymbolicWorker:
    """Runs symbolic jobs in a process, one at a time; started when first needed.

    Safe to share between threads. After a fork the child starts a process of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._answers: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._owner = 0
        self._started = 0.0
        self._answered = False

    def start(self) -> None:
        """Start the process, which then imports sympy while the caller does other things."""
        with self._lock:
            self._ensure()

    def starting(self) -> float:
        """Seconds that the process may yet need before it can take a job; 0 once it has answered one."""
        if self._process is None or self._owner != os.getpid():
            return _START_SECONDS
        if self._answered:
            return 0.0
        return max(0.0, self._started + _START_SECONDS - time.monotonic())

    def run(self, job: Job, seconds: float) -> Job | None:
        """The answer to a job, or None when it was not there in time or the process died.

        Parameters
        ----------
        job
            Plain data with the key `kind`; see `physdiffuser.verification.jobs`.
        seconds
            Hard limit, from now, waiting for a start included.
        """
        deadline = time.monotonic() + seconds
        # The lock may be held by another thread's job: its waiting time counts too.
        if not self._lock.acquire(timeout=max(0.0, seconds)):
            return None
        try:
            return self._run(job, deadline)
        except BaseException:
            # Interrupted in between: the answer must not be taken for the next job's.
            self._kill()
            raise
        finally:
            self._lock.release()

    def _run(self, job: Job, deadline: float) -> Job | None:
        for attempt in (1, 2):
            process = self._ensure()
            assert process.stdin is not None
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            try:
                _send(process.stdin, {**job, "limit": left})
            except OSError:
                # It died while idle: the job deserves a fresh one.
                self._kill()
                if attempt == 2:
                    return None
                continue
            sent = time.monotonic()
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - sent))
            except queue.Empty:
                answer = None
            if answer is None:
                self._kill()
                early = deadline if not self._answered else min(deadline, sent + _DYING)
                if attempt == 1 and time.monotonic() < early:
                    # It was dying when the job was sent, or never came to work.
                    continue
            else:
                self._answered = True
            return answer
        return None

    def _ensure(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._owner == os.getpid() and self._process.poll() is None:
            return self._process
        if self._process is not None:
            self._kill()
        answers: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # -P: the current folder, which may hold anything, is not searched for modules. What this
        # interpreter finds, its worker finds.
        # Simplification goes through sets, whose order would be another one in each process.
        path = os.pathsep.join(path for path in sys.path if path)
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", "from physdiffuser.verification.worker import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
        assert process.stdout is not None
        self._reader = threading.Thread(target=_forward, args=(process.stdout, answers), daemon=True)
        self._reader.start()
        self._process, self._answers, self._owner = process, answers, os.getpid()
        self._started, self._answered = time.monotonic(), False
        return process

    def close(self) -> None:
        """End the process; the next job starts another."""
        with self._lock:
            self._kill()

    def _kill(self) -> None:
        process, self._process = self._process, None
        reader, self._reader = self._reader, None
        if process is None or reader is None:
            return
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        if self._owner != os.getpid():
            # A forked child's copies; the thread that reads is its parent's alone.
            process.stdout.close()
            return
        process.kill()
        process.wait()
        # The reading thread finds the pipe's end and closes it. Closed from here, the descriptor could
        # belong to the next process's pipe by the time the thread reads, which would take its answers.
        reader.join(timeout=_JOINING)


def _forward(stream: IO[bytes], answers: queue.SimpleQueue[Job | None]) -> None:
    with stream, contextlib.suppress(OSError, ValueError):
        while (answer := _receive(stream)) is not None:
            answers.put(answer)
    answers.put(None)


_SHARED = SymbolicWorker()
atexit.register(_SHARED.close)


def shared_worker() -> SymbolicWorker:
    """The worker of this process."""
    return _SHARED


def serve() -> None:
    """Answer jobs from standard input until it ends; the program of the worker process."""
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    # Whatever a library prints must not mix with the answers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _limit_memory()
    from physdiffuser.verification.jobs import answer

    while (job := _receive(source)) is not None:
        _arm(source, float(job.get("limit", 60.0)))
        reply = answer(job)
        _disarm(source)
        _send(sink, reply)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(_MEMORY_LIMIT, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _arm(source: IO[bytes], seconds: float) -> None:
    """Have the kernel end this process when time is up or the parent is gone."""
    import signal

    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds) + _ALARM_GRACE)
    if hasattr(signal, "SIGIO") and sys.platform == "linux":
        import fcntl

        signal.signal(signal.SIGIO, signal.SIG_DFL)
        descriptor = source.fileno()
        fcntl.fcntl(descriptor, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_ASYNC)
        if os.getppid() == 1:
            os._exit(0)


def _disarm(source: IO[bytes]) -> None:
    import signal

    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if hasattr(signal, "SIGIO") and sys.platform == "linux":
        import fcntl

        descriptor = source.fileno()
        flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags & ~os.O_ASYNC)
