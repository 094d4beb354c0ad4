"""The steps of a derivation with what the table says about each, and the checks of the law."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Equation, FitPoints, Solution
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, Number, evaluate, parse
from physdiffuser.expressions.definitions import defined, definitions_in
from physdiffuser.expressions.tree import Variable, substitute
from physdiffuser.report.text.digits import short
from physdiffuser.verification.checks import CheckState

_AGREES = re.compile(r"^(?P<value>\S+) \(standard error (?P<error>\S+)\) agrees with (?P<form>.+)$")
_DROPPED = re.compile(r"^(?P<value>\S+) \(standard error (?P<error>\S+)\) is compatible with 0")
_DIVIDED = re.compile(r"^divided by (?:the power law )?(?P<factor>.+)$")
_GAVE = re.compile(r"^(?P<before>.+) gave (?P<formula>.+)$", re.S)
_MOST_FORMULAS = 40
# A fitted formula that leaves more of the variance than the mean does lost its digits in the sentence.
_WORSE_THAN_MEAN = 1.01


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes
    ----------
    text
        What was done, without the formula.
    left, right
        The equation it led to, if it names one.
    evidence
        The evidence of the rows for it; empty when a step can only be judged by those after it.
    """

    text: str
    left: Expression | None = None
    right: Expression | None = None
    evidence: str = ""


@dataclass(frozen=True)
class CheckLine:
    """A check of the law and how it came out; None when an earlier version did not store it."""

    topic: str
    text: str
    state: CheckState | None


def names_with_target(solution: Solution) -> tuple[str, ...]:
    """Names of the columns as formulas have them, the target's last."""
    inverse = {name: alias for alias, name in solution.aliases.items() if alias not in solution.names}
    return (*solution.names, inverse.get(solution.target, solution.target))


def steps_of(solution: Solution) -> list[Step]:
    """The derivation of the chosen formula, each step with its evidence."""
    best = solution.best
    if best is None:
        return []
    return [_step(text, solution) for text in best.derivation or solution.derivation]


def checks_of(equation: Equation) -> list[CheckLine]:
    """The checks of a law, by topic, with how each came out."""
    found = []
    for place, sentence in enumerate(equation.verification):
        topic, colon, text = sentence.partition(": ")
        if not colon:
            topic, text = "", sentence
        state = equation.check_states[place] if place < len(equation.check_states) else None
        found.append(CheckLine(topic, text, state))
    return found


def _step(text: str, solution: Solution) -> Step:
    names = names_with_target(solution)
    if match := _AGREES.match(text):
        return Step(text, evidence=_distance(match, solution))
    if match := _DROPPED.match(text):
        value, error = _number(match["value"]), _number(match["error"])
        if value is not None and error:
            return Step(text, evidence=f"{_errors(abs(value) / error)} from 0")
        return Step(text)
    table = _table(solution.fit_points)
    if match := _DIVIDED.match(text):
        factor = _parsed(match["factor"], names, solution)
        return Step(text, evidence=_flatter(factor, table)) if factor and table is not None else Step(text)
    found = _equation(text, names, solution)
    if found is None:
        return Step(text)
    before, left, right = found
    if table is None:
        return Step(before, left, right)
    # The law itself is known to all digits; earlier formulas only as they are written in the sentence.
    is_law = before == "the law" and left == Variable(len(names) - 1) and solution.best is not None
    measured = solution.best.expression if is_law and solution.best is not None else right
    return Step(before, left, right, _fit(left, measured, table))


def _equation(
    text: str, names: tuple[str, ...], solution: Solution
) -> tuple[str, Expression, Expression] | None:
    """The equation at the end of a sentence: `constants fitted to 8 rows: T = a**1.4998`."""
    before, sign, after = text.partition(" = ")
    if sign:
        right = _parsed(after, names, solution)
        for said, formula in _endings(before) if right is not None else ():
            left = _parsed(formula, names, solution)
            if left is not None and right is not None:
                return said, left, right
        return None
    if match := _GAVE.match(text):
        right = _parsed(match["formula"], names, solution)
        if right is not None:
            return f"{match['before']} gave", Variable(len(names) - 1), right
    return None


def _endings(text: str) -> Iterator[tuple[str, str]]:
    """A text cut in two at each of its last words, the longest ending first."""
    starts = [0, *(match.end() for match in re.finditer(r"\s", text))]
    for start in starts[-_MOST_FORMULAS:]:
        yield text[:start].rstrip(" :"), text[start:]


def _parsed(text: str, names: tuple[str, ...], solution: Solution) -> Expression | None:
    try:
        with defined(definitions_in([row.expression for row in solution.pareto])):
            formula = parse(text, names, dict(solution.known_constants))
    except (UsageError, ValueError):
        return None
    # The parser takes a short decimal for exact; here it is a fitted number that was cut short.
    return substitute(formula, _decimal)


def _decimal(node: Expression) -> Expression | None:
    if isinstance(node, Number) and isinstance(node.value, Fraction) and 10_000 % node.value.denominator == 0:
        return Number(float(node.value))
    return None


def _table(points: FitPoints | None) -> FloatArray | None:
    if points is None or points.inputs is None:
        return None
    return np.concatenate([points.inputs, points.truth[:, None]], axis=1)


def _fit(left: Expression, right: Expression, table: FloatArray) -> str:
    """How well the two sides agree on the rows."""
    wanted, got = evaluate(left, table), evaluate(right, table)
    finite = np.isfinite(wanted) & np.isfinite(got)
    if finite.sum() < 2:
        return "no row has a value on both sides"
    scale = float(np.abs(wanted[finite]).max()) or 1.0
    residual = (wanted[finite] - got[finite]) / scale
    spread = float(np.var(wanted[finite] / scale))
    error = math.sqrt(float(np.mean(np.square(residual))))
    parts = [f"rms error {short(scale * error)}"]
    unexplained = error**2 / spread if spread > 0 else None
    if unexplained is not None and unexplained > _WORSE_THAN_MEAN:
        return "the digits written here are too few to compute with"
    if unexplained is not None:
        parts.append(f"{short(100 * unexplained, 2)} % of the variance is left" if unexplained else "exact")
    parts.append(f"{int(finite.sum()):,} rows")
    return ", ".join(parts)


def _flatter(factor: Expression | None, table: FloatArray) -> str:
    """By how much the target varies less when it is divided by a factor."""
    if factor is None:
        return ""
    target = np.abs(table[:, -1])
    with np.errstate(all="ignore"):
        before, after = np.log(target), np.log(target / np.abs(evaluate(factor, table)))
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        return ""
    return (
        f"the target spans a factor of {_factor(np.ptp(before))} before and of {_factor(np.ptp(after))} after"
    )


def _factor(log_range: float) -> str:
    return short(math.exp(log_range), 4) if log_range < 700 else "more than 1e300"


def _distance(match: re.Match[str], solution: Solution) -> str:
    value, error = _number(match["value"]), _number(match["error"])
    form = _parsed(match["form"], (), solution)
    if value is None or not error or form is None:
        return ""
    exact = float(evaluate(form, np.zeros((1, 1)))[0])
    return f"{short(abs(exact - value), 2)} apart, {_errors(abs(exact - value) / error)}"


def _errors(count: float) -> str:
    return f"{short(count, 2)} standard errors" if count >= 0.05 else "less than 0.05 standard errors"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
