"""The expression library, lookups by hash and screenings, against brute force."""

from __future__ import annotations

from itertools import chain

import numpy as np
import numpy.typing as npt
import pytest
from enumeration_runs import proposed, table
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import OPERATORS, Variable, evaluate, parse, to_text
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.generation.enumeration.context import TransformedTarget
from physdiffuser.generation.enumeration.registry import Size
from physdiffuser.generation.enumeration.screening import ScreeningTable, TopK, distinct
from physdiffuser.generation.enumeration.stages.products import (
    screen_products,
    screen_singles,
    screen_without_constants,
)
from physdiffuser.library.expression_library import Library
from physdiffuser.library.hashing import AffineIndex
from physdiffuser.library.matches import Product, Single, candidates
from physdiffuser.library.screening import (
    Affine,
    LeadingPairs,
    Standardised,
    pair_residuals,
)
from physdiffuser.library.terms import fill, power_products
from physdiffuser.transforms.transform import OutputTransform

IntArray = npt.NDArray[np.int64]


ALL = frozenset(OPERATORS)


class TestLibrary:
    def library(self, size: int) -> Library:
        inputs = np.random.default_rng(0).uniform(1, 3, (24, 2))
        library = Library(inputs, (Variable(0), Variable(1)), ALL)
        for _ in library.grow(size):
            pass
        return library

    def test_trees_have_the_stored_values(self) -> None:
        library = self.library(3000)
        for entry in range(0, library.size, 97):
            value = evaluate(library.expression(entry), library.inputs)
            np.testing.assert_allclose(value, library.values[entry], rtol=1e-9)

    @pytest.mark.parametrize("kind", ["huge", "tiny", "constant", "negative copy", "not finite"])
    def test_a_useless_feature_does_not_shift_the_others(self, kind: str) -> None:
        inputs = np.random.default_rng(0).uniform(1, 3, (24, 3))
        useless = {"huge": inputs[:, 0] * 1e300, "tiny": inputs[:, 0] * 1e-300, "constant": np.full(24, 7.0)}
        useless |= {"negative copy": -inputs[:, 2], "not finite": np.full(24, np.inf)}
        inputs[:, 0] = useless[kind]
        library = Library(inputs, (Variable(0), Variable(1), Variable(2)), ALL)
        fill(library, 300)
        for _ in library.grow(2000):
            pass
        usable = np.flatnonzero(library.costs < 100)
        assert len(usable) >= library.size - 1 > 1000
        for entry in usable.tolist():
            value = evaluate(library.expression(entry), library.inputs)
            np.testing.assert_allclose(value, library.values[entry], rtol=1e-9)

    def test_entries_differ_in_value_even_up_to_sign(self) -> None:
        values = self.library(1500).values[:1500]
        close = np.abs(values[:, None, :] - values[None, :, :]).max(axis=2)
        opposite = np.abs(values[:, None, :] + values[None, :, :]).max(axis=2)
        size = np.abs(values).max(axis=1)
        same = np.minimum(close, opposite) < 1e-12 * size[:, None]
        # Where numbers cancel, rounding lets a few through.
        assert len(values) <= same.sum() < 1.003 * len(values)

    def test_costs_grow(self) -> None:
        library = self.library(2000)
        assert (np.diff(library.costs) >= 0).all()

    @settings(max_examples=15, deadline=None)
    @given(st.integers(1, 4), st.integers(1, 300))
    def test_power_products_are_distinct_and_cheap_first(self, features: int, limit: int) -> None:
        products, costs = power_products(features, limit)
        assert len(products) <= limit and len(set(products)) == len(products)
        assert list(costs) == sorted(costs)


class TestHashing:
    def test_every_affine_image_is_matched(self) -> None:
        random = np.random.default_rng(1)
        values = random.normal(size=(500, 24))
        index = AffineIndex(values)
        chosen = random.integers(0, 500, 50)
        queries = 3.7 * values[chosen] - 11.0
        rows, entries = index.match(queries)
        assert {(int(r), int(e)) for r, e in zip(rows, entries, strict=True)} >= {
            (i, int(e)) for i, e in enumerate(chosen)
        }

    def test_nothing_matches_a_stranger(self) -> None:
        random = np.random.default_rng(2)
        index = AffineIndex(random.normal(size=(500, 24)))
        rows, _ = index.match(random.normal(size=(200, 24)))
        assert rows.size == 0


