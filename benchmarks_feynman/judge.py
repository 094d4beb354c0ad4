"""Whether an answer is the law: in numbers on fresh rows, and symbolically, each on its own.

* `exact_numbers`: on 1,000 fresh rows within the ranges every relative error is below 1e-9, or the error is
  rounding of terms that cancel; `exact_outside`: the same with 1e-6 on rows outside of them, each range
  half as wide again on both sides.
* `strict`: symbolic verdict on `answer - truth = 0`, no free offset or factor.
* `srbench`: symbolic verdict, constants rounded to three digits, on `answer - truth` or `answer / truth`
  being a constant, with R2 above 0.5 on the test rows.
* `form`: the numbers are exact once the answer's own fitted constants are refitted to clean rows. It says
  that the structure was found where noise forbids exact constants.

Symbols and numbers should agree; where one says yes and the other no, `disagreement` says so. Numbers alone
count as recovered only if they are exact outside the ranges as well.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks_feynman.metrics import max_relative_error, normalised_tree_distance, r2
from benchmarks_feynman.sampling import bits, columns, draw_valid
from benchmarks_feynman.suites import Law, LawVariable
from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Apply, Expression, complexity, evaluate
from physdiffuser.expressions.tree import free_constants, variables, walk
from physdiffuser.fitting.accuracy import agrees

EXACT = 1e-9
_FORM = 1e-7
# Near a pole outside the ranges, the rounding of an equal formula can be a thousand times that inside.
_OUTSIDE = 1e-6
_FRESH_ROWS = 1000
_FORM_FACTOR, _FORM_ALLOWANCE = 2, 10
_MIN_ROWS = 20
_EXTRAPOLATION = 0.5
_MIN_R2 = 0.5
# Enough on a machine that is busy with other tables; nothing but the verdict waits for it.
_SYMBOLIC_SECONDS = 30.0
# No constant that is right to nine digits moves a value by so much, and no constant that is right to three
# decimals leaves so much of the variance: what differs by more is not the law, without any algebra.
_DIFFERENT = 1e-4
_LOOSELY_DIFFERENT = 0.01
# With more fitted constants than any law has, a proof takes minutes; the verdict is *unknown*.
_MAX_CONSTANTS = 12

Judgement = dict[str, Any]


def judge(law: Law, answer: Expression | None, *, seed: int, dummy: int, test_rows: int) -> Judgement:
    """Judge one answer.

    Parameters
    ----------
    law
        The truth.
    answer
        Over the law's variables and `dummy` further columns; None when the system found nothing.
    seed
        Of the run: fresh rows are drawn from it, none of them seen in training.
    test_rows
        How many clean test rows R2 is taken on.

    Returns
    -------
    dict
        Plain data for the result line.
    """
    from physdiffuser.expressions.simplification.canonical import canonical
    from physdiffuser.verification.equivalence import Rule, equivalent

    record = _facts(law)
    if answer is None:
        return record | _verdicts("different", "different") | {"exact_numbers": False, "form": False}
    record["complexity"] = complexity(answer)
    table = columns(law, dummy)
    inputs, clean = draw_valid(law, table, bits(law, seed, "judge"), _FRESH_ROWS)
    values = evaluate(answer, inputs)
    error = max_relative_error(values, clean)
    record["max_relative_error"] = error if math.isfinite(error) else None
    record["exact_numbers"] = bool(agrees(answer, inputs, clean, values, EXACT, law=law.expression).all())
    test, test_clean = draw_valid(law, table, bits(law, seed, "test"), test_rows)
    record["r2_test"] = r2(evaluate(answer, test), test_clean)
    record |= _outside(law, answer, dummy, seed)
    record["form"] = record["exact_numbers"] or _has_form(law, answer, inputs, clean)
    ranges = [(variable.low, variable.high) for variable in table]
    record["tree_distance"] = _distance(answer, law.expression, ranges)

    def symbolic(rule: Rule) -> str:
        if len(free_constants(canonical(answer, ranges=ranges))[1]) > _MAX_CONSTANTS:
            return "unknown"
        return equivalent(answer, law.expression, ranges, rule=rule, seconds=_SYMBOLIC_SECONDS)

    near = agrees(answer, inputs, clean, values, _DIFFERENT, law=law.expression).all()
    strict = symbolic("strict") if near else "different"
    loose = _unexplained(values, clean)
    srbench = "different" if loose > _LOOSELY_DIFFERENT else symbolic("srbench")
    if not (record["r2_test"] or 0.0) > _MIN_R2:
        srbench = "different"
    record |= _verdicts(strict, srbench)
    inside, outside = record["exact_numbers"], record["exact_outside"]
    record["disagreement"] = (strict == "verified" and (not inside or outside is False)) or (
        strict == "different" and inside
    )
    return record


def has_form(law: Law, answer: Expression | None, *, seed: int, dummy: int) -> bool:
    """Whether an answer has the form of the law; as in `judge`, without the symbolic verdicts."""
    if answer is None:
        return False
    inputs, clean = draw_valid(law, columns(law, dummy), bits(law, seed, "judge"), _FRESH_ROWS)
    values = evaluate(answer, inputs)
    exact = agrees(answer, inputs, clean, values, EXACT, law=law.expression).all()
    return bool(exact) or _has_form(law, answer, inputs, clean)


def _unexplained(values: FloatArray, truth: FloatArray) -> float:
    """Share of the truth's variance that no offset and factor of the values explains."""
    if not np.isfinite(values).all():
        return math.inf
    left, right = values - values.mean(), truth - truth.mean()
    scales = float(np.abs(left).max()), float(np.abs(right).max())
    if 0.0 in scales:
        return 1.0
    left, right = left / scales[0], right / scales[1]
    return 1.0 - float(left @ right) ** 2 / float((left @ left) * (right @ right))


