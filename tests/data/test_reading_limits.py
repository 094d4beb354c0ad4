"""Reading ends: on small files that claim large tables, on endless pipes, and when the time is used up."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from physdiffuser.data import load_dataset
from physdiffuser.data.limits import MIN_SECONDS, ReadLimits, most_cells, reading_seconds
from physdiffuser.data.readers import formats as readers
from physdiffuser.data.readers.compression import GuardedGzip
from physdiffuser.data.statements.unit_files import load_units
from physdiffuser.errors import DataError, FileError, UsageError

posix = pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
ROWS = [[float(i), float(i * i % 7), i + 3.5 * (i * i % 7)] for i in range(1, 20)]
HANGS_BEYOND = 20.0  # seconds; generous, since the machine may be busy


def workbook(path: Path, change: Callable[[object], None]) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["a", "b", "y"])
    for row in ROWS:
        book.active.append(row)
    change(book.active)
    book.save(path)
    return path


def test_a_blank_cell_at_the_far_end_of_a_sheet_costs_nothing(tmp_path: Path) -> None:
    def format_last(sheet: object) -> None:
        sheet["XFD1048576"].number_format = "0.00"  # type: ignore[index]

    path = workbook(tmp_path / "t.xlsx", format_last)
    assert path.stat().st_size < 10_000
    data = load_dataset(path, seconds=HANGS_BEYOND)
    np.testing.assert_array_equal(np.column_stack([data.inputs, data.target]), ROWS)
    assert data.warnings == ()


def test_a_filled_cell_far_beside_a_long_table_is_named(tmp_path: Path) -> None:
    def fill_last(sheet: object) -> None:
        for number in range(200):
            sheet.append([number, 2, 3])  # type: ignore[attr-defined]
        sheet["XFD7"] = "note"  # type: ignore[index]

    path = workbook(tmp_path / "t.xlsx", fill_last)
    with pytest.raises(DataError, match=r"only 661 of 3,604,480 cells.*row 7 has a cell in column 16384"):
        load_dataset(path, seconds=HANGS_BEYOND)


def test_a_row_number_beyond_the_format_is_refused(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", lambda sheet: None)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    members[sheet] = members[sheet].replace(b'r="20"', b'r="999999999999"')
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match="more than 1,048,576 rows"):
        load_dataset(path, seconds=HANGS_BEYOND)


def test_a_small_gzip_file_that_unpacks_to_a_large_one_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 20_000_000, 9))
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="expands more than 200-fold"):
        load_dataset(path)
    # Hardly any of the 20,000,000 rows may have been parsed: the limit comes before the work.
    taken = 0
    with path.open("rb") as file:
        guarded = GuardedGzip(file, "t")
        buffer = memoryview(bytearray(1 << 16))

        def take() -> None:
            nonlocal taken
            while True:
                taken += guarded.readinto(buffer)

        with pytest.raises(DataError):
            take()
    assert taken < 4_000_000


def test_a_small_parquet_file_that_claims_many_rows_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column = pyarrow.array(np.ones(4_000_000))
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"a": column, "b": column, "y": column}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match="4,000,000 rows in a file of"):
        load_dataset(path)


def test_a_table_beyond_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert most_cells() >= 100_000_000 or os.name == "posix"
    monkeypatch.setattr("physdiffuser.data.limits.MAX_CELLS", 50)
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "1,2,3\n2,3,5\n" * 20)
    with pytest.raises(DataError, match="more than 50 numbers do not fit"):
        load_dataset(path)
    workbook(tmp_path / "t.xlsx", lambda sheet: None)
    with pytest.raises(DataError, match="more than 50 numbers"):
        load_dataset(tmp_path / "t.xlsx")


def _csv(path: Path) -> Path:
    path.write_text("a,b,y\n" + "".join(f"{i % 97},{i * i % 89},{i}.5\n" for i in range(200_000)))
    return path


def _gz(path: Path) -> Path:
    text = "a,b,y\n" + "".join(f"{i % 97},{i * i % 89},{i}.5\n" for i in range(50_000))
    path.write_bytes(gzip.compress(text.encode()))
    return path


def _parquet(path: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values = np.random.default_rng(1).normal(size=300_000)
    parquet.write_table(pyarrow.table({"a": values, "y": values * 2}), path)
    return path


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("t.csv", _csv),
        ("t.csv.gz", _gz),
        ("t.parquet", _parquet),
        ("t.xlsx", lambda path: workbook(path, lambda sheet: None)),
    ],
)
def test_every_format_checks_the_clock(
    name: str, make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a clock that counts how often it is read, reading stops after a few looks and no later."""
    path = make(tmp_path / name)
    whole = itertools.count()
    monkeypatch.setattr(readers, "ReadLimits", lambda seconds: ReadLimits(1e9, lambda: float(next(whole))))
    assert load_dataset(path).rows > 10
    looks = next(whole)
    assert looks >= 5, "the clock is read while reading, not only before and after"
    short = itertools.count()
    monkeypatch.setattr(
        readers, "ReadLimits", lambda seconds: ReadLimits(looks - 2.0, lambda: float(next(short)))
    )
    with pytest.raises(DataError, match=r"was stopped after .* time limit\. Give more time with --time"):
        load_dataset(path)
    assert next(short) <= looks + 1


