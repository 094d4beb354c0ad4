"""The run folder: one run at a time, always readable, harmless in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from solutions import equation, fitted, solution

from physdiffuser.data import dataset_from_arrays
from physdiffuser.errors import DataError, FileError, UsageError
from physdiffuser.io.atomic import write_bytes_atomic
from physdiffuser.report.documents.json_document import document
from physdiffuser.report.documents.table_record import TableRecord
from physdiffuser.report.html import report_html
from physdiffuser.report.runfolder import RunFolder, fresh_folder, load_solution, pareto_csv, resumed_formulas

ROOT = Path(__file__).resolve().parents[2]
posix = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")


def test_everything_is_saved_and_read_back(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "deep" / "run") as folder:
        folder.save_progress({"front": ["a"]})
        folder.save_result(document(solution()))
        folder.save_pareto(solution())
        assert folder.save_plot(solution())
        assert folder.save_report(solution())
    path = tmp_path / "deep" / "run"
    names = sorted(file.name for file in path.iterdir())
    assert names == ["fit.png", "pareto.csv", "report.html", "result.json"]
    assert document(load_solution(path)) == document(load_solution(path / "result.json"))
    assert (path / "fit.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_to_plot_is_no_plot(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run") as folder:
        assert not folder.save_plot(solution(fit_points=None))
    assert not (tmp_path / "run").exists(), "an empty folder that the run made is removed"


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    RunFolder(tmp_path).close()
    assert tmp_path.is_dir()


def test_a_second_run_on_the_same_folder_is_refused(tmp_path: Path) -> None:
    with (
        RunFolder(tmp_path),
        pytest.raises(FileError, match=f"in use by another run \\(process {os.getpid()}"),
    ):
        RunFolder(tmp_path)
    RunFolder(tmp_path).close()


HOLD = """
import sys, time
from pathlib import Path
from physdiffuser.errors import FileError
from physdiffuser.report.runfolder import RunFolder
try:
    folder = RunFolder(Path(sys.argv[1]))
except FileError:
    print("refused", flush=True)
else:
    print("held", flush=True)
    time.sleep(60)
