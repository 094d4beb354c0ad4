"""Parts of evolution: scaling, scoring, what the data ask, constants, simpler neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.expressions import Expression, Number, Variable, complexity, evaluate, parse, to_text
from physdiffuser.expressions.tree import bind, free_constants, positions, replace_at
from physdiffuser.generation.evolution.blocks import Blocks
from physdiffuser.generation.evolution.enrich import enriched
from physdiffuser.generation.evolution.population import Elites, Individual
from physdiffuser.generation.evolution.profile import profile
from physdiffuser.generation.evolution.refine import refine
from physdiffuser.generation.evolution.scaling import Scaling, without_signs
from physdiffuser.generation.evolution.scoring import Scorer
from physdiffuser.generation.evolution.semantic import answers
from physdiffuser.generation.evolution.simplify import degenerate, simpler, strip, without_rounding
from physdiffuser.library.subtree_target import subtree_target

NAMES = ["x", "y"]
ROWS = 120


def _inputs(scale: tuple[float, float] = (1.0, 1.0)) -> np.ndarray:
    return np.random.default_rng(2).uniform(0.5, 3.0, (ROWS, 2)) * np.array(scale)


def _formula(text: str) -> Expression:
    return parse(text, NAMES)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            "x*y",
            "2.51234*x/y + 1.71717",
            "exp(-0.31234*x)*y**2",
            "sqrt(x*y) - 1.41421",
            "(x - y)/(x + y)",
            "-abs(x)*sin(1.70001*y)",
            "1/(1 + x/y)",
            "x**1.5/(y + 2)",
        ]
    ),
    st.integers(-30, 30),
    st.integers(-30, 30),
    st.integers(-30, 30),
)
def test_restoring_the_units_keeps_the_values(text: str, first: int, second: int, target: int) -> None:
    scaling = Scaling((first, second), target)
    own = _inputs((10.0**first, 10.0**second))
    expression = _formula(text)
    inside = evaluate(expression, scaling.apply(own)) * 10.0**target
    restored = evaluate(scaling.restore(expression), own)
    np.testing.assert_allclose(restored, inside, rtol=1e-9, atol=1e-12 * np.abs(inside).max())


def test_ordinary_columns_are_left_alone() -> None:
    inputs = np.column_stack([np.linspace(1, 5, 9), np.linspace(1, 5, 9) * 1e-19])
    scaling = Scaling.of(inputs, np.full(9, 3e30))
    assert scaling.columns[0] == 0
    assert scaling.columns[1] in (-19, -18)
    assert scaling.target == 30
    assert to_text(Scaling((0, 0), 0).restore(_formula("x*(y + 2)"))) == "x1*(x2 + 2)"


@pytest.mark.parametrize("text", ["-x", "x - y", "-2.71234*x - y/3"])
def test_signs_can_be_written_without_minus(text: str) -> None:
    allowed = frozenset({"add", "mul", "div"})
    plain = without_signs(_formula(text), allowed)
    assert profile(plain, allowed) is not None
    np.testing.assert_allclose(evaluate(plain, _inputs()), evaluate(_formula(text), _inputs()))


def test_scores_are_those_of_the_best_line() -> None:
    inputs = _inputs()
    rng = np.random.default_rng(0)
    target = 3.0 + 2.0 * inputs[:, 0] ** 2 + rng.normal(0, 0.5, ROWS)
    weights = rng.uniform(0.1, 2.0, ROWS)
    scores = Scorer(inputs, target, weights).score([_formula("x**2"), _formula("y"), _formula("log(-x)")])
    design = np.column_stack([np.ones(ROWS), inputs[:, 0] ** 2])
    root = np.sqrt(weights)
    line = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)[0]
    assert scores.offset[0] == pytest.approx(line[0])
    assert scores.factor[0] == pytest.approx(line[1])
    residual = np.average((target - design @ line) ** 2, weights=weights)
    spread = np.average((target - np.average(target, weights=weights)) ** 2, weights=weights)
    assert scores.loss[0] == pytest.approx(residual / spread)
    assert scores.loss[1] > scores.loss[0]
    assert scores.loss[2] == np.inf


def test_scale_and_offset_are_left_out_where_they_do_not_pay() -> None:
    inputs = _inputs()
    scores = Scorer(inputs, inputs[:, 0] * inputs[:, 1], None).score(
        [_formula("x*y"), _formula("3*x*y"), _formula("x*y - 4")]
    )
    np.testing.assert_allclose(scores.factor, [1.0, 1 / 3, 1.0])
    np.testing.assert_allclose(scores.offset, [0.0, 0.0, 4.0], atol=1e-12)
    assert scores.factor[0] == 1.0
    assert (scores.loss < 1e-12).all()
    assert scores.keys[0] == scores.keys[1] == scores.keys[2]


@pytest.mark.parametrize(
    ("whole", "start", "wanted"),
    [
        ("exp(-(x/y))*y", "exp(-(x*x))*y", "x/y"),
        ("sqrt(x**2 + y**2)/y", "sqrt(x**2 + x)/y", "y**2"),
        ("x/(1 + x*y)", "x/(1 + x)", "x*y"),
        ("cos(x*y/3)", "cos(x)", "x*y"),
    ],
)
def test_the_missing_part_is_found(whole: str, start: str, wanted: str) -> None:
    inputs = _inputs()
    target = evaluate(_formula(whole), inputs)
    scorer = Scorer(inputs, target, None)
    blocks = Blocks(inputs, [0, 1], frozenset({"mul", "div", "pow", "add", "sub"}), 400, lambda one: True)
    expression = _formula(start)
    found: list[float] = []
    for path, _ in positions(expression):
        asked = subtree_target(scorer, expression, path, 1.0, 0.0)
        if asked is None:
            continue
        for term in answers([asked], blocks, (0.01,))[0]:
            values = evaluate(replace_at(expression, path, term), inputs)
            found.append(float(np.abs(values - target).max()))
    assert min(found) < 1e-6, wanted


def test_refinement_reaches_the_optimum_and_says_when() -> None:
    inputs = _inputs()
    target = 2.0 + 3.0 * np.exp(-1.37 * inputs[:, 0]) * inputs[:, 1] ** 0.67
    share = np.full(ROWS, 1 / ROWS)
    start = _formula("exp(-1.11111*x)*y**0.81111")
    better = refine(start, inputs, target, share, True, 30)
    assert better is not None
    expression, converged = better
    assert converged
    np.testing.assert_allclose(free_constants(expression)[1], (-1.37, 0.67), rtol=1e-6)
    assert refine(_formula("x*y"), inputs, target, share, True, 5) is None


def test_a_constant_goes_where_it_helps_most() -> None:
    inputs = _inputs()
    target = inputs[:, 1] / (inputs[:, 0] + 0.4)
    share = np.full(ROWS, 1 / ROWS)
    operators = frozenset({"add", "mul", "div"})
    best = enriched(_formula("y/x"), inputs, target, share, operators, 3)
    finals = [refine(one, inputs, target, share, True, 40) for one in best]
    scorer = Scorer(inputs, target, None)
    losses = scorer.score([final[0] for final in finals if final is not None]).loss
    assert losses.min() < 1e-12


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["2.5001*x + 1.7001", "3 - 1.2001*(x/y)", "(x*2.1234)*(y*3.3001)", "-(x/y)", "exp(x)"])
)
def test_stripping_keeps_the_shape(text: str) -> None:
    inputs = _inputs()
    whole, inner = evaluate(_formula(text), inputs), evaluate(strip(_formula(text), 2), inputs)
    assert abs(np.corrcoef(whole, inner)[0, 1]) == pytest.approx(1.0, abs=1e-9)
    assert complexity(strip(_formula(text), 2)) <= complexity(_formula(text))


def test_simpler_neighbours_hold_the_rounded_one() -> None:
    neighbours = simpler(_formula("x**2.00012*y + 0.00012"))
    assert _formula("x**2*y + 0.00012") in neighbours
    assert _formula("x**2.00012*y") in neighbours
    assert all(complexity(one) <= complexity(_formula("x**2.00012*y + 0.00012")) + 1 for one in neighbours)


def test_rounding_errors_are_dropped() -> None:
    skeleton, _ = free_constants(_formula("(x + 0.11111)*1.11111 - 0.22222"))
    noisy = bind(skeleton, (1e-17, 1 + 1e-15, -3e-16))
    assert without_rounding(noisy, _inputs()) == Variable(0)
    kept = bind(skeleton, (1e-3, 2.0, 0.5))
    assert without_rounding(kept, _inputs()) == kept


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("y*(exp(0.0012345*x) - 1)", True),
        ("1 - tanh(x + 30)", True),
        ("1 - cos(0.0112345*x*y)", True),
        ("exp(x) - 1", False),
        ("1 - tanh(x)", False),
        ("x - 1", False),
    ],
)
def test_functions_that_act_as_their_limit_are_told(text: str, limit: bool) -> None:
    assert degenerate(_formula(text), _inputs()) is limit


def _individual(cost: int, kind: str, loss: float) -> Individual:
    return Individual(Number(cost), cost, kind, loss, 1.0, 0.0, b"", "test")


def test_elites_keep_the_best_of_each_kind() -> None:
    elites = Elites(10, 2)
    assert elites.add(_individual(3, "a", 0.5))
    assert not elites.add(_individual(3, "a", 0.6))
    assert elites.add(_individual(3, "b", 0.7))
    assert not elites.add(_individual(3, "c", 0.8))
    assert elites.add(_individual(3, "c", 0.1))
    assert not elites.add(_individual(11, "a", 0.0))
    assert [one.kind for one in elites.shelf(3)] == ["c", "a"]
    elites.add(_individual(5, "a", 0.3))
    elites.add(_individual(7, "a", 0.05))
    assert [one.complexity for one in elites.front()] == [3, 7]
    elites.restrict(5)
    assert [one.complexity for one in elites.everyone()] == [3, 3, 5]
    drawn = elites.draw(np.random.default_rng(0), 200)
    assert {one.complexity for one in drawn} == {3, 5}
