"""Parts of the JSON document that some runs have, both ways: groups, constraints, template, fit rows."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.core.solution_parts.fit_rows import FitRows
from physdiffuser.core.solution_parts.group_constants import GroupNames
from physdiffuser.core.solution_parts.template_parts import TemplateParts
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
            label: {one.name: finite(one.value) for one in constants}
            for label, constants in equation.groups.items()
        },
        "group_intervals": {
            label: {one.name: {"low": finite(one.low), "high": finite(one.high)} for one in constants}
            for label, constants in equation.groups.items()
        },
        "group_covariance": {
            label: [[finite(value) for value in row] for row in matrix]
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


def finite(value: float | None) -> float | None:
    """The number, or null where JSON does not know it."""
    return None if value is None or not math.isfinite(value) else float(value)


def constraints_document(solution: Solution) -> Json:
    """The key `constraints`, where there are any."""
    if not solution.constraints:
        return {}
    return {
        "constraints": [
            {
                "constraint": one.text,
                "state": one.state,
                "points": one.points,
                "at": None if one.at is None else dict(one.at),
            }
            for one in solution.constraints
        ]
    }


def read_constraint_statuses(reader: Reader) -> tuple[ConstraintStatus, ...]:
    """The constraints of a document."""
    return tuple(
        ConstraintStatus(
            row.text("constraint"),
            row.one_of("state", ("proved", "holds", "violated")),
            row.integer("points"),
            _place(row),
        )
        for row in reader.rows("constraints")
    )


def _place(row: Reader) -> dict[str, float] | None:
    if row.optional("at") is None:
        return None
    return {name: value for name, value in row.numbers("at").items() if value is not None}


def fit_rows_document(rows: FitRows | None) -> dict[str, Any] | None:
    """The rows and weights of a fit as plain values."""
    if rows is None:
        return None
    return {
        "loss": rows.loss,
        "test": list(rows.test),
        "left_out": list(rows.left_out),
        "weights": None if rows.weights is None else list(rows.weights),
    }


def read_fit_rows(reader: Reader | None) -> FitRows | None:
    """The same, read back; None where the document does not have it."""
    if reader is None:
        return None
    return FitRows(
        loss=reader.one_of("loss", ("squared", "robust")),
        test=reader.integers("test"),
        left_out=reader.integers("left_out"),
        weights=reader.optional_row("weights"),
    )


def template_document(solution: Solution) -> Json:
    """The keys `template` and `template_form`, where there is a template."""
    parts = solution.template
    if parts is None:
        return {}
    constants = {name: value if math.isfinite(value) else None for name, value in parts.constants.items()}
    arguments = {name: list(names) for name, names in parts.arguments.items()}
    form: Json = {"text": parts.text, "arguments": arguments, "constants": constants}
    if parts.group_constants:
        form["group_constants"] = dict(parts.group_constants)
    form["statements"] = list(parts.statements)
    return {"template": dict(parts.functions), "template_form": form}


def read_template_parts(reader: Reader) -> TemplateParts | None:
    """The functions of a document; None where there is no template."""
    if reader.optional("template") is None:
        return None
    form = reader.child("template_form")
    names = form.child("arguments")
    arguments = {name: names.texts(name) for name in names.keys()}  # noqa: SIM118  # a reader, not a mapping
    constants = {name: math.nan if one is None else one for name, one in form.numbers("constants").items()}
    return TemplateParts(
        form.text("text"),
        reader.texts_by_name("template"),
        arguments,
        constants,
        form.texts_by_name("group_constants"),
        form.texts("statements"),
    )
