"""Noisy screening ranks by the residuals of the target itself, with the weights of its rows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import OPERATORS, Variable, evaluate, parse
from physdiffuser.generation.enumeration.context import Context, transformed_targets
from physdiffuser.generation.enumeration.screening import ScreeningTable, TopK
from physdiffuser.generation.enumeration.stages.products import (
    screen_products,
    screen_singles,
    screen_without_constants,
)
from physdiffuser.generation.enumeration.stages.scaled_sums import screen_scaled_sums
from physdiffuser.generation.enumeration.stages.sums import screen_sums
from physdiffuser.library.expression_library import Library
from physdiffuser.library.matches import Match, Product, Single
from physdiffuser.transforms.output_transforms import EXP, INVERSE
from physdiffuser.transforms.transform import OutputTransform, output_transforms

FloatArray = npt.NDArray[np.float64]
NAMES = ("a", "b")
LAW = "a*exp(-b) + 0.3*b"
FRAME = Reduction((), (Variable(0), Variable(1)))


class Recorder(TopK):
    """Keeps every find with its residual."""

    def __init__(self) -> None:
        super().__init__()
        self.finds: list[tuple[float, Match]] = []

    def admits(self, cost: int, residual: float) -> bool:
        return len(self.finds) < 400

    def add(self, cost: int, residual: float, make: Callable[[], Match]) -> None:
        self.finds.append((residual, make()))


def weighted_table() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Inputs, a noisy target, and weights that span two decades."""
    random = np.random.default_rng(0)
    inputs = random.uniform(0.5, 3, (120, 2))
    target = evaluate(parse(LAW, NAMES), inputs) + 0.02 * random.normal(size=120)
    return inputs, target, 10.0 ** random.uniform(-1, 1, 120)


def library_of(inputs: FloatArray, size: int = 400) -> Library:
    """Small expressions of both columns."""
    library = Library(inputs, FRAME.features, frozenset(OPERATORS))
    for _ in library.grow(size):
        continue
    return library


def best_share(terms: list[FloatArray], target: FloatArray, weights: FloatArray) -> float:
    """The least weighted sum of squares that a linear combination leaves, over that of a constant."""
    root = np.sqrt(weights)
    design = np.stack(terms, axis=1) * root[:, None]
    coefficients = np.linalg.lstsq(design, root * target, rcond=None)[0]
    left = np.square(root * target - design @ coefficients).sum()
    return float(left / (weights * np.square(target - np.average(target, weights=weights))).sum())


def screened(kind: str, target: FloatArray, weights: FloatArray) -> Recorder:
    """What one screening finds for a target with row weights."""
    inputs = weighted_table()[0]
    library = library_of(inputs)
    order = np.argsort(library.costs, kind="stable")[:120]
    transformed = transformed_targets(target, weights, (OutputTransform(()),))
    table = ScreeningTable(library, FRAME, transformed, order)
    top_k = Recorder()
    if kind == "products":
        work = chain(screen_singles(table, top_k), screen_products(table, order[:20], top_k))
    else:
        work = chain(
            {
                "sums": screen_sums(table, top_k),
                "scaled sums": screen_scaled_sums(table, order[:10], top_k),
                "without constants": screen_without_constants(table, top_k),
            }[kind]
        )
    with np.errstate(all="ignore"):
        for _ in work:
            continue
    return top_k


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["products", "sums", "scaled sums"])
def test_finds_are_ranked_by_weighted_residuals_of_the_target(kind: str, weighted: bool) -> None:
    """Also where the target was divided by a factor first: then weights are multiplied by its square."""
    inputs, target, weights = weighted_table()
    weights = weights if weighted else np.ones(120)
    top_k = screened(kind, target, weights)
    factors = 0
    for residual, match in top_k.finds:
        terms = [term.values for term in match.terms(inputs)]
        factor = terms[0]
        factors += bool(np.ptp(factor) > 0)
        assert residual == pytest.approx(best_share(terms, target, weights), rel=2e-3, abs=1e-6)
    assert len(top_k.finds) > 20
    assert kind == "sums" or factors > 10


