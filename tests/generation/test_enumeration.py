"""Enumeration: its parts against brute force, and laws it must find by itself."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import OPERATORS, Parameter, Variable, evaluate, parse, to_text
from physdiffuser.expressions.tree import add, call, div, fitted_constants, mul
from physdiffuser.fitting import fit_batched
from physdiffuser.generation.enumeration.context import Context, TransformedTarget
from physdiffuser.generation.enumeration.generator import EnumerationGenerator
from physdiffuser.generation.enumeration.parametric import fitted
from physdiffuser.generation.enumeration.registry import STAGES, Size
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
from physdiffuser.reduction.factors import reductions, relevant_columns
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.transforms.output_transforms import INVERSE
from physdiffuser.transforms.transform import OutputTransform, output_transforms

IntArray = npt.NDArray[np.int64]
ALL = frozenset(OPERATORS)


def table(
    formula: str, ranges: dict[str, tuple[float, float]], rows: int = 400, noise: float = 0.0, seed: int = 0
) -> Problem:
    """A problem sampled from a formula."""
    random = np.random.default_rng(seed)
    inputs = np.stack([random.uniform(*ranges[name], rows) for name in ranges], axis=1)
    target = evaluate(parse(formula, list(ranges)), inputs)
    target = target + noise * np.sqrt(np.mean(target**2)) * random.normal(size=rows)
    return Problem(inputs, target, tuple(ranges))


def search(problem: Problem, steps: int) -> ParetoArchive:
    """The archive after so many steps of enumeration alone."""
    archive = ParetoArchive(problem)
    generator = EnumerationGenerator()
    with np.errstate(all="ignore"):
        for candidate in generator.propose(problem, archive, Budget(steps)):
            archive.offer(candidate)
    return archive


def proposed(stage: str, size: Size, problem: Problem, reduction: Reduction) -> list[Candidate]:
    """What one stage proposes for a reduction."""
    work = STAGES[stage].run(Context(problem), size, reduction)
    return [item for item in work if isinstance(item, Candidate)]


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("2*pi*sqrt(a**3/mu)", {"a": (1, 5), "mu": (1, 3)}),
        ("V*S/(K + S)", {"V": (1, 5), "S": (0.1, 10), "K": (0.5, 4)}),
        ("m*c**2/sqrt(1 - v**2/c**2)", {"m": (1, 5), "c": (3, 10), "v": (1, 2)}),
        ("1/(1/f - 1/d)", {"f": (1, 3), "d": (4, 9)}),
        ("v*log(p/q) - g*t", {"v": (1, 5), "p": (5, 9), "q": (1, 4), "g": (9, 10), "t": (1, 2)}),
        ("3.2*exp(-0.7*x)", {"x": (0, 5)}),
        ("1.7*log(1 + exp((x - 2)/0.6))", {"x": (-3, 6)}),
        ("0.1*(x + 40)/(1 - exp(-(x + 40)/10))", {"x": (-90, 41)}),
        ("q*(a + v*b*sin(u))", {"q": (1, 5), "a": (1, 5), "v": (1, 5), "b": (1, 5), "u": (1, 5)}),
        ("6e-11*m*n/r**2", {"m": (1e24, 9e24), "n": (1e22, 9e22), "r": (3e8, 5e8)}),
    ],
)
def test_clean_laws_are_found_exactly(formula: str, ranges: dict[str, tuple[float, float]]) -> None:
    assert search(table(formula, ranges), 60).best_loss < 1e-18


@pytest.mark.parametrize(
    ("formula", "ranges"),
    [
        ("(c**(1 - g) - 1)/(1 - g)", {"c": (0.3, 8), "g": (1.2, 4)}),
        ("P*(1 + r)**n", {"P": (10, 99), "r": (0.01, 0.2), "n": (1, 20)}),
        ("0.215 + 0.0257*log(a + 0.013*b)", {"a": (0.001, 0.1), "b": (0.01, 1)}),
        ("3.1 - 0.7/sqrt(a**2 + 2.6*b**2)", {"a": (0.5, 3), "b": (0.5, 3)}),
    ],
)
def test_powers_of_columns_and_functions_of_two_are_found_exactly(
    formula: str, ranges: dict[str, tuple[float, float]]
) -> None:
    assert search(table(formula, ranges, 80), 150).best_loss < 1e-18


def test_constants_under_a_reciprocal_are_fitted_from_far() -> None:
    """`1/(a + b*p*exp(c/(t + q)))` from four times c, where steps on the target itself lead nowhere."""
    problem = table("1/(0.4 + 5.6e-9*p*exp(4302.6/(t + 243.5)))", {"t": (-20, 35), "p": (600, 1030)}, 120)
    t, p = Variable(0), Variable(1)
    law = add(Parameter(0), mul(Parameter(1), mul(p, call("exp", div(Parameter(2), add(t, Parameter(3)))))))
    transform = OutputTransform((INVERSE,))
    reduction = Reduction.of_columns((), [0, 1])
    start = [1.0, 1.0, 17_000.0, 520.0]
    [[fit]] = fitted(problem, reduction, [transform], [law], [start], iterations=60, tolerance=1e-14)
    assert fit.loss < 1e-18
    [direct] = fit_batched([transform.redo(law)], [start], problem.inputs, problem.target)
    assert direct.loss > 1e-3


def test_a_noisy_product_is_ranked_first() -> None:
    problem = table("m*c**2/sqrt(1 - v**2/c**2)", {"m": (1, 5), "c": (3, 6), "v": (1, 2.5)}, 1000, 0.01)
    archive = search(problem, 40)
    truth = evaluate(parse("m*c**2/sqrt(1 - v**2/c**2)", problem.names), problem.inputs)
    floor = np.mean((problem.target - truth) ** 2) / problem.target.var()
    assert archive.best_loss < 1.05 * floor


def test_equal_steps_give_equal_fronts() -> None:
    problem = table("a*exp(-b*t) + c", {"a": (1, 3), "b": (0.2, 1), "c": (1, 2), "t": (0, 4)}, noise=0.02)
    first, second = search(problem, 12), search(problem, 12)
    assert [(e.complexity, e.loss) for e in first.front()] == [(e.complexity, e.loss) for e in second.front()]


def test_only_allowed_operators_occur_in_the_archive() -> None:
    problem = table("a*b + c", {"a": (1, 3), "b": (1, 3), "c": (1, 2)}, noise=0.05)
    narrow = Problem(problem.inputs, problem.target, problem.names, operators=frozenset({"add", "mul"}))
    archive = search(narrow, 10)
    for entry in archive.front():
        text = to_text(entry.candidate.expression)
        assert "/" not in text and "sqrt" not in text and "**" not in text


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


def test_a_sum_under_a_factor_is_found_in_noise() -> None:
    # Neither a product of two library entries nor a sum of two.
    formula = "k/(k - m)*(exp(-m*t) - exp(-k*t))"
    problem = table(formula, {"k": (1, 3), "m": (0.1, 0.8), "t": (0.5, 8)}, 300, 0.02)
    reduction = Reduction.of_columns((), range(3))
    truth = evaluate(parse(formula, problem.names), problem.inputs)
    floor = np.mean((problem.target - truth) ** 2)
    with np.errstate(all="ignore"):
        found = proposed("scaled sums", Size(1_500, divisors=600), problem, reduction)
        losses = [np.mean((problem.target - evaluate(one.expression, problem.inputs)) ** 2) for one in found]
    assert min(losses) < 1.02 * floor


def test_the_parts_of_a_difference_may_each_explain_little() -> None:
    formula = "(exp(-v) - exp(-u*v))/(u - 1)"
    problem = table(formula, {"u": (1.2, 15), "v": (0.01, 3)}, 300)
    reduction = Reduction((), (Variable(0), Variable(1)))
    with np.errstate(all="ignore"):
        found = proposed("scaled sums", Size(400, divisors=100), problem, reduction)
        left = [evaluate(one.expression, problem.inputs) - problem.target for one in found]
    assert min(np.abs(error).max() for error in left) < 1e-12


@pytest.mark.parametrize(
    ("formula", "limits"),
    [
        ("4.1*exp(-0.8*t) + 1.3*exp(-0.09*t)", (0, 25)),
        ("2.3*exp(-1.1*t) - 0.7*sin(1.9*t + 0.4)", (0, 12)),
        ("0.9*tanh(0.7*t) + 0.2/(1 + ((t - 4)/0.9)**2)", (0, 9)),
    ],
)
def test_sums_of_two_functions_with_constants_are_found(formula: str, limits: tuple[float, float]) -> None:
    problem = table(formula, {"t": limits}, 60)
    assert _left_by_sums(problem, Size(6, divisors=4, shifts=20)) < 1e-12


def test_a_function_under_a_factor_beside_a_constant_is_found_under_a_reciprocal() -> None:
    problem = table("1/(0.4 + 0.3*p*exp(-0.8*t))", {"p": (1, 5), "t": (0.1, 4)}, 100)
    assert _left_by_sums(problem, Size(4, divisors=4, shifts=4)) < 1e-12


def _left_by_sums(problem: Problem, size: Size) -> float:
    """The least that sums of two parts leave of the target's variance."""
    reduction = Reduction.of_columns((), range(problem.columns))
    with np.errstate(all="ignore"):
        found = proposed("parametric sums", size, problem, reduction)
        left = [np.mean((evaluate(one.expression, problem.inputs) - problem.target) ** 2) for one in found]
    return float(min(left) / problem.target.var())


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