def test_reading_may_take_as_long_as_the_run_and_at_least_a_few_seconds() -> None:
    assert reading_seconds(None) is None
    assert reading_seconds(0.01) == MIN_SECONDS
    assert reading_seconds(float("nan")) == MIN_SECONDS  # the search refuses it, with a message of its own
    assert reading_seconds(300.0) == 300.0


@posix
def test_a_pipe_that_nobody_opens_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileError, match="did not arrive within"):
        load_dataset(path, seconds=0.2)


@posix
@pytest.mark.parametrize("written", [b"", b"a,y\n1,2\n2,4\n"])
def test_a_pipe_that_stays_open_is_not_waited_for_for_ever(written: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    done = threading.Event()

    def feed() -> None:
        with path.open("wb", buffering=0) as stream:
            stream.write(written)
            done.wait(HANGS_BEYOND)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        with pytest.raises(FileError, match=r"did not arrive within 0\.5 s.*program that writes to the pipe"):
            load_dataset(path, seconds=0.5)
    finally:
        done.set()
        thread.join()


@posix
def test_a_slow_pipe_is_read_to_its_end_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def feed() -> None:
        with path.open("wb", buffering=0) as stream:
            for line in (b"a,y\n", b"1,2\n", b"2,5\n", b"3,7\n"):
                stream.write(line)
                time.sleep(0.02)

    thread = threading.Thread(target=feed)
    thread.start()
    assert load_dataset(path, seconds=60.0).rows == 3
    thread.join()


ENDLESS: dict[str, Callable[[], Iterator[bytes]]] = {
    "rows": lambda: itertools.chain([b"a,y\n"], itertools.repeat(b"1,2\n2,3\n" * 5000)),
    "blank lines": lambda: itertools.repeat(b"\n" * 50_000),
    "comments": lambda: itertools.repeat(b"# remark\n" * 5000),
}


@posix
@pytest.mark.parametrize("content", list(ENDLESS))
def test_standard_input_without_an_end(content: str) -> None:
    """A process of its own, with a time limit for reading and a limit on rows."""
    code = (
        "from physdiffuser.data import load_dataset, limits\n"
        "from physdiffuser.data.readers import delimited\n"
        "limits.MAX_CELLS = 200_000; delimited.MAX_COMMENTS = 1 << 20\n"
        "from physdiffuser.errors import DataError\n"
        "try: load_dataset('-')\n"
        "except DataError as error: print(error)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False
    )
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # the reader has ended, as it should
        for block in ENDLESS[content]():
            process.stdin.write(block)
    said = process.stdout.read().decode()
    assert process.wait() == 0
    process.stdout.close()
    assert ("200,000 numbers" if content == "rows" else "only blank lines and comments") in said


@posix
def test_a_units_file_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,2\n2,5\n")
    with pytest.raises(UsageError, match="more than 1,000,000 bytes"):
        load_units("/dev/zero", load_dataset(path))
