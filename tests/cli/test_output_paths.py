"""A place that output cannot be written to is an error before any work is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from physdiffuser.cli import main


@pytest.fixture(name="blocked")
def _blocked(tmp_path: Path) -> Path:
    """A path below a file."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    return tmp_path / "file" / "below"


def test_evaluate_checks_the_folder_of_the_report_first(
    blocked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_tasks(*arguments: object, **options: object) -> None:
        raise AssertionError("problems were run")

    monkeypatch.setattr("benchmarks_feynman.running.run_tasks", run_tasks)
    command = ["evaluate", "--only", "I.12.1", "--json", "--quiet"]
    assert main([*command, "--report", str(blocked)]) == 4
    assert "--report" in capsys.readouterr().err
    # An error other than FileError would be reported as a bug; a folder that can be made is left alone.
    assert main([*command, "--report", str(blocked.parent.parent / "new")]) == 1
    assert not (blocked.parent.parent / "new").exists()


def test_evaluate_checks_the_result_file_first(
    blocked: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: object) -> None:
        raise AssertionError("problems were run")

    monkeypatch.setattr("benchmarks_feynman.runner.run", run)
    assert main(["evaluate", "--only", "I.12.1", "--quiet", "--results", str(blocked / "r.jsonl")]) == 4
    assert "--results" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["folder that does not exist", "below a file", "a folder"])
def test_predict_checks_the_file_before_it_reads_the_table(
    blocked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    out = {
        "folder that does not exist": tmp_path / "none" / "out.csv",
        "below a file": blocked,
        "a folder": tmp_path,
    }[kind]
    assert main(["predict", str(tmp_path / "no-run"), str(tmp_path / "no.csv"), "--out", str(out)]) == 4
    message = capsys.readouterr().err
    assert str(out) in message and "no-run" not in message


@pytest.mark.parametrize("command", [["solve", "no.csv"], ["plugins", "new", "sample"]])
def test_others_check_the_folder_first(
    blocked: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "--out", str(blocked)]) == 4
    message = capsys.readouterr().err
    assert str(blocked.parent) in message and "no.csv" not in message


def test_inspect_checks_the_folder_first(
    blocked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path / "no.csv"), "--out", str(blocked)]) == 4
    message = capsys.readouterr().err
    assert str(blocked) in message and "no.csv" not in message
