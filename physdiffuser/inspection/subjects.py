"""What the networks are shown: a table of the user's, or one drawn from a law of a suite."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import listed, visible
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING:
    from benchmarks_feynman.suites import Law
    from physdiffuser.expressions import Expression


SMALLEST = 4
"""Rows below which the learned generators do not look at a table."""


@dataclass(frozen=True)
class Subject:
    """A table to show to the networks.

    Attributes
    ----------
    title
        What pictures call it.
    inputs, target
        (rows, columns) and (rows,).
    names
        Of the columns, as a reader should see them.
    target_name
        Of the target.
    law
        The true formula, where it is known.
    group
        Tier of the law in its suite, or "".
    """

    title: str
    inputs: FloatArray
    target: FloatArray
    names: tuple[str, ...]
    target_name: str
    law: Expression | None = None
    group: str = ""


def from_table(table: str, options: dict[str, Any]) -> tuple[Subject, tuple[str, ...]]:
    """A subject from a file, and what its reader had to say.

    Parameters
    ----------
    table
        Path, or `-`.
    options
        Of `physdiffuser.data.load_dataset`.

    Raises
    ------
    DataError
        If the table has more columns than the encoder has places, too few rows, or a target without spread.
    """
    from physdiffuser.data import load_dataset
    from physdiffuser.models.features.reading import relevant_columns

    data = load_dataset(table, **options)
    names = [column.shown for column in data.columns]
    if len(names) > MAX_VARIABLES:
        relevant = listed(
            [names[index] for index in relevant_columns(data.inputs, data.target)], MAX_VARIABLES
        )
        raise DataError(
            f"{data.source}: {len(names)} input columns, and the encoder has places for {MAX_VARIABLES}; "
            f"name at most {MAX_VARIABLES} with --inputs. The most relevant are {relevant}"
        )
    if not names:
        raise DataError(f"{data.source}: no input column is left")
    if data.rows < SMALLEST:
        raise DataError(f"{data.source}: {data.rows} rows; the networks read tables of {SMALLEST} or more")
    if np.ptp(data.target) == 0.0:
        raise DataError(f"{data.source}: the target '{data.target_column.shown}' is the same in every row")
    title = "standard input" if table == "-" else visible(str(table).rsplit("/", 1)[-1], 60)
    subject = Subject(title, data.inputs, data.target, tuple(names), data.target_column.shown)
    return subject, data.warnings


def from_law(law: Law, *, rows: int, noise: float, seed: int) -> Subject:
    """A subject whose table is drawn from a law of a suite."""
    from benchmarks_feynman.sampling import sample

    table = sample(law, rows=rows, seed=seed, noise=noise, dummy=law.dummy)
    return Subject(
        title=f"{_shown(law)}: {law.output} = {law.text}",
        inputs=table.inputs,
        target=table.target,
        names=table.names,
        target_name=law.output,
        law=law.expression,
        group=law.group,
    )


def find_law(identifier: str) -> Law:
    """The law of any suite with that id, or that name.

    Raises
    ------
    UsageError
        If there is none, naming those that come close.
    """
    from benchmarks_feynman.suites import SUITES, load_suite

    laws = [law for suite in SUITES for law in load_suite(suite)]
    wanted = identifier.strip().casefold()
    for law in laws:
        if wanted in (law.id.casefold(), law.name.casefold()):
            return law
    known = {text.casefold(): law for law in laws for text in (law.name, law.id) if text}
    near = difflib.get_close_matches(wanted, list(known), n=5, cutoff=0.5)
    near += [text for text in known if len(wanted) > 3 and wanted in text]
    shown = list(dict.fromkeys(_shown(known[text]) for text in near))[:5]
    examples = ", ".join(load_suite(suite)[0].id for suite in SUITES)
    hint = f"close are {', '.join(shown)}" if shown else f"ids look like {examples}"
    raise UsageError(f"no equation is called {visible(identifier)!a}; {hint}")


def _shown(law: Law) -> str:
    return f"{law.id} ({law.name})" if law.name else law.id


def sample_suite(suite: str, count: int) -> tuple[Law, ...]:
    """Laws of a suite, spread evenly over its groups; all of them if there are no more than `count`.

    Raises
    ------
    UsageError
        If there is no such suite.
    """
    from benchmarks_feynman.suites import load_suite

    laws = load_suite(suite)
    groups: dict[str, list[Law]] = {}
    for law in laws:
        groups.setdefault(law.group, []).append(law)
    shares = dict.fromkeys(groups, 0)
    while sum(shares.values()) < min(count, len(laws)):
        # One more for the group that has the fewest; the first of equals.
        open_groups = [name for name in groups if shares[name] < len(groups[name])]
        shares[min(open_groups, key=lambda name: shares[name])] += 1
    chosen = {
        members[position * len(members) // shares[name]].id
        for name, members in groups.items()
        for position in range(shares[name])
    }
    return tuple(law for law in laws if law.id in chosen)


def find_columns(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """Positions of named columns.

    Raises
    ------
    UsageError
        If a column does not exist, naming those that do.
    """
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(name, list(names), n=1)
            hint = f"did you mean '{visible(near[0])}'?" if near else f"columns are {listed(list(names), 12)}"
            raise UsageError(f"no column is called '{visible(name)}'; {hint}")
    return [names.index(name) for name in wanted]
