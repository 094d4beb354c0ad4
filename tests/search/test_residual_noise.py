"""Whether residuals are noise: decisions, against the definition written out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import parse
from physdiffuser.selection.description_length import NOISE_TEST, leaves_noise, residual_is_noise

FloatArray = npt.NDArray[np.float64]


NAMES = ("a", "b")


def standardised(inputs: FloatArray) -> FloatArray:
    """The columns that vary, with mean 0 and standard deviation 1."""
    spread = inputs.std(axis=0)
    return (inputs - inputs.mean(axis=0))[:, spread > 0] / spread[spread > 0]


def nearest(unit: FloatArray) -> npt.NDArray[np.intp]:
    """The nearest other rows by brute force, shape (rows, neighbours)."""
    return _nearest(unit.tobytes(), unit.shape)


@lru_cache(maxsize=200)
def _nearest(values: bytes, shape: tuple[int, int]) -> npt.NDArray[np.intp]:
    unit = np.frombuffer(values).reshape(shape)
    distance = np.square(unit[:, None, :] - unit[None, :, :]).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    return np.argsort(distance, axis=1)[:, : NOISE_TEST.neighbours]


def neighbour_statistic(unit: FloatArray, residual: FloatArray) -> float:
    """Mean product of nearest residuals in standard errors, over sqrt(2) for mutual neighbours."""
    products = residual * residual[nearest(unit)[:, 0]]
    return float(products.mean() / (products.std() / np.sqrt(len(products))) / np.sqrt(2))


def sign_statistic(unit: FloatArray, residual: FloatArray) -> float:
    """Agreement of signs with those of the neighbours, in standard errors, over sqrt(2)."""
    sign = np.sign(residual - np.median(residual))
    near = nearest(unit)
    return float((sign[:, None] * sign[near]).mean() * np.sqrt(near.size) / np.sqrt(2))


def quadratic_statistic(unit: FloatArray, residual: FloatArray) -> float:
    """An F ratio of all quadratic terms over its critical value; above 1 there is a pattern."""
    rows = len(unit)
    columns = unit[:, : max(1, min(unit.shape[1], int(np.sqrt(rows / 3)) - 1))]
    terms = [np.ones(rows), *columns.T]
    squares = [
        columns[:, i] * columns[:, j] for i in range(columns.shape[1]) for j in range(i, columns.shape[1])
    ]
    if 3 * (len(terms) + len(squares)) <= rows:
        terms += squares
    design = np.stack(terms, axis=1)
    fitted = design @ np.linalg.pinv(design) @ residual
    count, free = design.shape[1] - 1, rows - design.shape[1]
    ratio = (fitted @ fitted / count) / (np.square(residual - fitted).sum() / free)
    share = 2 / (9 * count)
    return float(ratio / ((1 + 3.1 * np.sqrt(share) - share) ** 3 * (1 + 3 / np.sqrt(free))))


def plane_statistic(unit: FloatArray, residual: FloatArray) -> float:
    """The largest sign statistic among neighbours in one column and in two."""
    columns = range(min(unit.shape[1], NOISE_TEST.plane_columns))
    if unit.shape[1] < 3:
        return 0.0
    some, left = unit[: NOISE_TEST.plane_rows], residual[: NOISE_TEST.plane_rows]
    planes = [[c] for c in columns] + [list(pair) for pair in combinations(columns, 2)]
    return max(sign_statistic(some[:, plane], left) for plane in planes)


def cleaned(residual: FloatArray) -> FloatArray:
    """Centred, with what lies beyond six robust standard deviations moved to them."""
    residual = residual / np.abs(residual).max()
    residual = residual - residual.mean()
    limit = 6 * 1.4826 * np.median(np.abs(residual))
    return np.clip(residual, -limit, limit)


def is_noise(inputs: FloatArray, residual: FloatArray) -> bool:
    """The four tests of `residual_is_noise` by their definitions."""
    unit, residual = standardised(inputs), cleaned(residual)
    return (
        neighbour_statistic(unit[:1000], residual[:1000]) < 3.1
        and sign_statistic(unit[:1000], residual[:1000]) < 3.1
        and quadratic_statistic(unit, residual) < 1
        and plane_statistic(unit, residual) < NOISE_TEST.plane_deviations
    )


Pattern = Callable[[FloatArray], FloatArray]


PATTERNS: dict[str, Pattern] = {
    "wave": lambda x: np.sin(9 * x[:, 0]),
    "sign of a wave": lambda x: np.sign(np.sin(9 * x[:, 0])),
    "slope": lambda x: x[:, -1],
    "bowl": lambda x: x[:, 0] ** 2,
    "saddle": lambda x: x[:, 0] * x[:, -1],
    "plane": lambda x: np.sin(4 * x[:, 0]) * np.sin(4 * x[:, -1]),
}


class TestResiduals:
    @pytest.mark.parametrize("pattern", PATTERNS)
    @pytest.mark.parametrize(("rows", "columns"), [(12, 1), (40, 2), (150, 3), (420, 4)])
    def test_decisions_are_those_of_the_definition(self, pattern: str, rows: int, columns: int) -> None:
        """A pattern grows from nothing; the decision changes where the definition says."""
        random = np.random.default_rng([rows, columns])
        inputs = random.uniform(-1, 1, (rows, columns)) * 10.0 ** np.arange(columns)
        noise = random.normal(size=rows)
        signal = PATTERNS[pattern](inputs / 10.0 ** np.arange(columns))
        sizes = np.concatenate([[0.0], np.geomspace(0.03, 10, 20)])
        ours = [residual_is_noise(inputs, noise + size * signal) for size in sizes]
        assert ours == [is_noise(inputs, noise + size * signal) for size in sizes]

    @pytest.mark.parametrize("pattern", ["wave", "slope", "bowl"])
    def test_strong_patterns_are_seen_and_noise_is_not_a_pattern(self, pattern: str) -> None:
        alarms = 0
        for seed in range(30):
            random = np.random.default_rng(seed)
            inputs = random.uniform(-1, 1, (300, 2))
            noise = random.normal(size=300)
            alarms += not residual_is_noise(inputs, noise)
            assert not residual_is_noise(inputs, noise + 3 * PATTERNS[pattern](inputs))
        assert alarms <= 1

    def test_a_pattern_in_two_of_three_columns_is_seen(self) -> None:
        """All three columns together hide it: the rows are far apart there."""
        random = np.random.default_rng(5)
        inputs = random.uniform(-1, 1, (400, 6))
        pattern = np.sign(np.sin(5 * inputs[:, 1]) * np.sin(5 * inputs[:, 4]))
        residual = pattern + 0.3 * random.normal(size=400)
        assert sign_statistic(standardised(inputs), cleaned(residual)) < 3.1
        assert not residual_is_noise(inputs, residual)

    def test_outliers_do_not_hide_a_pattern(self) -> None:
        random = np.random.default_rng(6)
        inputs = random.uniform(-1, 1, (200, 1))
        residual = inputs[:, 0] ** 2 + 0.2 * random.normal(size=200)
        residual[:5] += np.array([900, -500, 700, -800, 600])
        assert not residual_is_noise(inputs, residual)

    def test_fewer_than_twelve_rows_tell_nothing(self) -> None:
        x = np.linspace(0, 1, 12)
        assert residual_is_noise(x[:11, None], x[:11] ** 2)
        assert not residual_is_noise(x[:, None], 100 * x**2)

    def test_weights_multiply_residuals_by_their_root(self) -> None:
        random = np.random.default_rng(7)
        inputs = random.uniform(-1, 1, (300, 1))
        sigma = np.exp(2 * inputs[:, 0])
        residual = sigma * random.normal(size=300) + 0.5 * sigma * np.sin(9 * inputs[:, 0])
        weights = 1 / sigma**2
        for factor in np.geomspace(0.1, 10, 20):
            mixed = factor * sigma * np.sin(9 * inputs[:, 0]) + residual
            assert residual_is_noise(inputs, mixed, weights) == is_noise(inputs, mixed / sigma)

    def test_no_residual_is_no_pattern(self) -> None:
        assert residual_is_noise(np.linspace(0, 1, 30)[:, None], np.zeros(30))

    def test_columns_that_do_not_vary_say_nothing(self) -> None:
        random = np.random.default_rng(8)
        x = random.uniform(-1, 1, (100, 1))
        both = np.column_stack([x, np.full(100, 3.0)])
        residual = random.normal(size=100) + 0.4 * x[:, 0]
        assert residual_is_noise(both, residual) == residual_is_noise(x, residual)
        assert residual_is_noise(np.ones((50, 2)), random.normal(size=50))

    @pytest.mark.parametrize("size", [1e-200, 1e200])
    def test_magnitudes_change_nothing(self, size: float) -> None:
        random = np.random.default_rng(9)
        inputs = random.uniform(-1, 1, (100, 2))
        residual = random.normal(size=100)
        assert residual_is_noise(inputs * size, residual / size)
        assert not residual_is_noise(inputs * size, (residual + 3 * inputs[:, 0]) / size)

    def test_a_problem_is_judged_on_all_its_rows_with_its_weights(self) -> None:
        random = np.random.default_rng(10)
        inputs = random.uniform(1, 3, (400, 1))
        bend = 0.3 * (inputs[:, 0] - 2) ** 2
        target = inputs[:, 0] + bend + 0.1 * random.normal(size=400)
        whole = Problem(inputs, target, ("a",))
        few = replace(whole, inputs=inputs[:15], target=target[:15], full_problem=whole)
        line = parse("a + 0.1", ("a",))
        assert leaves_noise(replace(few, full_problem=None), line)
        assert not leaves_noise(few, line)
        trusted = np.where(np.arange(400) < 200, 1.0, 1e-12)
        noise = inputs[:, 0] + 0.1 * random.normal(size=400)
        mixed = replace(whole, target=np.where(trusted == 1.0, noise, target))
        assert not leaves_noise(mixed, parse("a", ("a",)))
        assert leaves_noise(replace(mixed, weights=trusted / trusted.mean()), parse("a", ("a",)))


def flip(decide: Callable[[float], bool]) -> float:
    """The size of a pattern, from 1e-3 to 1e3, at which a decision changes from noise to pattern."""
    low, high = math.log(1e-3), math.log(1e3)
    assert decide(math.exp(low)) and not decide(math.exp(high))
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if decide(math.exp(middle)) else (low, middle)
    return math.exp(low)


class TestThresholds:
    """The size at which a growing pattern is seen is that of the definition, whichever test sees it first."""

    @staticmethod
    def compare(
        inputs: FloatArray, noise: FloatArray, pattern: FloatArray, scaled: FloatArray | None = None
    ) -> None:
        def ours(size: float) -> bool:
            return residual_is_noise(inputs if scaled is None else scaled, noise + size * pattern)

        def definition(size: float) -> bool:
            return is_noise(inputs, noise + size * pattern)

        assert flip(ours) == pytest.approx(flip(definition), rel=1e-6)

    @pytest.mark.parametrize("pattern", ["slope", "bowl", "saddle"])
    @pytest.mark.parametrize(("rows", "columns"), [(12, 1), (18, 2), (27, 2), (30, 4), (49, 3), (120, 5)])
    def test_polynomials(self, pattern: str, rows: int, columns: int) -> None:
        """With few rows the polynomial has fewer columns: its terms are at most a third of the rows."""
        random = np.random.default_rng([rows, columns])
        inputs = random.uniform(-1, 1, (rows, columns))
        self.compare(inputs, random.normal(size=rows), PATTERNS[pattern](inputs[:, :1]))

    @pytest.mark.parametrize("outlier", [20.0, 400.0])
    def test_polynomials_beside_outliers(self, outlier: float) -> None:
        random = np.random.default_rng(11)
        inputs = random.uniform(-1, 1, (150, 2))
        noise = random.normal(size=150)
        noise[[3, 50, 90, 91]] += outlier * np.array([1, -1, 1, -1])
        self.compare(inputs, noise, inputs[:, 0])

    def test_a_few_large_residuals_of_neighbours(self) -> None:
        """Signs and the polynomial do not see them: the rows are few, and as often below as above."""
        random = np.random.default_rng(12)
        inputs = np.sort(random.uniform(-1, 1, (400, 1)), axis=0)
        noise = random.normal(size=400)
        pattern = np.zeros(400)
        for number, row in enumerate(range(5, 400, 20)):
            inputs[row + 1] = inputs[row] + 1e-9
            pattern[row : row + 2] = 1 if number % 2 else -1
        unit = standardised(inputs)
        seen = cleaned(noise + 20 * pattern)
        assert sign_statistic(unit, seen) < 3.1 and quadratic_statistic(unit, seen) < 1
        self.compare(inputs, noise, pattern)

    def test_columns_of_other_magnitudes_and_offsets(self) -> None:
        random = np.random.default_rng(13)
        inputs = random.uniform(-1, 1, (80, 3))
        noise = random.normal(size=80)
        scaled = inputs * [1e-200, 1.0, 1e180] + [0.0, 1e3, 0.0]
        self.compare(inputs, noise, inputs[:, 1] ** 2, scaled)
