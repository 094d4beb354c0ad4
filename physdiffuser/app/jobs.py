"""Searches as processes of the command line, each with a run folder.

The page only watches them: what a search has found is in its folder, written by the search itself, so neither
the end of the page nor that of the server loses it. A fixed number run at a time; others wait for their turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from physdiffuser.app.records import MESSAGES_NAME, Record, load_record
from physdiffuser.errors import PhysdiffuserError, UsageError
from physdiffuser.io.display import visible
from physdiffuser.io.folder_lock import FolderLock
from physdiffuser.report.runfolder import PROGRESS_NAME, RESULT_NAME, fresh_folder

if TYPE_CHECKING:
    from physdiffuser.app.formulas import OwnConstants, Scored

State = Literal["waiting", "running", "stopping", "done", "failed", "unfinished", "elsewhere"]
ACTIVE: frozenset[State] = frozenset({"waiting", "running", "stopping"})

MOST_WAITING = 20
LOOK = 0.3
"""Seconds between two looks at what a search has found."""
SAVE_EVERY = 0.5
STOP_SECONDS = 10.0
"""Seconds that a search gets to save its best law before it is killed."""
# The page shows the report of a search that was stopped, so it may take its time to check the law.
_GRACE = {"PHYSDIFFUSER_STOP_SECONDS": f"{0.8 * STOP_SECONDS:g}"}
_MOST_ERROR = 4_000


class SavedFront(BaseModel):
    """The formulas that a search has saved, simple ones first, and the best of them.

    Attributes
    ----------
    groups
        Of a table with groups: for each formula the constants of each group, by their names.
    """

    model_config = ConfigDict(frozen=True)

    front: tuple[str, ...] = ()
    best: str | None = None
    groups: tuple[dict[str, dict[str, float]], ...] = ()

    def formulas(self) -> Iterator[tuple[str, OwnConstants]]:
        """Each formula with the constants of the groups."""
        return zip(self.front, self.groups or repeat({}), strict=False)


@dataclass(eq=False)
class Run:
    """A search and where it stands.

    Attributes
    ----------
    version
        Rises when there is something new to show.
    elapsed
        Seconds, once it has ended or while it goes on.
    message
        Why it has failed.
    fitted
        Formulas of the user that have been fitted to its table, before and after its end; None for
        one that cannot be.
    """

    id: str
    folder: Path
    record: Record
    state: State
    version: int = 0
    message: str = ""
    started: float | None = None
    ended: float | None = None
    process: asyncio.subprocess.Process | None = None
    task: asyncio.Task[None] | None = None
    seen: tuple[int, int] = (0, 0)
    fitted: dict[tuple[str, bool], Scored | None] = field(default_factory=dict)
    order: float = field(default_factory=time.time)

    @property
    def elapsed(self) -> float:
        """Seconds since its start."""
        if self.started is None:
            return 0.0
        return (time.monotonic() if self.ended is None else self.ended) - self.started

    @property
    def has_result(self) -> bool:
        """Whether its search has ended with a document."""
        return self.state not in ACTIVE and (self.folder / RESULT_NAME).is_file()

    def snapshot(self) -> dict[str, Any]:
        """Its state, for the page."""
        settings = self.record.settings
        return {
            "id": self.id,
            "name": self.record.table_name,
            "target": settings.target,
            "state": self.state,
            "version": self.version,
            "elapsed": round(self.elapsed, 1),
            "limit": settings.time,
            "message": self.message,
            "has_result": self.has_result,
            "earlier": self.record.earlier,
            "pins": list(self.record.marks[-1].pins),
            "selected": self.record.marks[-1].selected,
            "can_undo": len(self.record.marks) > 1,
        }

    def saved_front(self) -> SavedFront:
        """What the search has saved so far."""
        try:
            return SavedFront.model_validate_json((self.folder / PROGRESS_NAME).read_bytes())
        except (OSError, ValidationError):
            return SavedFront()


class Jobs:
    """All runs of this server, and those that earlier ones have left in the folder."""

    def __init__(self, root: Path, most: int | None = None) -> None:
        self.root = root
        cores = os.cpu_count() or 2
        self.most = most or max(1, min(4, cores // 2))
        self._processes = max(1, cores // self.most)
        self._slots = asyncio.Semaphore(self.most)
        self.runs: dict[str, Run] = {}

    def load(self) -> None:
        """Find the runs of earlier servers."""
        if not self.root.is_dir():
            return
        for folder in sorted(self.root.iterdir()):
            record = load_record(folder) if folder.is_dir() else None
            if record is not None:
                state = _state_on_disk(folder)
                order = folder.stat().st_mtime
                self.runs[folder.name] = Run(folder.name, folder, record, state, order=order)

    def get(self, identifier: str) -> Run:
        """A run.

        Raises
        ------
        UsageError
            If there is none of that name.
        """
        run = self.runs.get(identifier)
        if run is None:
            raise UsageError("there is no such run")
        if run.state == "elsewhere":
            run.state = _state_on_disk(run.folder)
        return run

    def start(self, record: Record) -> Run:
        """Begin a search as soon as there is a place for it.

        Raises
        ------
        UsageError
            If too many are waiting.
        FileError
            If its folder cannot be made.
        """
        if sum(run.state == "waiting" for run in self.runs.values()) >= MOST_WAITING:
            raise UsageError(f"{MOST_WAITING} searches are waiting already: stop some of them first")
        with fresh_folder(record.table_name, self.root) as folder:
            record.save(folder.path)
            earlier = None if record.earlier is None else self.runs.get(record.earlier)
            if earlier is not None:
                _copy_formulas(earlier.folder, folder.path)
        run = Run(folder.path.name, folder.path, record, "waiting")
        self.runs[run.id] = run
        run.task = asyncio.create_task(self._work(run))
        return run

    def stop(self, run: Run) -> None:
        """Ask a search to end with the best law so far."""
        if run.state == "waiting":
            run.state, run.version = "unfinished", run.version + 1
            if run.task is not None:
                run.task.cancel()
        elif run.state == "running" and run.process is not None:
            run.state, run.version = "stopping", run.version + 1
            with contextlib.suppress(ProcessLookupError):
                if sys.platform == "win32":
                    run.process.terminate()  # a process there cannot be interrupted; its last save stays
                else:
                    run.process.send_signal(signal.SIGINT)

    async def ended(self, run: Run) -> None:
        """Wait until a search has ended, or kill it when it does not in time."""
        if run.task is None:
            return
        try:
            await asyncio.wait_for(asyncio.shield(run.task), STOP_SECONDS)
        except TimeoutError:
            if run.process is not None:
                with contextlib.suppress(ProcessLookupError):
                    run.process.kill()
            with contextlib.suppress(asyncio.CancelledError):
                await run.task
        except asyncio.CancelledError:
            if not run.task.cancelled():
                raise

    async def close(self) -> None:
        """End all searches; each saves the best that it has."""
        active = [run for run in self.runs.values() if run.state in ACTIVE]
        for run in active:
            self.stop(run)
        await asyncio.gather(*(self.ended(run) for run in active))

    async def _work(self, run: Run) -> None:
        async with self._slots:
            words = [*run.record.words(run.folder), "--out", str(run.folder), "--quiet"]
            words += ["--save-every", f"{SAVE_EVERY}", "--jobs", str(self._processes)]
            if run.record.earlier is not None:
                words.append("--resume")
            with open(run.folder / MESSAGES_NAME, "wb") as messages:
                run.process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "physdiffuser", *words),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=messages,
                    env=os.environ | _GRACE,
                    # Ctrl-C in the terminal is for the server, which then stops its searches.
                    start_new_session=True,
                )
            run.state, run.started, run.version = "running", time.monotonic(), run.version + 1
            waiting = asyncio.create_task(run.process.wait())
            while not waiting.done():
                await asyncio.wait({waiting}, timeout=LOOK)
                _look(run)
            self._finish(run, waiting.result())

    def _finish(self, run: Run, code: int) -> None:
        run.ended = time.monotonic()
        run.state = "done" if code in (0, 5, 130, 143) else "failed"
        if run.state == "done" and not (run.folder / RESULT_NAME).is_file():
            run.state = "unfinished"
        if run.state == "failed":
            run.message = _last_error(run.folder) or f"the search ended with exit code {code}"
        run.version += 1


def _look(run: Run) -> None:
    try:
        stat = (run.folder / PROGRESS_NAME).stat()
    except OSError:
        return
    if (stat.st_mtime_ns, stat.st_size) != run.seen:
        run.seen = (stat.st_mtime_ns, stat.st_size)
        run.version += 1


def _state_on_disk(folder: Path) -> State:
    """The state of a run that no process of this server works on."""
    try:
        FolderLock(folder).release()
    except PhysdiffuserError:
        return "elsewhere"
    return "done" if (folder / RESULT_NAME).is_file() else "unfinished"


def _copy_formulas(earlier: Path, folder: Path) -> None:
    """What `--resume` starts from; the run that is continued stays as it is."""
    for name in (RESULT_NAME, PROGRESS_NAME):
        if (earlier / name).is_file():
            shutil.copyfile(earlier / name, folder / name)


def _last_error(folder: Path) -> str:
    try:
        text = (folder / MESSAGES_NAME).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    _, found, message = text.rpartition("error: ")
    return visible(" ".join(message.split()), _MOST_ERROR) if found else ""
