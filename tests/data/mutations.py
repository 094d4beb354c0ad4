"""Random tables, damaged at random, and a naive second reading of them to compare with."""

from __future__ import annotations

import csv
import gzip
import io
import random
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from physdiffuser.data import Dataset

DELIMITERS = (",", ",", ",", "\t", ";", "|", " ")
NAMES = ("a", "b", "T", "mass", "v (m/s)", "θ", "lambda", "E", "x y", "=1+1", "é", "n°", "F_2", "pi")
ODD = (
    *("", "nan", "NA", "N/A", "null", "None", "-", "?", "inf", "-inf", "1e400", "0x10", "1_000", "1,234"),
    *("1.234,5", "1.5D+03", "\u22125", "5%", "true", "FALSE", "2020-01-01", "12:30", "1+2j", "text", "3 m"),
    *("1/2", "'5", '"5', '5"', '"7"', '" 8 "', "1e5", "-0.0", "+3", ".5", "5.", "1e-310", "1.8e308"),
    *("9223372036854775808", "١٢", "１２", "#5", "\x1b[31m", "\x00", "=cmd", "1e", "e5", "--1", "+-2"),
    *("1.2.3", ".", "-", "\x1c4", "\xa06", "1 000", "0b1", "infinity", "1d5", "1f", "0777", "00012"),
    *("1e+05", "1E-05", "\ufeff3", "-999", "1e05 ", "  2"),
)
MISSING = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "+nan", "null", "none"}


@dataclass(frozen=True)
class Sample:
    """A file and what is known about how it was written."""

    content: bytes
    suffix: str
    delimiter: str
    decimal: str
    encoding: str


def _number(rng: random.Random) -> str:
    value = rng.choice(
        (rng.uniform(-10, 10), rng.gauss(0, 1) * 10 ** rng.randint(-12, 12), rng.randint(-50, 50))
    )
    return rng.choice((repr(value), f"{value:.4g}", f"{value:.3f}", f"{value:.6e}"))


def make_sample(rng: random.Random) -> Sample:
    """Return a random table with up to five random changes."""
    columns, rows = rng.randint(2, 6), rng.randint(2, 40)
    delimiter = rng.choice(DELIMITERS)
    decimal = "," if delimiter in ";\t" and rng.random() < 0.4 else "."
    cells = [[_number(rng).replace(".", decimal) for _ in range(columns)] for _ in range(rows)]
    if rng.random() < 0.15:
        for row in cells:
            row[rng.randrange(columns) if rng.random() < 0.05 else 0] = rng.choice(
                ("alpha", "beta", "gamma ray")
            )
    names = rng.sample(NAMES, columns)
    if delimiter == " ":
        names = [name.replace(" ", "_") for name in names]
    table = [names, *cells] if rng.random() < 0.85 else cells
    if rng.random() < 0.1:
        table = [[str(i - 1) if i else "", *row] for i, row in enumerate(table)]
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5))):
        _change_table(table, rng)
    lines = [delimiter.join(row) for row in table]
    for _ in range(rng.choice((0, 0, 1, 2))):
        _change_lines(lines, delimiter, rng)
    end = rng.choice(("\n", "\n", "\r\n", "\r"))
    text = end.join(lines) + rng.choice(("", end, end + end))
    encoding = rng.choice(("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"))
    content = text.encode(encoding)
    if rng.random() < 0.15:
        content = _change_bytes(content, rng)
    suffix = ".csv"
    if rng.random() < 0.1:
        content, suffix = gzip.compress(content), ".csv.gz"
        if rng.random() < 0.3:
            content = _change_bytes(content, rng)
    return Sample(content, suffix, delimiter, decimal, encoding)


def _change_table(table: list[list[str]], rng: random.Random) -> None:
    row = rng.choice(table)
    column = rng.randrange(len(row)) if row else 0
    kind = rng.randrange(8)
    if kind <= 2 and row:
        row[column] = rng.choice(ODD)
    elif kind == 3 and row:
        row[column] = f'"{row[column]}"'
    elif kind == 4 and row:
        row.pop(column)
    elif kind == 5:
        row.insert(column, rng.choice(ODD))
    elif kind == 6:
        for other in table:
            other.append("")
    elif row and column < min(map(len, table)):
        value = rng.choice(ODD)
        for other in table[rng.randrange(2) :]:
            other[column] = value


