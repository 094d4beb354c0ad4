"""Points that tell laws apart: against a direct computation, and against what they must not be misled by."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.design.discrimination import Exploration, Prediction, discriminating_points, separation
from physdiffuser.design.points import as_shares, candidate_points, column_ranges

RNG = np.random.default_rng(0)


def law(points: int, constants: int = 2) -> Prediction:
    return Prediction(RNG.normal(size=points), RNG.normal(size=(constants, points)))


def expected_nats(one: Prediction, other: Prediction, noise: np.ndarray, design: list[int]) -> float:
    difference = (one.mean - other.mean)[design]
    covariance = np.diag(noise[design] ** 2)
    for part in (one, other):
        covariance = covariance + part.spread[:, design].T @ part.spread[:, design]
    return float(0.5 * difference @ np.linalg.solve(covariance, difference))


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_of_two_laws_each_point_adds_most_to_the_expected_odds(scale: float) -> None:
    laws = [law(30), law(30)]
    noise = RNG.uniform(0.5, 1.5, 30)
    scaled = [Prediction(part.mean * scale, part.spread * scale) for part in laws]
    design = discriminating_points(scaled, [1.0, 1.0], noise * scale, 4)
    chosen: list[int] = []
    for point in design:
        worth = [expected_nats(*laws, noise, [*chosen, other]) for other in range(30)]
        assert worth[point] == pytest.approx(max(worth), rel=1e-9)
        chosen.append(point)


def test_a_difference_that_other_constants_make_up_for_does_not_count() -> None:
    # The laws differ by 5 at the first point, where the constants are hardly known, by 1 at the second.
    one = Prediction(np.array([5.0, 1.0]), np.array([[50.0, 0.0]]))
    other = Prediction(np.zeros(2), np.zeros((0, 2)))
    assert discriminating_points([one, other], [1.0, 1.0], np.full(2, 0.3), 1) == [1]


def test_a_rival_that_is_told_apart_leaves_the_next_point_to_another() -> None:
    chosen = Prediction(np.zeros(3), np.zeros((0, 3)))
    first = Prediction(np.array([9.0, 0.0, 0.0]), np.zeros((0, 3)))
    second = Prediction(np.array([0.0, 4.0, 3.9]), np.zeros((0, 3)))
    design = discriminating_points([chosen, first, second], [1.0, 1.0, 0.9], np.ones(3), 2)
    assert design == [0, 1]


def test_a_point_where_a_law_has_no_value_is_not_chosen_for_it() -> None:
    one = Prediction(np.array([np.inf, 1.0]), np.zeros((0, 2)))
    other = Prediction(np.zeros(2), np.zeros((0, 2)))
    assert discriminating_points([one, other], [1.0, 1.0], np.ones(2), 2) == [1, 1]


def test_a_law_that_may_be_none_of_these_is_looked_for_where_nothing_was_measured() -> None:
    # The laws hardly differ; the rows lie at one end of the first column and never varied the second.
    law_there = Prediction(np.array([0.0, 0.0, 0.1]), np.zeros((0, 3)))
    laws = [law_there, Prediction(np.zeros(3), np.zeros((0, 3)))]
    places = np.array([[1.0, 0.1], [1.0, 1.0], [0.1, 0.1]])
    rows = np.array([[0.0, 0.1], [0.1, 0.1], [0.2, 0.1]])
    exploration = Exploration(places, rows, 0.5)
    unknown = exploration.unknown([])
    assert unknown[1] > unknown[0] > 0.5 > unknown[2]
    assert exploration.unknown([1])[1] < 0.05
    assert discriminating_points(laws, [1.0, 1.0], np.ones(3), 2, exploration) == [1, 0]
    # Without that doubt the laws alone count.
    assert discriminating_points(laws, [1.0, 1.0], np.ones(3), 1) == [2]


def test_places_are_shares_of_the_ranges_logarithmic_over_decades() -> None:
    inputs = np.array([[1.0, 0.1, 7.0], [3.0, 10.0, 7.0], [2.0, 1.0, 8.0], [4.0, -5.0, 9.0]])
    shares = as_shares(inputs, [(1.0, 3.0), (0.1, 10.0), (0.0, 1.0)], [0, 1])
    np.testing.assert_allclose(shares[:3], [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]])
    assert np.isfinite(shares).all()


def test_the_separation_is_in_standard_errors_of_the_difference() -> None:
    one = Prediction(np.array([5.0]), np.array([[2.0]]))
    laws = [one, Prediction(np.zeros(1), np.array([[1.0], [3.0]])), Prediction(np.ones(1), np.zeros((0, 1)))]
    apart, first, second = separation(laws, np.array([np.sqrt(2.0)]), 0)
    assert (first, second) == (0, 2)
    assert apart == pytest.approx(4.0 / np.sqrt(2.0 + 4.0))


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_points_fill_the_ranges_with_their_corners(columns: int) -> None:
    inputs = RNG.uniform(1.0, 3.0, (20, 5))
    ranges = column_ranges(inputs, {0: (-2.5, 7.5)})
    assert ranges[0] == (-2.5, 7.5) and ranges[1] == (inputs[:, 1].min(), inputs[:, 1].max())
    points = candidate_points(inputs, ranges, list(range(columns)))
    low, high = np.array(ranges).T
    assert (points >= low).all() and (points <= high).all()
    assert len(np.unique(points, axis=0)) == len(points)
    # The ends are rounded to three digits of the range.
    reached = slice(0, columns)
    np.testing.assert_allclose(points.min(axis=0)[reached], low[reached], atol=0.01 * (high - low).max())
    np.testing.assert_allclose(points.max(axis=0)[reached], high[reached], atol=0.01 * (high - low).max())
    # Columns that no law uses keep their median.
    assert (points[:, columns:] == np.median(inputs, axis=0)[columns:]).all()


def test_points_are_written_with_few_digits_and_counts_are_whole() -> None:
    inputs = np.column_stack([np.linspace(0, 1, 9), np.arange(2.0, 11.0)])
    points = candidate_points(inputs, [(0.0, 1.0), (2.0, 40.0)], [0, 1])
    assert all(len(repr(value)) <= 6 for value in points[:, 0].tolist())
    assert (points[:, 1] % 1 == 0).all()


def test_a_column_over_decades_is_filled_in_its_logarithm() -> None:
    points = candidate_points(np.geomspace(0.01, 100, 9)[:, None], [(0.01, 100.0)], [0])
    assert 80 <= (points < 1).sum() <= 120
