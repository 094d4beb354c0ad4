"""Steps of snapping that are worth trying, best first, from the errors of the constants alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from physdiffuser.expressions import ONE, ZERO, Apply, Expression, Number, Parameter, to_text
from physdiffuser.expressions.tree import (
    call,
    div,
    mul,
    number_expression,
    power,
    size,
    substitute,
    walk,
    with_parameters,
)
from physdiffuser.fitting.exact_constants.evidence import POLICY as EVIDENCE
from physdiffuser.fitting.exact_constants.evidence import Evidence, Proposal, State
from physdiffuser.fitting.exact_constants.folding import fold_units
from physdiffuser.fitting.exact_constants.forms import (
    Form,
    FormTable,
    decimal_cost,
    decimal_nats,
    fraction_cost,
)
from physdiffuser.fitting.exact_constants.odds import DEFAULT_RULE, as_exponent, odds


@dataclass(frozen=True)
class ProposalPolicy:
    """What exact values are proposed for a constant.

    Prices are in nats; docs/fitting.md measures the rule as a whole.
    """

    forms: int = 4
    """Forms near a value that are proposed."""
    node_credit: float = 0.75
    """What a dropped node is worth, beyond the constant that goes with it."""
    relation_cost: float = 2.0
    """Price of tying two constants, beside that of the choice among all of them."""
    form: float = 2.5
    """Standard errors by which the form of a formula may move a constant, where the noise level is known: a
    factor 1, a power by quarters, or one constant that is tied to another. They are no values of
    constants."""
    max_denominator: int = 2000
    """Largest denominator of a fraction."""


POLICY = ProposalPolicy()


def proposals(evidence: Evidence, state: State, table: FormTable) -> list[Proposal]:
    """All steps from a state that might raise the score, the most promising first."""
    found: list[Proposal] = []
    in_exponent = _exponents(state.skeleton)
    for index in range(state.values.size):
        value, error = float(state.values[index]), float(state.errors[index])
        found += _drop(evidence, state, index)
        if value != 0.0:
            reach = error * max(evidence.rule.farthest, evidence.with_few_rows(POLICY.form))
            for form in _forms(value, reach, table, index in in_exponent):
                if not _is_near(evidence, value, error, form, index in in_exponent):
                    continue
                if odds(table, value, error, form, index in in_exponent) <= evidence.rule.most_odds:
                    found.append(_fix(evidence, state, index, form))
            found += _round(evidence, state, index, table)
    found += _ties(evidence, state, table, in_exponent)
    found = [proposal for proposal in found if math.isfinite(proposal.gain)]
    found.sort(key=lambda proposal: -proposal.gain)
    return found


def _is_near(evidence: Evidence, value: float, error: float, form: Form, exponent: bool) -> bool:
    """Whether a form is near enough to a constant: within `SettingRule.farthest`, if it is a value."""
    is_value = abs(form.value) != 1.0 and not (exponent and (4.0 * form.value).is_integer())
    return not is_value or abs(form.value - value) <= evidence.rule.farthest * error + 4e-16 * abs(value)


def special_value(value: float, error: float, table: FormTable, exponent: bool = False) -> Form | None:
    """The special value that a fitted constant agrees with, the one least likely by chance; None without one.

    It may lie too far off for the constant to be set to it; how rare it must be says `SettingRule.most_odds`.

    Parameters
    ----------
    value, error
        The fitted constant and its standard error.
    """
    if not 0.0 < error < abs(value) < math.inf:
        return None
    near = [form for form in _forms(value, POLICY.form * error, table, exponent) if abs(form.value) != 1.0]
    chances = [odds(table, value, error, form, exponent) for form in near]
    best = min(chances, default=math.inf)
    return near[chances.index(best)] if best <= DEFAULT_RULE.most_odds else None


def removals(state: State) -> list[Proposal]:
    """Ways to take out a constant that another one makes needless, those that leave least in front.

    In `a*(b*x + c*y)` the data fix two products. Among equals the outermost constant goes.
    """
    found: list[tuple[int, int, Proposal]] = []
    for index in state.loose:
        for by in (ONE, ZERO):
            moved = replace(state, values=state.moved(index, float(by.value)))
            skeleton, values = _replace(moved, index, by)
            if isinstance(skeleton, Apply):
                rank = _depth_of(state.skeleton, index)
                found.append((size(skeleton), rank, Proposal(skeleton, values, 0.0, 0.0, "")))
    found.sort(key=lambda item: item[:2])
    return [proposal for _, _, proposal in found]


def _depth_of(expression: Expression, index: int) -> int:
    """Length of the shortest path to a parameter."""
    if isinstance(expression, Apply):
        return 1 + min(_depth_of(argument, index) for argument in expression.arguments)
    return 0 if expression == Parameter(index) else 10**6


def _exponents(skeleton: Expression) -> frozenset[int]:
    """Parameters that are an exponent by themselves."""
    return frozenset(
        node.arguments[1].index
        for node in walk(skeleton)
        if isinstance(node, Apply) and node.operator == "pow" and isinstance(node.arguments[1], Parameter)
    )


def _gain(evidence: Evidence, state: State, index: int, moved: float, cost: float) -> float:
    """Rise of the score when a constant moves by so much and its freedom goes.

    With normal errors the others give way, so the loss rises by the square of the marginal error, and the
    determinant of the covariance loses that factor.
    """
    error = float(state.errors[index])
    value = abs(float(state.values[index]))
    z = moved / error if error > 0.0 else (0.0 if moved == 0.0 else math.inf)
    scale = max(value, error, 5e-324)
    freedom = 0.5 * math.log(2 * math.pi) + math.log(max(error / scale, 1e-17)) - EVIDENCE.free_price
    return -evidence.penalty(z) - cost - freedom


def _replace(state: State, index: int, by: Expression) -> tuple[Expression, np.ndarray]:
    """The skeleton with one parameter gone and the others numbered anew, and their values."""
    kept = [i for i in range(state.values.size) if i != index]
    number = {old: new for new, old in enumerate(kept)}

    def rename(node: Expression) -> Expression | None:
        if isinstance(node, Parameter):
            return Parameter(number[node.index]) if node.index in number else renamed
        return None

    renamed = with_parameters(by, number)
    skeleton = fold_units(substitute(state.skeleton, rename))
    # A dropped factor may have taken other parameters with it.
    used = sorted({node.index for node in walk(skeleton) if isinstance(node, Parameter)})
    if used != list(range(len(kept))):
        again = {old: new for new, old in enumerate(used)}
        skeleton = with_parameters(skeleton, again)
        kept = [kept[i] for i in used]
    return skeleton, state.values[kept]


def _known(value: float, error: float) -> str:
    return f"{value:.6g} (standard error {error:.1g})" if error > 1e-12 * abs(value) else f"{value:.12g}"


def _drop(evidence: Evidence, state: State, index: int) -> list[Proposal]:
    value, error = float(state.values[index]), float(state.errors[index])
    if abs(value) > evidence.window * error:
        return []
    skeleton, values = _replace(state, index, ZERO)
    if not isinstance(skeleton, Apply):
        return []
    saved = size(state.skeleton) - size(skeleton)
    cost = -POLICY.node_credit * saved
    gone = state.values.size - 1 - values.size
    gain = _gain(evidence, state, index, abs(value), cost) + gone
    change = f"{_known(value, error)} is compatible with 0: its term is dropped"
    return [Proposal(skeleton, values, cost, gain, change)]


def _forms(value: float, reach: float, table: FormTable, exponent: bool) -> list[Form]:
    width = min(reach / abs(value) + 4e-16, 3.0)
    found = table.near(value, width, POLICY.forms if not exponent else 4 * POLICY.forms)
    if exponent:
        # Nothing is raised to the power of pi or of the square root of two.
        found = [as_exponent(form) for form in found if isinstance(form.expression, Number)][: POLICY.forms]
    if width < 1e-5:
        fraction = Fraction(value).limit_denominator(POLICY.max_denominator)
        if fraction != 0 and abs(float(fraction) - value) <= width * abs(value):
            found.append(Form(float(fraction), fraction_cost(fraction), number_expression(fraction)))
    return found


def _fix(evidence: Evidence, state: State, index: int, form: Form) -> Proposal:
    value, error = float(state.values[index]), float(state.errors[index])
    skeleton, values = _replace(state, index, form.expression)
    gain = _gain(evidence, state, index, abs(form.value - value), form.cost)
    change = f"{_known(value, error)} agrees with {to_text(form.expression)}"
    return Proposal(skeleton, values, form.cost, gain, change)


def _round(evidence: Evidence, state: State, index: int, table: FormTable) -> list[Proposal]:
    """The decimal number of fewest digits that the data cannot tell from the fitted one."""
    value, error = float(state.values[index]), float(state.errors[index])
    reach = error * evidence.rule.farthest + 4e-16 * abs(value)
    for digits in range(1, 9):
        text = f"{value:.{digits - 1}e}"
        rounded = float(text)
        if math.isfinite(rounded) and abs(rounded - value) <= reach:
            mantissa, _, exponent = text.partition("e")
            places = len(mantissa.strip("-0.").replace(".", "")) or 1
            fraction = Fraction(repr(rounded))
            exact = fraction.denominator in (1, 2, 4, 5, 8, 10) and abs(fraction) < 10**6
            expression = number_expression(fraction) if exact else Number(rounded)
            form = Form(rounded, decimal_nats(places), expression)
            if odds(table, value, error, form) > evidence.rule.most_odds:
                return []
            cost = decimal_cost(places, int(exponent))
            skeleton, values = _replace(state, index, expression)
            gain = _gain(evidence, state, index, abs(rounded - value), cost)
            change = f"{_known(value, error)} agrees with {to_text(expression)}"
            return [Proposal(skeleton, values, cost, gain, change)]
    return []


_POWER_COST = {
    (1.0, True): 0.0,
    (1.0, False): 1.5,
    (2.0, True): 3.0,
    (2.0, False): 3.5,
    (0.5, True): 3.5,
    (0.5, False): 3.5,
}
_POWERS = (Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), Fraction(1, 2), Fraction(-1, 2))


def _ties(evidence: Evidence, state: State, table: FormTable, exponents: frozenset[int]) -> list[Proposal]:
    """One constant as a simple multiple of a power of another."""
    found: list[Proposal] = []
    count = state.values.size
    for index in range(count):
        for other in range(count):
            first, second = float(state.values[index]), float(state.values[other])
            # An exponent is no multiple of a factor.
            if index == other or (index in exponents) != (other in exponents) or 0.0 in (first, second):
                continue
            for exponent in _POWERS:
                if exponent == 1 and index < other:
                    continue  # the later in terms of the earlier; the reverse is the same tie
                if second < 0.0 and exponent.denominator != 1:
                    continue
                k = float(exponent)
                ratio = _ratio(first, second, k)
                relative = state.relative
                spread = (
                    relative[index, index] - 2 * k * relative[index, other] + k * k * relative[other, other]
                )
                error = math.sqrt(max(spread, 0.0)) + 4e-16
                if error > 0.3 or not 0.0 < abs(ratio) < math.inf:
                    continue
                reach = min(evidence.with_few_rows(POLICY.form) * error, 1.0)
                for form in table.near(ratio, reach, 1):
                    cost = form.cost + POLICY.relation_cost + math.log(count) + _POWER_COST[abs(k), k > 0]
                    # All relations that are as simple count, with this and with other constants.
                    priced = replace(form, cost=cost)
                    if odds(table, ratio, error * abs(ratio), priced) > evidence.rule.most_odds:
                        continue
                    by = _multiple(form.expression, Parameter(other), exponent)
                    moved = abs(form.value / ratio - 1.0) / error
                    freedom = 0.5 * math.log(2 * math.pi) + math.log(max(error, 1e-17)) - EVIDENCE.free_price
                    gain = -evidence.penalty(moved) - cost - freedom
                    skeleton, values = _replace(state, index, by)
                    text = to_text(_multiple(form.expression, Number(second), exponent), digits=6)
                    change = f"{first:.6g} agrees with {text}, a multiple of another constant"
                    found.append(Proposal(skeleton, values, cost, gain, change))
    return found


def _ratio(first: float, second: float, exponent: float) -> float:
    """`first / second**exponent`, the sign of `second` kept unless squared; 0 where it overflows."""
    sign = math.copysign(1.0, first) * (math.copysign(1.0, second) if abs(exponent) == 1.0 else 1.0)
    size_of = math.log(abs(first)) - exponent * math.log(abs(second))
    return sign * math.exp(size_of) if abs(size_of) < 700.0 else 0.0


def _multiple(form: Expression, base: Expression, exponent: Fraction) -> Expression:
    size_of = abs(exponent)
    part = base
    if size_of == Fraction(1, 2):
        part = call("sqrt", base)
    elif size_of != 1:
        part = power(base, Number(int(size_of)))
    return fold_units(mul(form, part) if exponent > 0 else div(form, part))
