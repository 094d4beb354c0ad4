"""One run of `solve`: search, then print and save, or as much of that as a stopped run has time for."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.cli.process import messages, stdout
from physdiffuser.cli.process.stopping import Stopping
from physdiffuser.cli.shared.progress import ProgressLine
from physdiffuser.errors import FileError, NothingFoundError, UsageError
from physdiffuser.io.display import counted
from physdiffuser.options import SAVE_INTERVAL

if TYPE_CHECKING:
    from physdiffuser.core.progress import Progress
    from physdiffuser.core.solution import Solution
    from physdiffuser.data.dataset import Dataset
    from physdiffuser.report.documents.table_record import TableRecord
    from physdiffuser.report.runfolder import RunFolder, SavedFormulas
    from physdiffuser.report.text.style import Style

REPORT_SECONDS = 0.75
"""Seconds of an idle machine between the solution and the end of the program: page, plot, exit."""
ANSWER_SECONDS = 0.1
"""The same where no folder is written."""


class AnyRun:
    """A run of `solve` and its options.

    Parameters
    ----------
    table
        Path of the table, or `-`.
    search
        Arguments of `physdiffuser.pipeline.solve`.
    out
        The run folder; a fresh one under `runs/`, or none with `as_json`, when None.
    resume
        Start from the formulas that an earlier run left there.
    as_json
        Print the JSON document instead of the report.
    quiet
        No progress and no notes.
    started
        Reading of `time.monotonic` from which the time limit counts; now when None.
    """

    def __init__(
        self,
        table: str,
        search: Mapping[str, Any],
        *,
        out: Path | None,
        resume: bool,
        as_json: bool,
        quiet: bool,
        started: float | None = None,
    ) -> None:
        self.table = table
        self.search = search
        self.out = out
        self.resume = resume
        self.as_json = as_json
        self.quiet = quiet
        self.save_every = SAVE_INTERVAL
        self.ascii_only = False
        self.started = time.monotonic() if started is None else started
        self.folder: RunFolder | None = None

    def _progress_line(self) -> ProgressLine:
        return ProgressLine(not self.quiet and sys.stderr.isatty(), self.search.get("time"))

    def _note(self, text: str) -> None:
        if not self.quiet:
            messages.note(text)


class Run(AnyRun):
    """A run for one target, and what is known while it goes."""

    progress: Progress | None = None
    record: TableRecord | None = None

    def go(self, stopping: Stopping) -> int:
        """Search, save and print; returns the exit code."""
        with contextlib.ExitStack() as stack:
            self.folder = open_folder(self.table, self.out, self.as_json)
            if self.folder is not None:
                stack.enter_context(self.folder)
            saved = self._saved()
            self._import_report()
            line = self._progress_line()
            stack.callback(line.close)
            with self._saving():
                solution = self._solve(stopping.cancelled, line.update, saved)
            stopping.begin_report()
            line.close()
            if stopping.signal_number is not None:
                solution = _stopped(solution, stopping.signal_number)
            code = stopping.exit_code or (5 if solution.best is None else 0)
            self._report(solution, code, stopping)
            return code

    def _import_report(self) -> None:
        """Import what prints the result: after Ctrl-C, on a busy machine, there is no time for it."""
        if self.as_json:
            import physdiffuser.report.documents.json_document
        else:
            import physdiffuser.report.text.terminal  # noqa: F401

            if stdout.stream().isatty():
                import rich.table  # noqa: F401

    def _saved(self) -> tuple[SavedFormulas, ...]:
        if self.folder is None:
            return ()
        if self.resume:
            saved = self.folder.saved_formulas()
            if not any(one.formulas for one in saved):
                self._note("nothing to resume in the run folder; starting anew")
            return saved
        if self.folder.has_result:
            self._note(f"replacing the earlier result in {self.folder.path}; --resume would build on it")
        return ()

    def _solve(
        self,
        cancelled: Callable[[], bool],
        show: Callable[[Progress], None],
        saved: tuple[SavedFormulas, ...],
    ) -> Solution:
        from physdiffuser.cli.shared.learned import check_learned_options
        from physdiffuser.expressions import ExpressionSyntaxError
        from physdiffuser.pipeline import solve
        from physdiffuser.report.documents.table_record import TableRecord
        from physdiffuser.report.runfolder import resumed_formulas

        check_learned_options(self.search)

        def on_progress(progress: Progress) -> None:
            self.progress = progress
            show(progress)

        def resumed(dataset: Dataset) -> tuple[str, ...]:
            self.record = TableRecord.of(dataset)
            if self.folder is None or not saved:
                return ()
            formulas = resumed_formulas(saved, self.record, self.folder.path)
            if formulas:
                what = f"{counted(len(formulas), 'formula')}, beginning with {messages.one_line(formulas[0])}"
                self._note(f"going on from the run in {self.folder.path}: {what}")
            return formulas

        try:
            return solve(
                self.table,
                resumed=resumed,
                on_progress=on_progress,
                cancelled=cancelled,
                started=self.started,
                report_seconds=ANSWER_SECONDS if self.folder is None else REPORT_SECONDS,
                **self.search,
            )
        except ExpressionSyntaxError as error:
            if not saved:
                raise
            raise UsageError(
                f"--resume: a formula in '{messages.one_line(str(self.out))}' cannot be used with the "
                f"options of this run ({error}). Give the --constants, each --operator and the plugins of "
                "the earlier run, or leave out --resume to start anew."
            ) from error

    @contextlib.contextmanager
    def _saving(self) -> Iterator[None]:
        """Save what the search has every few seconds, so that a killed run can be resumed."""
        ended = threading.Event()

        def keep_saving() -> None:
            saved: tuple[str, ...] = ()
            while not ended.wait(self.save_every):
                front = (*self.progress.front, *self.progress.functions) if self.progress is not None else ()
                if front != saved:
                    saved = front
                    try:
                        self._save_front()
                    except FileError as error:
                        messages.warning(str(error))
                        return

        thread = threading.Thread(target=keep_saving, name="physdiffuser-saving", daemon=True)
        if self.folder is not None:
            thread.start()
        try:
            yield
        finally:
            ended.set()
            if thread.is_alive():
                thread.join()

    def _save_front(self) -> None:
        progress = self.progress
        if self.folder is not None and progress is not None and progress.front:
            content: dict[str, Any] = {
                "elapsed_seconds": progress.elapsed,
                "best": progress.best,
                "front": list(progress.front),
            }
            if progress.groups:
                content["groups"] = list(progress.groups)
            if progress.functions:
                content["functions"] = list(progress.functions)
            self.folder.save_progress(content | self._table())

    def _table(self) -> dict[str, Any]:
        """Which table the run belongs to, for the files in the folder."""
        return {} if self.record is None else {"table": self.record.to_json()}

    def _report(self, solution: Solution, code: int, stopping: Stopping) -> None:
        from physdiffuser.report.documents.json_document import document, document_text
        from physdiffuser.report.text.dynamics_hint import dynamics_hint

        content = document(solution) | self._table()
        # A run that was stopped before its first formula must not wipe out an earlier result.
        folder = self.folder
        if folder is not None and solution.best is None and folder.has_result:
            folder = None
        if folder is not None:
            folder.save_result(content)
            folder.save_pareto(solution)
            if self.as_json and code == 0:
                # Before the document, which promises that all went well.
                folder.save_plot(solution)
                folder.save_report(solution)
        for topic, text in solution.notes.items():
            self._note(f"{topic}: {text}")
        for text in solution.warnings:
            messages.warning(text)
        if hint := dynamics_hint(solution):
            self._note(hint)
        if self.as_json:
            messages.output(document_text(content))
        elif solution.best is not None:
            self._print_report(solution)
        else:
            messages.error(str(NothingFoundError(_NOTHING if code == 5 else _NOTHING_YET)))
        stopping.end_report()
        if folder is not None:
            if not self.as_json and code == 0:
                # People see the answer first: pictures take half a second, which a stopped run has not.
                folder.save_report(solution)
                folder.save_plot(solution)
            self._note(f"saved in {folder.path}")

    def _print_report(self, solution: Solution) -> None:
        from physdiffuser.report.text.terminal import render

        messages.output(render(solution, terminal_style(ascii_only=self.ascii_only)))

    def emergency(self, signal_number: int) -> None:
        """Print and save the best so far while the main thread is busy; called in another thread."""
        progress = self.progress
        if self.as_json:
            from physdiffuser.report.documents.json_document import document_text, unfinished_document

            content = unfinished_document(
                target=self.search.get("target"),
                seed=self.search.get("seed", 0),
                expression=progress.best if progress is not None else None,
                complexity=progress.complexity if progress is not None else None,
                elapsed=progress.elapsed if progress is not None else None,
                warning=stop_warning(signal_number),
            )
            messages.output(document_text(content))
        elif progress is not None and progress.best:
            messages.output(f"best so far: {messages.one_line(progress.best)}\n")
            messages.warning(stop_warning(signal_number))
        else:
            messages.error(_NOTHING_YET)
        with contextlib.suppress(FileError):
            self._save_front()


def open_folder(table: str, out: Path | None, as_json: bool) -> RunFolder | None:
    """The run folder: `out`, or a fresh one under `runs/`, or none where a document is printed.

    Called before the search: a folder that cannot be written should not cost a minute to find out.
    """
    from physdiffuser.report.runfolder import RunFolder, fresh_folder

    if out is not None:
        return RunFolder(out)
    return None if as_json else fresh_folder(table)


_NOTHING = (
    "no formula with finite values was found. Give more time (--time), allow more operators (--operators) or "
    "a larger --max-complexity."
)
_NOTHING_YET = "stopped before the first formula was found."


def stop_warning(signal_number: int) -> str:
    """That the search was stopped, and by what."""
    how = "Ctrl-C" if signal_number == signal.SIGINT else signal.Signals(signal_number).name
    return f"stopped by {how} before the search was finished; this is the best so far"


def _stopped(solution: Solution, signal_number: int) -> Solution:
    return replace(solution, warnings=(*solution.warnings, stop_warning(signal_number)))


def terminal_style(*, ascii_only: bool = False) -> Style:
    """What stdout can show, or what it is to be restricted to."""
    from physdiffuser.report.text.style import Style

    is_terminal = stdout.stream().isatty()
    able = is_terminal and os.environ.get("TERM") != "dumb"
    colour = able and not os.environ.get("NO_COLOR") and not _is_old_console()
    return Style(
        width=stdout.width() if is_terminal else None,
        unicode=not ascii_only and _can_show("▸±²…─"),
        framed=able,
        colour=colour,
        emphasise=(lambda text: click.style(text, bold=True)) if colour else str,
        good=(lambda text: click.style(text, fg="green")) if colour else str,
        doubtful=(lambda text: click.style(text, fg="yellow")) if colour else str,
        label=(lambda text: click.style(text, fg="cyan")) if colour else str,
    )


def _is_old_console() -> bool:
    """Whether stdout is a console of Windows that writes escape sequences as text."""
    if os.name != "nt":
        return False
    from rich.console import detect_legacy_windows

    return detect_legacy_windows()


def _can_show(text: str) -> bool:
    try:
        text.encode(stdout.stream().encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
