"""The inputs of docs/robustness.md, as builders that the reader tests and the command-line tests share."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import threading
import unicodedata
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from physdiffuser.data import Dataset

ROWS = 24
A = [round(0.5 + 0.25 * i, 4) for i in range(ROWS)]
B = [round(1.0 + (7 * i * i) % 11 * 0.3, 4) for i in range(ROWS)]
Y = [round(a * b, 8) for a, b in zip(A, B, strict=True)]

Check = Callable[[Dataset], None]


@dataclass(frozen=True)
class Case:
    """One input: where it lies, how it is asked for, and what has to be said or true."""

    source: str
    options: dict[str, Any] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    check: Check | None = None
    stdin: bytes | None = None
    folder: Path | None = None
    denied: bool = False
    feed: Callable[[], None] | None = None


@dataclass(frozen=True)
class BadInput:
    """A row of the catalogue; `code` is its number there, with a letter for variants."""

    code: str
    title: str
    behaviour: str
    build: Callable[[Path], Case]

    @property
    def exit_code(self) -> int:
        """What the command line returns."""
        return {"A": 0, "W": 0, "D": 3, "F": 4, "U": 2}[self.behaviour]


CATALOGUE: list[BadInput] = []


def entry(
    code: str, title: str, behaviour: str
) -> Callable[[Callable[[Path], Case]], Callable[[Path], Case]]:
    """Register a builder."""

    def register(build: Callable[[Path], Case]) -> Callable[[Path], Case]:
        CATALOGUE.append(BadInput(code, title, behaviour, build))
        return build

    return register


def csv_text(
    names: tuple[str, ...] = ("a", "b", "y"),
    columns: tuple[list[Any], ...] = (A, B, Y),
    delimiter: str = ",",
    end: str = "\n",
) -> str:
    """A small table as text."""
    lines = [delimiter.join(names)] if names else []
    lines += [delimiter.join(str(cell) for cell in row) for row in zip(*columns, strict=True)]
    return "".join(line + end for line in lines)


GOOD = csv_text()


def write(folder: Path, content: str | bytes, name: str = "table.csv", **options: Any) -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return str(path)


def holds(
    a: list[float] = A, b: list[float] = B, y: list[float] = Y, names: tuple[str, ...] = ("a", "b")
) -> Check:
    """Check that the dataset is exactly this table."""

    def check(data: Dataset) -> None:
        np.testing.assert_array_equal(data.inputs, np.column_stack([a, b]))
        np.testing.assert_array_equal(data.target, y)
        assert tuple(column.name for column in data.columns) == names

    return check


def simple(
    content: str | bytes, *says: str, check: Check | None = None, name: str = "table.csv", **options: Any
):
    """A builder for a file with this content."""
    return lambda folder: Case(write(folder, content, name), options, says, check)


def add(code: str, title: str, behaviour: str, content: str | bytes, *says: str, **more: Any) -> None:
    """Register a file with this content."""
    entry(code, title, behaviour)(simple(content, *says, **more))


def with_cell(cell: str, row: int = 7, column: int = 1, text: str = GOOD) -> str:
    """The good table with one cell replaced."""
    lines = text.splitlines()
    cells = lines[row].split(",")
    cells[column] = cell
    lines[row] = ",".join(cells)
    return "\n".join(lines) + "\n"


def with_name(name: str) -> str:
    """The good table with its first column renamed; the name is quoted."""
    return csv_text(('"' + name.replace('"', '""') + '"', "b", "y"))


def named(*names: str) -> Check:
    """Check that the first columns have these names."""

    def check(data: Dataset) -> None:
        assert tuple(column.name for column in data.columns)[: len(names)] == names
        assert all(alias.isidentifier() for alias in data.names)
        np.testing.assert_array_equal(data.target, Y)

    return check


# --- bytes ------------------------------------------------------------------------------------------------

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

# --- dialect ----------------------------------------------------------------------------------------------

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

# --- names ------------------------------------------------------------------------------------------------


def _names(code: str, title: str, names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(5)
    columns = [np.round(rng.uniform(1, 2, ROWS), 6).tolist() for _ in names[:-1]]
    add(code, title, "A", csv_text((*names, "target"), (*columns, B, Y)), check=named(*names))


_names("30", "names of constants", ("E", "I", "N", "O", "Q", "S"))
_names("31", "names of functions", ("beta", "gamma", "zeta", "pi", "Si"))
_names("32", "keywords", ("lambda", "is", "None"))
_names("33", "built-in names", ("exec", "print"))
_names("34", "a name with its unit", ("v (m/s)", "t"))
_names("35", "a Greek name", ("θ", "μ"))
_names("35b", "a decomposed name", (unicodedata.normalize("NFD", "é"), "b"))


@entry("36", "code as a name", "A")
def _code_name(folder: Path) -> Case:
    name = f"__import__('os').system('touch {folder}/canary')"
    return Case(write(folder, with_name(name)), {}, (), named(name))


add("37", "line break in a name", "D", with_name("first\nsecond"), "line break")
add(
    "38",
    "terminal escape sequence in a name",
    "A",
    with_name("\x1b[31mred\x1b[0m"),
    check=named("\x1b[31mred\x1b[0m"),
)
add(
    "39",
    "markup in a name",
    "A",
    with_name(r"[red]x[/red] \input{/etc/passwd} $x^2$ <b>"),
    check=named(r"[red]x[/red] \input{/etc/passwd} $x^2$ <b>"),
)
add(
    "40",
    "spreadsheet formula as a name",
    "A",
    with_name("=cmd|' /C calc'!A0"),
    check=named("=cmd|' /C calc'!A0"),
)
add("41", "a name of 10 kB", "D", with_name("n" * 10_000), "10,000 characters")
add("42", "target among the inputs", "U", GOOD, "is the target", inputs=["a", "y"], target="y")
add(
    "43",
    "unknown target",
    "U",
    csv_text(("mass", "speed", "energy")),
    "Did you mean 'energy'",
    target="enrgy",
)

# --- values -----------------------------------------------------------------------------------------------


@entry("44", "code in a cell", "D")
def _code_cell(folder: Path) -> Case:
    cell = f"__import__('os').system('touch {folder}/canary')"
    return Case(write(folder, with_cell(cell)), {}, ("line 8", "column 2"))


def _dropped(*rows: int) -> Check:
    def check(data: Dataset) -> None:
        keep = [i for i in range(ROWS) if i not in rows]
        np.testing.assert_array_equal(data.target, np.array(Y)[keep])
        np.testing.assert_array_equal(data.inputs[:, 1], np.array(B)[keep])

    return check


for _letter, _spelling in zip(" bcdefg", ("NaN", "", "NA", "null", "#N/A", "nan", "N/A"), strict=True):
    add(
        f"45{_letter}".strip(),
        f"missing value {_spelling!r}",
        "W",
        with_cell(_spelling),
        "1 row",
        "missing",
        check=_dropped(6),
    )
add("45h", "more than half missing", "D", csv_text(columns=(A, [*B[:11], *[""] * 13], Y)), "13 of 24", "'b'")
add("46", "infinity", "D", with_cell("inf"), "infinite", "line 8")
add("46b", "beyond float64", "D", with_cell("1e400"), "64-bit", "line 8")
add(
    "46c", "infinity, spelled out, in the first row", "D", with_cell("-Infinity", row=1), "infinite", "line 2"
)
add(
    "47",
    "a sentinel for missing values",
    "W",
    with_cell("-999", text=with_cell("-999", row=9)),
    "-999",
    "2 rows",
)
add("48", "complex number", "D", with_cell("1+2j"), "complex")
add(
    "49",
    "dates",
    "D",
    csv_text(columns=([f"2024-01-{i + 1:02d}" for i in range(ROWS)], B, Y)),
    "date",
    "line 2",
)
add(
    "49b",
    "dates with slashes",
    "D",
    csv_text(columns=([f"{i + 1}/2/2024" for i in range(ROWS)], B, Y)),
    "date",
)


def _boolean(data: Dataset) -> None:
    np.testing.assert_array_equal(data.inputs[:, 0], [i % 2 for i in range(ROWS)])


add(
    "50",
    "truth values",
    "W",
    csv_text(columns=([("False", "True")[i % 2] for i in range(ROWS)], B, Y)),
    "0 and 1",
    check=_boolean,
)
add("51", "text among numbers", "D", with_cell("about three"), "line 8", "column 2 'b'", "not a number")
add("51b", "text above numbers", "D", with_cell("unknown", row=2), "line 3", "column 2 'b'")
add(
    "51c",
    "a column of labels",
    "W",
    csv_text(("planet", "a", "b", "y"), ([f"no {chr(97 + i)}" for i in range(ROWS)], A, B, Y)),
    "'planet'",
    "text",
    check=holds(),
)
for _letter, _cell in zip(
    " bcdefg", ("0x10", "1_000", "1.5D+03", "\u22125", "5%", "１２", "1/2"), strict=True
):
    add(f"52{_letter}".strip(), f"odd number {_cell}", "D", with_cell(_cell), "line 8", "column 2 'b'")
add(
    "52h",
    "a column of percentages",
    "D",
    csv_text(columns=([f"{i}%" for i in range(ROWS)], B, Y)),
    "percentage",
)


def _big(data: Dataset) -> None:
    assert data.inputs[6, 1] == 2.0**63


add(
    "53",
    "whole number beyond 2**63",
    "W",
    csv_text(columns=(A, [2**62 + i * 2**58 for i in range(ROWS)], Y)).replace(
        str(2**62 + 6 * 2**58), str(2**63)
    ),
    "2**63",
    check=_big,
)
add(
    "54",
    "very small and very large values",
    "A",
    csv_text(columns=([a * 1e-30 for a in A], [b * 1e30 for b in B], Y)),
    check=holds([a * 1e-30 for a in A], [b * 1e30 for b in B]),
)


def _edge(data: Dataset) -> None:
    assert data.inputs[6, 1] == np.finfo(float).max
    assert data.inputs[3, 1] == -np.finfo(float).max


add(
    "55",
    "the end of the float64 range",
    "W",
    with_cell("1.8e308", text=with_cell("-1.8e308", row=4)),
    "float64",
    check=_edge,
)
add(
    "55b",
    "the end of the float64 range, exactly",
    "W",
    with_cell("1.7976931348623157e308", text=with_cell("-1.7976931348623157e+308", row=4)),
    "float64",
    check=_edge,
)

# --- shape ------------------------------------------------------------------------------------------------

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


# --- paths ------------------------------------------------------------------------------------------------


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
