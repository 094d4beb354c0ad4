"""Enumeration: its parts against brute force, and laws it must find by itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from enumeration_runs import proposed, search, table

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import OPERATORS, Parameter, Variable, evaluate, parse, to_text
from physdiffuser.expressions.tree import add, call, div, mul
from physdiffuser.fitting import fit_batched
from physdiffuser.generation.enumeration.parametric import fitted
from physdiffuser.generation.enumeration.registry import Size
from physdiffuser.reduction.factors import reductions, relevant_columns
from physdiffuser.transforms.output_transforms import INVERSE
from physdiffuser.transforms.transform import OutputTransform, output_transforms

IntArray = npt.NDArray[np.int64]
ALL = frozenset(OPERATORS)


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("2*pi*sqrt(a**3/mu)", {"a": (1, 5), "mu": (1, 3)}),
        ("V*S/(K + S)", {"V": (1, 5), "S": (0.1, 10), "K": (0.5, 4)}),
        ("m*c**2/sqrt(1 - v**2/c**2)", {"m": (1, 5), "c": (3, 10), "v": (1, 2)}),
        ("1/(1/f - 1/d)", {"f": (1, 3), "d": (4, 9)}),
        ("v*log(p/q) - g*t", {"v": (1, 5), "p": (5, 9), "q": (1, 4), "g": (9, 10), "t": (1, 2)}),
        ("3.2*exp(-0.7*x)", {"x": (0, 5)}),
        ("1.7*log(1 + exp((x - 2)/0.6))", {"x": (-3, 6)}),
        ("0.1*(x + 40)/(1 - exp(-(x + 40)/10))", {"x": (-90, 41)}),
        ("q*(a + v*b*sin(u))", {"q": (1, 5), "a": (1, 5), "v": (1, 5), "b": (1, 5), "u": (1, 5)}),
        ("6e-11*m*n/r**2", {"m": (1e24, 9e24), "n": (1e22, 9e22), "r": (3e8, 5e8)}),
    ],
)
def test_clean_laws_are_found_exactly(formula: str, ranges: dict[str, tuple[float, float]]) -> None:
    assert search(table(formula, ranges), 60).best_loss < 1e-18


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("(c**(1 - g) - 1)/(1 - g)", {"c": (0.3, 8), "g": (1.2, 4)}),
        ("P*(1 + r)**n", {"P": (10, 99), "r": (0.01, 0.2), "n": (1, 20)}),
        ("0.215 + 0.0257*log(a + 0.013*b)", {"a": (0.001, 0.1), "b": (0.01, 1)}),
        ("3.1 - 0.7/sqrt(a**2 + 2.6*b**2)", {"a": (0.5, 3), "b": (0.5, 3)}),
    ],
)
def test_powers_of_columns_and_functions_of_two_are_found_exactly(
    formula: str, ranges: dict[str, tuple[float, float]]
) -> None:
    assert search(table(formula, ranges, 80), 150).best_loss < 1e-18


def test_constants_under_a_reciprocal_are_fitted_from_far() -> None:
    """`1/(a + b*p*exp(c/(t + q)))` from four times c, where steps on the target itself lead nowhere."""
    problem = table("1/(0.4 + 5.6e-9*p*exp(4302.6/(t + 243.5)))", {"t": (-20, 35), "p": (600, 1030)}, 120)
    t, p = Variable(0), Variable(1)
    law = add(Parameter(0), mul(Parameter(1), mul(p, call("exp", div(Parameter(2), add(t, Parameter(3)))))))
    transform = OutputTransform((INVERSE,))
    reduction = Reduction.of_columns((), [0, 1])
    start = [1.0, 1.0, 17_000.0, 520.0]
    [[fit]] = fitted(problem, reduction, [transform], [law], [start], iterations=60, tolerance=1e-14)
    assert fit.loss < 1e-18
    [direct] = fit_batched([transform.redo(law)], [start], problem.inputs, problem.target)
    assert direct.loss > 1e-3


def test_a_noisy_product_is_ranked_first() -> None:
    problem = table("m*c**2/sqrt(1 - v**2/c**2)", {"m": (1, 5), "c": (3, 6), "v": (1, 2.5)}, 1000, 0.01)
    archive = search(problem, 40)
    truth = evaluate(parse("m*c**2/sqrt(1 - v**2/c**2)", problem.names), problem.inputs)
    floor = np.mean((problem.target - truth) ** 2) / problem.target.var()
    assert archive.best_loss < 1.05 * floor


def test_equal_steps_give_equal_fronts() -> None:
    problem = table("a*exp(-b*t) + c", {"a": (1, 3), "b": (0.2, 1), "c": (1, 2), "t": (0, 4)}, noise=0.02)
    first, second = search(problem, 12), search(problem, 12)
    assert [(e.complexity, e.loss) for e in first.front()] == [(e.complexity, e.loss) for e in second.front()]


def test_only_allowed_operators_occur_in_the_archive() -> None:
    problem = table("a*b + c", {"a": (1, 3), "b": (1, 3), "c": (1, 2)}, noise=0.05)
    narrow = Problem(problem.inputs, problem.target, problem.names, operators=frozenset({"add", "mul"}))
    archive = search(narrow, 10)
    for entry in archive.front():
        text = to_text(entry.candidate.expression)
        assert "/" not in text and "sqrt" not in text and "**" not in text


def test_a_sum_under_a_factor_is_found_in_noise() -> None:
    # Neither a product of two library entries nor a sum of two.
    formula = "k/(k - m)*(exp(-m*t) - exp(-k*t))"
    problem = table(formula, {"k": (1, 3), "m": (0.1, 0.8), "t": (0.5, 8)}, 300, 0.02)
    reduction = Reduction.of_columns((), range(3))
    truth = evaluate(parse(formula, problem.names), problem.inputs)
    floor = np.mean((problem.target - truth) ** 2)
    with np.errstate(all="ignore"):
        found = proposed("scaled sums", Size(1_500, divisors=600), problem, reduction)
        losses = [np.mean((problem.target - evaluate(one.expression, problem.inputs)) ** 2) for one in found]
    assert min(losses) < 1.02 * floor


def test_the_parts_of_a_difference_may_each_explain_little() -> None:
    formula = "(exp(-v) - exp(-u*v))/(u - 1)"
    problem = table(formula, {"u": (1.2, 15), "v": (0.01, 3)}, 300)
    reduction = Reduction((), (Variable(0), Variable(1)))
    with np.errstate(all="ignore"):
        found = proposed("scaled sums", Size(400, divisors=100), problem, reduction)
        left = [evaluate(one.expression, problem.inputs) - problem.target for one in found]
    assert min(np.abs(error).max() for error in left) < 1e-12


@pytest.mark.parametrize(
    ("formula", "limits"),
    [
        ("4.1*exp(-0.8*t) + 1.3*exp(-0.09*t)", (0, 25)),
        ("2.3*exp(-1.1*t) - 0.7*sin(1.9*t + 0.4)", (0, 12)),
        ("0.9*tanh(0.7*t) + 0.2/(1 + ((t - 4)/0.9)**2)", (0, 9)),
    ],
)
def test_sums_of_two_functions_with_constants_are_found(formula: str, limits: tuple[float, float]) -> None:
    problem = table(formula, {"t": limits}, 60)
    assert _left_by_sums(problem, Size(6, divisors=4, shifts=20)) < 1e-12


def test_a_function_under_a_factor_beside_a_constant_is_found_under_a_reciprocal() -> None:
    problem = table("1/(0.4 + 0.3*p*exp(-0.8*t))", {"p": (1, 5), "t": (0.1, 4)}, 100)
    assert _left_by_sums(problem, Size(4, divisors=4, shifts=4)) < 1e-12


def _left_by_sums(problem: Problem, size: Size) -> float:
    """The least that sums of two parts leave of the target's variance."""
    reduction = Reduction.of_columns((), range(problem.columns))
    with np.errstate(all="ignore"):
        found = proposed("parametric sums", size, problem, reduction)
        left = [np.mean((evaluate(one.expression, problem.inputs) - problem.target) ** 2) for one in found]
    return float(min(left) / problem.target.var())