class TestScreening:
    def test_affine_residuals_equal_weighted_least_squares(self) -> None:
        random = np.random.default_rng(3)
        library = random.normal(size=(20, 100)) * 5 + 3
        targets, weights = random.normal(size=(4, 100)), random.uniform(0.2, 2, (4, 100))
        found = Affine.of(targets, weights).residuals(Standardised.of(library), slice(None))
        for k in range(4):
            root = np.sqrt(weights[k])
            for j in range(20):
                design = np.stack([root, root * library[j]], axis=1)
                left = np.linalg.lstsq(design, root * targets[k], rcond=None)[1][0]
                assert found[k, j] == pytest.approx(left, rel=1e-3)

    def test_pair_residuals_equal_least_squares(self) -> None:
        random = np.random.default_rng(4)
        values, target = random.normal(size=(12, 80)), random.normal(size=80)
        unit = values - values.mean(axis=1, keepdims=True)
        unit = (unit / np.linalg.norm(unit, axis=1, keepdims=True)).astype(np.float32)
        wanted = target - target.mean()
        wanted /= np.linalg.norm(wanted)
        found = pair_residuals(unit, slice(0, 5), slice(5, 12), (unit @ wanted).astype(np.float32))
        for i in range(5):
            for j in range(7):
                design = np.stack([np.ones(80), values[i], values[5 + j]], axis=1)
                left = np.linalg.lstsq(design, wanted, rcond=None)[1][0]
                assert found[i, j] == pytest.approx(left, rel=1e-3)


def test_nearly_equal_entries_explain_no_more_than_rounding_tells() -> None:
    random = np.random.default_rng(4)
    values = random.normal(size=80) + 0.008 * random.normal(size=(40, 80))
    wanted = random.normal(size=80)
    unit, wanted = values - values.mean(axis=1, keepdims=True), wanted - wanted.mean()
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    wanted /= np.linalg.norm(wanted)
    single = unit.astype(np.float32)
    found = pair_residuals(single, slice(0, 20), slice(20, 40), (single @ wanted).astype(np.float32))
    for i in range(20):
        for j in range(20):
            design = np.stack([unit[i], unit[20 + j]], axis=1)
            left = np.linalg.lstsq(design, wanted, rcond=None)[1][0]
            assert found[i, j] == 1 or found[i, j] > left - 0.02


def test_functions_of_functions_come_late() -> None:
    random = np.random.default_rng(2)
    names = ("x", "y")
    library = Library(random.uniform(0.5, 2, (24, 2)), (Variable(0), Variable(1)), ALL)
    for _ in library.grow(3_000):
        continue
    cost = {to_text(library.expression(entry), names): int(library.costs[entry]) for entry in range(3_000)}
    late = float("inf")
    assert cost["x*exp(y)"] < cost.get("atan(exp(y))", late)
    assert cost["cos(y)**2"] < cost.get("cos(sin(y))", late)


def test_leading_pairs_equal_least_squares() -> None:
    random = np.random.default_rng(5)
    values = random.normal(size=(40, 90)) + 2
    target = 2 * values[3] - values[11] + random.normal(size=90)
    weights = random.uniform(0.1, 3, 90)
    library = Standardised.of(values)
    pairs = LeadingPairs.of(library, target, weights, 6)
    with np.errstate(all="ignore"):
        found = pairs.residuals(library, slice(0, 40))
    assert 3 in pairs.leading
    root = np.sqrt(weights)
    total = np.square(root * (target - np.average(target, weights=weights))).sum()
    for row, left in enumerate(pairs.leading):
        for right in range(40):
            if right == left:
                # An entry with itself is no pair.
                assert found[row, right] == 1.0
                continue
            design = root[:, None] * np.stack([np.ones(90), values[left], values[right]], axis=1)
            rest = np.linalg.lstsq(design, root * target, rcond=None)[1][0]
            assert found[row, right] == pytest.approx(rest / total, rel=1e-3)


