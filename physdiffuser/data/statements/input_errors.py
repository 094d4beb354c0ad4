"""Errors of the inputs as the user states them: a number, a percentage, or a column."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from physdiffuser.data.dataset import Dataset
from physdiffuser.data.selection import InputError, Roles, did_you_mean, find_column
from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible

InputErrors: TypeAlias = str | Mapping[str, float | str]
_OPTION = "--input-errors"


def parse_input_errors(given: InputErrors | None) -> dict[str, str]:
    """Name of the input to the text of its error.

    Parameters
    ----------
    given
        `x=0.01,y=dy,z=1%`, or a mapping with numbers and texts as values.

    Raises
    ------
    UsageError
        If a part has no name or no value, or names an input twice.
    """
    if given is None:
        return {}
    if not isinstance(given, str):
        return {str(name): str(value) for name, value in given.items()}
    found: dict[str, str] = {}
    for part in given.split(","):
        name, equals, value = (text.strip() for text in part.partition("="))
        if not name or not equals or not value:
            raise UsageError(f"{_OPTION}: '{visible(part)}' is not NAME=ERROR; write x=0.01,y=dy,z=1%.")
        if name in found:
            raise UsageError(f"{_OPTION}: '{visible(name)}' is named twice.")
        found[name] = value
    return found


def resolve_input_errors(
    given: Mapping[str, str],
    names: Sequence[str],
    inputs: Sequence[int] | None,
    taken: Mapping[int, str],
    source: str,
) -> dict[int, InputError]:
    """Positions of the inputs and their errors.

    Parameters
    ----------
    given
        From `parse_input_errors`.
    names
        Columns of the table.
    inputs
        Positions of the columns that were chosen as inputs; None for all that are left.
    taken
        Positions of columns that are no inputs, and what they are.
    source
        Of the table, for messages.

    Raises
    ------
    UsageError
        If a name is no column or no input, or an error is negative, no number and no column, or an input.
    """
    found: dict[int, InputError] = {}
    for name, text in given.items():
        position = find_column(names, name)
        if position is None:
            raise UsageError(
                f"{_OPTION}: {source} has no column '{visible(name)}'. {did_you_mean(names, name)}"
            )
        if position in taken or (inputs is not None and position not in inputs):
            what = taken.get(position, "none of the inputs")
            raise UsageError(f"{_OPTION}: '{visible(name)}' is {what}; errors can be given for inputs.")
        if position in found:
            raise UsageError(f"{_OPTION}: '{visible(name)}' is named twice.")
        found[position] = _one(name, text, names, source)
    for position, error in found.items():
        column = error.column
        if column is not None and (column in taken or column in found or column in (inputs or ())):
            what = taken.get(column, "an input")
            raise UsageError(
                f"{_OPTION}: the error of '{visible(names[position])}' is the column "
                f"'{visible(names[column])}', which is {what}. Name another column, or leave it out of the "
                "inputs."
            )
    return found


def _one(name: str, text: str, names: Sequence[str], source: str) -> InputError:
    percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        column = None if percent else find_column(names, text)
        if column is None:
            raise UsageError(
                f"{_OPTION}: the error of '{visible(name)}', '{visible(text)}', is neither a number, nor a "
                f"percentage, nor a column of {source}."
            ) from None
        return InputError(column=column)
    if not 0 <= value < math.inf:
        raise UsageError(
            f"{_OPTION}: the error of '{visible(name)}' is {text}; it must be 0 or more, and finite."
        )
    return InputError(value / 100 if percent else value, percent)


def with_error_roles(roles: Roles, given: Mapping[str, str], names: Sequence[str], source: str) -> Roles:
    """The roles of the columns with the errors of the inputs among them.

    Raises
    ------
    UsageError
        As for `resolve_input_errors`.
    """
    kinds = ((roles.target, "the target"), (roles.weights, "the column of errors or weights"))
    taken = {place: what for place, what in kinds if place is not None}
    return replace(roles, input_errors=resolve_input_errors(given, names, roles.inputs, taken, source))


def with_input_errors(dataset: Dataset, given: InputErrors | None) -> Dataset:
    """A dataset with the errors of its inputs; unchanged if it has some, or none are given.

    Raises
    ------
    UsageError
        As for `resolve_input_errors`; arrays have no columns that hold errors.
    """
    stated = parse_input_errors(given)
    if not stated or dataset.input_errors is not None:
        return dataset
    names = [*(column.name for column in dataset.columns), dataset.target_column.name]
    taken = {len(names) - 1: "the target"}
    found = resolve_input_errors(stated, names, range(len(names) - 1), taken, dataset.source)
    errors = np.zeros_like(dataset.inputs)
    for position, error in found.items():
        errors[:, position] = error.of(dataset.inputs[:, position])
    return replace(dataset, input_errors=errors)
