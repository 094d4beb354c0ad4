"""Compiled kernels give numpy's values to the last digits, and exactly where arithmetic is exact."""

from __future__ import annotations

import importlib.util
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.expressions import OPERATORS, Apply, Number, Parameter, Variable, evaluate, parse
from physdiffuser.expressions.evaluation import batch
from physdiffuser.expressions.evaluation.batch import Evaluator
from physdiffuser.expressions.evaluation.compiled import CompiledTable, machine_code
from physdiffuser.expressions.evaluation.kernels import BLOCK, MAX_STACK, POWERS, TRIGONOMETRIC_LIMIT, UNARY
from physdiffuser.expressions.evaluation.programs import STEP_BYTES, compiler
from physdiffuser.expressions.tree import Expression, power, sub

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llvmlite") is None, reason="llvmlite is not installed"
)

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 2.2e-308, 1.7e308, -1.7e308, 1.0, -1.0]
# Units in the last place from the true value, as documented in docs/evaluation.md.
ULPS = {"exp": 1.0, "log": 1.0, "sin": 1.5, "cos": 1.5, "tanh": 2.5}


def _kernel(expression: Expression, inputs: np.ndarray) -> np.ndarray:
    program = compiler()(expression)
    assert program is not None
    values = np.empty((1, inputs.shape[0]))
    assert CompiledTable(inputs)([program], values)[0] == 0
    return values[0]


def _arguments(name: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    parts = [rng.uniform(-3, 3, 300), rng.uniform(-750, 750, 300), rng.uniform(-1e6, 1e6, 200)]
    parts.append(1.0 + rng.normal(size=100) * 1e-6)
    parts.append(np.arange(-40, 41) * (np.pi / 2))
    wide = 10.0 ** rng.uniform(-300, 5.9, 100)
    parts += [wide, -wide, np.array([709.78, 709.79, -708.4, -745.1, -745.2, 19.99, 20.01])]
    return np.concatenate([*parts, SPECIAL])


@pytest.mark.parametrize("name", UNARY)
def test_functions_are_right_to_the_last_digits(name: str) -> None:
    arguments = _arguments(name)
    if name in ("sin", "cos"):
        arguments = arguments[~(np.abs(arguments) > TRIGONOMETRIC_LIMIT) | np.isinf(arguments)]
    values = _kernel(Apply(name, (Variable(0),)), arguments[:, None])
    with np.errstate(all="ignore"):
        expected = {"neg": np.negative, "abs": np.abs}.get(name, getattr(np, name, None))(arguments)  # type: ignore[misc]
    plain = np.isfinite(expected) & (expected != 0.0)
    np.testing.assert_array_equal(values[~plain], expected[~plain])
    told = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(values[told]), np.signbit(expected[told]))
    function = {"neg": lambda value: -value, "abs": abs}.get(name, getattr(mpmath, name, None))
    with mpmath.workprec(200):
        errors = [
            float(abs(mpmath.mpf(float(value)) - function(mpmath.mpf(float(argument)))))
            / np.spacing(abs(reference))
            for value, argument, reference in zip(
                values[plain], arguments[plain], expected[plain], strict=True
            )
        ]
    assert max(errors) <= ULPS.get(name, 0.5)


@pytest.mark.parametrize("exponent", POWERS)
def test_powers_are_those_of_the_operator_table(exponent: float) -> None:
    arguments = _arguments("pow")
    expression = power(Variable(0), Number(exponent))
    np.testing.assert_array_equal(
        _kernel(expression, arguments[:, None]), evaluate(expression, arguments[:, None])
    )


_leaves = st.one_of(
    st.integers(0, 2).map(Variable),
    st.sampled_from([Number(2), Number(0.5), Number(-1.25), Number(0), Number(1e300)]),
)


def _extend(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda n, a: Apply(n, (a,)), st.sampled_from(["neg", "abs", "sqrt"]), children),
        st.builds(
            lambda n, a, b: Apply(n, (a, b)),
            st.sampled_from(["add", "sub", "mul", "div"]),
            children,
            children,
        ),
        st.builds(lambda a, e: power(a, Number(e)), children, st.sampled_from([2, 3, 4, -1, 0.5])),
    )


exact_trees = st.recursive(_leaves, _extend, max_leaves=25)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(exact_trees, min_size=1, max_size=6),
    st.sampled_from([1, 7, 8, 9, BLOCK, BLOCK + 1, 3 * BLOCK - 3]),
)
def test_trees_without_functions_agree_bit_for_bit(expressions: list[Expression], rows: int) -> None:
    inputs = np.random.default_rng(rows).normal(size=(rows, 3))
    inputs[0] = [0.0, -0.0, math.inf]
    program = compiler()
    values = np.empty((len(expressions), rows))
    CompiledTable(inputs)([program(one) or b"" for one in expressions], values)
    np.testing.assert_array_equal(values, [evaluate(one, inputs) for one in expressions])


def test_the_evaluator_mixes_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "COMPILE_AFTER", 3)
    names = ["x", "y"]
    texts = ["x + y", "tan(x)*y", "sin(x*1e7) + y", "x**y", "exp(x) - 2*y", "atan(x/y)", "x**1.3"]
    expressions = [parse(text, names) for text in texts]
    inputs = np.random.default_rng(0).uniform(0.5, 2.0, (600, 2))
    expected = np.array([evaluate(one, inputs) for one in expressions])
    evaluator = Evaluator(inputs)
    np.testing.assert_array_equal(evaluator(expressions[:3]), expected[:3])
    np.testing.assert_allclose(evaluator(expressions), expected, rtol=1e-12)
    strided = np.empty((len(expressions), 1200))[:, ::2]
    np.testing.assert_allclose(evaluator(expressions, strided), expected, rtol=1e-12)
    assert evaluator([]).shape == (0, 600)


def test_the_same_calls_give_the_same_bits_whatever_ran_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "COMPILE_AFTER", 5)
    expressions = [parse(f"exp(sin(x)/{k})", ["x"]) for k in range(1, 5)]
    inputs = np.random.default_rng(0).uniform(0.5, 2.0, (50, 1))

    def run() -> list[np.ndarray]:
        evaluator = Evaluator(inputs)
        return [evaluator(expressions) for _ in range(3)]

    first = run()
    machine_code()
    for before, after in zip(first, run(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_without_a_compiler_numpy_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "COMPILE_AFTER", 0)
    monkeypatch.setattr(batch, "machine_code", lambda: None)
    expressions = [parse("exp(x)", ["x"])]
    inputs = np.linspace(0, 1, 20)[:, None]
    np.testing.assert_array_equal(Evaluator(inputs)(expressions)[0], np.exp(inputs[:, 0]))


def test_what_the_machine_cannot_hold_is_left_to_numpy() -> None:
    program = compiler()
    deep: Expression = Variable(0)
    for _ in range(MAX_STACK - 1):
        deep = sub(Variable(0), deep)
    held = program(deep)
    assert held is not None and len(held) // STEP_BYTES == 2 * MAX_STACK - 1
    inputs = np.random.default_rng(0).normal(size=(40, 1))
    np.testing.assert_array_equal(_kernel(deep, inputs), evaluate(deep, inputs))
    assert program(sub(Variable(0), deep)) is None
    assert program(Apply("neg", (sub(Variable(0), deep),))) is None
    with pytest.raises(ValueError, match="parameter"):
        program(Apply("neg", (Parameter(0),)))
    with pytest.raises(ValueError, match="parameter"):
        program(power(Variable(0), Parameter(0)))
    assert set(UNARY) <= set(OPERATORS)
