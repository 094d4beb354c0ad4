"""A solution read back from its JSON document.

Nothing in a document is trusted: formulas go through the expression parser.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from physdiffuser.core.solution import ConstantEstimate, Equation, GuessOutcome, Solution
from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import Expression, Number, parse, to_text
from physdiffuser.expressions.definitions import defined, read_definitions
from physdiffuser.expressions.tree import Apply
from physdiffuser.io.display import visible
from physdiffuser.report.documents.document_reader import Reader
from physdiffuser.report.documents.json_document import SCHEMA
from physdiffuser.report.documents.parts import (
    read_constraint_statuses,
    read_fit_rows,
    read_group_constants,
    read_group_covariance,
    read_groups,
    read_template_parts,
)
from physdiffuser.report.text.digits import TABLE_DIGITS
from physdiffuser.report.text.printed import with_printed_latex
from physdiffuser.verification.checks import CheckState

# Keys that schema 1 had under another name, by the object that holds them.
_RENAMED_SINCE_1 = {
    "document": {"held_out": "test_set"},
    "equation": {"held_out_rmse": "test_rmse", "more_digits": "extra_digits"},
    "timing": {"conclusion_seconds": "finalize_seconds"},
}


def solution_from_document(content: object, source: str = "result.json") -> Solution:
    """Read a document back, as far as `predict`, `export` and `--resume` need it.

    A document of schema 1 is read as well.

    Parameters
    ----------
    content
        What `json.loads` gave.
    source
        Where it came from, for messages.

    Raises
    ------
    DataError
        If it is no document of `solve`, or a formula in it does not parse.
    UsageError
        If it was written by a version with another schema.
    """
    reader = Reader(upgraded(content), source)
    reader.schema(SCHEMA)
    if "targets" in reader.content:
        raise UsageError(f"{source}: it holds the laws of several targets; read one of its `targets`")
    own_operators = reader.texts_by_name("operators")
    try:
        definitions = read_definitions(own_operators)
    except UsageError as error:
        raise DataError(f"{source}, operators: {error}") from error
    with defined(definitions):
        return _read_solution(reader, source, own_operators)


def _read_solution(reader: Reader, source: str, operators: Mapping[str, str]) -> Solution:
    inputs = reader.rows("inputs")
    named = read_groups(reader)
    own = () if named is None else named.constants
    names = (*(row.text("alias") for row in inputs), *own)
    if len(set(names)) != len(names):
        raise DataError(f"{source}: two inputs have the same alias; the file was changed by hand")
    for name in names:
        if not name.isidentifier():
            raise DataError(f"{source}: the alias '{visible(name)}' is no name; the file was changed by hand")
    known = {name: value for name, value in reader.numbers("known_constants").items() if value is not None}
    pareto = tuple(_read_equation(row, names, known) for row in reader.rows("pareto"))
    best_row = reader.optional("best")
    best = None if best_row is None else _read_equation(best_row, names, known)
    test_set = reader.child("test_set")
    return Solution(
        target=reader.text("target"),
        status=reader.one_of("status", ("exact", "approximate", "none")),
        best=best,
        pareto=pareto,
        none_of_these=reader.optional_number("none_of_these"),
        names=names,
        columns=(*(row.text("name") for row in inputs), *own),
        groups=named,
        template=read_template_parts(reader),
        constraints=read_constraint_statuses(reader),
        aliases=reader.texts_by_name("aliases"),
        guesses=tuple(_read_guess(row) for row in reader.rows("guesses")),
        derivation=reader.texts("derivation"),
        warnings=reader.texts("warnings"),
        notes=reader.texts_by_name("notes"),
        rows=reader.integer("rows"),
        test_rows=test_set.integer("rows"),
        fit_rows=read_fit_rows(reader.optional("fit_rows")),
        known_constants=known,
        operators=operators,
        loss=reader.optional_text("loss") or "",
        timing={
            part: math.nan if value is None else value for part, value in reader.numbers("timing").items()
        },
        seed=reader.integer("seed"),
        version=reader.text("version"),
    )


def upgraded(content: object) -> object:
    """A document of schema 1 with the keys of the present schema; anything else as it is.

    Parameters
    ----------
    content
        What `json.loads` gave.
    """
    if not isinstance(content, dict) or type(content.get("schema")) is not int or content["schema"] != 1:
        return content
    made = _renamed(content, "document") | {"schema": SCHEMA}
    for key, kind in (("best", "equation"), ("timing", "timing")):
        if key in made:
            made[key] = _renamed(made[key], kind)
    if isinstance(rows := made.get("pareto"), list):
        made["pareto"] = [_renamed(row, "equation") for row in rows]
    return made


def _renamed(content: Any, kind: str) -> Any:
    if not isinstance(content, dict):
        return content
    new_names = _RENAMED_SINCE_1[kind]
    return {new_names.get(key, key): value for key, value in content.items()}


def _read_equation(reader: Reader, names: tuple[str, ...], known: Mapping[str, float]) -> Equation:
    constants = tuple(_read_constant(row) for row in reader.rows("constants"))
    expression = _with_fitted(reader.formula("expression", parse, names, known), constants)
    made = Equation(
        expression=expression,
        # Not the stored texts: what is printed is what is computed.
        text=to_text(expression, names),
        latex="",
        complexity=reader.integer("complexity"),
        rmse=reader.number("rmse"),
        r2=reader.number("r2"),
        max_relative_error=reader.number("max_relative_error"),
        test_rmse=reader.optional_number("test_rmse"),
        verdict=reader.one_of("verdict", ("verified", "different", "unknown")),
        verdict_reason=reader.optional_text("verdict_reason") or "",
        verification=reader.texts("verification"),
        check_states=_states(reader),
        constants=constants,
        derivation=reader.texts("derivation"),
        generator=reader.text("generator"),
        covariance=reader.optional_matrix("covariance"),
        degrees_of_freedom=reader.optional_integer("degrees_of_freedom"),
        mean_loss=reader.optional_number("mean_loss"),
        reduced_chi_square=reader.optional_number("reduced_chi_square"),
        probability=reader.optional_number("probability"),
        description_length=reader.optional_number("description_length"),
        table_digits=reader.optional_integer("table_digits") or TABLE_DIGITS,
        extra_digits=reader.optional_integer("extra_digits") or 0,
        names=names,
        groups=read_group_constants(reader),
        group_covariance=read_group_covariance(reader),
    )
    return with_printed_latex(made, names)


def _read_guess(reader: Reader) -> GuessOutcome:
    return GuessOutcome(
        text=reader.text("text"),
        expression=reader.optional_text("expression"),
        rmse=reader.optional_number("rmse"),
        complexity=reader.optional_integer("complexity"),
        state=reader.one_of("state", ("kept", "simplified", "improved", "beaten", "unusable")),
        sentence=reader.text("sentence"),
    )


def _read_constant(reader: Reader) -> ConstantEstimate:
    text, exact = reader.text("text"), reader.flag("exact")
    return ConstantEstimate(
        name=reader.text("name"),
        value=reader.number("value"),
        low=reader.optional_number("low"),
        high=reader.optional_number("high"),
        text=text,
        exact=exact,
        fitted=reader.optional_number("fitted"),
        sigma=reader.optional_number("sigma"),
        # Schema 1 had no such key at first; of a constant that was set it said that it was exact.
        set_to=reader.optional_text("set_to") or (text if exact else None),
        odds=reader.optional_number("odds"),
        agrees_with=reader.optional_text("agrees_with"),
    )


def _states(reader: Reader) -> tuple[CheckState, ...]:
    """How the checks came out; earlier versions did not store it."""
    known: dict[str, CheckState] = {"passed": "passed", "failed": "failed", "open": "open"}
    return tuple(known.get(text, "open") for text in reader.texts("check_states"))


def _with_fitted(expression: Expression, constants: tuple[ConstantEstimate, ...]) -> Expression:
    """Mark as fitted what the text cannot tell from exact: `0.25` is a quarter to the parser."""
    fitted = [constant.value for constant in constants if not constant.is_set]

    def visit(node: Expression) -> Expression:
        if isinstance(node, Number):
            if fitted and float(node.value) == fitted[0]:
                return Number(fitted.pop(0))
            return node
        if isinstance(node, Apply):
            return Apply(node.operator, tuple(visit(argument) for argument in node.arguments))
        return node

    return visit(expression)
