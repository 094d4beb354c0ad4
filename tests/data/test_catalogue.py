"""Every input of docs/robustness.md, at the level of the reader."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest
from bad_tables import CATALOGUE, BadInput

from physdiffuser.data import load_dataset
from physdiffuser.data.readers import sources
from physdiffuser.errors import DataError, FileError, UsageError

ERRORS = {"D": DataError, "F": FileError, "U": UsageError}


def test_every_number_is_there() -> None:
    numbers = {int("".join(char for char in row.code if char.isdigit())) for row in CATALOGUE}
    assert numbers == set(range(1, 74))


@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: f"{row.code}-{row.title}")
def test_behaviour(
    row: BadInput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    case = row.build(tmp_path)
    if case.stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.stdin)))
    if case.folder is not None:
        monkeypatch.chdir(case.folder)
    if case.denied:  # permissions do not stop the administrator, as whom tests often run
        monkeypatch.setattr(sources.io, "FileIO", _deny)
    if case.feed is not None:
        case.feed()
    if row.behaviour in ERRORS:
        with pytest.raises(ERRORS[row.behaviour]) as caught:
            load_dataset(case.source, **case.options)
        message = str(caught.value)
        assert caught.value.exit_code == row.exit_code
        assert message.isprintable()
        for part in case.says:
            assert part in message
    else:
        data = load_dataset(case.source, **case.options)
        assert len(data.warnings) == (1 if row.behaviour == "W" else 0), data.warnings
        assert all(warning.isprintable() for warning in data.warnings)
        for part in case.says:
            assert part in data.warnings[0]
        if case.check is not None:
            case.check(data)
    assert not (tmp_path / "canary").exists()
    assert capfd.readouterr() == ("", "")


def _deny(path: str) -> None:
    raise PermissionError(13, "Permission denied", path)


def test_the_page_says_the_same() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "robustness.md").read_text(encoding="utf-8")
    promised = dict(re.findall(r"^\| (\d+) \|.*?(?<!\\)\| ([AWDFU]) \|", page, flags=re.MULTILINE))
    assert promised == {row.code: row.behaviour for row in CATALOGUE if row.code.isdigit()}
