"""The JSON document of `solve --json` and `result.json`, both ways.

`docs/json.md` describes it for users. Numbers that are not finite are null, since JSON has no
other way to say so. Reading it back trusts nothing: formulas go through the expression parser.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from physdiffuser.core.solution import ConstantEstimate, Equation, GuessOutcome, Solution
from physdiffuser.errors import DataError
from physdiffuser.expressions import Expression, Number, parse, to_text
from physdiffuser.expressions.tree import Apply
from physdiffuser.io.display import visible
from physdiffuser.report.digits import TABLE_DIGITS
from physdiffuser.report.document_reader import Reader
from physdiffuser.report.group_document import (
    group_constants_document,
    groups_document,
    read_group_constants,
    read_groups,
)
from physdiffuser.report.printed import with_printed_latex

Json: TypeAlias = dict[str, Any]

SCHEMA = 2
# Keys that schema 1 had under another name, by the object that holds them.
_RENAMED_SINCE_1 = {
    "document": {"held_out": "test_set"},
    "equation": {"held_out_rmse": "test_rmse", "more_digits": "extra_digits"},
    "timing": {"conclusion_seconds": "finalize_seconds"},
}


def document(solution: Solution) -> Json:
    """The answer as plain JSON values.

    Parameters
    ----------
    solution
        What `solve` returned.

    Returns
    -------
    A dictionary of dictionaries, lists, strings, finite numbers, booleans and None.
    """
    best = solution.best
    test_rmse = best.test_rmse if best is not None else None
    return {
        "schema": SCHEMA,
        "target": solution.target,
        "status": solution.status,
        "best": None if best is None else _equation(best),
        "pareto": [
            {"row": row, "chosen": is_chosen(equation, best)} | _equation(equation)
            for row, equation in enumerate(solution.pareto, start=1)
        ],
        "none_of_these": _finite(solution.none_of_these),
        **({"guesses": [_guess(one) for one in solution.guesses]} if solution.guesses else {}),
        "derivation": list(solution.derivation),
        "warnings": list(solution.warnings),
        "notes": dict(solution.notes),
        "aliases": dict(solution.aliases),
        **groups_document(solution),
        "inputs": [{"name": column, "alias": alias} for column, alias in _inputs(solution)],
        "known_constants": {name: _finite(value) for name, value in solution.known_constants.items()},
        "rows": solution.rows,
        "test_set": {"rows": solution.test_rows, "rmse": _finite(test_rmse)},
        "timing": {part: _finite(seconds) for part, seconds in solution.timing.items()},
        "seed": solution.seed,
        "version": solution.version,
        **_suggested(solution),
    }


def _suggested(solution: Solution) -> Json:
    """The key `next_measurements` where they were asked for."""
    found = solution.next_measurements
    if found is None:
        return {}
    points = [
        {
            "inputs": dict(zip(solution.columns, point.inputs, strict=True)),
            "noise": _finite(point.noise),
            "separation": _finite(point.separation),
            "between": [place + 1 for place in point.between],
            "predictions": [
                {"law": number, "value": _finite(value), "error": _finite(error)}
                for number, (value, error) in enumerate(zip(point.values, point.errors, strict=True), 1)
            ],
        }
        for point in found.points
    ]
    laws = [
        {"law": number, "expression": text, "row": row}
        for number, (text, row) in enumerate(zip(found.texts, found.rows, strict=True), 1)
    ]
    ranges = dict(zip(solution.columns, map(list, found.ranges), strict=True))
    return {"next_measurements": {"laws": laws, "ranges": ranges, "points": points}}


def _inputs(solution: Solution) -> list[tuple[str, str]]:
    """Column and alias of each input; the constants of groups, which follow them, are none."""
    pairs = list(zip(solution.columns, solution.names, strict=True))
    return pairs if solution.groups is None else pairs[: len(pairs) - len(solution.groups.constants)]


def unfinished_document(
    *,
    target: str | None,
    seed: int,
    expression: str | None,
    complexity: int | None,
    elapsed: float | None,
    warning: str,
) -> Json:
    """The document of a run that was stopped inside a long step: the best formula, not yet scored.

    Parameters
    ----------
    target
        Name of the target, if the user gave it.
    seed
        The seed of the run.
    expression, complexity
        The best formula so far, if there is one.
    elapsed
        Seconds at which it was reported.
    warning
        Why the document is unfinished.
    """
    from physdiffuser.version import version

    empty = Solution(
        target="",
        status="none",
        best=None,
        pareto=(),
        names=(),
        columns=(),
        aliases={},
        warnings=(warning,),
        seed=seed,
        version=version(),
        timing={} if elapsed is None else {"elapsed_seconds": elapsed},
    )
    content = document(empty) | {"target": target}
    if expression:
        unknown = float("nan")
        equation = _equation(Equation(Number(0), expression, "", complexity or 0, unknown, unknown, unknown))
        content |= {"status": "approximate", "best": equation | {"latex": None}}
    return content


def document_text(content: Mapping[str, Any]) -> str:
    """The document as text, one line end at the end.

    Everything outside ASCII is escaped: column names may hold anything, and the text may go to any
    terminal.
    """
    return json.dumps(content, allow_nan=False, indent=2) + "\n"


def is_chosen(equation: Equation, best: Equation | None) -> bool:
    """Whether a row of the Pareto table is the chosen formula."""
    return best is not None and equation.expression == best.expression


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
        aliases=reader.texts_by_name("aliases"),
        guesses=tuple(_read_guess(row) for row in reader.rows("guesses")),
        derivation=reader.texts("derivation"),
        warnings=reader.texts("warnings"),
        notes=reader.texts_by_name("notes"),
        rows=reader.integer("rows"),
        test_rows=test_set.integer("rows"),
        known_constants=known,
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


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)


def _finite_matrix(matrix: tuple[tuple[float, ...], ...] | None) -> list[list[float]] | None:
    if matrix is None or not all(math.isfinite(value) for row in matrix for value in row):
        return None
    return [[float(value) for value in row] for row in matrix]


def _equation(equation: Equation) -> Json:
    return {
        "expression": equation.text,
        "latex": equation.latex,
        "complexity": int(equation.complexity),
        "rmse": _finite(equation.rmse),
        "r2": _finite(equation.r2),
        "max_relative_error": _finite(equation.max_relative_error),
        "test_rmse": _finite(equation.test_rmse),
        "verdict": equation.verdict,
        "verdict_reason": equation.verdict_reason,
        "verification": list(equation.verification),
        "constants": [_constant(constant) for constant in equation.constants],
        **group_constants_document(equation),
        "covariance": _finite_matrix(equation.covariance),
        "degrees_of_freedom": equation.degrees_of_freedom,
        "reduced_chi_square": _finite(equation.reduced_chi_square),
        "probability": _finite(equation.probability),
        "description_length": _finite(equation.description_length),
        "table_digits": equation.table_digits,
        "extra_digits": equation.extra_digits,
        "derivation": list(equation.derivation),
        "generator": equation.generator,
    }


def _guess(guess: GuessOutcome) -> Json:
    return asdict(guess) | {"rmse": _finite(guess.rmse)}


def _constant(constant: ConstantEstimate) -> Json:
    return {
        "name": constant.name,
        "value": _finite(constant.value),
        "low": _finite(constant.low),
        "high": _finite(constant.high),
        "text": constant.text,
        "exact": bool(constant.exact),
        "fitted": _finite(constant.fitted),
        "sigma": _finite(constant.sigma),
        "set_to": constant.set_to,
        "odds": _finite(constant.odds),
        "agrees_with": constant.agrees_with,
    }


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
        constants=constants,
        derivation=reader.texts("derivation"),
        generator=reader.text("generator"),
        covariance=reader.optional_matrix("covariance"),
        degrees_of_freedom=reader.optional_integer("degrees_of_freedom"),
        reduced_chi_square=reader.optional_number("reduced_chi_square"),
        probability=reader.optional_number("probability"),
        description_length=reader.optional_number("description_length"),
        table_digits=reader.optional_integer("table_digits") or TABLE_DIGITS,
        extra_digits=reader.optional_integer("extra_digits") or 0,
        names=names,
        groups=read_group_constants(reader),
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
