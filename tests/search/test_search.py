"""The archive, the scheduler, model selection, row splits, and the loop over generators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_problems import NAMES, candidate, problem

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import Number, parse, to_text
from physdiffuser.expressions.tree import walk
from physdiffuser.noise.precision import DOUBLE, decimal_precision
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.sampling import POLICY as SAMPLING
from physdiffuser.search.sampling import split_rows
from physdiffuser.selection.description_length import DescriptionLength, residual_is_noise
from physdiffuser.units.unit import parse_unit


class TestArchive:
    def test_a_law_is_told_by_few_constants_that_leave_nothing(self) -> None:
        archive = ParetoArchive(problem())
        archive.offer(candidate("a**2*b + 0.001*a"))
        assert not archive.is_solved
        archive.offer(candidate("a**2*b"))
        assert archive.is_solved

    def test_many_constants_that_leave_nothing_do_not_tell_a_law(self) -> None:
        x = np.linspace(1, 1.2, 40)[:, None]
        smooth = Problem(x, np.log(x[:, 0]) * np.sqrt(x[:, 0]), ("a",))
        archive = ParetoArchive(smooth)
        terms = ""
        for coefficient in reversed(
            np.polynomial.Polynomial.fit(x[:, 0] - 1.1, smooth.target, 8).convert().coef
        ):
            terms = f"{float(coefficient)!r} + (a - 1.1)*({terms})" if terms else f"{float(coefficient)!r}"
        archive.offer(Candidate(parse(terms, ("a",)), "test"))
        assert archive.best_loss < 1e-18
        assert not archive.is_solved

    @settings(max_examples=40, deadline=None)
    @given(st.permutations(["a", "a*b", "a**2*b", "a + b", "2*a*b", "a*b + a", "exp(a)", "a**2"]))
    def test_the_front_does_not_depend_on_the_order_and_improves(self, texts: list[str]) -> None:
        archive = ParetoArchive(problem(0.1))
        for text in texts:
            archive.offer(candidate(text))
        front = archive.front()
        assert [e.complexity for e in front] == sorted(e.complexity for e in front)
        for entry in front:
            assert not any(
                other is not entry
                and other.complexity <= entry.complexity
                and other.loss <= entry.loss
                and other.nats <= entry.nats
                for other in front
            )
        reference = ParetoArchive(problem(0.1))
        for text in sorted(texts):
            reference.offer(candidate(text))
        assert [(e.complexity, e.loss) for e in reference.front()] == [(e.complexity, e.loss) for e in front]

    def test_an_exact_constant_is_not_lost_to_a_fitted_one(self) -> None:
        archive = ParetoArchive(problem(0.1))
        archive.offer(candidate("a**2*b"))
        archive.offer(candidate("a**2.00001234567*b"))
        archive.offer(candidate("a**1.9999876543*b"))
        texts = [to_text(entry.candidate.expression, NAMES) for entry in archive.front()]
        assert "a**2*b" in texts

    def test_all_rows_judge_what_the_rows_of_the_search_leave_open(self) -> None:
        whole = problem(0.5, rows=20_000)
        few = replace(whole, inputs=whole.inputs[:200], target=whole.target[:200] * 1.001, full_problem=whole)
        archive = ParetoArchive(few)
        assert archive.description_length.rows == 20_000
        assert archive.offer(candidate("0.9123456789*a**2*b"))
        (entry,) = archive.front()
        (factor,) = (
            node.value
            for node in walk(entry.candidate.expression)
            if isinstance(node, Number) and not node.exact
        )
        a, b = whole.inputs.T
        wanted = float((a**2 * b * whole.target).sum() / np.square(a**2 * b).sum())
        assert factor == pytest.approx(wanted, rel=1e-9)
        residual = whole.target - wanted * a**2 * b
        assert entry.loss == pytest.approx(residual.var() / whole.target.var(), rel=1e-6)
        assert entry.search_loss != entry.loss

    def test_what_the_rows_of_the_search_refute_is_not_looked_at_again(self) -> None:
        whole = problem(0.1, rows=20_000)
        archive = ParetoArchive(
            replace(whole, inputs=whole.inputs[:500], target=whole.target[:500], full_problem=whole)
        )
        assert archive.offer(candidate("a**2*b"))
        assert not archive.offer(candidate("a*b + exp(a)"))
        assert archive.offer(candidate("a*b"))

    @pytest.mark.parametrize("text", ["log(a - 2)", "1/(a - a)", "exp(exp(exp(a*b*b)))"])
    def test_formulas_that_are_not_finite_are_refused(self, text: str) -> None:
        assert not ParetoArchive(problem()).offer(candidate(text))

    def test_complexity_operators_and_units_are_rules(self) -> None:
        base = problem()
        assert not ParetoArchive(replace(base, max_complexity=4)).offer(candidate("a**2*b"))
        assert not ParetoArchive(replace(base, operators=frozenset({"mul"}))).offer(candidate("a**2*b"))
        metre, second = parse_unit("m").unit, parse_unit("s").unit
        area = parse_unit("m**2*s").unit
        with_units = replace(base, units=(metre, second), target_unit=area)
        assert ParetoArchive(with_units).offer(candidate("a**2*b"))
        assert not ParetoArchive(with_units).offer(candidate("a*b"))

    def test_weights_count(self) -> None:
        base = problem()
        target = base.target.copy()
        target[0] += 50
        weights = np.ones(200)
        weights[0] = 1e-9
        archive = ParetoArchive(replace(base, target=target, weights=weights))
        archive.offer(candidate("a**2*b"))
        assert archive.best_loss < 1e-6

    def test_the_robust_loss_bears_outliers(self) -> None:
        base = problem(0.05)
        target = base.target.copy()
        target[:4] += 200
        right, wrong = candidate("a**2*b"), candidate("4*a*b - 3")
        squared, robust = (
            ParetoArchive(replace(base, target=target, loss=loss)) for loss in ("squared", "robust")
        )
        for archive in (squared, robust):
            archive.offer(right)
            archive.offer(wrong)
        assert robust.best_loss < 0.3 * squared.best_loss


def _length(loss: float, units: int, constants: int, rows: int) -> float:
    return DescriptionLength(rows, 1).total(3.0 * units, constants, loss)


class TestSelection:
    def test_a_longer_formula_must_earn_its_length(self) -> None:
        short = _length(1e-2, 5, 0, 200)
        assert _length(1e-2, 7, 0, 200) > short
        assert _length(0.99e-2, 7, 1, 200) > short
        assert _length(0.5e-2, 7, 1, 200) < short

    def test_below_rounding_the_shorter_formula_wins(self) -> None:
        assert _length(1e-30, 7, 0, 200) < _length(1e-32, 9, 0, 200)

    def test_few_rows_do_not_pay_for_long_formulas(self) -> None:
        # Eight planets: a**1.5 to a part in a thousand, and a formula of 13 units ten times as good.
        assert _length(1e-7, 3, 0, 8) < _length(1e-9, 13, 2, 8)

    def test_white_residuals_are_noise_and_others_are_not(self) -> None:
        random = np.random.default_rng(1)
        inputs = random.uniform(0, 1, (400, 3))
        white = random.normal(size=400)
        assert residual_is_noise(inputs, white)
        assert not residual_is_noise(inputs, white + 1.5 * inputs[:, 1] ** 2)
        assert not residual_is_noise(inputs[:, :1], 0.3 * white + np.sin(30 * inputs[:, 0]))

    def test_a_pattern_in_two_of_five_columns_is_seen(self) -> None:
        random = np.random.default_rng(3)
        inputs = random.uniform(1, 3, (150, 5))
        pattern = np.sin(6 * inputs[:, 1] / inputs[:, 3])
        assert not residual_is_noise(inputs, 0.4 * random.normal(size=150) + pattern)
        assert not residual_is_noise(inputs[:, [1, 3]], 0.4 * random.normal(size=150) + pattern)

    def test_chance_in_many_planes_is_not_taken_for_a_pattern(self) -> None:
        random = np.random.default_rng(4)
        inputs = random.uniform(1, 3, (150, 6))
        assert sum(not residual_is_noise(inputs, random.normal(size=150)) for _ in range(200)) <= 3

    def test_noise_is_rarely_taken_for_a_pattern(self) -> None:
        random = np.random.default_rng(2)
        inputs = random.uniform(0, 1, (150, 4))
        wrong = sum(not residual_is_noise(inputs, random.standard_t(4, 150)) for _ in range(300))
        assert wrong <= 6


class TestPrecision:
    @pytest.mark.parametrize("digits", [2, 3, 5, 8])
    def test_written_digits_are_found(self, digits: int) -> None:
        values = np.random.default_rng(3).uniform(0.01, 1000, 100)
        rounded = np.array([float(f"{value:.{digits - 1}e}") for value in values])
        assert decimal_precision(rounded) == pytest.approx(0.5 * 10.0 ** (1 - digits))

    def test_doubles_are_doubles(self) -> None:
        assert decimal_precision(np.random.default_rng(4).normal(size=100)) == DOUBLE


class TestSplit:
    def test_parts_are_disjoint_and_repeatable(self) -> None:
        inputs = np.random.default_rng(5).normal(size=(5000, 2))
        dataset = dataset_from_arrays(inputs, inputs[:, 0])
        split = split_rows(dataset, 1)
        assert set(split.search) <= set(split.fit)
        assert not set(split.fit) & set(split.test)
        assert len(split.search) == SAMPLING.search_rows and len(split.test) == 1000
        again = split_rows(dataset, 1)
        assert all(
            np.array_equal(x, y)
            for x, y in zip(
                (split.search, split.fit, split.test),
                (again.search, again.fit, again.test),
                strict=True,
            )
        )

    def test_extremes_are_searched(self) -> None:
        inputs = np.random.default_rng(6).normal(size=(8000, 2))
        dataset = dataset_from_arrays(inputs, inputs[:, 0] * inputs[:, 1])
        split = split_rows(dataset, 0)
        seen, available = inputs[split.search], inputs[split.fit]
        assert np.array_equal(seen.max(axis=0), available.max(axis=0))
        assert np.array_equal(seen.min(axis=0), available.min(axis=0))

    def test_small_tables_hold_nothing_out(self) -> None:
        inputs = np.random.default_rng(7).normal(size=(12, 1))
        assert split_rows(dataset_from_arrays(inputs, inputs[:, 0] + 1), 0).test.size == 0