def _change_lines(lines: list[str], delimiter: str, rng: random.Random) -> None:
    at = rng.randrange(len(lines) + 1)
    kind = rng.randrange(7)
    if kind == 0:
        lines.insert(at, "")
    elif kind == 1:
        lines.insert(at, rng.choice(("# a remark", '#"', "  # x, y", "#")))
    elif kind == 2 and at < len(lines):
        lines.insert(at, lines[at])
    elif kind == 3 and at < len(lines) and len(lines) > 1:
        lines.pop(at)
    elif kind == 4 and at < len(lines):
        lines[at] = lines[at].replace(delimiter, rng.choice((",", ";", "\t", " ")), 1)
    elif kind == 5 and at < len(lines) and lines[at]:
        where = rng.randrange(len(lines[at]))
        lines[at] = (
            lines[at][:where] + rng.choice("\"'#,;. \t-eE1\u2212x\x00\x0b\x85\u2028") + lines[at][where:]
        )
    elif at < len(lines):
        lines[at] = "  " + lines[at] + " "


def _change_bytes(content: bytes, rng: random.Random) -> bytes:
    if not content:
        return content
    at = rng.randrange(len(content))
    kind = rng.randrange(4)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
    if kind == 2:
        return content[:at] + bytes([rng.randrange(256)]) + content[at:]
    return content[:at] + content[at : at + 40] * 3 + content[at + 40 :]


def reference(sample: Sample, data: Dataset) -> np.ndarray:
    """Read the columns of `data` again, naively; raises when that cannot be right.

    Returns
    -------
    ndarray
        Shape (rows, inputs + 1), rows with a missing value left out.
    """
    content = gzip.decompress(sample.content) if sample.suffix.endswith(".gz") else sample.content
    encoding = sample.encoding
    if encoding == "utf-8" and content.startswith(b"\xef\xbb\xbf"):
        encoding = "utf-8-sig"
    text = content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    rows = []
    for line in text.split("\n"):
        if line.strip() and (not line.strip().startswith("#") or line.strip().upper().startswith("#N")):
            if sample.delimiter == " ":
                line = line.replace("\t", " ").strip()
            rows.append(
                next(csv.reader(io.StringIO(line), delimiter=sample.delimiter, skipinitialspace=True))
            )
    if any("the comment above it gives the names" in warning for warning in data.warnings):
        comment = next(line for line in text.split("\n") if line.strip().startswith("#")).strip(" #")
        rows.insert(0, [name.strip() for name in comment.split("," if "," in comment else None)])
    names = [cell.strip(" \t\xa0\ufeff") for cell in rows[0]]
    wanted = [*(column.name for column in data.columns), data.target_column.name]
    if all(name in names for name in wanted):
        positions = [names.index(name) for name in wanted]
        rows = rows[1:]
    elif all(name.startswith("column_") or name in names for name in wanted):
        positions = [
            names.index(name) if name in names else int(name.removeprefix("column_")) - 1 for name in wanted
        ]
        rows = rows[1:]
    else:
        assert all(name[0] == "x" and name[1:].isdigit() for name in wanted), (names, wanted)
        positions = [int(name[1:]) - 1 for name in wanted]
    width = len(rows[0])
    assert all(len(row) == width for row in rows), "ragged"
    values = [[_value(row[position], sample.decimal) for position in positions] for row in rows]
    return np.array([row for row in values if not np.isnan(row).any()])


def _value(cell: str, decimal: str) -> float:
    text = cell.strip()
    if text.lower() in MISSING:
        return float("nan")
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    if decimal == ",":
        assert "." not in text, cell
        text = text.replace(",", ".")
    assert text.isascii() and "_" not in text, cell
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise AssertionError(f"not a number: {cell!r}") from None
    assert exact.is_finite(), cell
    limit = np.finfo(float).max
    return float(np.clip(float(exact), -limit, limit)) if abs(exact) <= Decimal("1.8e308") else float("inf")
