"""The probability of a law, and what it means for the verdict."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from physdiffuser.expressions import parse
from physdiffuser.finalize.evidence.figures import LawEvidence
from physdiffuser.finalize.evidence.probability import (
    FEATURES,
    INCOMPLETE,
    MODEL,
    OTHER_ROWS,
    features,
    probability_of_law,
    row_probabilities,
)
from physdiffuser.selection.residual_structure import residual_structure
from physdiffuser.verification.checks import POLICY as VERIFICATION
from physdiffuser.verification.checks import probability_check
from physdiffuser.verification.verify import Verification, verify

NAMES = ("x", "y")
USUAL = LawEvidence(
    rivals=4,
    explained=10.0,
    noise=0.03,
    rows=200,
    constants=2,
    complexity=12,
    form=2.0,
    structure=-2.0,
    misfit=0.5,
    columns=2,
)


def checked(probability: float | None) -> Verification:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 2.0, (100, 2))
    target = inputs[:, 0] * inputs[:, 1] + 0.01 * rng.standard_normal(100)
    law, rows = parse("x*y", NAMES), np.arange(100)
    further = [] if probability is None else [probability_check(probability)]
    return verify(law, law, inputs, target, rows[:80], rows[80:], further=further)


def test_a_formula_whose_residuals_show_a_pattern_is_hardly_the_law() -> None:
    likely = dataclasses.replace(USUAL, rivals=0, noise=0.001)
    assert probability_of_law(likely, pattern=False) == MODEL.of(likely) > 0.5
    assert probability_of_law(likely, pattern=True) == INCOMPLETE < 0.05
    unlikely = dataclasses.replace(USUAL, structure=30.0)
    assert probability_of_law(unlikely, pattern=True) == MODEL.of(unlikely) < INCOMPLETE


def test_there_is_one_feature_for_each_name() -> None:
    assert features(USUAL).shape == (len(FEATURES),)
    assert np.isfinite(features(USUAL)).all()


@pytest.mark.parametrize(
    ("figure", "better", "worse"),
    [
        ("rivals", 0, 30),
        ("noise", 0.001, 0.3),
        ("constants", 0, 5),
        ("complexity", 6, 30),
        ("form", 1.0, 4.0),
        ("structure", 0.0, 20.0),
        ("explained", 40.0, 2.0),
        ("misfit", 0.0, 6.0),
        ("columns", 3, 1),
    ],
)
def test_each_figure_counts_in_its_direction(figure: str, better: float, worse: float) -> None:
    high, low = (MODEL.of(dataclasses.replace(USUAL, **{figure: value})) for value in (better, worse))
    assert 0 < low < high < 1


def test_figures_beyond_all_tables_still_give_a_probability() -> None:
    extreme = dataclasses.replace(USUAL, explained=0.0, noise=0.0, rivals=10**6, complexity=10**4)
    assert 0 < MODEL.of(extreme) < 1


@pytest.mark.parametrize("probability", [None, VERIFICATION.min_probability, 0.999])
def test_a_probable_law_is_verified(probability: float | None) -> None:
    assert checked(probability).verdict == "verified"


@pytest.mark.parametrize("probability", [0.0, 0.5, VERIFICATION.min_probability - 0.01])
def test_an_improbable_law_is_not_verified_and_a_sentence_says_why(probability: float) -> None:
    found = checked(probability)
    assert found.verdict == "unknown"
    assert any(text.startswith("probability:") and "too little" in text for text in found.sentences)
    assert found.reason.startswith("the probability that this is the law is")


def test_the_probabilities_of_the_rows_leave_a_share_for_none_of_them() -> None:
    shares = row_probabilities([12.0, 3.0, None, 5.0], chosen=1, probability=0.8)
    assert shares[1] == 0.8
    assert shares[2] == 0.0
    assert shares[3] / shares[0] == pytest.approx(np.exp(7.0))
    assert sum(shares) == pytest.approx(0.8 + 0.2 * OTHER_ROWS)


@pytest.mark.parametrize("lengths", [[4.0], [None], [4.0, None], [-1e9, 1e9]])
def test_a_chosen_row_keeps_its_probability(lengths: list[float | None]) -> None:
    shares = row_probabilities(lengths, chosen=0, probability=0.3)
    assert shares[0] == 0.3
    assert 0.3 <= sum(shares) <= 1.0


def trend(size: float, rows: int = 300) -> float:
    rng = np.random.default_rng(3)
    inputs = rng.uniform(0.0, 1.0, (rows, 2))
    residuals = rng.standard_t(3, rows) + size * np.sin(6.0 * inputs[:, 0] * inputs[:, 1])
    return residual_structure(residuals, inputs, inputs.sum(axis=1))


def test_noise_has_no_structure_and_a_trend_has() -> None:
    assert trend(0.0) < 3.0
    assert trend(2.0) > 10.0
    assert trend(0.0, rows=5) == -np.inf
    assert trend(0.0) < trend(1.0) < trend(2.0)


def test_structure_does_not_depend_on_the_scale_of_the_residuals_or_of_a_column() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 2.0, (100, 2))
    residuals = rng.standard_normal(100)
    plain = residual_structure(residuals, inputs, inputs[:, 0])
    scaled = residual_structure(1e-9 * residuals, inputs * [1e12, 1.0], inputs[:, 0])
    assert scaled == pytest.approx(plain)
