"""Which column is the target, which are inputs, which holds weights: names to positions."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.data.aliases import assign_aliases
from physdiffuser.data.table import TableColumn, same_name
from physdiffuser.errors import DataError, UsageError
from physdiffuser.io.display import listed, visible


@dataclass(frozen=True)
class Request:
    """The columns that the user named; None where nothing was said."""

    target: str | None = None
    inputs: tuple[str, ...] | None = None
    weights: str | None = None
    errors: str | None = None
    input_errors: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputError:
    """The error of one input: `value` in its unit, or as a share of its size, or the position of a column."""

    value: float = 0.0
    relative: bool = False
    column: int | None = None

    def of(self, values: FloatArray) -> FloatArray:
        """Standard deviations, where they are no column, shape (rows,)."""
        return self.value * (np.abs(values) if self.relative else np.ones(len(values)))


@dataclass(frozen=True)
class Roles:
    """Positions of the columns that were named.

    Attributes
    ----------
    weights
        The column of the weights, or of the errors that they follow from.
    as_errors
        Whether it holds standard deviations of the target.
    input_errors
        The errors of the inputs.
    groups
        The columns that define groups.
    """

    target: int | None
    inputs: tuple[int, ...] | None
    weights: int | None
    as_errors: bool = False
    input_errors: Mapping[int, InputError] = field(default_factory=dict)
    groups: tuple[int, ...] = ()

    @property
    def error_columns(self) -> frozenset[int]:
        """Columns that hold errors of inputs."""
        return frozenset(error.column for error in self.input_errors.values() if error.column is not None)


def find_column(names: Sequence[str], asked: str) -> int | None:
    """Return the position of a column given by its name or alias, or None.

    Padding does not matter, nor whether accents are composed; a name goes before an alias.
    """
    wanted = same_name(asked)
    for position, name in enumerate(names):
        if name and same_name(name) == wanted:
            return position
    named = [name for name in names if name]
    aliases = dict(zip(named, assign_aliases(named), strict=True))
    for position, name in enumerate(names):
        if name and aliases[name] == wanted:
            return position
    return None


def did_you_mean(names: Sequence[str], asked: str, what: str = "columns") -> str:
    """A sentence that names the closest column (or what else it is), or all of them."""
    known = [name for name in names if name]
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(asked.strip().casefold(), folded, n=1, cutoff=0.6)
    if close:
        return f"Did you mean '{visible(folded[close[0]])}'?"
    return f"The {what} are {listed(known)}."


def resolve(request: Request, names: Sequence[str], source: str) -> Roles:
    """Turn the names that the user gave into positions.

    Raises
    ------
    UsageError
        When a column does not exist or is asked to play two parts.
    """

    def position(asked: str, option: str) -> int:
        found = find_column(names, asked)
        if found is None:
            split = option == "--inputs" and any("," in name for name in names)
            quote = " A name with a comma goes in double quotes: '\"a, m\",b'." if split else ""
            raise UsageError(
                f"{option}: {source} has no column '{visible(asked)}'. {did_you_mean(names, asked)}{quote}"
            )
        return found

    target = None if request.target is None else position(request.target, "--target")
    if request.weights is not None and request.errors is not None:
        raise UsageError("--errors and --weights say the same in two ways: give one of them.")
    as_errors = request.errors is not None
    option, what = ("--errors", "errors") if as_errors else ("--weights", "weights")
    asked = request.errors if as_errors else request.weights
    weights = None if asked is None else position(asked, option)
    inputs = None
    if request.inputs is not None:
        inputs = tuple(position(name, "--inputs") for name in request.inputs)
        if not inputs:
            raise UsageError("--inputs: no column is named. Name at least one, or leave the option out.")
        if len(set(inputs)) < len(inputs):
            raise UsageError(f"--inputs: a column is named twice in {listed(list(request.inputs))}.")
        if target in inputs:
            raise UsageError(
                f"--inputs: '{visible(names[target])}' is the target and cannot be an input as well. "
                "Leave it out of --inputs or choose another --target."
            )
        if weights in inputs:
            raise UsageError(
                f"--inputs: '{visible(names[weights])}' holds the {what}. Leave it out of --inputs."
            )
    if target is not None and target == weights:
        raise UsageError(f"{option}: '{visible(names[target])}' is the target. Name another column.")
    groups = tuple(dict.fromkeys(position(name, "--group") for name in request.groups))
    for place in groups:
        if place in (target, weights) or place in (inputs or ()):
            part = "the target" if place == target else f"an input or the {what}"
            raise UsageError(
                f"--group: '{visible(names[place])}' is {part} and cannot define groups as well."
            )
    return Roles(target, inputs, weights, as_errors, groups=groups)


def wanted_columns(roles: Roles, names: Sequence[str]) -> dict[int, bool]:
    """The columns whose cells have to be read, and whether they are labels of groups."""
    return {position: position in roles.groups for position in _wanted_positions(roles, names)}


def _wanted_positions(roles: Roles, names: Sequence[str]) -> frozenset[int]:
    everything = frozenset(range(len(names)))
    if roles.inputs is None:
        return everything
    chosen = {*roles.inputs, *roles.error_columns, *roles.groups}
    if roles.weights is not None:
        chosen.add(roles.weights)
    if roles.target is not None:
        chosen.add(roles.target)
        return frozenset(chosen)
    # The target will be the last named column that is not spoken for.
    free = [position for position in everything - chosen if names[position]]
    return frozenset(chosen | {max(free)}) if free else frozenset(chosen)


def missing_columns(source: str, names: Sequence[str], absent: Sequence[str]) -> DataError:
    """The error for a table that lacks columns which a formula needs."""
    return DataError(
        f"{source}: the formula needs {listed(list(absent))}, which this table does not have. "
        f"{did_you_mean(names, absent[0])}"
    )


def refuse_text(columns: Sequence[TableColumn], source: str) -> None:
    """Raise for columns that were asked for but hold no numbers."""
    for column in columns:
        if column.kind == "text":
            raise DataError(
                f"{source}: column {column.position} '{visible(column.name)}' was asked for but holds text "
                f"('{visible(column.example)}'). Choose a column of numbers."
            )
        if column.kind == "empty":
            raise DataError(
                f"{source}: column {column.position} '{visible(column.name)}' was asked for but is empty."
            )
