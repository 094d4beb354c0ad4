"""A catalogue of inputs, and what its entries are made of: a good table, files, and checks."""

from __future__ import annotations

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
