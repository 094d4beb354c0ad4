"""A function is shown by the rows only if a straight line and a parabola in its place fit worse."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Number, evaluate, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.finalize.evidence.unresolved_functions import unresolved_function
from physdiffuser.verification.checks import function_check, noise_check


def problem(text: str, low: float, high: float, noise: float) -> tuple[object, Problem]:
    rng = np.random.default_rng(0)
    x = rng.uniform(low, high, (120, 1))
    tree = substitute(
        parse(text, ["x"]),
        lambda node: Number(float(node.value)) if isinstance(node, Number) and node.value != 1 else None,
    )
    clean = evaluate(tree, x)
    return tree, Problem(x, clean * (1 + noise * rng.normal(size=120)), ("x",))


@pytest.mark.parametrize(
    ("text", "low", "high", "noise", "name"),
    [
        ("3.1*exp(-0.7*x)", 0.0, 4.0, 0.01, None),
        ("3.1*exp(-0.007*x)", 0.0, 4.0, 0.01, "exp"),
        ("2.2*log(1 + 0.9*x)", 0.5, 9.0, 0.01, None),
        ("2.2*log(1 + 0.002*x)", 0.5, 9.0, 0.01, "log"),
        ("5.3*sin(1.3*x)", 0.1, 2.0, 0.01, None),
        ("5.3*sin(0.02*x)", 0.1, 2.0, 0.01, "sin"),
        ("5.3*cos(2.9*x)", 0.0, 0.4, 0.01, None),
        ("5.3*cos(0.7*x)", 0.0, 0.4, 0.01, "cos"),
        ("5.3*x**2", 0.1, 2.0, 0.01, None),
    ],
)
def test_a_function_over_a_narrow_range_is_a_polynomial(
    text: str, low: float, high: float, noise: float, name: str | None
) -> None:
    tree, rows = problem(text, low, high, noise)
    assert unresolved_function(tree, rows) == name  # type: ignore[arg-type]


def test_a_law_whose_function_is_not_shown_is_not_verified() -> None:
    check = function_check("exp")
    assert check is not None and check.state == "failed" and "exp" in check.reason
    assert function_check(None) is None


def test_much_noise_forbids_verified() -> None:
    assert noise_check(0.09) is None
    check = noise_check(0.25)
    assert check is not None and check.state == "failed" and "25 %" in check.sentence
    rng = np.random.default_rng(1)
    x = rng.uniform(1.0, 5.0, (300, 2))
    clean = x[:, 0] * x[:, 1]
    best = solve(x, clean + 0.3 * clean.std() * rng.normal(size=300), steps=4).best
    assert best is not None and best.verdict != "verified"
    assert any(sentence.startswith("noise: ") for sentence in best.verification)