class TestFrames:
    def test_power_law_factors_are_divided_out(self) -> None:
        problem = table("a**2*sqrt(b)*(1 + c/d)", {"a": (1, 5), "b": (1, 5), "c": (1, 5), "d": (1, 5)}, 1000)
        factors = [
            {tree.index: exponent for tree, exponent in reduction.factors if isinstance(tree, Variable)}
            for reduction in reductions(problem.inputs, problem.target)
        ]
        assert any(f.get(0) == 2 and f.get(1) == Fraction(1, 2) and not {2, 3} & set(f) for f in factors)

    def test_columns_that_act_through_their_ratio_are_merged(self) -> None:
        problem = table("a*log(1 + b/c)", {"a": (1, 5), "b": (1, 5), "c": (1, 5)}, 1000)
        features = [reduction.features for reduction in reductions(problem.inputs, problem.target)]
        ratio = {to_text(feature) for some in features for feature in some}
        assert ratio & {"x2/x3", "x3/x2"}

    def test_columns_that_act_through_their_difference_are_merged(self) -> None:
        problem = table("exp(-(a - b)**2/c)", {"a": (1, 2), "b": (1, 2), "c": (1, 5)}, 1000)
        texts = {
            to_text(f) for reduction in reductions(problem.inputs, problem.target) for f in reduction.features
        }
        assert texts & {"x1 - x2", "x2 - x1"}

    def test_the_bare_columns_come_last(self) -> None:
        problem = table("a*b", {"a": (1, 5), "b": (1, 5)})
        assert reductions(problem.inputs, problem.target)[-1] == Reduction((), (Variable(0), Variable(1)))

    def test_telling_columns_of_a_wide_table(self) -> None:
        random = np.random.default_rng(5)
        inputs = random.uniform(1, 5, (300, 60))
        target = inputs[:, 17] ** 2 * inputs[:, 41] / inputs[:, 5]
        assert {5, 17, 41} <= set(relevant_columns(inputs, target))


@pytest.mark.parametrize(
    "transform", output_transforms(2, ALL), ids=lambda transform: "+".join(transform.sentences()) or "none"
)
def test_a_chain_undone_and_redone_is_the_identity(transform: object) -> None:
    target = np.random.default_rng(6).uniform(0.2, 0.9, 30)
    transformed = transform.undo(target)  # type: ignore[attr-defined]
    sentences = transform.sentences()  # type: ignore[attr-defined]
    signed = sentences[:1] in (("subtracted 1",), ("took the logarithm",))
    if transformed is None or (signed and "squared the target" in sentences):
        # A square forgets a sign: what is squared has to be positive.
        target = target + 1.5
        transformed = transform.undo(target)  # type: ignore[attr-defined]
    assert transformed is not None
    with np.errstate(all="ignore"):
        back = evaluate(transform.redo(Variable(0)), transformed[0][:, None])  # type: ignore[attr-defined]
    np.testing.assert_allclose(back, target, rtol=1e-9)
