"""A root of a square is written without it where the sign is known."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import parse, to_text
from physdiffuser.finalize.written_form import without_roots_of_squares, written_form

INPUTS = np.random.default_rng(0).uniform([0.5, -2.0], [4.0, 2.0], (50, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.4e0*sqrt((2 + x)**2)", "2.4*(2 + x)"),
        ("sqrt((x - 5)**2)", "-(x - 5)"),
        ("((1 + x)**2)**0.5", "1 + x"),
        ("sqrt((1 + sqrt(x**2))**2)", "1 + x"),
        ("2.4e0*sqrt(2 + x)**2", "2.4*(2 + x)"),
        ("sqrt(z**2)", "sqrt(z**2)"),
        ("sqrt((x - 2)**2)", "sqrt((x - 2)**2)"),
        ("sqrt(x**3)", "sqrt(x**3)"),
    ],
)
def test_the_sign_within_the_ranges_decides(text: str, expected: str) -> None:
    names = ("x", "z")
    assert to_text(without_roots_of_squares(parse(text, names), INPUTS), names) == expected


@pytest.mark.parametrize(
    "text", ["sqrt(5.76e0*(1 + (1 + x))**2)", "(1.549193338482967e0*sqrt(1 + (1 + x)))**2"]
)
def test_the_printed_form_has_no_such_root(text: str) -> None:
    names = ("x", "z")
    assert (
        to_text(written_form(parse(text, names), Problem(INPUTS, INPUTS[:, 0], names)), names, digits=6)
        == "2.4*(2 + x)"
    )
