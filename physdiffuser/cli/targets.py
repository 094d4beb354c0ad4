"""A run of `solve` for several targets: a folder for each inside the run folder, one report, one document."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stopping import Stopping
from physdiffuser.cli.shared.run import AnyRun, open_folder, stop_warning, terminal_style

if TYPE_CHECKING:
    from physdiffuser.core.solution import Solution
    from physdiffuser.data.dataset import Dataset
    from physdiffuser.report.documents.table_record import TableRecord
    from physdiffuser.report.runfolder import RunFolder, SavedFormulas
    from physdiffuser.targets.answer import TargetSolutions

REPORT_SECONDS = 1.0
"""Seconds of an idle machine for the report of each target."""


class TargetsRun(AnyRun):
    """A run for several targets, and what is known while it goes.

    Its `search` has `targets` in place of `target`. The law of each target is saved as soon as there is one.
    """

    def __init__(self, table: str, search: Mapping[str, Any], **options: Any) -> None:
        super().__init__(table, search, **options)
        self.folders: dict[str, RunFolder] = {}
        self.records: dict[str, TableRecord] = {}
        self.solved: dict[str, Solution] = {}

    def go(self, stopping: Stopping) -> int:
        """Search, save and print; returns the exit code."""
        from physdiffuser.cli.shared.learned import check_learned_options
        from physdiffuser.targets.solving import solve_targets

        check_learned_options(self.search)
        with contextlib.ExitStack() as stack:
            self._open_folders(stack)
            line = self._progress_line()
            stack.callback(line.close)

            found = solve_targets(
                self.table,
                **self.search,
                resumed=self._resumed,
                on_progress=line.update,
                on_solution=self._save,
                cancelled=stopping.cancelled,
                started=self.started,
                report_seconds=REPORT_SECONDS,
            )
            stopping.begin_report()
            line.close()
            none = all(solution.best is None for solution in found.solutions.values())
            code = stopping.exit_code or (5 if none else 0)
            self._report(found, code, stopping)
            return code

    def _open_folders(self, stack: contextlib.ExitStack) -> None:
        from physdiffuser.report.runfolder import RunFolder

        self.folder = open_folder(self.table, self.out, self.as_json)
        if self.folder is None:
            return
        stack.enter_context(self.folder)
        for target in self.search["targets"]:
            path = self.folder.path / folder_name(target, [one.path.name for one in self.folders.values()])
            self.folders[target] = RunFolder(path)
            stack.enter_context(self.folders[target])

    def _saved(self, target: str) -> tuple[SavedFormulas, ...]:
        folder = self.folders.get(target)
        return folder.saved_formulas() if self.resume and folder is not None else ()

    def _resumed(self, dataset: Dataset) -> tuple[str, ...]:
        """The formulas of an earlier run for the target of a table."""
        from physdiffuser.report.documents.table_record import TableRecord
        from physdiffuser.report.runfolder import resumed_formulas

        target = self._asked(dataset.target_column.name)
        record = self.records[target] = TableRecord.of(dataset)
        saved = self._saved(target)
        if not saved:
            return ()
        formulas = resumed_formulas(saved, record, self.folders[target].path)
        self._note(f"target '{messages.one_line(target)}': going on from {len(formulas)} earlier formulas")
        return formulas

    def _asked(self, name: str) -> str:
        """The target as the user has written it."""
        targets: list[str] = list(self.search["targets"])
        return next((one for one in targets if one.strip() == name), name)

    def _save(self, name: str, solution: Solution) -> None:
        """Save the law of one target as a run of its own."""
        from physdiffuser.report.documents.json_document import document

        target = self._asked(name)
        self.solved[name] = solution
        folder = self.folders.get(target)
        if folder is None or solution.best is None:
            return
        record = self.records.get(target)
        folder.save_result(document(solution) | ({} if record is None else {"table": record.to_json()}))
        folder.save_pareto(solution)

    def _report(self, found: TargetSolutions, code: int, stopping: Stopping) -> None:
        from physdiffuser.report.documents.json_document import document_text
        from physdiffuser.targets.answer import targets_document
        from physdiffuser.targets.page import report_page
        from physdiffuser.targets.report import render_targets

        content = targets_document(found)
        if self.folder is not None:
            self.folder.save_result(content)
        for name, solution in found.solutions.items():
            for topic, text in solution.notes.items():
                self._note(f"{messages.one_line(name)}: {topic}: {text}")
            for text in solution.warnings:
                messages.warning(f"{messages.one_line(name)}: {text}")
        if stopping.signal_number is not None:
            messages.warning(stop_warning(stopping.signal_number))
        if self.as_json:
            messages.output(document_text(content))
        else:
            messages.output(render_targets(found, terminal_style(ascii_only=self.ascii_only)))
        stopping.end_report()
        if self.folder is None:
            return
        if code == 0:
            for name, solution in found.solutions.items():
                folder = self.folders[self._asked(name)]
                folder.save_report(solution)
                folder.save_plot(solution)
            places = {name: self.folders[self._asked(name)].path.name for name in found.solutions}
            self.folder.save_page(report_page(found, places))
        self._note(f"saved in {self.folder.path}, with a folder for each target")

    def emergency(self, signal_number: int) -> None:
        """Print the laws found so far while the main thread is busy; called in another thread."""
        from physdiffuser.report.documents.json_document import document_text
        from physdiffuser.targets.answer import TargetSolutions, targets_document

        if self.as_json and self.solved:
            messages.output(document_text(targets_document(TargetSolutions(dict(self.solved)))))
        elif self.solved:
            for name, solution in self.solved.items():
                if solution.best is not None:
                    best = messages.one_line(solution.best.text)
                    messages.output(f"best so far: {messages.one_line(name)} = {best}\n")
        else:
            messages.error("stopped before the law of the first target was found.")
        messages.warning(stop_warning(signal_number))


def folder_name(target: str, taken: list[str]) -> str:
    """A name of a folder that resembles the target and is not taken."""
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", target).strip("-")[:40] or "target"
    name, number = stem, 2
    while name in taken:
        name, number = f"{stem}-{number}", number + 1
    return name