class TestNoisyScreening:
    """What single precision screens is believed only where double precision agrees."""

    problem = table("1/sqrt(1 + (w*R*C)**2)", {"w": (0.3, 4), "R": (0.3, 3), "C": (0.2, 2)}, 300, 0.1)
    reduction = Reduction((), (parse("w*R*C", ("w", "R", "C")),))

    def table(self, library: Library, order: IntArray) -> ScreeningTable:
        target = TransformedTarget(OutputTransform(()), self.problem.target, np.ones(self.problem.rows))
        return ScreeningTable(library, self.reduction, [target], order)

    def top_k(self) -> TopK:
        features = self.reduction.values(self.problem.inputs)
        library = Library(features, self.reduction.features, ALL & self.problem.operators)
        fill(library, 300)
        for _ in library.grow(600):
            continue
        order = np.argsort(library.costs, kind="stable")[:600]
        top_k, table = TopK(), self.table(library, order)
        for _ in chain(screen_singles(table, top_k), screen_products(table, order[:100], top_k)):
            continue
        return top_k

    def test_residuals_of_the_finds_are_those_of_least_squares(self) -> None:
        # The factors among them span four decades and more.
        target = self.problem.target
        total = np.square(target - target.mean()).sum()
        looked_at = 0
        for finds in self.top_k()._best.values():
            for negative, _, make in finds:
                match = make()
                assert isinstance(match, Single | Product)
                right = evaluate(match.right, self.problem.inputs)
                left = np.ones_like(right)
                if isinstance(match, Product):
                    left = evaluate(match.left, self.problem.inputs)
                design = np.stack([left, left * right], axis=1)
                design = design / np.abs(design).max(axis=0)
                residual = target - design @ np.linalg.lstsq(design, target, rcond=1e-14)[0]
                assert -negative == pytest.approx(np.square(residual).sum() / total, rel=1e-3)
                looked_at += 1
        assert looked_at > 20

    def test_a_curve_that_needs_no_constants_is_ranked_by_what_it_leaves(self) -> None:
        features = self.reduction.values(self.problem.inputs)
        library = Library(features, self.reduction.features, ALL)
        for _ in library.grow(1_500):
            continue
        target = self.problem.target
        top_k = TopK()
        for _ in screen_without_constants(self.table(library, np.arange(library.size)), top_k):
            continue
        total = np.square(target - target.mean()).sum()
        names = self.problem.names
        truth = parse("1/sqrt(1 + (w*R*C)**2)", names)
        residuals = []
        for finds in top_k._best.values():
            for negative, _, make in finds:
                match = make()
                assert isinstance(match, Single)
                values = evaluate(match.right, self.problem.inputs)
                bare = min(np.square(target - values).sum(), np.square(target + values).sum())
                factor = target @ values / (values @ values)
                scaled = np.square(target - factor * values).sum()
                assert -negative == pytest.approx(bare / total) or -negative == pytest.approx(scaled / total)
                residuals.append(bare)
        best = np.square(target - evaluate(truth, self.problem.inputs)).sum()
        assert min(residuals) <= best * (1 + 1e-9)

    @pytest.mark.parametrize("factor", [1.0, -1.0, 1.002, 1.3])
    def test_a_factor_near_one_is_tried_as_one(self, factor: float) -> None:
        random = np.random.default_rng(0)
        inputs = random.uniform(1, 3, (400, 1))
        target = factor * np.sqrt(inputs[:, 0]) + 0.05 * random.normal(size=400)
        reduction = Reduction((), (Variable(0),))
        match = Single(reduction, OutputTransform(()), 3, parse("sqrt(a)", ("a",)))
        found = [one.expression for one in candidates(match, Problem(inputs, target, ("a",)), 1e-6)]
        bare = [one for one in found if not fitted_constants(one)]
        assert bool(bare) == (abs(abs(factor) - 1) < 0.01)

    def test_distinct_entries_span_no_others(self) -> None:
        features = self.reduction.values(self.problem.inputs)
        library = Library(features, self.reduction.features, ALL)
        fill(library, 60)
        order = np.argsort(library.costs, kind="stable")
        kept = distinct(library, order, affine=True)
        assert 10 < len(kept) < len(order)
        unit = library.values[kept] - library.values[kept].mean(axis=1, keepdims=True)
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        assert np.abs(np.triu(unit @ unit.T, 1)).max() < 1 - 1e-14
        # Each that was left out is an image of one that was kept, and no cheaper.
        for entry in np.setdiff1d(order, kept):
            left = library.values[entry] - library.values[entry].mean()
            match = int(np.argmax(np.abs(unit @ (left / np.linalg.norm(left)))))
            assert abs(unit[match] @ left) == pytest.approx(np.linalg.norm(left), rel=1e-9)
            assert library.costs[kept[match]] <= library.costs[entry]

    def test_the_law_is_among_the_finds_worth_a_fit(self) -> None:
        found = self.top_k().take()
        rights = [
            to_text(match.right, self.problem.names) for match in found if isinstance(match, Single | Product)
        ]
        assert "1/sqrt(1 + (w*R*C)**2)" in rights

    def test_exact_lookups_find_nothing_in_noise(self) -> None:
        size = Size(1_500, divisors=1_500, depth=2)
        assert not proposed("exact pairs", size, self.problem, self.reduction)
        size = Size(6_000, divisors=40, depth=2, shifts=120)
        assert not proposed("exact prefactors", size, self.problem, self.reduction)
