"""Tasks to messages, many at a time: on this machine, or on a Dask cluster."""

from __future__ import annotations

import hashlib
import importlib
import os
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks_feynman.tasks import Task
from benchmarks_feynman.workers import Message, Worker
from physdiffuser.errors import PluginError, UsageError

Done = tuple[Task, Message]
LOCAL = "local"
SCHEDULERS = f"{LOCAL}, {LOCAL}:WORKERS (a Dask cluster on this machine), tcp://HOST:PORT or tls://HOST:PORT"
_CONNECT_SECONDS = 20
_RETRIES = 3


def run_local(tasks: Sequence[Task], *, jobs: int, cores: int) -> Iterator[Done]:
    """Run tasks on this machine, `jobs` at a time, each in a worker process of its own.

    Yields in the order in which they end. Closing the generator kills the workers. When there are several
    jobs and the machine has `jobs` times `cores` CPUs, each worker is bound to its own.
    """
    waiting: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    ended: queue.SimpleQueue[Done] = queue.SimpleQueue()
    jobs = min(jobs, len(tasks))
    workers = [Worker(cores=cores, cpus=cpus) for cpus in _cpus(jobs, cores)]

    def serve(worker: Worker) -> None:
        while (task := waiting.get()) is not None:
            ended.put((task, worker.run(task)))

    threads = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in workers]
    for thread in threads:
        waiting.put(None)
        thread.start()
    try:
        for _ in tasks:
            yield ended.get()
    finally:
        for worker in workers:
            worker.close()


def _cpus(jobs: int, cores: int) -> list[tuple[int, ...]]:
    """CPU numbers for each job; empty tuples for one job, and when there are too few to go round.

    One job alone is kept to its cores by its number of threads: bound to a CPU, it would share that one with
    whoever else is bound there, while others are idle.
    """
    if jobs == 1 or not hasattr(os, "sched_getaffinity"):
        return [()] * jobs
    free = sorted(os.sched_getaffinity(0))
    if len(free) < jobs * cores:
        return [()] * jobs
    return [tuple(free[job * cores : (job + 1) * cores]) for job in range(jobs)]


def check_scheduler(scheduler: str) -> None:
    """Refuse what is no scheduler.

    Raises
    ------
    UsageError
        The message names the valid ones.
    """
    kind, _, rest = scheduler.partition(":")
    workers = rest.isdigit() and int(rest) > 0
    address = re.fullmatch(r"(tcp|tls)://\S+:\d{1,5}", scheduler)
    if scheduler == LOCAL or (kind == LOCAL and workers) or address:
        return
    raise UsageError(f"unknown scheduler {scheduler!a}; valid are {SCHEDULERS}")


def run_dask(tasks: Sequence[Task], *, scheduler: str, cores: int) -> Iterator[Done]:
    """Run tasks on a Dask cluster; each in a killable process beside the cluster's worker.

    A task whose cluster worker dies is run again elsewhere; each comes back once.

    Raises
    ------
    PluginError
        If `distributed` is not installed.
    UsageError
        If the scheduler does not answer.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise PluginError(
            f"--scheduler {scheduler} needs distributed ({error}); pip install 'physdiffuser[dask]'"
        ) from error
    cluster: Any = None
    try:
        if scheduler.startswith(f"{LOCAL}:"):
            count = int(scheduler.partition(":")[2])
            cluster = distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=None, silence_logs=50
            )
        client = distributed.Client(cluster or scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        raise UsageError(
            f"the scheduler {scheduler!a} does not answer ({error}); start it, or use one of {SCHEDULERS}"
        ) from error
    try:
        yield from collect(client, tasks, cores)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def collect(client: Any, tasks: Sequence[Task], cores: int) -> Iterator[Done]:
    """Submit tasks to a connected client and yield each with its message when it ends."""
    distributed: Any = importlib.import_module("distributed")
    futures = {}
    for task in tasks:
        name = "evaluate-" + hashlib.sha256(task.key.encode()).hexdigest()[:24]
        future = client.submit(run_here, task.document(), cores, key=name, retries=_RETRIES, pure=True)
        futures[future] = task
    for future in distributed.as_completed(list(futures), loop=client.loop):
        task = futures.pop(future)
        try:
            message = future.result()
        except Exception as error:
            message = {"status": "crashed", "error": f"on the cluster: {type(error).__name__}: {error}"}
        yield task, message


_HERE = threading.local()


def run_here(document: Message, cores: int) -> Message:
    """Run one task in a worker process of this thread; what a cluster's worker calls."""
    worker: Worker | None = getattr(_HERE, "worker", None)
    if worker is None or worker.cores != cores:
        worker = _HERE.worker = Worker(cores=cores)
    return worker.run(Task.from_document(document))
