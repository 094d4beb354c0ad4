"""Batched evaluation equals evaluation one by one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.expressions import OPERATORS, Apply, Number, Parameter, Variable, evaluate, parse
from physdiffuser.expressions.batch import BLOCK_ROWS, Evaluator
from physdiffuser.expressions.operators import BUILT_IN_NAMES
from physdiffuser.expressions.tree import PI, Expression

COLUMNS = 3
_UNARY = sorted(name for name in BUILT_IN_NAMES if OPERATORS[name].arity == 1)
_BINARY = sorted(name for name in BUILT_IN_NAMES if OPERATORS[name].arity == 2)

leaves = st.one_of(
    st.integers(0, COLUMNS - 1).map(Variable),
    st.sampled_from([Number(-2), Number(-1), Number(0), Number(1), Number(2), Number(3), Number(4), PI]),
    st.sampled_from([Number(0.5), Number(-0.5), Number(1.5), Number(0.0), Number(1e300)]),
    # Number(-0.0) equals Number(0), so the two may share one value.
    st.floats(-10, 10).filter(lambda value: value != 0).map(Number),
)


def _extend(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    unary = st.builds(lambda name, argument: Apply(name, (argument,)), st.sampled_from(_UNARY), children)
    binary = st.builds(
        lambda name, left, right: Apply(name, (left, right)), st.sampled_from(_BINARY), children, children
    )
    return st.one_of(unary, binary)


trees = st.recursive(leaves, _extend, max_leaves=12)


def _table(rows: int, seed: int = 0) -> np.ndarray:
    inputs = np.random.default_rng(seed).uniform(-3, 3, (rows, COLUMNS))
    # Edges of every domain.
    inputs[:, 0].flat[: min(rows, 7)] = [0.0, -0.0, 1.0, -1.0, 1e308, 1e-308, np.pi / 2][: min(rows, 7)]
    return inputs


def _one_by_one(expressions: list[Expression], inputs: np.ndarray) -> np.ndarray:
    return np.array([evaluate(expression, inputs) for expression in expressions])


@settings(max_examples=150, deadline=None)
@given(st.lists(trees, min_size=1, max_size=8))
def test_equals_evaluate_bit_for_bit_and_without_warnings(expressions: list[Expression]) -> None:
    inputs = _table(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = Evaluator(inputs)(expressions)
    np.testing.assert_array_equal(values, _one_by_one(expressions, inputs))


@settings(max_examples=20, deadline=None)
@given(st.lists(trees, min_size=1, max_size=5))
def test_rows_beyond_one_block_give_the_same_values(expressions: list[Expression]) -> None:
    inputs = _table(BLOCK_ROWS + 37)
    values = Evaluator(inputs)(expressions)
    np.testing.assert_array_equal(values, _one_by_one(expressions, inputs))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(trees, min_size=1, max_size=4), min_size=2, max_size=5))
def test_the_cache_never_changes_a_value(calls: list[list[Expression]]) -> None:
    inputs = _table(25)
    evaluator = Evaluator(inputs)
    for expressions in calls:
        np.testing.assert_array_equal(evaluator(expressions), _one_by_one(expressions, inputs))


def test_more_distinct_subtrees_than_the_cache_holds() -> None:
    inputs = _table(50)
    expressions = [parse(f"sin(x1*{k}.25) + {k}", ["x1", "x2", "x3"]) for k in range(400)]
    np.testing.assert_array_equal(
        Evaluator(inputs, cache_bytes=1)(expressions), _one_by_one(expressions, inputs)
    )


@pytest.mark.parametrize("rows", [30, BLOCK_ROWS + 5])
def test_one_expression_larger_than_the_cache(rows: int) -> None:
    inputs = _table(rows)
    terms: list[Expression] = [Apply("mul", (Variable(k % COLUMNS), Number(k))) for k in range(512)]
    while len(terms) > 1:
        terms = [Apply("add", (left, right)) for left, right in zip(terms[::2], terms[1::2], strict=True)]
    tree = terms[0]
    expressions = [parse("x1 + x2", ["x1", "x2", "x3"]), tree, parse("x2*x3", ["x1", "x2", "x3"])]
    values = Evaluator(inputs, cache_bytes=1)(expressions)
    np.testing.assert_array_equal(values, _one_by_one(expressions, inputs))


def test_a_subtree_is_evaluated_once() -> None:
    inputs = _table(20)
    evaluator = Evaluator(inputs)
    names = ["x1", "x2", "x3"]
    evaluator([parse("exp(x1*x2) + x3", names), parse("exp(x1*x2) - x3", names)])
    assert evaluator.nodes == 4
    evaluator([parse("1 + exp(x1*x2)", names)])
    assert evaluator.nodes == 5


def test_single_precision_is_close() -> None:
    inputs = np.random.default_rng(1).uniform(0.5, 2, (100, COLUMNS))
    names = ["x1", "x2", "x3"]
    expressions = [parse(text, names) for text in ("x1*sin(x2) + x3**2", "exp(x1/x2) - 1/x3", "x1**1.7")]
    values = Evaluator(inputs, np.float32)(expressions)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, _one_by_one(expressions, inputs), rtol=1e-5, atol=1e-6)


def test_constant_expressions_fill_every_row() -> None:
    for rows in (4, BLOCK_ROWS + 1):
        values = Evaluator(np.zeros((rows, 0)))([Number(2), parse("2*pi", [])])
        np.testing.assert_array_equal(values, np.array([[2.0], [2 * np.pi]]) * np.ones(rows))


def test_parameters_are_refused() -> None:
    with pytest.raises(ValueError, match="parameter"):
        Evaluator(np.zeros((3, 1)))([Apply("exp", (Parameter(0),))])


def test_result_goes_into_the_given_array() -> None:
    inputs = _table(10)
    out = np.zeros((1, 10))
    assert Evaluator(inputs)([Variable(2)], out) is out
    np.testing.assert_array_equal(out[0], inputs[:, 2])
