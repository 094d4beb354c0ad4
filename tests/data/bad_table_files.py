"""Bytes that are no plain table, and the dialects of text."""

from __future__ import annotations

import gzip
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

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
    with_cell,
    write,
)

from physdiffuser.data import Dataset

add("1", "byte order mark", "A", b"\xef\xbb\xbf" + GOOD.encode(), check=holds())
add("2", "UTF-16 with mark", "A", GOOD.encode("utf-16"), check=holds())
add("2b", "UTF-16 big-endian with mark", "A", b"\xfe\xff" + GOOD.encode("utf-16-be"), check=holds())
LATIN = csv_text(("a", "größe", "y")).encode("latin-1")
add("3", "Latin-1", "D", LATIN, "--encoding latin-1", "offset")
add("3b", "Latin-1, asked for", "A", LATIN, encoding="latin-1", check=holds(names=("a", "größe")))
add(
    "4",
    "invalid byte in the middle",
    "D",
    GOOD.encode()[:90] + b"\xff" + GOOD.encode()[90:],
    "offset 90",
    "0xff",
)
add("5", "NUL character", "D", GOOD.encode()[:60] + b"\0" + GOOD.encode()[60:], "NUL", "line")
add("6", "carriage returns only", "A", csv_text(end="\r"), check=holds())
add("7", "mixed line ends", "A", GOOD.replace("\n", "\r\n", 5).replace("\n", "\r", 1), check=holds())
add("8", "gzip", "A", gzip.compress(GOOD.encode()), check=holds(), name="table.csv.gz")
add("9", "truncated gzip", "D", gzip.compress(GOOD.encode())[:-20], "ends too early", name="table.csv.gz")


@entry("10", "gzip bomb", "D")
def _bomb(folder: Path) -> Case:
    # Long cells, because the time goes into rows.
    line = b"1." + b"0" * 300 + b",2." + b"0" * 300 + b",3.5\n"
    return Case(write(folder, gzip.compress(b"a,b,y\n" + line * 40_000), "bomb.csv.gz"), {}, ("expands",))


def _workbook() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    return buffer.getvalue()


add("11", "workbook renamed to csv", "D", _workbook(), "Excel", "xlsx")
add("12", "web page", "D", "<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "web page")
add("12b", "web page with mark and blanks", "D", "\ufeff\n  <html>\n", "web page")


class Canary:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, (self.path, "w"))


@entry("13", "pickle renamed", "D")
def _pickle(folder: Path) -> Case:
    canary = folder / "canary"

    return Case(write(folder, pickle.dumps(Canary(str(canary)))), {}, ("pickle", "never loaded"))


add("13b", "Parquet renamed", "D", b"PAR1" + bytes(range(200)) + b"PAR1", "Parquet")


COMMA = csv_text(delimiter=";").replace(".", ",")


def _noted(data: Dataset) -> None:
    holds()(data)
    assert data.notes["dialect"] == "semicolon with decimal comma"


add("14", "semicolon and decimal comma", "A", COMMA, check=_noted)
add("15", "tabs", "A", csv_text(delimiter="\t"), check=holds())
add("16", "whitespace", "A", "  " + csv_text(delimiter="   ").replace("\n", " \n "), check=holds())
add("17", "quoted numbers", "A", csv_text(columns=([f'"{a}"' for a in A], B, Y)), check=holds())
add("18", "thousands separators", "D", with_cell('"1,234"'), "--thousands", "line 8")


def _thousands(data: Dataset) -> None:
    assert data.inputs[6, 1] == 1234.0


add("18b", "thousands separators, named", "A", with_cell('"1,234"'), thousands=",", check=_thousands)
add("19", "no header", "W", csv_text(names=()), "no header", "x1", check=holds(names=("x1", "x2")))
add(
    "20",
    "comments",
    "A",
    "# made by hand\n" + GOOD.replace("\n", "\n# remark, with a comma\n", 3),
    check=holds(),
)
add("21", "row of units", "D", GOOD.replace("\n", "\nm,s,kg\n", 1), "units", "line 2")
add(
    "22",
    "unnamed index column",
    "W",
    csv_text(("", "a", "b", "y"), (list(range(ROWS)), A, B, Y)),
    "no name",
    "left out",
    check=holds(),
)
add("23", "empty last field everywhere", "W", csv_text(end=",\n"), "neither name nor values", check=holds())
add("24", "ragged line", "D", GOOD.replace(f"{A[5]},{B[5]},", f"{A[5]},", 1), "line 7", "2 fields")
add(
    "25",
    "rows longer than the header",
    "D",
    csv_text(("a", "b", "y"), (A, B, Y, A)).replace("a,b,y,", "a,b,y"),
    "no name",
    "line 2",
)
add("26", "open quote", "D", with_cell('"3.5'), "line 8", "quote")
add("27", "padded names", "A", GOOD.replace("a,b,y", " a , b,  y "), check=holds())
add("28", "the same name twice", "D", GOOD.replace("a,b,y", "x,x,y"), "both called 'x'")
add(
    "29",
    "the same name twice and its usual replacement",
    "D",
    csv_text(("x", "x", "x.1", "y"), (A, B, A, Y)),
    "both called 'x'",
)
