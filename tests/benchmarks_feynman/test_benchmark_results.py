"""Result files are read up to a size, and only if they are files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks_feynman import results
from benchmarks_feynman.command import evaluate
from benchmarks_feynman.results import ResultFile, read_results
from physdiffuser.errors import DataError, FileError

posix = pytest.mark.skipif(os.name != "posix", reason="needs devices and named pipes")


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


@posix
@pytest.mark.parametrize("make", [lambda folder: Path("/dev/zero"), _pipe], ids=["device", "pipe"])
def test_what_may_never_end_is_refused_before_it_is_opened(make: object, tmp_path: Path) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    with pytest.raises(FileError, match="device or a pipe: name a regular file with --results"):
        read_results(path)
    for resume in (False, True):
        with pytest.raises(FileError, match="device or a pipe"):
            ResultFile(path, resume=resume)
    done = CliRunner().invoke(evaluate, ["--no-run", "--results", str(path)])
    assert isinstance(done.exception, FileError)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x" * 300, "a line of more than 200 bytes"),
        (b"{}\n" * 200, "more than 500 bytes"),
        (b"\0" * 1000, "a line of more than 200 bytes"),
    ],
)
def test_a_file_too_large_for_results_is_refused(
    content: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "MAX_LINE", 200)
    monkeypatch.setattr(results, "MAX_BYTES", 500)
    path = tmp_path / "results.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{says}.*no result file"):
        read_results(path)
    with pytest.raises(DataError, match=says):
        ResultFile(path, resume=True)


def test_a_file_that_grows_while_it_is_read_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MAX_BYTES", 5_000)

    class Growing:
        def readline(self, size: int) -> bytes:
            return b'{"schema": 1}\n'

    with pytest.raises(DataError, match="more than 5,000 bytes"):
        for _ in results._limited(Growing(), Path("growing.jsonl")):  # type: ignore[arg-type]
            pass
