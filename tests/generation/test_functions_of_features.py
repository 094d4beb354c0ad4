"""Sums and products of functions of single columns, with constants inside."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, Number, Parameter, Variable, evaluate, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.fitting import refit
from physdiffuser.generation.enumeration import generator
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.function_pool import (
    PoolTerm,
    functions_with_constants,
    of_trees,
    products_of_two,
    times_factors,
)
from physdiffuser.generation.enumeration.registry import STAGES, Size

NAMES = ("a", "b", "c")


# Relative loss of the law itself, refitted to rows without noise: nothing better can follow.
EXACT = 1e-16
COLUMNS = Reduction.of_columns((), [0, 1, 2])


def least_loss(
    stage: str,
    law: str,
    *,
    size: Size,
    noise: float = 0.0,
    rows: int = 300,
    reduction: Reduction = COLUMNS,
) -> float:
    """The least mean square that a stage leaves of a law, relative to the target's variance, refitted."""
    assert generator
    random = np.random.default_rng(3)
    inputs = random.uniform(0.3, 3.0, (rows, 3))
    clean = evaluate(parse(law, NAMES), inputs)
    target = clean + noise * clean.std() * random.standard_normal(rows)
    problem = Problem(inputs, target, NAMES)
    least = np.inf
    with np.errstate(all="ignore"):
        for found in STAGES[stage].run(Context(problem), size, reduction):
            if isinstance(found, Candidate):
                assert problem.allows(found.expression)
                refined = refit(found.expression, inputs, clean, iterations=60)
                least = min(least, refined.loss if np.isfinite(refined.loss) else np.inf)
                if least < EXACT:
                    break
    return least


@pytest.mark.parametrize(
    "law",
    [
        "1.7*exp(-1.3*a) + 0.8*cos(2.1*b) + 0.25*log(c + 1)",
        pytest.param("0.9*sin(1.9*a) + 0.4*cos(5.3*a) + 2.1*exp(-0.6*b)", marks=pytest.mark.slow),
        "1.1*exp(-((a - 1.4)/0.5)**2) + 1.8*b/(b + 0.9) + 0.3*c**2",
    ],
)
@pytest.mark.parametrize("noise", [pytest.param(0.0, marks=pytest.mark.slow), 0.01])
def test_a_sum_of_three_functions_is_found(law: str, noise: float) -> None:
    assert least_loss("residual pursuit", law, size=Size(20), noise=noise) < EXACT


@pytest.mark.parametrize(
    "law",
    [
        "2.3*a*exp(-0.6*b) + 0.8*c",
        "1.2*exp(-0.5*a**2)*b + 1.6*sin(1.2*b)*a",
        "1.9*b*c/(0.6 + a) + 2.7*b",
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_sum_of_functions_beside_factors_is_found(law: str, noise: float) -> None:
    assert least_loss("residual pursuit", law, size=Size(20, divisors=60), noise=noise, rows=120) < EXACT


def test_factors_may_be_groups_of_columns() -> None:
    groups = Reduction((), (parse("a + c", NAMES), Variable(1)))
    law = "2.3*(a + c)*exp(-0.6*b) + 0.8*b"
    size = Size(20, divisors=60)
    assert least_loss("residual pursuit", law, size=size, rows=120, reduction=groups) < EXACT


@pytest.mark.parametrize(
    "law",
    [
        "5.3 - 1.9*sin(a)*log(b + 1.2)/sinh(c)",
        "2 + 1.6*exp(-0.7*a)*cos(1.9*b)",
        "4.1 + 2.2*atan(a)*cosh(b)/tanh(c)",
    ],
)
def test_a_constant_beside_a_product_is_found(law: str) -> None:
    assert least_loss("function products", law, size=Size(6_000)) < EXACT


def test_functions_turn_no_more_than_they_may() -> None:
    inputs = np.random.default_rng(0).uniform(0.0, 2.0, (100, 1))
    context = Context(Problem(inputs, inputs[:, 0], ("a",)))
    slow = functions_with_constants(context, [Variable(0)], turns=1)
    every = functions_with_constants(context, [Variable(0)])
    assert 0 < len(slow) < len(every)
    order = np.argsort(inputs[context.screening_rows, 0])
    rises = np.sign(np.diff(slow.values[:, order], axis=1))
    assert ((rises[:, 1:] * rises[:, :-1] < 0).sum(axis=1) <= 1).all()


def test_functions_of_one_column_have_no_products() -> None:
    inputs = np.random.default_rng(0).uniform(0.1, 2.0, (50, 1))
    context = Context(Problem(inputs, inputs[:, 0], ("a",)))
    pool = functions_with_constants(context, [Variable(0)], most=3)
    assert len(products_of_two(pool)) == 0


@pytest.mark.parametrize(
    "law",
    [
        "1.7*log(0.8*a + sqrt(0.64*a**2 + 1)) + 0.4",
        "2.4*log((a + sqrt(a**2 + b**2))/b)",
    ],
)
def test_an_inverse_hyperbolic_sine_is_found(law: str) -> None:
    assert least_loss("parametric products", law, size=Size(40, divisors=30)) < EXACT


def test_functions_are_multiplied_by_factors_of_other_columns_the_first_factors_first() -> None:
    inputs = np.random.default_rng(0).uniform(0.5, 2.0, (50, 2))
    context = Context(Problem(inputs, inputs[:, 0], ("a", "b")))
    functions = functions_with_constants(context, [Variable(0)], most=2, turns=1)
    factors = of_trees([Variable(0), Variable(1), parse("1/b", ["a", "b"])], inputs[context.screening_rows])
    every = times_factors(functions, factors, 10_000)
    assert len(every) == 2 * len(functions)
    first = times_factors(functions, factors, len(functions))
    assert len(first) == len(functions)
    for term, values in zip(first.terms, first.values, strict=True):
        direct = evaluate(_started(term), inputs[context.screening_rows])
        np.testing.assert_allclose(values, direct / np.abs(direct).max(), rtol=1e-9)


def _started(term: PoolTerm) -> Expression:
    """The tree of a term with its starts as numbers."""

    def number(node: Expression) -> Expression | None:
        return Number(term.starts[node.index]) if isinstance(node, Parameter) else None

    return substitute(term.tree, number)
