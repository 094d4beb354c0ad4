"""The units of a table: a JSON or YAML file, a mapping, or a row of the table itself."""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from physdiffuser.data.dataset import Dataset
from physdiffuser.errors import UsageError
from physdiffuser.io.display import listed, visible
from physdiffuser.io.safe_yaml import load_yaml
from physdiffuser.io.small_files import read_text
from physdiffuser.units.unit import FEYNMAN_BASE, ParsedUnit, Unit, parse_unit
from physdiffuser.units.unit_names import SI_BASE

MAX_BYTES = 1_000_000
UnitSource = str | PathLike[str] | Mapping[str, Any]


@dataclass(frozen=True)
class TableUnits:
    """The units of a table, as far as they are given.

    Attributes
    ----------
    units
        One per input column, or None when any of the table's units is missing: then no formula can be
        held to them.
    target
        Unit of the target, or None likewise.
    warnings
        What the user should know, ready to print.
    named
        Units of names that are no columns but were expected (known constants).
    si
        Whether every value is in SI units, so that physical constants keep their SI values.
    """

    units: tuple[Unit, ...] | None = None
    target: Unit | None = None
    warnings: tuple[str, ...] = ()
    named: Mapping[str, Unit] = field(default_factory=dict)
    si: bool = False

    def attach(self, dataset: Dataset) -> Dataset:
        """The table with its units on its columns and the warnings added to its own."""
        warned = replace(dataset, warnings=(*dataset.warnings, *self.warnings))
        if self.units is None:
            return warned
        columns = tuple(
            replace(column, unit=unit) for column, unit in zip(dataset.columns, self.units, strict=True)
        )
        return replace(
            warned, columns=columns, target_column=replace(dataset.target_column, unit=self.target)
        )


def load_units(source: UnitSource, dataset: Dataset, *, constants: Collection[str] = ()) -> TableUnits:
    """Read the units of a table's columns.

    Parameters
    ----------
    source
        A JSON or YAML file, or a mapping: column name (or alias) to a unit. A unit is text
        (`kg*m**2/s**2`), a mapping of base symbols to exponents (`{m: 1, s: -2}`), or a list of exponents:
        seven over m kg s A K mol cd, or five over m s kg K V.
    dataset
        The table. Units of columns that the search does not use are passed over.
    constants
        Names of known constants, whose units may be given beside the columns'.

    Returns
    -------
    TableUnits
        Without units, and with a warning, when some column has none.

    Raises
    ------
    FileError
        If the file cannot be read.
    UsageError
        If it is malformed, or names a column that the table does not have.
    """
    if isinstance(source, Mapping):
        given, where = source, "units"
    else:
        where = str(source)
        given = _read(Path(source))
    known = {}
    for column in (*dataset.columns, dataset.target_column):
        for name in (column.alias, column.name, unicodedata.normalize("NFC", column.name)):
            known[name] = column.name
    parsed: dict[str, ParsedUnit] = {}
    named: dict[str, Unit] = {}
    for key, value in given.items():
        name = unicodedata.normalize("NFC", str(key).strip())
        unit = _unit(value, f"{where}, '{visible(name)}'")
        if name in known:
            if known[name] in parsed:
                raise UsageError(f"{where}: two units for the column '{visible(known[name])}'")
            if unit is not None:
                parsed[known[name]] = unit
        elif name in constants:
            if unit is not None:
                named[name] = unit.unit
        elif name not in dataset.unused:
            near = difflib.get_close_matches(name, list(known), n=1)
            hint = f"; did you mean '{visible(near[0])}'?" if near else "."
            names = listed([column.name for column in (*dataset.columns, dataset.target_column)])
            what = f"the table has no column '{visible(name)}'{hint} Its columns are {names}"
            raise UsageError(f"{where}: {what}")
    return _complete(parsed, dataset, named)


def units_from_row(texts: Mapping[str, str], dataset: Dataset) -> TableUnits:
    """Units from the table's second header row: column name to the text of its cell.

    Raises
    ------
    UsageError
        If a cell is no unit.
    """
    known = {column.name for column in (*dataset.columns, dataset.target_column)}
    return load_units({name: _unbracketed(text) for name, text in texts.items() if name in known}, dataset)


