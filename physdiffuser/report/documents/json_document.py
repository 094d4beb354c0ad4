"""The JSON document of `solve --json` and `result.json`.

`docs/json.md` describes it for users. Numbers that are not finite are null, since JSON has no
other way to say so. `solution_reader` reads
it back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from physdiffuser.core.solution import ConstantEstimate, Equation, GuessOutcome, Solution
from physdiffuser.expressions import Number
from physdiffuser.report.documents.parts import (
    constraints_document,
    finite,
    fit_rows_document,
    group_constants_document,
    groups_document,
    template_document,
)

Json: TypeAlias = dict[str, Any]

SCHEMA = 2


def document(solution: Solution) -> Json:
    """The answer as plain JSON values.

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
        "none_of_these": finite(solution.none_of_these),
        **({"guesses": [_guess(one) for one in solution.guesses]} if solution.guesses else {}),
        "derivation": list(solution.derivation),
        "warnings": list(solution.warnings),
        "notes": dict(solution.notes),
        "aliases": dict(solution.aliases),
        **groups_document(solution),
        **template_document(solution),
        **constraints_document(solution),
        "inputs": [{"name": column, "alias": alias} for column, alias in _inputs(solution)],
        "known_constants": {name: finite(value) for name, value in solution.known_constants.items()},
        **({"loss": solution.loss} if solution.loss else {}),
        **({"operators": dict(solution.operators)} if solution.operators else {}),
        "rows": solution.rows,
        "test_set": {"rows": solution.test_rows, "rmse": finite(test_rmse)},
        "fit_rows": fit_rows_document(solution.fit_rows),
        "timing": {part: finite(seconds) for part, seconds in solution.timing.items()},
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
            "noise": finite(point.noise),
            "separation": finite(point.separation),
            "between": [place + 1 for place in point.between],
            "predictions": [
                {"law": number, "value": finite(value), "error": finite(error)}
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


def _finite_matrix(matrix: tuple[tuple[float, ...], ...] | None) -> list[list[float]] | None:
    if matrix is None or not all(math.isfinite(value) for row in matrix for value in row):
        return None
    return [[float(value) for value in row] for row in matrix]


def _equation(equation: Equation) -> Json:
    return {
        "expression": equation.text,
        "latex": equation.latex,
        "complexity": int(equation.complexity),
        "rmse": finite(equation.rmse),
        "r2": finite(equation.r2),
        "max_relative_error": finite(equation.max_relative_error),
        "test_rmse": finite(equation.test_rmse),
        "verdict": equation.verdict,
        "verdict_reason": equation.verdict_reason,
        "verification": list(equation.verification),
        "check_states": list(equation.check_states),
        "constants": [_constant(constant) for constant in equation.constants],
        **group_constants_document(equation),
        "covariance": _finite_matrix(equation.covariance),
        **({} if equation.mean_loss is None else {"mean_loss": equation.mean_loss}),
        "degrees_of_freedom": equation.degrees_of_freedom,
        "reduced_chi_square": finite(equation.reduced_chi_square),
        "probability": finite(equation.probability),
        "description_length": finite(equation.description_length),
        "table_digits": equation.table_digits,
        "extra_digits": equation.extra_digits,
        "derivation": list(equation.derivation),
        "generator": equation.generator,
    }


def _guess(guess: GuessOutcome) -> Json:
    return asdict(guess) | {"rmse": finite(guess.rmse)}


def _constant(constant: ConstantEstimate) -> Json:
    content = asdict(constant)
    numbers = ("value", "low", "high", "fitted", "sigma", "odds")
    return content | {key: finite(content[key]) for key in numbers}
