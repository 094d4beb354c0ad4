"""Means over neighbouring values of a feature stand for all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import parse
from physdiffuser.generation.enumeration.screening import averaged

NAMES = ("m", "v", "c")


def problem(rows: int = 8_000, noise: float = 0.1) -> Problem:
    random = np.random.default_rng(0)
    inputs = random.uniform(1, 3, (rows, 3)) * [1, 0.3, 1]
    m, v, c = inputs.T
    target = m / np.sqrt(1 - (v / c) ** 2)
    return Problem(inputs, target + noise * random.normal(size=rows), NAMES)


FRAME = Reduction.of([(parse("m", NAMES), 1)], [parse("v/c", NAMES)])  # type: ignore[list-item]


def test_means_keep_the_law_and_lose_the_noise() -> None:
    means = averaged(problem(), FRAME, 100)
    assert means is not None and means.features.shape == (100, 1)
    wanted = 1 / np.sqrt(1 - means.features[:, 0] ** 2)
    left = np.sqrt(np.average((means.target - wanted) ** 2, weights=means.weights))
    # 80 rows each, with errors of 0.1/m.
    assert 0.5 < left / (0.1 / np.sqrt(80 * np.mean(problem().inputs[:, 0] ** 2))) < 1.5


def test_what_is_linear_is_averaged_exactly_whatever_the_weights() -> None:
    base = problem(noise=0.0)
    m, v, c = base.inputs.T
    weights = np.random.default_rng(1).uniform(0.1, 2, base.rows)
    linear = replace(base, target=m * (2 - 3 * v / c), weights=weights)
    means = averaged(linear, FRAME, 64)
    assert means is not None
    assert means.target == pytest.approx(2 - 3 * means.features[:, 0], abs=1e-12)
    assert means.weights.sum() == pytest.approx(float((weights * (m / m.max()) ** 2).sum()))


@pytest.mark.parametrize("factor", ["m", "v"])
def test_frames_of_more_features_and_tables_of_few_rows_have_none(factor: str) -> None:
    tree = parse(factor, NAMES)
    assert averaged(problem(), Reduction.of([(tree, 1)], [parse("v", NAMES), parse("c", NAMES)]), 100) is None  # type: ignore[list-item]
    assert averaged(problem(150), FRAME, 100) is None
    broken = problem()
    broken.inputs[3, 0] = 0.0
    assert averaged(broken, FRAME, 100) is None
