"""Solutions for the tests of the report."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from physdiffuser.core.solution import ConstantEstimate, Equation, Solution, sample_fit_points
from physdiffuser.expressions import PI, Apply, Expression, Number, Symbol, complexity, parse, to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import Variable, mul
from physdiffuser.report.text.digits import concise
from physdiffuser.report.text.printed import with_printed_latex

NAMES = ("a", "v_m_s")
CONSTANTS = {"G": 6.674e-11}

leaves = st.one_of(
    st.builds(Variable, st.integers(0, 1)),
    st.builds(Number, st.integers(-9, 9)),
    st.builds(Number, st.fractions(-9, 9, max_denominator=7)),
    st.builds(Number, st.floats(-9, 9)),
    st.just(PI),
    st.just(Symbol("G", CONSTANTS["G"])),
)
_UNARY = ["neg", "sqrt", "exp", "log", "sin", "cos", "atan", "tanh", "abs"]
_BINARY = ["add", "sub", "mul", "div", "pow"]
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda name, x: Apply(name, (x,)), st.sampled_from(_UNARY), inner),
        st.builds(
            lambda name, x, y: Apply(name, (x, y)),
            st.sampled_from(["add", "sub", "mul", "div", "pow"]),
            inner,
            inner,
        ),
    ),
    max_leaves=8,
)


def equation(formula: str | Expression, **changes: Any) -> Equation:
    expression = parse(formula, NAMES, CONSTANTS) if isinstance(formula, str) else formula
    values: dict[str, Any] = {
        "expression": expression,
        "text": to_text(expression, NAMES),
        "latex": to_latex(expression, NAMES),
        "complexity": complexity(expression),
        "rmse": 0.25,
        "r2": 0.875,
        "max_relative_error": 0.5,
    }
    return Equation(**(values | changes))


def fitted(value: float = 0.731041, half: float = 0.0012, **changes: Any) -> Equation:
    """`value*a`, with its interval and covariance."""
    sigma = half / 2
    text = concise(value, sigma)
    constant = ConstantEstimate(
        "c1", value, value - half, value + half, text, False, fitted=value, sigma=sigma
    )
    made = equation(
        mul(Number(value), Variable(0)),
        **({"constants": (constant,), "covariance": ((0.0006**2,),), "degrees_of_freedom": 57} | changes),
    )
    return with_printed_latex(made, NAMES)


def solution(*pareto: Equation, best: Equation | None = None, **changes: Any) -> Solution:
    rows = pareto or (equation("54.3"), fitted(), equation("2*pi*sqrt(a**3/G)"))
    truth = np.linspace(1.0, 5.0, 40)
    values: dict[str, Any] = {
        "target": "T",
        "status": "approximate",
        "best": best or rows[-1],
        "pareto": rows,
        "names": NAMES,
        "columns": ("a", "v (m/s)"),
        "aliases": {"v_m_s": "v (m/s)"},
        "derivation": ("peeled off a power of a",),
        "warnings": (),
        "rows": 300,
        "test_rows": 60,
        "known_constants": CONSTANTS,
        "timing": {"elapsed_seconds": 1.5},
        "version": "0.1.0",
        "fit_points": sample_fit_points(truth, truth + 0.01 * np.sin(9 * truth), truth > 4),
    }
    return Solution(**(values | changes))


NOT_FINITE = (math.nan, math.inf, -math.inf)
