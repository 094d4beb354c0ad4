"""The constants of a formula: as fitted, how well the rows determine them, and what they were set to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import ConstantEstimate
from physdiffuser.expressions import PI, Apply, Expression, Number, Parameter, Symbol, evaluate, to_text
from physdiffuser.expressions.tree import distinct_constants, substitute, walk
from physdiffuser.finalize.constants.physical import agreement, agreement_text
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.fitting.exact_constants.forms import form_table
from physdiffuser.fitting.exact_constants.odds import as_exponent, chance_of, form_of
from physdiffuser.fitting.exact_constants.proposals import special_value
from physdiffuser.fitting.levenberg_marquardt import levenberg_marquardt
from physdiffuser.fitting.uncertainty import Uncertainty, uncertainty
from physdiffuser.fitting.varpro import SeparableModel
from physdiffuser.report.text.digits import concise

# A constant is not determined beside others if they can make up for all but this share of its effect.
_INDEPENDENT = 1e-7
_ITERATIONS = 25
# A constant of the form is listed only with lower odds, and so many standard errors from its fitted value.
_FORM, _NEAR = 0.01, 1.0


def constants_of(
    expression: Expression, problem: Problem
) -> tuple[tuple[ConstantEstimate, ...], tuple[tuple[float, ...], ...] | None, int | None]:
    """The constants of a formula, the covariance of the fitted ones, and the degrees of freedom.

    A fitted constant that stands in several places is one constant. Powers by multiples of 1/2 are the form
    of the formula, not constants. So are a number 1 and powers by quarters, which roots of roots give, unless
    the rows show that they could hardly be others.

    Parameters
    ----------
    expression
        The formula; its float numbers are fitted, all other numbers were set.
    """
    known = _fit_of(expression, problem)
    marked, nodes, exponents = marked_constants(expression)
    freed = freed_values(marked, nodes, problem)
    estimates: list[ConstantEstimate] = []
    free = 0
    for index, node in enumerate(nodes):
        name = f"c{len(estimates) + 1}"
        if is_fitted(node):
            one = _fitted(name, float(node.value), known, free)  # type: ignore[union-attr]
            estimates.append(replace(one, agrees_with=_agreement(one, problem, exponents[index])))
            free += 1
            continue
        value, text = value_of(node), to_text(node)
        fitted, sigma = freed.get(index, (None, None))
        odds = None
        if fitted and sigma and value:
            odds = _odds(node, value, (fitted, sigma), problem, exponents[index])
        is_form = abs(value) == 1.0 or (exponents[index] and is_quarter(value))
        if is_form and not _is_supported(value, fitted, sigma, odds):
            continue
        estimates.append(
            ConstantEstimate(
                name, value, None, None, text, False, fitted=fitted, sigma=sigma, set_to=text, odds=odds
            )
        )
    covariance: tuple[tuple[float, ...], ...] | None = None
    if known is not None and np.isfinite(known.covariance).all():
        covariance = tuple(tuple(float(part) for part in row) for row in known.covariance)
    return tuple(estimates), covariance, None if known is None else known.degrees_of_freedom


def _fit_of(expression: Expression, problem: Problem) -> Uncertainty | None:
    """Errors of the fitted constants, those that were set held."""
    skeleton, values = distinct_constants(expression)
    if not values or problem.rows <= len(values):
        return None
    return _errors(skeleton, np.array(values), problem)


def _errors(skeleton: Expression, values: FloatArray, problem: Problem) -> Uncertainty:
    rows, target, weights = problem.inputs, problem.target, problem.weights
    return uncertainty(
        skeleton, values, rows, target, weights=weights, sigma=problem.sigma, loss=problem.loss
    )


def _fitted(name: str, value: float, known: Uncertainty | None, position: int) -> ConstantEstimate:
    low = high = sigma = None
    if known is not None:
        low, high = (float(end) for end in known.intervals()[position])
        sigma = float(known.standard_errors[position])
        if not np.isfinite(high - low):
            low = high = sigma = None
    return ConstantEstimate(name, value, low, high, concise(value, sigma), False, fitted=value, sigma=sigma)


def _agreement(constant: ConstantEstimate, problem: Problem, exponent: bool) -> str | None:
    """The product of physical constants, or else the special value, that a fitted constant agrees with."""
    if constant.sigma is None:
        return None
    named = agreement_text(constant.value, constant.sigma) if problem.units is None else None
    if named is not None:
        return named
    special = special_value(constant.value, constant.sigma, form_table(()), exponent=exponent)
    return None if special is None else to_text(special.expression)


def is_quarter(exponent: float) -> bool:
    """Whether a power may come from roots of roots."""
    return exponent * 4 == round(exponent * 4)


def _is_supported(value: float, fitted: float | None, sigma: float | None, odds: float | None) -> bool:
    """Whether the rows show that a constant of the form has its value."""
    if fitted is None or sigma is None or odds is None:
        return False
    return odds <= _FORM and abs(value - fitted) <= _NEAR * sigma


def _odds(
    node: Expression, value: float, known: tuple[float, float], problem: Problem, exponent: bool
) -> float | None:
    """Chance that an arbitrary constant lies as near to a form that is as simple."""
    names = {leaf for leaf in walk(node) if isinstance(leaf, Symbol) and leaf != PI}
    if not names <= {*problem.constants, *problem.physical_constants}:
        found = agreement(*known)
        return None if found is None or to_text(found.expression) != to_text(node) else found.odds
    # Products of the constants of nature are alternatives to each other only.
    of_nature = problem.physical_constants if names & {*problem.physical_constants} else ()
    table = form_table((*problem.constants, *of_nature))
    form = form_of(table, value, node)
    return chance_of(table, *known, as_exponent(form) if exponent else form, exponent)


def is_fitted(node: Expression) -> bool:
    return isinstance(node, Number) and not node.exact


def value_of(node: Expression) -> float:
    return float(evaluate(node, np.zeros((1, 1)))[0])


class MarkedConstants(NamedTuple):
    """The constants of a formula, from left to right.

    Attributes
    ----------
    formula
        With a parameter in place of each.
    nodes
        The constants.
    exponents
        Whether each is an exponent.
    """

    formula: Expression
    nodes: Sequence[Expression]
    exponents: Sequence[bool]


def marked_constants(expression: Expression) -> MarkedConstants:
    """The constants: largest parts without variables in which nothing is fitted, and fitted numbers."""
    nodes: list[Expression] = []
    exponents: list[bool] = []

    def visit(node: Expression, exponent: bool = False) -> Expression:
        leaves = [leaf for leaf in walk(node) if not isinstance(leaf, Apply)]
        if is_fitted(node) or all(isinstance(one, Symbol | Number) and not is_fitted(one) for one in leaves):
            if is_fitted(node) and node in nodes:
                return Parameter(nodes.index(node))
            nodes.append(node)
            exponents.append(exponent)
            return Parameter(len(nodes) - 1)
        if not isinstance(node, Apply):
            return node
        arguments = []
        for position, argument in enumerate(node.arguments):
            power = node.operator == "pow" and position == 1
            usual = power and isinstance(argument, Number) and argument.exact and _is_usual(argument)
            arguments.append(argument if usual else visit(argument, power))
        return Apply(node.operator, tuple(arguments))

    return MarkedConstants(visit(expression), nodes, exponents)


def _is_usual(exponent: Number) -> bool:
    return Fraction(exponent.value).denominator <= 2


def freed_values(
    marked: Expression, nodes: Sequence[Expression], problem: Problem
) -> dict[int, tuple[float, float]]:
    """Value and standard error of each constant that was set, if it is fitted together with all others.

    Those that the others can make up for are left out: with `2*pi*sqrt(x/g)` the rows determine `g` or the
    factor.
    """
    if all(is_fitted(node) for node in nodes):
        return {}
    values = np.array([value_of(node) for node in nodes])
    chosen = _determined(marked, values, nodes, problem)
    if all(is_fitted(nodes[index]) for index in chosen) or problem.rows <= len(chosen):
        return {}
    number = {index: position for position, index in enumerate(chosen)}

    def renamed(node: Expression) -> Expression | None:
        if not isinstance(node, Parameter):
            return None
        return Parameter(number[node.index]) if node.index in number else nodes[node.index]

    skeleton = substitute(marked, renamed)
    model = SeparableModel(skeleton, problem.inputs, problem.target, problem.weights)
    found = levenberg_marquardt(model, values[chosen][:, None], iterations=_ITERATIONS, loss=problem.loss)
    if not np.isfinite(found.loss[0]):
        return {}
    known = _errors(skeleton, found.parameters[:, 0], problem)
    return {
        index: (float(value), float(error))
        for index, value, error in zip(chosen, known.parameters, known.standard_errors, strict=True)
        if np.isfinite(value) and np.isfinite(error)
    }


@np.errstate(all="ignore")
def _determined(
    marked: Expression, values: FloatArray, nodes: Sequence[Expression], problem: Problem
) -> list[int]:
    """Constants that can be fitted together, in order: the fitted ones first, numbers 1 last."""
    if problem.rows == 0:
        return []
    jacobian = EvaluationTape(marked, problem.inputs).value_and_jacobian(values)[1] * values[:, None]
    if problem.weights is not None:
        jacobian = jacobian * np.sqrt(problem.weights / problem.weights.mean())
    order = sorted(
        range(len(nodes)), key=lambda index: (not is_fitted(nodes[index]), abs(values[index]) == 1.0)
    )
    basis: list[FloatArray] = []
    chosen = []
    for index in order:
        size = float(np.abs(jacobian[index]).max())
        if not (0.0 < size < np.inf):
            continue
        part = jacobian[index] / size
        whole = float(np.sqrt(part @ part))
        for _ in range(2):  # enough: Kahan, in Parlett, The Symmetric Eigenvalue Problem, section 6.9
            for one in basis:
                part = part - (part @ one) * one
        left = float(np.sqrt(part @ part))
        if left > _INDEPENDENT * whole:
            basis.append(part / left)
            chosen.append(index)
    return sorted(chosen)


def proved(constants: Sequence[ConstantEstimate]) -> tuple[ConstantEstimate, ...]:
    """The constants of a law that meets every row up to rounding: those that were set are exact."""
    return tuple(replace(constant, exact=constant.is_set) for constant in constants)
