"""Absurd constants are refused: a function that saturates or follows its limit says nothing."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.dynamics.search.sense import is_sensible
from physdiffuser.expressions import parse

NODES = np.column_stack([np.linspace(0.5, 3.0, 40), np.linspace(-2.0, 2.0, 40)])


@pytest.mark.parametrize(
    "text",
    [
        "1.5*x - 0.3*x*y",
        "x/(0.7 + x)",
        "exp(-2.5*x)*y",
        "tanh(30*y)",
        "x - 1e-5*y",
        "sin(x)*cos(3*y)",
        "y/(x**2 + y**2)**1.5",
        "x*log(x/40)",
        "(x + 1e-9*y)/(1 - 1e-9*x)",  # terms that fits make vanish are left out later
    ],
)
def test_usual_forms_are_kept(text: str) -> None:
    assert is_sensible(parse(text, ["x", "y"]), NODES)


@pytest.mark.parametrize(
    "text",
    [
        "tanh(1e142*x)",
        "tanh(1e142*y)",
        "y + tanh(50*x)",
        "1e9*sin(1e-9*x)",
        "exp(1e-12*x) - y",
        "sin(1e7*y)",
        "x**57.3",
    ],
)
def test_parts_that_do_not_matter_are_refused(text: str) -> None:
    assert not is_sensible(parse(text, ["x", "y"]), NODES)


def test_magnitudes_are_relative_to_the_columns() -> None:
    """A tanh of a current in amperes may have a constant of 1e9 in it."""
    assert is_sensible(parse("tanh(1e9*x)", ["x"]), np.linspace(1e-10, 3e-9, 30)[:, None])