def _unbracketed(text: str) -> str:
    """`[m/s]` is how many tables write `m/s`; what is no unit inside stays a base unit of the user's own."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    if len(inner) != len(text.strip()) - 2:
        return text
    try:
        parse_unit(inner)
    except UsageError:
        return text
    return inner


def _read(path: Path) -> Mapping[str, Any]:
    text = read_text(path, MAX_BYTES, "units", refused=UsageError)
    # JSON is YAML too, so one strict reader serves both.
    content = load_yaml(text.replace("\t", "  "), str(path), only_text=True)
    if not isinstance(content, dict) or not content:
        raise UsageError(f"{path}: must map column names to units, such as {{v: m/s, m: kg}}")
    return content


def _unit(value: object, where: str) -> ParsedUnit | None:
    """A unit in any of its notations; None when left empty."""
    try:
        match value:
            case None:
                return None
            case Unit():
                return ParsedUnit(value)
            case str():
                return parse_unit(value) if value.strip() else None
            case int() | float() if value == 1:
                return parse_unit("1")
            case Mapping():
                unit = ParsedUnit(Unit())
                for symbol, exponent in value.items():
                    text = str(symbol)
                    atom = (
                        parse_unit(text)
                        if text in SI_BASE or text in FEYNMAN_BASE
                        else parse_unit(f"[{text}]")
                    )
                    unit = unit * atom ** _fraction(exponent)
                return unit
            case Sequence():
                base = {len(SI_BASE): SI_BASE, len(FEYNMAN_BASE): FEYNMAN_BASE}.get(len(value))
                if base is None:
                    raise UsageError(
                        f"{len(value)} exponents; give {len(SI_BASE)} over {' '.join(SI_BASE)} "
                        f"or {len(FEYNMAN_BASE)} over {' '.join(FEYNMAN_BASE)}"
                    )
                return ParsedUnit(Unit.from_vector([_fraction(exponent) for exponent in value], base))
            case _:
                raise UsageError(f"a unit is text, a mapping or a list, not {type(value).__name__}")
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def _fraction(value: object) -> Fraction:
    try:
        exponent = Fraction(str(value)).limit_denominator(1000)
    except (ValueError, ZeroDivisionError):
        raise UsageError(f"the exponent {str(value)[:40]!a} is no number") from None
    if abs(exponent) > 100:
        raise UsageError(f"the exponent {exponent} is out of range")
    return exponent


def _complete(parsed: Mapping[str, ParsedUnit], dataset: Dataset, named: Mapping[str, Unit]) -> TableUnits:
    columns = (*dataset.columns, dataset.target_column)
    missing = [column.name for column in columns if column.name not in parsed]
    if missing:
        have = "has" if len(missing) == 1 else "have"
        names = listed(missing)
        warning = f"units are ignored: {names} {have} none; give every column and the target a unit"
        return TableUnits(warnings=(warning,), named=named)
    in_order = [parsed[column.name] for column in columns]
    warnings = []
    shifted = [column.name for column, unit in zip(columns, in_order, strict=True) if unit.offset]
    if shifted:
        warnings.append(
            f"{listed(shifted)}: the zero of this unit is not zero (degrees "
            "Celsius, decibel); laws with ratios need kelvin or a plain unit"
        )
    if not _coherent(in_order):
        sizes = ", ".join(
            f"'{visible(column.name)}' is {unit.factor:.6g} SI units"
            for column, unit in zip(columns, in_order, strict=True)
            if not math.isclose(unit.factor, 1.0, rel_tol=1e-12)
        )
        warnings.append(
            f"units of different size are mixed ({sizes}): values stay as they are, so the formula's "
            "numbers will hold conversion factors"
        )
    return TableUnits(
        units=tuple(unit.unit for unit in in_order[:-1]),
        target=in_order[-1].unit,
        warnings=tuple(warnings),
        named=named,
        si=all(math.isclose(unit.factor, 1.0, rel_tol=1e-12) and not unit.offset for unit in in_order),
    )


def _coherent(units: Sequence[ParsedUnit]) -> bool:
    """Whether one choice of base units makes every size one: km, h and km/h do, km and m do not."""
    base = sorted({symbol for unit in units for symbol, _ in unit.unit.exponents})
    sizes = np.log([unit.factor for unit in units])
    if not base:
        return bool(np.all(np.abs(sizes) < 1e-9))
    exponents = np.array([[float(unit.unit.exponent(symbol)) for symbol in base] for unit in units])
    solution = np.linalg.lstsq(exponents, sizes, rcond=None)[0]
    return bool(np.all(np.abs(exponents @ solution - sizes) < 1e-9 * (1 + np.abs(sizes))))