"""


def hold(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", HOLD, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@posix
def test_the_lock_of_a_killed_run_stops_nobody(tmp_path: Path) -> None:
    process = hold(tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with pytest.raises(FileError, match=f"process {process.pid} "):
        RunFolder(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (tmp_path / ".lock").exists()
    RunFolder(tmp_path).close()
    process.stdout.close()


@posix
def test_of_many_runs_that_start_together_one_gets_the_folder(tmp_path: Path) -> None:
    answers, tell = os.pipe()
    wait, release = os.pipe()
    children = []
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os.close(release)
            try:
                RunFolder(tmp_path)
                os.write(tell, b"h")
                os.read(wait, 1)  # until the parent has all answers
            except FileError:
                os.write(tell, b"r")
            finally:
                os._exit(0)
        children.append(child)
    found = b""
    while len(found) < 20:
        found += os.read(answers, 20)
    os.close(release)
    for child in children:
        os.waitpid(child, 0)
    for handle in (answers, tell, wait):
        os.close(handle)
    assert sorted(found) == sorted(b"h" + b"r" * 19)


@posix
def test_runs_that_come_and_go_never_share_the_folder(tmp_path: Path) -> None:
    """The lock file is removed and made again all the time; two holders would clash on `inside`."""
    children = []
    for _ in range(6):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                end = time.monotonic() + 0.6
                while time.monotonic() < end:
                    try:
                        folder = RunFolder(tmp_path)
                    except FileError:
                        continue
                    os.close(os.open(tmp_path / "inside", os.O_CREAT | os.O_EXCL))
                    os.unlink(tmp_path / "inside")
                    folder.close()
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6


@posix
def test_a_kill_anywhere_leaves_the_files_of_one_run(tmp_path: Path) -> None:
    """Kills the saving of two results before each system call that changes a file.

    Whatever is there afterwards belongs to the run whose `result.json` is there.
    """
    solutions = [solution(equation("a")), solution(fitted(), seed=1)]
    contents = [document(one) for one in solutions]
    made = [
        {
            "pareto.csv": pareto_csv(one).encode(),
            "report.html": report_html(one).encode(),
            "fit.png": f"picture of run {number}".encode(),
        }
        for number, one in enumerate(solutions)
    ]
    calls = ("fsync", "replace", "fchmod", "unlink", "ftruncate", "pwrite", "open")
    path = tmp_path / "run"
    path.mkdir()
    (path / "notes.txt").write_text("of the user")
    kills = 0
    for stop in range(1, 300):
        child = os.fork()
        if child == 0:
            seen = 0

            def counting(name: str, stop: int = stop) -> None:
                real = getattr(os, name)

                def call(*arguments: object, **named: object) -> object:
                    nonlocal seen
                    seen += 1
                    if seen == stop:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*arguments, **named)

                setattr(os, name, call)

            for name in calls:
                counting(name)
            try:
                for number in (0, 1):
                    with RunFolder(path) as folder:
                        folder.save_progress({"front": ["a"]})
                        folder.save_result(contents[number])
                        for name, data in made[number].items():
                            write_bytes_atomic(path / name, data)
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        killed = os.WIFSIGNALED(status)
        assert killed or os.waitstatus_to_exitcode(status) == 0
        kills += killed
        there = {file.name for file in path.iterdir()}
        assert "notes.txt" in there
        if "result.json" in there:
            run = contents.index(document(load_solution(path)))
            for name in made[run]:
                if name in there:
                    assert (path / name).read_bytes() == made[run][name], (stop, name)
        else:
            assert not there & set(made[0]), stop
        with RunFolder(path) as folder:
            assert all(one.formulas for one in folder.saved_formulas())
            assert not list(path.glob(".*.tmp"))
        if not killed:
            break
    assert kills >= 50
    assert not killed, "the last round should have run to its end"


def test_a_file_of_an_earlier_run_that_cannot_be_removed_leaves_that_run(tmp_path: Path) -> None:
    """As on Windows while a spreadsheet has the table open; here a folder of that name cannot be unlinked."""
    with RunFolder(tmp_path) as folder:
        folder.save_result(document(solution(equation("a"))))
        (tmp_path / "pareto.csv").mkdir()
        with pytest.raises(
            FileError, match=r"cannot remove '.*pareto\.csv', which belongs to an earlier run"
        ):
            folder.save_result(document(solution(fitted())))
    assert document(load_solution(tmp_path)) == document(solution(equation("a")))
    assert not list(tmp_path.glob(".*.tmp"))


HERE = TableRecord("T", ("a", "v (m/s)"), 300, "0" * 64)


def test_formulas_to_resume_from(tmp_path: Path) -> None:
    table = {"table": HERE.to_json()}
    with RunFolder(tmp_path) as folder:
        assert folder.saved_formulas() == ()
        content = document(solution(equation("a"), equation("a**2"), best=equation("a**2")))
        folder.save_result(content | table)
        assert resumed_formulas(folder.saved_formulas(), HERE, tmp_path) == ("a**2", "a")
        folder.save_progress({"front": ["a", "a**3"]} | table)
        assert resumed_formulas(folder.saved_formulas(), HERE, tmp_path) == ("a**2", "a", "a**3")


@pytest.mark.parametrize(
    ("here", "says"),
    [
        (TableRecord("F", HERE.inputs, 300, "0" * 64), "the target there is 'T', here 'F'"),
        (TableRecord("T", ("a", "m"), 300, "0" * 64), r"inputs there are 'a', 'v \(m/s\)', here 'a', 'm'"),
        (TableRecord("T", HERE.inputs, 200, "1" * 64), "there are 300 rows there, here 200"),
        (TableRecord("T", HERE.inputs, 300, "1" * 64), "the columns hold other values"),
    ],
)
def test_resuming_with_another_table_names_the_folder_and_what_differs(
    here: TableRecord, says: str, tmp_path: Path
) -> None:
    with RunFolder(tmp_path / "earlier") as folder:
        folder.save_result(document(solution()) | {"table": HERE.to_json()})
        saved = folder.saved_formulas()
    with pytest.raises(UsageError, match=f"--resume: .*earlier'.*{says}.*--out"):
        resumed_formulas(saved, here, tmp_path / "earlier")


def test_a_result_without_a_record_of_its_table_is_compared_by_columns(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.save_result(document(solution(equation("a"))))
        saved = folder.saved_formulas()
    assert resumed_formulas(saved, HERE, tmp_path) == ("a",)
    with pytest.raises(UsageError, match="the target there is"):
        resumed_formulas(saved, TableRecord("F", HERE.inputs, 300, "0" * 64), tmp_path)


def test_a_killed_run_on_this_table_is_resumed_beside_the_result_of_another(tmp_path: Path) -> None:
    other = TableRecord("F", ("m",), 5, "2" * 64)
    with RunFolder(tmp_path) as folder:
        folder.save_result(document(solution(equation("a"))) | {"table": other.to_json()})
        folder.save_progress({"front": ["a**3"], "table": HERE.to_json()})
        assert resumed_formulas(folder.saved_formulas(), HERE, tmp_path) == ("a**3",)


def test_the_record_of_a_table_depends_on_names_and_values() -> None:
    inputs, target = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 4.0])

    def record(names: list[str], values: np.ndarray) -> TableRecord:
        return TableRecord.of(dataset_from_arrays(values, target, names=names, target_name="y"))

    first = record(["a", "b"], inputs)
    assert list(first.differences(record(["a", "b"], inputs.copy()))) == []
    assert list(first.differences(record(["b", "a"], inputs))) != []
    assert list(first.differences(record(["a", "b"], inputs + 1e-9))) == ["the columns hold other values"]


def test_fresh_folders_are_named_by_time_and_table_and_never_shared(tmp_path: Path) -> None:
    first = fresh_folder("some/My table.csv.gz", tmp_path / "runs", now=0.0)
    second = fresh_folder("My table.csv", tmp_path / "runs", now=0.0)
    assert first.path.name.endswith("-My-table")
    assert second.path.name == first.path.name + "-2"
    assert fresh_folder("-", tmp_path / "runs", now=0.0).path.name.endswith("-stdin")
    assert fresh_folder("///", tmp_path / "runs", now=0.0).path.name.endswith("-table")


def test_a_file_in_the_way_is_a_file_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="is a file, not a folder"):
        RunFolder(tmp_path / "file")
    with pytest.raises(FileError):
        RunFolder(tmp_path / "file" / "below")
    with pytest.raises(FileError, match="is a file"):
        fresh_folder("t", tmp_path / "file")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'{"schema": NaN}', b"[" * 100_000, b"1" * 100_000, b"null"]
)
def test_a_file_that_is_no_result_is_a_data_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "result.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"result\.json"):
        load_solution(path)


def test_any_truncation_of_a_result_is_refused(tmp_path: Path) -> None:
    text = json.dumps(document(solution()))
    path = tmp_path / "result.json"
    for length in range(0, len(text), 37):
        path.write_text(text[:length])
        with pytest.raises((DataError, UsageError)):
            load_solution(path)


def test_a_missing_run_is_a_file_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"holds no result\.json"):
        load_solution(tmp_path)
    with pytest.raises(FileError, match="No such file"):
        load_solution(tmp_path / "none")


def test_cells_that_a_spreadsheet_would_run_are_made_harmless() -> None:
    row = equation("a", latex="=cmd|' /C calc'!A0", verification=())
    text = pareto_csv(solution(row, equation("-a")))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["latex"] == "'=cmd|' /C calc'!A0"
    assert rows[1]["expression"] == "'-a"
    assert rows[0]["rmse"] == "0.25"