@pytest.mark.parametrize("weighted", [False, True])
def test_each_factor_is_paired_with_its_best_partner_of_each_cost(weighted: bool) -> None:
    """Which partner is best depends on the weights that the divided target has."""
    inputs, target, weights = weighted_table()
    weights = weights if weighted else np.ones(120)
    library = library_of(inputs)
    order = np.argsort(library.costs, kind="stable")[:120]
    costs = {library.expression(entry): library.costs[entry] for entry in order}
    looked_at = 0
    for residual, match in screened("products", target, weights).finds:
        if not isinstance(match, Product):
            continue
        factor = evaluate(match.left, inputs)
        partners = [tree for tree, cost in costs.items() if cost == costs[match.right]]
        best = min(
            best_share([factor, factor * evaluate(tree, inputs)], target, weights) for tree in partners
        )
        assert residual <= best * 1.01
        looked_at += 1
    assert looked_at > 10


@pytest.mark.parametrize("weighted", [False, True])
def test_finds_without_constants_are_ranked_by_weighted_residuals(weighted: bool) -> None:
    inputs, target, weights = weighted_table()
    weights = weights if weighted else np.ones(120)
    total = float((weights * np.square(target - np.average(target, weights=weights))).sum())
    top_k = screened("without constants", target, weights)
    assert len(top_k.finds) > 10
    for residual, match in top_k.finds:
        assert isinstance(match, Single)
        values = evaluate(match.right, inputs)
        as_is = min(float(weights @ np.square(target - sign * values)) for sign in (1, -1)) / total
        factor = (weights * values) @ target / (weights @ np.square(values))
        scaled = float(weights @ np.square(target - factor * values)) / total
        assert residual == pytest.approx(as_is) or residual == pytest.approx(scaled)


def test_a_transformed_target_has_the_weights_of_the_target_times_those_of_the_transform() -> None:
    """An error d of y is an error d/y**2 of 1/y."""
    _, target, weights = weighted_table()
    target = np.abs(target) + 0.1
    ((_, transformed, scaled),) = transformed_targets(target, weights, (OutputTransform((INVERSE,)),))
    np.testing.assert_allclose(transformed, 1 / target)
    ratio = scaled / (weights * target**4)
    np.testing.assert_allclose(ratio, ratio[0])


def test_weights_of_a_divided_target_are_multiplied_by_the_square_of_the_factor() -> None:
    inputs, target, weights = weighted_table()
    reduction = Reduction.of_columns([(0, 2)], [1])  # type: ignore[list-item]
    divided = reduction.divided_out(inputs, target, weights)
    assert divided is not None
    np.testing.assert_allclose(divided[0], target / inputs[:, 0] ** 2)
    ratio = divided[1] / (weights * inputs[:, 0] ** 4)
    np.testing.assert_allclose(ratio, ratio[0])


def two_laws() -> Problem:
    """Rows of small weight follow another law."""
    random = np.random.default_rng(1)
    inputs = random.uniform(0.5, 3, (400, 2))
    trusted = random.random(400) < 0.5
    law, other = (evaluate(parse(text, NAMES), inputs) for text in ("sqrt(a)/b", "3*sin(2*a) + b**2"))
    target = np.where(trusted, law, other) + 0.02 * random.normal(size=400)
    weights = np.where(trusted, 1.0, 1e-9)
    return Problem(inputs, target, NAMES, weights=weights / weights.mean())


def test_weights_of_the_user_take_part_in_noisy_screening() -> None:
    problem = two_laws()
    context = Context(problem)
    assert problem.weights is not None
    ((_, target, weights),) = [item for item in context.transformed(FRAME) if not item[0].steps]
    rows = context.screening_rows
    np.testing.assert_allclose(target, problem.target[rows])
    np.testing.assert_allclose(weights / weights.mean(), problem.weights[rows] / problem.weights[rows].mean())


def test_transforms_have_identifiers_of_their_own() -> None:
    """Algorithms choose by these, and never by the sentence of a derivation."""
    steps = {step for transform in output_transforms(2, frozenset(OPERATORS)) for step in transform.steps}
    assert len({step.id for step in steps}) == len({step.sentence for step in steps}) == len(steps)
    tolerant = {step.id for step in steps if step.noise_tolerant}
    assert tolerant == {"reciprocal", "square", "log", "sqrt"}
    assert OutputTransform((INVERSE,)).noise_tolerant and not OutputTransform((EXP,)).noise_tolerant
