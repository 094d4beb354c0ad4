"""Shapes of tables, and the places they are read from."""

from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import numpy as np
from bad_table_parts import (
    GOOD,
    ROWS,
    A,
    B,
    Case,
    Y,
    add,
    csv_text,
    entry,
    holds,
    write,
)

from physdiffuser.data import Dataset

add("56", "empty file", "D", b"", "empty")
add("56b", "blank lines only", "D", b"\n  \n\n", "empty")
add("56c", "comments only", "D", b"# nothing\n# here\n", "empty")
add("57", "header only", "D", "a,b,y\n", "no rows")
add("58", "one row", "D", "a,b,y\n1,2,3\n", "1 usable row")
add("59", "one column", "D", "y\n" + "".join(f"{y}\n" for y in Y), "only one column")


def _wide(columns: int, rows: int) -> str:
    values = np.round(np.random.default_rng(3).uniform(1, 2, (rows, columns)), 6)
    lines = [",".join(f"c{i}" for i in range(columns))]
    return "\n".join(lines + [",".join(map(str, row)) for row in values.tolist()]) + "\n"


add("60", "fewer rows than columns", "W", _wide(9, 5), "fewer rows (5) than input columns (8)")
add(
    "61",
    "constant column",
    "W",
    csv_text(("a", "b", "g", "y"), (A, B, [9.81] * ROWS, Y)),
    "'g' = 9.81",
    check=holds(),
)


def _constant(data: Dataset) -> None:
    assert set(data.target) == {4.5}


add("62", "constant target", "A", csv_text(columns=(A, B, [4.5] * ROWS)), check=_constant)
add(
    "63",
    "collinear columns",
    "W",
    csv_text(("a", "b", "c", "y"), (A, B, [2 * a - b + 1 for a, b in zip(A, B, strict=True)], Y)),
    "depend linearly",
)


def _twice(data: Dataset) -> None:
    assert data.rows == 2 * ROWS


add("64", "duplicate rows", "A", GOOD + GOOD.split("\n", 1)[1], check=_twice)
add("65", "200 columns", "W", _wide(200, 260), "199 input columns")


@entry("66", "many rows", "A")
def _many(folder: Path) -> Case:
    values = np.random.default_rng(1).integers(1, 1000, (300_000, 2))
    path = folder / "many.csv"
    product = values[:, 0] * values[:, 1]
    np.savetxt(path, np.column_stack([values, product]), "%d", ",", header="a,b,y", comments="")

    def check(data: Dataset) -> None:
        np.testing.assert_array_equal(data.inputs, values)
        np.testing.assert_array_equal(data.target, product)

    return Case(str(path), {}, (), check)


@entry("67", "no such file", "F")
def _missing(folder: Path) -> Case:
    write(folder, GOOD, "planets.csv")
    return Case(str(folder / "planet.csv"), {}, ("no such file", "Did you mean"))


@entry("68", "a folder", "F")
def _folder(folder: Path) -> Case:
    return Case(str(folder), {}, ("folder",))


@entry("69", "no permission", "F")
def _unreadable(folder: Path) -> Case:
    path = write(folder, GOOD)
    os.chmod(path, 0)
    return Case(path, {}, ("not permitted",), denied=True)


@entry("70", "standard input", "A")
def _stdin(folder: Path) -> Case:
    return Case("-", {}, (), holds(), stdin=GOOD.encode())


@entry("70b", "named pipe", "A")
def _fifo(folder: Path) -> Case:
    path = folder / "pipe"
    os.mkfifo(path)

    def feed() -> None:
        threading.Thread(target=lambda: path.write_text(GOOD), daemon=True).start()

    return Case(str(path), {}, (), holds(), feed=feed)


@entry("70c", "gzip on standard input", "A")
def _stdin_gzip(folder: Path) -> Case:
    return Case("-", {}, (), holds(), stdin=gzip.compress(GOOD.encode()))


@entry("71", "/dev/null", "D")
def _null(folder: Path) -> Case:
    return Case("/dev/null", {}, ("empty",))


@entry("72", "symbolic links in a loop", "F")
def _loop(folder: Path) -> Case:
    (folder / "one.csv").symlink_to(folder / "two.csv")
    (folder / "two.csv").symlink_to(folder / "one.csv")
    return Case(str(folder / "one.csv"), {}, ("loop",))


@entry("73", "a name that begins with a hyphen", "A")
def _hyphen(folder: Path) -> Case:
    write(folder, GOOD, "-table.csv")
    return Case("-table.csv", {}, (), holds(), folder=folder)
