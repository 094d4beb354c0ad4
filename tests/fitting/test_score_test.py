"""Score tests against what least squares gains."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import Number, evaluate, parse
from physdiffuser.expressions.tree import add, positions, replace_at
from physdiffuser.fitting.score_test import node_slopes, score, span

RANDOM = np.random.default_rng(5)
NAMES = ("a", "b")
INPUTS = RANDOM.uniform(1, 3, (60, 2))


@pytest.mark.parametrize("formula", ["a*b + 2", "exp(-a/b)*sqrt(a + b)", "sin(a/4)**2/(1 + b)", "a"])
def test_slopes_by_nodes_are_differences(formula: str) -> None:
    law = parse(formula, NAMES)
    nodes = positions(law)
    value, slopes = node_slopes(law, nodes, INPUTS)
    np.testing.assert_allclose(value, evaluate(law, INPUTS), rtol=1e-12)
    for (path, node), slope in zip(nodes, slopes, strict=True):
        above, below = (
            evaluate(replace_at(law, path, add(node, Number(sign * 1e-6))), INPUTS) for sign in (1, -1)
        )
        np.testing.assert_allclose(slope, (above - below) / 2e-6, rtol=1e-5, atol=1e-7)


def test_gains_and_steps_are_those_of_least_squares() -> None:
    known, tested = RANDOM.normal(size=(3, 60)), RANDOM.normal(size=(7, 60))
    target = RANDOM.normal(size=60)
    residual = target - known.T @ np.linalg.lstsq(known.T, target, rcond=None)[0]
    found = score(tested, span(known), residual)
    for row, gain, step in zip(tested, found.gains, found.steps, strict=True):
        design = np.vstack([known, row]).T
        solution = np.linalg.lstsq(design, target, rcond=None)[0]
        left = target - design @ solution
        assert gain == pytest.approx(1.0 - (left @ left) / (residual @ residual))
        assert step == pytest.approx(solution[-1])
    np.testing.assert_allclose((found.own**2).sum(axis=1), 1.0)
    np.testing.assert_allclose(found.own @ known.T, 0.0, atol=1e-12)


def test_directions_that_say_nothing_gain_nothing() -> None:
    known = RANDOM.normal(size=(2, 60))
    tested = np.vstack([known[0] - 2 * known[1], np.zeros(60), np.full(60, np.nan), np.full(60, np.inf)])
    found = score(tested, span(known), RANDOM.normal(size=60))
    assert not found.gains.any() and not found.steps.any()
    assert span(np.zeros((0, 60))).shape == (60, 0)
