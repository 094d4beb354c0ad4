"""The probability of a law, and what it means for the verdict."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from physdiffuser.expressions import parse
from physdiffuser.finalize.evidence import LawEvidence
from physdiffuser.finalize.probability import FEATURES, MODEL, features
from physdiffuser.verification.verify import LEAST_PROBABILITY, Verification, verify

NAMES = ("x", "y")
USUAL = LawEvidence(
    gap=8.0,
    rivals=4,
    explained=10.0,
    noise=0.03,
    rows=200,
    constants=2,
    complexity=12,
    form=2.0,
    test_ratio=1.0,
    structure=-2.0,
    posterior=-6.0,
    stability=0.9,
)


def checked(probability: float | None) -> Verification:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 2.0, (100, 2))
    target = inputs[:, 0] * inputs[:, 1] + 0.01 * rng.standard_normal(100)
    law, rows = parse("x*y", NAMES), np.arange(100)
    return verify(law, law, inputs, target, rows[:80], rows[80:], probability=probability)


def test_there_is_one_feature_for_each_name() -> None:
    assert features(USUAL).shape == (len(FEATURES),)
    assert np.isfinite(features(USUAL)).all()


@pytest.mark.parametrize(
    ("figure", "better", "worse"),
    [
        ("gap", 20.0, 1.0),
        ("rivals", 0, 30),
        ("explained", 40.0, 2.0),
        ("noise", 0.001, 0.3),
        ("constants", 0, 5),
        ("complexity", 6, 30),
        ("form", 1.0, 4.0),
    ],
)
def test_each_figure_counts_in_its_direction(figure: str, better: float, worse: float) -> None:
    high, low = (MODEL.of(dataclasses.replace(USUAL, **{figure: value})) for value in (better, worse))
    assert 0 < low < high < 1


def test_figures_beyond_all_tables_still_give_a_probability() -> None:
    extreme = dataclasses.replace(USUAL, explained=0.0, noise=0.0, rivals=10**6, complexity=10**4)
    assert 0 < MODEL.of(extreme) < 1


@pytest.mark.parametrize("probability", [None, LEAST_PROBABILITY, 0.999])
def test_a_probable_law_is_verified(probability: float | None) -> None:
    assert checked(probability).verdict == "verified"


@pytest.mark.parametrize("probability", [0.0, 0.5, LEAST_PROBABILITY - 0.01])
def test_an_improbable_law_is_not_verified_and_a_sentence_says_why(probability: float) -> None:
    found = checked(probability)
    assert found.verdict == "unknown"
    assert any(text.startswith("probability:") and "too little" in text for text in found.sentences)
