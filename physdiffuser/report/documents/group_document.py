"""The groups of a table in the JSON document, both ways."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.core.solution_parts.group_constants import GroupNames
from physdiffuser.report.documents.document_reader import Reader
from physdiffuser.report.text.digits import concise

Json: TypeAlias = dict[str, Any]


def groups_document(solution: Solution) -> Json:
    """The groups of the table, where there are any."""
    named = solution.groups
    if named is None:
        return {}
    return {"groups": {"columns": list(named.columns), "constants": list(named.constants)}}


def group_constants_document(equation: Equation) -> Json:
    """Values and intervals of the constants of each group, for a formula of a table with groups."""
    if not equation.groups:
        return {}
    return {
        "groups": {
            label: {one.name: _finite(one.value) for one in constants}
            for label, constants in equation.groups.items()
        },
        "group_intervals": {
            label: {one.name: {"low": _finite(one.low), "high": _finite(one.high)} for one in constants}
            for label, constants in equation.groups.items()
        },
        "group_covariance": {
            label: [[_finite(value) for value in row] for row in matrix]
            for label, matrix in equation.group_covariance.items()
        },
    }


def read_group_covariance(reader: Reader) -> dict[str, tuple[tuple[float, ...], ...]]:
    """The covariance of the constants of each group, of a formula in a document; empty where not known."""
    if reader.optional("group_covariance") is None:
        return {}
    matrices = reader.child("group_covariance")
    found = {label: matrices.optional_matrix(label) for label in matrices.keys()}  # noqa: SIM118  # a reader
    return {label: matrix for label, matrix in found.items() if matrix is not None}


def read_groups(reader: Reader) -> GroupNames | None:
    """The groups of a document; None where there are none."""
    groups = reader.optional("groups")
    if groups is None:
        return None
    best = reader.optional("best")
    labels = () if best is None or best.optional("groups") is None else tuple(best.child("groups").keys())
    return GroupNames(groups.texts("columns"), labels, groups.texts("constants"))


def read_group_constants(reader: Reader) -> dict[str, tuple[ConstantEstimate, ...]]:
    """The constants of each group, of a formula in a document."""
    if reader.optional("groups") is None:
        return {}
    values, intervals = reader.child("groups"), reader.child("group_intervals")
    found: dict[str, tuple[ConstantEstimate, ...]] = {}
    for label in values.keys():  # noqa: SIM118  # a reader, not a mapping
        constants = []
        for name, value in values.numbers(label).items():
            ends = intervals.child(label).child(name)
            low, high = ends.optional_number("low"), ends.optional_number("high")
            number = math.nan if value is None else value
            error = None if low is None or high is None else (high - low) / 4
            constants.append(ConstantEstimate(name, number, low, high, concise(number, error), False))
        found[label] = tuple(constants)
    return found


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
