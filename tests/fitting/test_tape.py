"""The tape gives the same numbers as the plain evaluator."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Variable, evaluate
from physdiffuser.expressions import value_and_jacobian as reference
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape

LEAVES = st.one_of(
    st.integers(0, 1).map(Variable),
    st.integers(0, 2).map(Parameter),
    st.integers(-3, 3).map(Number),
)
BUILT_IN = sorted(name for name, spec in OPERATORS.items() if spec.arity in (1, 2))


def _apply(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def build(name: str, left: Expression, right: Expression) -> Expression:
        return Apply(name, (left,) if OPERATORS[name].arity == 1 else (left, right))

    return st.builds(build, st.sampled_from(BUILT_IN), children, children)


EXPRESSIONS = st.recursive(LEAVES, _apply, max_leaves=8)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, st.integers(0, 2**16))
def test_values_and_derivatives_equal_those_of_the_evaluator(expression: Expression, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(0.5, 2.0, (7, 2))
    tape = EvaluationTape(expression, inputs)
    count = max(tape.parameters, 1)
    many = rng.uniform(0.3, 2.0, (count, 3))
    with np.errstate(all="ignore"):
        value, jacobian = tape.value_and_jacobian(many)
        expected, slopes = reference(expression, inputs, many)
        single = tape.value(many[:, 0])
        partial = tape.value_and_jacobian(many, (tape.parameters - 1,))[1] if tape.parameters else None
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(single, evaluate(expression, inputs, many[:, 0]), rtol=1e-12)
    slopes = slopes[: tape.parameters].transpose(1, 0, 2)
    finite = np.isfinite(slopes).all()
    if finite:
        np.testing.assert_allclose(
            jacobian, slopes, rtol=1e-9, atol=1e-9 * (1 + np.abs(slopes).max(initial=0))
        )
        if partial is not None:
            np.testing.assert_allclose(partial[:, 0], jacobian[:, -1], rtol=1e-12)
