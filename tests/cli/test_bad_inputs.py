"""Every input of docs/robustness.md at the command line: exit code, one message, clean stdout."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_program import program_environment

from physdiffuser.cli.entry import main
from physdiffuser.data.readers import sources

sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))

from bad_tables import CATALOGUE, BadInput, Case

SEARCH = ("--time", "1", "--no-plugins", "--quiet", "--json")


def command(case: Case) -> list[str]:
    """The command line for a case; the table comes after `--` when its name looks like an option."""
    words = ["solve", *SEARCH]
    for name, value in case.options.items():
        words += [f"--{name}", ",".join(value) if isinstance(value, list) else value]
    if case.source.startswith("-") and case.source != "-":
        words.append("--")
    return [*words, case.source]


def check_output(row: BadInput, case: Case, code: int, out: str, err: str) -> None:
    """What holds for every row."""
    assert code == row.exit_code, err
    assert "Traceback" not in err
    assert "\x1b" not in out + err
    if code == 0:
        document = json.loads(out, parse_constant=_refuse)
        assert document["schema"] == 2
        for part in case.says:
            assert part in err
            assert any(part in warning for warning in document["warnings"])
    else:
        assert out == ""
        lines = err.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("error: ")
        for part in case.says:
            assert part in lines[0]


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: f"{row.code}-{row.title}")
def test_behaviour(
    row: BadInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    case = row.build(tmp_path)
    monkeypatch.chdir(case.folder or tmp_path)
    if case.stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.stdin)))
    if case.denied:
        monkeypatch.setattr(sources.io, "FileIO", _deny)
    if case.feed is not None:
        case.feed()
    code = main(command(case))
    check_output(row, case, code, *capfd.readouterr())
    assert not (tmp_path / "canary").exists()


@pytest.mark.parametrize("code", ["3", "19", "36", "43", "67", "70", "73"])
def test_as_a_program(code: str, tmp_path: Path) -> None:
    row = next(row for row in CATALOGUE if row.code == code)
    case = row.build(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "physdiffuser", *command(case)],
        cwd=tmp_path,
        env=program_environment(PYTHONIOENCODING="utf-8"),
        capture_output=True,
        input=case.stdin,
        timeout=120,
        check=False,
    )
    check_output(row, case, done.returncode, done.stdout.decode(), done.stderr.decode())
    assert sorted(os.listdir(tmp_path)) == sorted(set(os.listdir(tmp_path)) - {"canary", "runs"})


def _refuse(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


def _deny(path: str) -> None:
    raise PermissionError(13, "Permission denied", path)
