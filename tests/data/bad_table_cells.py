"""Names of columns, and values of cells."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import numpy as np
from bad_table_parts import (
    GOOD,
    ROWS,
    A,
    B,
    Case,
    Check,
    Y,
    add,
    csv_text,
    entry,
    holds,
    named,
    with_cell,
    with_name,
    write,
)

from physdiffuser.data import Dataset


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
