"""The symbolic worker: answers, limits, and no process left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from physdiffuser.verification import SymbolicWorker

PING = {"kind": "ping"}
# 9**9**9 as an integer: one multiplication inside native code that takes minutes.
HANG = {"kind": "hang"}


@pytest.fixture
def worker() -> Iterator[SymbolicWorker]:
    made = SymbolicWorker()
    yield made
    made.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pid_of(worker: SymbolicWorker) -> int:
    answer = worker.run(PING, 60.0)
    assert answer is not None
    return int(answer["pid"])


def test_it_answers_and_stays(worker: SymbolicWorker) -> None:
    first = pid_of(worker)
    assert pid_of(worker) == first != os.getpid()
    answer = worker.run(
        {"kind": "zero", "left": ["add", "x1", "x2"], "right": ["add", "x2", "x1"], "ranges": [[1, 2]] * 2},
        60.0,
    )
    assert answer == {"zero": True}


def test_a_job_over_its_limit_is_killed_and_the_next_one_works(worker: SymbolicWorker) -> None:
    first = pid_of(worker)
    started = time.monotonic()
    assert worker.run(HANG, 1.0) is None
    assert 0.9 < time.monotonic() - started < 2.0
    assert gone_within(first, 1.0)
    assert pid_of(worker) != first


def test_known_hangs_of_sympy_end_at_the_limit(worker: SymbolicWorker) -> None:
    """Power towers, and a power whose expansion has ten thousand terms."""
    worker.run(PING, 60.0)
    for tokens in (
        ["pow", "9", "pow", "9", "pow", "9", "9"],
        ["sqrt", "add", "x1", "pow", "9", "pow", "9", "9"],
        ["sin", "pow", "add", "x1", "x2", "10000"],
    ):
        started = time.monotonic()
        job = {"kind": "zero", "left": tokens, "right": ["x1"], "ranges": [[1, 2], [1, 2]]}
        answer = worker.run(job, 1.0)
        assert time.monotonic() - started < 2.0
        assert answer is None or answer.get("zero") is not True


def test_bad_jobs_are_answered_not_fatal(worker: SymbolicWorker) -> None:
    first = pid_of(worker)
    for job in (
        {"kind": "no such job"},
        {"kind": "zero"},
        {"kind": "zero", "left": ["bogus"], "right": ["x1"], "ranges": [[1, 2]]},
        {"kind": "zero", "left": ["__import__('os').system('true')"], "right": ["x1"], "ranges": [[1, 2]]},
        {"kind": "derivative", "expression": [], "by": 0},
    ):
        answer = worker.run(job, 60.0)
        assert answer is not None and "error" in answer
    assert pid_of(worker) == first


def test_a_worker_killed_while_idle_is_replaced(worker: SymbolicWorker) -> None:
    first = pid_of(worker)
    os.kill(first, signal.SIGKILL)
    assert gone_within(first, 2.0)
    assert pid_of(worker) != first


def test_a_worker_killed_during_a_job_gives_no_answer(worker: SymbolicWorker) -> None:
    first = pid_of(worker)
    threading.Timer(0.3, os.kill, (first, signal.SIGKILL)).start()
    started = time.monotonic()
    assert worker.run(HANG, 20.0) is None
    assert time.monotonic() - started < 5.0


def test_a_worker_that_never_came_to_work_is_replaced(worker: SymbolicWorker) -> None:
    worker.start()
    process = worker._process
    assert process is not None
    threading.Timer(0.1, process.kill).start()
    assert pid_of(worker) != process.pid


def test_an_ended_worker_leaves_no_reader(worker: SymbolicWorker) -> None:
    """A thread that still reads when its descriptor is closed may read the next worker's answers."""
    before = threading.active_count()
    pid_of(worker)
    assert threading.active_count() == before + 1
    worker.close()
    assert threading.active_count() == before


def test_threads_share_it_one_job_at_a_time(worker: SymbolicWorker) -> None:
    answers: list[object] = []

    def ask(number: int) -> None:
        tokens = ["mul", str(number), "x1"]
        job = {"kind": "derivative", "expression": tokens, "by": 0}
        answers.append((number, worker.run(job, 60.0)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    for number, answer in answers:  # type: ignore[misc]
        assert answer["form"] == [str(number)]


def test_waiting_for_another_threads_job_counts_against_the_limit(worker: SymbolicWorker) -> None:
    pid_of(worker)
    busy = threading.Thread(target=worker.run, args=(HANG, 2.0))
    busy.start()
    time.sleep(0.2)
    started = time.monotonic()
    assert worker.run(PING, 0.5) is None
    assert time.monotonic() - started < 1.5
    busy.join()


def test_an_interrupt_does_not_leave_an_answer_for_the_next_job(worker: SymbolicWorker) -> None:
    pid_of(worker)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        worker.run(HANG, 20.0)
    timer.join()
    answer = worker.run(PING, 60.0)
    assert answer is not None and "pid" in answer


PARENT = """
import sys, time
from physdiffuser.verification import SymbolicWorker, shared_worker
worker = shared_worker()
print(worker.run({"kind": "ping"}, 60.0)["pid"], flush=True)
what = sys.argv[1]
if what == "busy":
    worker.run({"kind": "hang"}, 60.0)
elif what == "idle":
    time.sleep(60)
elif what == "raise":
    raise RuntimeError("stopped here")
"""


def parent(what: str, folder: Path) -> tuple[subprocess.Popen[str], int]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=folder,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@pytest.mark.parametrize("what", ["busy", "idle"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_orphan_when_the_parent_is_killed(what: str, how: signal.Signals, tmp_path: Path) -> None:
    process, pid = parent(what, tmp_path)
    time.sleep(0.3)
    assert alive(pid)
    process.send_signal(how)
    process.wait(10)
    assert gone_within(pid, 2.0)


@pytest.mark.parametrize("what", ["end", "raise"])
def test_no_orphan_when_the_parent_ends(what: str, tmp_path: Path) -> None:
    process, pid = parent(what, tmp_path)
    process.wait(20)
    assert gone_within(pid, 2.0)


def test_files_in_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    for name in ("random", "json", "sympy", "mpmath", "struct"):
        (tmp_path / f"{name}.py").write_text("open('CANARY', 'w').close()\nraise SystemExit\n")
    program = "import sys; sys.path = [p for p in sys.path if p]\n" + PARENT
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, "end"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "CANARY").exists()


def test_a_forked_child_gets_a_worker_of_its_own(worker: SymbolicWorker) -> None:
    first = pid_of(worker)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            own = worker.run(PING, 60.0)
            os.write(write, json.dumps(own).encode())
            worker.close()
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    own = json.loads(os.read(read, 10_000))
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert own["pid"] != first
    assert pid_of(worker) == first
    assert gone_within(own["pid"], 2.0)


def test_starting_does_not_wait(worker: SymbolicWorker) -> None:
    started = time.monotonic()
    worker.start()
    # The interpreter and sympy come up meanwhile.
    assert time.monotonic() - started < 0.5
    assert worker.run(PING, 60.0) is not None


def test_a_start_is_given_time_until_the_first_answer(worker: SymbolicWorker) -> None:
    assert worker.starting() > 1.0
    worker.start()
    assert worker.starting() > 1.0
    assert worker.run({"kind": "nothing"}, 60.0) is not None
    assert worker.starting() == 0.0
    worker.close()
    assert worker.starting() > 1.0
