"""A usual law of one argument times powers of the columns: `y = f(u) * x1**p1 * x2**p2`.

Of a reduction with one feature, f is a usual law of it and the powers are the factor. Else the argument is a
column, or a ratio or product of two. All constants, the exponents among them, are then fitted together, so
that nothing has to be divided out of the target first, and the exponents of the best fits are made exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import Apply, Expression, Number, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import (
    div,
    mul,
    number_expression,
    parameter_count,
    power,
    substitute,
    variables,
)
from physdiffuser.fitting import Fit, fit_constants
from physdiffuser.functions.standard_forms import standard_forms
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.parametric import POLICY as PARAMETRIC
from physdiffuser.generation.enumeration.registry import Size, Stage, register

# Starts and steps of a fit, nominal seconds of one, and how many of the best get exact exponents.
STARTS, ITERATIONS, SECONDS, BEST = 3, 25, 0.006, 8
# Ratios and products of columns are arguments of tables with at most so many columns.
MAX_OF_RATIOS = 3
# Exponents of the best fits are multiples of this.
UNIT = Fraction(1, 2)


@dataclass(frozen=True)
class _Form:
    """A usual law of one argument with the factor of a reduction, and columns with powers beside it."""

    law: Expression
    beside: tuple[int, ...] = ()

    def skeleton(self, exponents: tuple[Expression, ...] | None = None) -> Expression:
        """The product; the exponents are parameters behind those of the law unless they are given."""
        first = parameter_count(self.law)
        if exponents is None:
            exponents = tuple(Parameter(first + place) for place in range(len(self.beside)))
        factors = (
            power(Variable(column), exponent)
            for column, exponent in zip(self.beside, exponents, strict=True)
            if exponent != Number(0)
        )
        return reduce(mul, factors, self.law)


@register
class StandardProducts(Stage):
    """`y = f(u)*x1**p1*x2**p2` for each usual law f of one argument; see the module."""

    name = "usual laws times powers"
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether there is one feature beside a factor, or powers of two columns or more are defined."""
        one = len(reduction.features) == 1
        if reduction.factors:
            return one
        return not one and len(problem.positive) > 1 and {"mul", "pow"} <= problem.operators

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Fit each product on the screening rows, then the best with exact exponents; see `Stage`."""
        problem, rows = context.problem, context.screening_rows
        some = problem.inputs[rows], problem.target[rows]
        weights = None if problem.weights is None else problem.weights[rows]
        fits: list[tuple[_Form, Fit]] = []
        for form in (_factored if reduction.factors else _forms)(problem, reduction):
            skeleton = form.skeleton()
            yield SECONDS
            if PARAMETRIC.rows_of_constant * parameter_count(skeleton) > problem.rows:
                continue
            fit = fit_constants(skeleton, *some, weights=weights, starts=STARTS, iterations=ITERATIONS)
            if np.isfinite(fit.loss):
                fits.append((form, fit))
        fits.sort(key=lambda pair: pair[1].loss)
        for form, fit in fits[:BEST]:
            yield self._candidate(fit, problem)
            if not form.beside:
                continue
            count = parameter_count(form.law)
            exponents = tuple(_exact(value) for value in fit.parameters[count:])
            exact = fit_constants(
                form.skeleton(exponents),
                *some,
                weights=weights,
                initial=fit.parameters[:count],
                starts=1,
                iterations=ITERATIONS,
            )
            yield SECONDS
            if np.isfinite(exact.loss):
                yield self._candidate(exact, problem)

    def _candidate(self, fit: Fit, problem: Problem) -> Candidate | float:
        if not problem.admits(fit.expression):
            return 0.0
        return Candidate(fit.expression, "enumeration", ("fitted a usual law times powers of the columns",))


def _exact(value: float) -> Expression:
    """The nearest multiple of `UNIT`."""
    return number_expression(round(Fraction(value) / UNIT) * UNIT)


def _factored(problem: Problem, reduction: Reduction) -> Iterator[_Form]:
    """The usual laws of the only feature of a reduction, times its factor."""
    factor, feature = reduction.factor(), reduction.features[0]
    values = evaluate(feature, problem.inputs)
    first = frozenset({0}) if (values > 0).all() else frozenset()
    for law in standard_forms(1, first, problem.operators):
        if factor is not None and not _is_power(law):
            yield _Form(mul(_of(law, feature), factor))


def _forms(problem: Problem, reduction: Reduction) -> Iterator[_Form]:
    """The usual laws of each argument, those of columns first."""
    positive = sorted(problem.positive)
    arguments: list[Expression] = [feature for feature in reduction.features if isinstance(feature, Variable)]
    if len(arguments) <= MAX_OF_RATIOS:
        pairs = list(combinations([Variable(column) for column in positive], 2))
        arguments += [div(one, other) for one, other in pairs]
        arguments += [div(other, one) for one, other in pairs]
        arguments += [mul(one, other) for one, other in pairs]
    for argument in arguments:
        inside = variables(argument)
        first = frozenset({0}) if inside <= problem.positive else frozenset()
        # The powers of an argument beside its function may be those of one of its columns.
        beside = tuple(column for column in positive if len(inside) > 1 or column not in inside)
        for law in standard_forms(1, first, problem.operators):
            if not _is_power(law):
                yield _Form(_of(law, argument), beside)


def _of(law: Expression, argument: Expression) -> Expression:
    return substitute(law, lambda node: argument if isinstance(node, Variable) else None)


def _is_power(law: Expression) -> bool:
    """Whether a law is a factor times a power of its argument; products of powers are searched before."""
    match law:
        case Apply("mul" | "div", (Parameter(), inner)):
            return isinstance(inner, Variable) or (
                isinstance(inner, Apply)
                and inner.operator in ("pow", "sqrt", "mul")
                and isinstance(inner.arguments[0], Variable)
            )
    return False