def _facts(law: Law) -> Judgement:
    operators = sorted({node.operator for node in walk(law.expression) if isinstance(node, Apply)})
    return {
        "group": law.group,
        "name": law.name,
        "truth": law.text,
        "truth_complexity": complexity(law.expression),
        "variables": len(variables(law.expression)),
        "operators": operators,
        "complexity": None,
        "max_relative_error": None,
        "r2_test": None,
        "r2_extrapolated": None,
        "exact_outside": None,
        "tree_distance": 1.0,
        "disagreement": False,
        "recovered": False,
        "confident_wrong": False,
    }


def unjudged(law: Law) -> Judgement:
    """The entries of a problem that no answer came from, or whose judge did not end."""
    verdicts = _verdicts("unknown", "unknown")
    return _facts(law) | verdicts | {"exact_numbers": False, "form": False}


def _verdicts(strict: str, srbench: str) -> Judgement:
    return {"strict": strict, "srbench": srbench}


def widened(variable: LawVariable) -> LawVariable:
    """The range half as wide again on both sides, never across zero."""
    if variable.scale == "log":
        spread = math.sqrt(variable.high / variable.low)
        return LawVariable(variable.name, variable.low / spread, variable.high * spread, "log")
    width = _EXTRAPOLATION * (variable.high - variable.low)
    low, high = variable.low - width, variable.high + width
    if variable.low >= 0.0 > low:
        low = variable.low / 2
    if variable.high <= 0.0 < high:
        high = variable.high / 2
    return LawVariable(variable.name, low, high)


def _outside(law: Law, answer: Expression, dummy: int, seed: int) -> Judgement:
    """R2 and exactness on rows of the widened ranges; None where the law has no values there."""
    table = columns(law, dummy)
    wide = tuple(widened(variable) for variable in table)
    inputs, clean = draw_valid(law, wide, bits(law, seed, "wide"), _FRESH_ROWS)
    outside = np.zeros(len(clean), dtype=bool)
    for index, variable in enumerate(table[: len(law.variables)]):
        outside |= (inputs[:, index] < variable.low) | (inputs[:, index] > variable.high)
    if outside.sum() < _MIN_ROWS:
        return {}
    inputs, truth = inputs[outside], clean[outside]
    values = evaluate(answer, inputs)
    return {
        "r2_extrapolated": r2(values, truth),
        "exact_outside": bool(agrees(answer, inputs, truth, values, _OUTSIDE, law=law.expression).all()),
    }


def _has_form(law: Law, answer: Expression, inputs: FloatArray, clean: FloatArray) -> bool:
    # A scale and an offset around the law are still its form; a long fit that happens to hold it is not.
    most = _FORM_FACTOR * complexity(law.expression) + _FORM_ALLOWANCE
    skeleton, values = free_constants(answer)
    if not values or complexity(answer) > most:
        return False
    from physdiffuser.fitting import fit_constants

    fit = fit_constants(skeleton, inputs, clean, initial=list(values), starts=4, iterations=200)
    fitted = evaluate(fit.expression, inputs)
    return bool(agrees(fit.expression, inputs, clean, fitted, _FORM, law=law.expression).all())


def _distance(answer: Expression, truth: Expression, ranges: list[tuple[float, float]]) -> float | None:
    """Normalised edit distance of the canonical forms."""
    from physdiffuser.expressions.simplification.canonical import canonical

    return normalised_tree_distance(canonical(answer, ranges=ranges), canonical(truth, ranges=ranges))
