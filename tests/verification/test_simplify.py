"""Simplification: shorter, equal, the same every time."""

from __future__ import annotations

import pytest
from formula_pairs import NAMES, RANGES, equal_pairs

from physdiffuser.expressions import complexity, parse, to_text
from physdiffuser.verification import SymbolicWorker, equivalent, simplify

POSITIVE = frozenset(range(len(NAMES)))


@pytest.mark.parametrize(
    "text", sorted({side for pair in equal_pairs() for side in (pair.left, pair.right)})[::12]
)
def test_simplified_formulas_are_equal_and_no_longer(text: str) -> None:
    tree = parse(text, NAMES)
    form = simplify(tree, positive=POSITIVE, ranges=RANGES, seconds=20.0)
    assert complexity(form) <= complexity(tree)
    assert equivalent(form, tree, RANGES, seconds=20.0) == "verified"
    assert simplify(tree, positive=POSITIVE, ranges=RANGES, seconds=20.0) == form


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(u**3 - w**3)/(u - w) - u*w", "u**2 + w**2"),
        ("x*u/(u + w) + x*w/(u + w)", "x"),
        ("sin(x)**4 - cos(x)**4", "-cos(2*x)"),
        ("(u**2 + 3*u*w + 2*w**2)/(u + w)", "u + 2*w"),
        ("0.5 + 0.5/tanh(log(u/w))", "u**2/(u**2 - w**2)"),
    ],
)
def test_what_only_more_work_finds(text: str, expected: str) -> None:
    assert (
        to_text(simplify(parse(text, NAMES), positive=POSITIVE, ranges=RANGES, seconds=20.0), NAMES)
        == expected
    )


def test_without_time_or_when_sympy_hangs_the_own_form_is_returned() -> None:
    worker = SymbolicWorker()
    try:
        tree = parse("x*9**9**9 + y*9**9**9 + z + u + w", NAMES)
        for seconds in (0.0, 1.0):
            form = simplify(tree, positive=POSITIVE, seconds=seconds, worker=worker)
            assert complexity(form) <= complexity(tree)
    finally:
        worker.close()
