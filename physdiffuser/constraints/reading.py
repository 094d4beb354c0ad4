"""Constraints of a YAML file, or given in Python, as objects."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.constraints.catalogue import KINDS
from physdiffuser.constraints.constraint import Constraint, Region, number
from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible
from physdiffuser.io.safe_yaml import load_yaml
from physdiffuser.io.small_files import read_text

MOST, MAX_BYTES = 50, 100_000
_EXAMPLE = "write a list, as in '- increasing: x'"
_SETTINGS = ("region", "expand")


@dataclass(frozen=True)
class _Entry:
    """One item of the list."""

    where: str
    kind: str
    value: Any
    region: Any
    expand: Any


def read_constraints(source: object, dataset: Dataset) -> tuple[Constraint, ...]:
    """The constraints that a file or a list gives.

    Parameters
    ----------
    source
        Path of a YAML file, or a list of mappings such as `{"increasing": "x", "region": {"x": [0, 10]}}`.
    dataset
        The table: its columns, and its bounding box, which is the region where none is given.

    Raises
    ------
    UsageError
        With the place, if a constraint cannot be used.
    FileError
        If the file cannot be read.
    """
    if source is None:
        return ()
    name = "constraints"
    if isinstance(source, str | Path):
        name = f"constraints file '{visible(str(source))}'"
        source = load_yaml(read_text(Path(source), MAX_BYTES, "constraints"), name)
    if isinstance(source, Mapping):
        source = [{kind: value} for kind, value in source.items()]
    if not isinstance(source, Sequence) or isinstance(source, str):
        raise UsageError(f"{name}: not a list of constraints; {_EXAMPLE}")
    if len(source) > MOST:
        raise UsageError(f"{name}: {len(source)} constraints; at most {MOST} are read")
    found: list[Constraint] = []
    for place, item in enumerate(source, start=1):
        where = f"{name}, constraint {place}"
        entry = _entry(item, where)
        try:
            region = _region(entry, dataset)
            found += KINDS[entry.kind].build(f"{entry.kind}: {_shown(entry.value)}", entry.value, region)
        except UsageError as error:
            raise UsageError(f"{where} ({entry.kind}): {error}") from None
    return tuple(found)


def _entry(item: object, where: str) -> _Entry:
    if not isinstance(item, Mapping) or not item:
        raise UsageError(f"{where}: not a constraint; {_EXAMPLE}")
    names = [name for name in item if name not in _SETTINGS]
    if len(names) != 1:
        shown = ", ".join(visible(str(name)) for name in names) or "none"
        raise UsageError(f"{where}: must name one constraint, not {shown}; begin each with '- '")
    kind = names[0]
    if kind not in KINDS:
        near = difflib.get_close_matches(str(kind), list(KINDS), n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are {' '.join(sorted(KINDS))}"
        raise UsageError(f"{where}: there is no constraint '{visible(str(kind))}'{hint}")
    return _Entry(where, kind, item[kind], item.get("region"), item.get("expand"))


def _region(entry: _Entry, dataset: Dataset) -> Region:
    """The bounding box of the rows, expanded about its middle if that is asked for; ranges that are given."""
    names = {column.name: place for place, column in enumerate(dataset.columns)}
    names |= {column.alias: place for place, column in enumerate(dataset.columns)}
    low, high = dataset.inputs.min(axis=0), dataset.inputs.max(axis=0)
    if entry.expand is not None:
        factor = number(entry.expand, "expand")
        if factor <= 0:
            raise UsageError(f"expand must be above 0, not {factor:g}")
        low, high = (low + high) / 2 - factor * (high - low) / 2, (low + high) / 2 + factor * (high - low) / 2
    region = Region(names, low, high)
    if entry.region is None:
        return region
    if not isinstance(entry.region, Mapping):
        raise UsageError("region must give a range by column, as in region: {x: [0, 10]}")
    return Region(names, *_ranges(entry.region, region))


def _ranges(given: Mapping[Any, Any], region: Region) -> tuple[FloatArray, FloatArray]:
    low, high = np.array(region.low), np.array(region.high)
    for name, ends in given.items():
        column = region.column(name)
        if not isinstance(ends, list | tuple) or len(ends) != 2:
            raise UsageError(f"the range of {visible(str(name))} must be a pair of numbers")
        low[column], high[column] = (number(end, f"the range of {visible(str(name))}") for end in ends)
        if not low[column] <= high[column]:
            raise UsageError(f"the range of {visible(str(name))} ends before it begins")
    return low, high


def _shown(value: object) -> str:
    """A value as it stands in a file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{visible(str(key))}: {_shown(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return visible(f"{value:g}" if isinstance(value, float) else str(value))
