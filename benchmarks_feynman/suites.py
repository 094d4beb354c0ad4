"""The suites: laws with their sampling ranges and units, read from the package's CSV files.

Adding a suite is adding two files, `data/<name>_laws.csv` and `data/<name>_variables.csv`, and its name to
`SUITES`. The suite `measured` has tables instead of ranges (`benchmarks_feynman.measured_tables`). Sources
are in `data/SOURCES.md`.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Literal, cast

from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, Number, Variable, parse
from physdiffuser.expressions.tree import substitute

MEASURED = "measured"
"""The suite of tables that were measured; their laws are known up to constants."""
VALIDATION = "textbook"
"""The validation set of the networks: laws of fields that the other suites leave out, for measuring only."""
SAMPLED = ("fsred", "tiers", "ood", "dev", VALIDATION)
"""Suites whose tables are drawn from laws that training leaves out. `dev` is the development set. Neither it
nor the validation set has a law of the suites before it."""
CLASSIC = "classic"
"""The problems that papers on symbolic regression have used since Koza's book, with their ranges and rows."""
SUITES = (*SAMPLED, CLASSIC, MEASURED)
"""Names of all suites."""

Scale = Literal["uniform", "log"]


@dataclass(frozen=True)
class LawVariable:
    """An input of a law and the range it is drawn from.

    Attributes
    ----------
    scale
        `uniform` between `low` and `high`, or uniform in the logarithm (`log`).
    unit
        Text such as `m/s^2`, `1` when dimensionless, or None when the suite does not give it.
    """

    name: str
    low: float
    high: float
    scale: Scale = "uniform"
    unit: str | None = None


@dataclass(frozen=True)
class Law:
    """One benchmark law.

    Attributes
    ----------
    group
        Tier, set or field within the suite.
    output, output_unit
        Name and unit of what the law gives.
    text
        The true formula, in the names of `variables`.
    note
        Known oddities and corrections.
    tags
        What makes the law's default table hard (`free-constants`, `si`, `few-rows`, `dummies`, `outliers`,
        `heteroscedastic`, `plain`); empty outside the development set.
    rows
        Rows of the law's own table, or None where the suite leaves it to the protocol.
    dummy
        Columns added that the law does not need.
    outliers
        Share of the rows that are far off.
    relative_noise
        Noise in proportion to each value.
    constants
        Names of constants in `text` that are to be fitted, with values to start from; only in the suite
        `measured`.
    """

    id: str
    suite: str
    group: str
    name: str
    output: str
    output_unit: str | None
    text: str
    variables: tuple[LawVariable, ...]
    note: str = ""
    tags: tuple[str, ...] = ()
    rows: int | None = None
    dummy: int = 0
    outliers: float = 0.0
    relative_noise: float = 0.0
    constants: tuple[tuple[str, float], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in column order."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def expression(self) -> Expression:
        """The true formula as a tree; constants to be fitted have the values to start from."""
        tree = parse(self.text, (*self.names, *(name for name, _ in self.constants)))
        count = len(self.names)

        def start(node: Expression) -> Expression | None:
            if isinstance(node, Variable) and node.index >= count:
                return Number(float(self.constants[node.index - count][1]))
            return None

        return substitute(tree, start) if self.constants else tree

    @property
    def units(self) -> dict[str, str] | None:
        """Unit by column name, the output's included, or None unless all are known."""
        units = {variable.name: variable.unit for variable in self.variables}
        units[self.output] = self.output_unit
        if any(unit is None for unit in units.values()):
            return None
        return cast("dict[str, str]", units)


def _table(name: str) -> list[dict[str, str]]:
    text = (files("benchmarks_feynman") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def load_suite(name: str) -> tuple[Law, ...]:
    """Every law of a suite, in its order.

    Raises
    ------
    UsageError
        If there is no such suite; the message names those there are.
    """
    if name not in SUITES:
        raise UsageError(f"unknown suite {name!a}; choose one of {', '.join(SUITES)}")
    if name == MEASURED:
        return _measured_laws()
    variables: dict[str, list[LawVariable]] = {}
    for row in _table(f"{name}_variables.csv"):
        variable = LawVariable(
            row["variable"],
            float(row["low"]),
            float(row["high"]),
            cast("Scale", row["scale"]),
            row["unit"] or None,
        )
        variables.setdefault(row["id"], []).append(variable)
    return tuple(
        Law(
            id=row["id"],
            suite=name,
            group=row["group"],
            name=row["name"],
            output=row["output"],
            output_unit=row["unit"] or None,
            text=row["expression"],
            variables=tuple(variables[row["id"]]),
            note=row["note"],
            tags=tuple(row.get("tags", "").split()),
            rows=int(row["rows"]) if row.get("rows") else None,
            dummy=int(row.get("dummy") or 0),
            outliers=float(row.get("outliers") or 0),
            relative_noise=float(row.get("relative_noise") or 0),
        )
        for row in _table(f"{name}_laws.csv")
    )


def _measured_laws() -> tuple[Law, ...]:
    from benchmarks_feynman.measured_tables import measured_tables

    return tuple(
        Law(
            id=table.id,
            suite=MEASURED,
            group=table.group,
            name=table.title,
            output=table.target_name,
            output_unit=None,
            text=table.law,
            variables=tuple(
                LawVariable(name, float(column.min()), float(column.max()))
                for name, column in zip(table.names, table.inputs.T, strict=True)
            ),
            note=table.note,
            tags=(table.kind,),
            rows=table.rows,
            constants=table.constants,
        )
        for table in measured_tables()
    )


def select(suites: Sequence[str], only: Iterable[str] = (), every: int = 1) -> tuple[Law, ...]:
    """Laws by suite and id.

    Parameters
    ----------
    suites
        Names of suites, in the order wanted.
    only
        Ids; all laws when empty.
    every
        Keep every n-th law of each suite.

    Raises
    ------
    UsageError
        If a suite or an id does not exist; the message names those that do or that come close.
    """
    if every < 1:
        raise UsageError(f"--every {every}: give 1 or more")
    laws = [law for suite in suites for law in load_suite(suite)[::every]]
    wanted = list(only)
    if not wanted:
        return tuple(laws)
    known = {law.id: law for suite in suites for law in load_suite(suite)}
    for identifier in wanted:
        if identifier not in known:
            raise UsageError(_unknown_law(identifier, suites, list(known)))
    return tuple(law for law in known.values() if law.id in wanted)


def _unknown_law(identifier: str, suites: Sequence[str], known: list[str]) -> str:
    where = " or ".join(suites)
    elsewhere = [suite for suite in SUITES if any(law.id == identifier for law in load_suite(suite))]
    if elsewhere:
        return f"no law {identifier!a} in {where}; it is in {elsewhere[0]}: pass --suite {elsewhere[0]}"
    close = difflib.get_close_matches(identifier, known, n=5, cutoff=0.5)
    some = f"close are {', '.join(close)}" if close else f"valid are {', '.join(known)}"
    return f"no law {identifier!a} in {where}; {some}"


def published() -> list[dict[str, str]]:
    """Published recovery rates with their protocols, as in `data/published.csv`."""
    return _table("published.csv")
