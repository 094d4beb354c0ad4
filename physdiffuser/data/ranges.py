"""Ranges of columns, as a user gives them: `x=0:10,y=1:5`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible

Range = tuple[float, float]


def parse_ranges(given: str | Mapping[str, Range] | None, dataset: Dataset) -> dict[str, Range]:
    """Ranges by the name of an input column.

    Parameters
    ----------
    given
        Text such as `x=0:10,y=1:5`, or a mapping of names to two numbers.
    dataset
        The table; a column may be named as the table or as formulas name it.

    Raises
    ------
    UsageError
        If a column does not exist, or a range is not two finite numbers, the smaller first.
    """
    if not given:
        return {}
    parts = dict(map(_part, given.split(","))) if isinstance(given, str) else dict(given)
    names = {alias: column.name for column in dataset.columns for alias in (column.alias, column.name)}
    ranges: dict[str, Range] = {}
    for name, ends in parts.items():
        if name not in names:
            known = ", ".join(column.shown for column in dataset.columns)
            raise UsageError(
                f"a range is given for '{visible(str(name))}', which is no input; inputs are {known}"
            )
        ranges[names[name]] = _range(visible(str(name)), ends)
    return ranges


def _part(text: str) -> tuple[str, tuple[str, ...]]:
    name, found, ends = text.partition("=")
    if not found or not name.strip():
        raise UsageError(f"'{visible(text)}' is no range; write x=0:10")
    return name.strip(), tuple(ends.split(":"))


def _range(name: str, ends: object) -> Range:
    try:
        low, high = (float(end) for end in ends)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise UsageError(f"the range of '{name}' must be two numbers, such as {name}=0:10") from error
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"the range of '{name}' is {low:g} to {high:g}; the smaller end comes first")
    return low, high