class TestFrames:
    def test_power_law_factors_are_divided_out(self) -> None:
        problem = table("a**2*sqrt(b)*(1 + c/d)", {"a": (1, 5), "b": (1, 5), "c": (1, 5), "d": (1, 5)}, 1000)
        factors = [
            {tree.index: exponent for tree, exponent in reduction.factors if isinstance(tree, Variable)}
            for reduction in reductions(problem.inputs, problem.target)
        ]
        assert any(f.get(0) == 2 and f.get(1) == Fraction(1, 2) and not {2, 3} & set(f) for f in factors)

    def test_columns_that_act_through_their_ratio_are_merged(self) -> None:
        problem = table("a*log(1 + b/c)", {"a": (1, 5), "b": (1, 5), "c": (1, 5)}, 1000)
        features = [reduction.features for reduction in reductions(problem.inputs, problem.target)]
        ratio = {to_text(feature) for some in features for feature in some}
        assert ratio & {"x2/x3", "x3/x2"}

    def test_columns_that_act_through_their_difference_are_merged(self) -> None:
        problem = table("exp(-(a - b)**2/c)", {"a": (1, 2), "b": (1, 2), "c": (1, 5)}, 1000)
        texts = {
            to_text(f) for reduction in reductions(problem.inputs, problem.target) for f in reduction.features
        }
        assert texts & {"x1 - x2", "x2 - x1"}

    def test_the_bare_columns_come_last(self) -> None:
        problem = table("a*b", {"a": (1, 5), "b": (1, 5)})
        assert reductions(problem.inputs, problem.target)[-1] == Reduction((), (Variable(0), Variable(1)))

    def test_telling_columns_of_a_wide_table(self) -> None:
        random = np.random.default_rng(5)
        inputs = random.uniform(1, 5, (300, 60))
        target = inputs[:, 17] ** 2 * inputs[:, 41] / inputs[:, 5]
        assert {5, 17, 41} <= set(relevant_columns(inputs, target))


@pytest.mark.parametrize(
    "transform", output_transforms(2, ALL), ids=lambda transform: "+".join(transform.sentences()) or "none"
)
def test_a_chain_undone_and_redone_is_the_identity(transform: object) -> None:
    target = np.random.default_rng(6).uniform(0.2, 0.9, 30)
    transformed = transform.undo(target)  # type: ignore[attr-defined]
    sentences = transform.sentences()  # type: ignore[attr-defined]
    signed = sentences[:1] in (("subtracted 1",), ("took the logarithm",))
    if transformed is None or (signed and "squared the target" in sentences):
        # A square forgets a sign: what is squared has to be positive.
        target = target + 1.5
        transformed = transform.undo(target)  # type: ignore[attr-defined]
    assert transformed is not None
    with np.errstate(all="ignore"):
        back = evaluate(transform.redo(Variable(0)), transformed[0][:, None])  # type: ignore[attr-defined]
    np.testing.assert_allclose(back, target, rtol=1e-9)
