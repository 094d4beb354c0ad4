"""The measurements that would best tell the surviving laws apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.formula_fits import refitted
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.next_measurements import NextMeasurement, NextMeasurements
from physdiffuser.data.dataset import Dataset
from physdiffuser.design.discrimination import Exploration, Prediction, discriminating_points, separation
from physdiffuser.design.points import Range, as_shares, candidate_points, column_ranges
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.tree import distinct_constants
from physdiffuser.fitting import uncertainty
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.noise.models import KINDS, fit_noise_model
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.search.table_search import Found, on_rows


@dataclass(frozen=True)
class SuggestionPolicy:
    """Which laws take part in suggestions.

    The temperature follows from the calibration of description lengths (docs/calibration.md), the others
    were set by hand.
    """

    excluded: float = 10.0
    """Laws that describe the table in so many nats more than the shortest are excluded: odds of 20,000 to
    1."""
    max_laws: int = 12
    """Laws that take part."""
    temperature: float = 4.0
    """Nats by which a law counts e times less: lengths are no exact odds."""
    same: float = 0.1
    """Laws that differ by less than this share of the noise at every point are the same."""
    max_rows: int = 2_000
    """Rows on which the constants of laws are fitted."""


POLICY = SuggestionPolicy()


@dataclass(frozen=True, eq=False)
class SurvivingLaw:
    """A law that the table does not exclude, with its fitted constants.

    Attributes
    ----------
    expression
        The law.
    row
        Its row in the Pareto table, counted from 1; None if it has none.
    length
        Nats to describe the table by it.
    """

    expression: Expression
    row: int | None
    length: float


def next_measurements(
    solution: Solution, found: Found, count: int, wider: Mapping[int, Range]
) -> NextMeasurements | None:
    """Suggest measurements; None without a law.

    Parameters
    ----------
    solution
        Of the table.
    found
        What the search has found: laws that have no row in the Pareto table survive as well.
    count
        How many measurements.
    wider
        Ranges by column, in place of those of the table.
    """
    if solution.best is None:
        return None
    rows = np.sort(np.random.default_rng(0).permutation(found.dataset.rows)[: POLICY.max_rows])
    problem = on_rows(found.problem, found.dataset, rows)
    laws = surviving_laws(solution, found)
    # Also the columns that no law uses: their influence may not have been seen yet.
    used = range(found.dataset.inputs.shape[1])
    ranges = column_ranges(found.dataset.inputs, wider)
    points = candidate_points(found.dataset.inputs, ranges, used)
    best = np.asarray(evaluate(laws[0].expression, points) + np.zeros(len(points)), float)
    points, best = points[np.isfinite(best)], best[np.isfinite(best)]
    if not len(points):
        return None
    noise = noise_at(laws[0].expression, best, problem, found.dataset)
    kept: list[SurvivingLaw] = []
    predictions: list[Prediction] = []
    for law in laws:
        prediction = law_prediction(law.expression, points, problem)
        if prediction is not None and not any(_same(prediction, other, noise) for other in predictions):
            kept.append(law)
            predictions.append(prediction)
        if len(kept) == POLICY.max_laws:
            break
    texts = tuple(to_text(law.expression, solution.names) for law in kept)
    shown = (tuple(law.expression for law in kept), texts, tuple(law.row for law in kept))
    # An exact law needs no measurement, and one of an earlier version has no probability.
    unknown = (solution.none_of_these or 0.0) if solution.status != "exact" else 0.0
    if len(kept) < 2 and not unknown:
        return NextMeasurements(*shown, tuple(ranges), ())
    shortest = min(law.length for law in kept)
    weights = [float(np.exp((shortest - law.length) / POLICY.temperature)) for law in kept]
    places, measured = (as_shares(one, ranges, used) for one in (points, problem.inputs))
    exploration = Exploration(places, measured, unknown)
    design = discriminating_points(predictions, weights, noise, count, exploration)
    return NextMeasurements(
        *shown, tuple(ranges), tuple(_measurement(predictions, points, noise, place) for place in design)
    )


def surviving_laws(solution: Solution, found: Found) -> list[SurvivingLaw]:
    """The chosen law first, then all that describe the table in nearly as few nats, shortest first."""
    best = solution.best
    assert best is not None
    problem = found.problem
    laws = [
        SurvivingLaw(row.expression, number, row.description_length)
        for number, row in enumerate(solution.pareto, start=1)
        if row.description_length is not None
    ]
    archive = found.result.archive
    own = best.description_length if best.description_length is not None else np.inf
    shortest = min([own, *(law.length for law in laws)])
    for entry in (*archive.front(), *archive.near()):
        expression = refitted(entry.candidate.expression, replace(archive.problem, loss=problem.loss))
        laws.append(SurvivingLaw(expression, None, archive.length(entry)))
    chosen = next((law for law in laws if law.expression == best.expression), None)
    first = chosen or SurvivingLaw(best.expression, None, own)
    others = [law for law in laws if law is not first and law.length < shortest + POLICY.excluded]
    return [first, *sorted(others, key=lambda law: law.length)]


def noise_at(
    expression: Expression, prediction: FloatArray, problem: Problem, dataset: Dataset
) -> FloatArray:
    """Standard deviation of a measurement where the law has these values, shape (points,)."""
    own = evaluate(expression, problem.inputs)
    constants = len(distinct_constants(expression)[1])
    if dataset.stated_errors is not None:
        deviation = np.full(len(prediction), float(np.median(dataset.stated_errors)))
    else:
        one_sign = problem.target.min() > 0 or problem.target.max() < 0
        models = [
            fit_noise_model(kind, problem.target, own, constants)
            for kind in (KINDS if one_sign else ("constant",))
        ]
        deviation = min(models, key=lambda model: model.nats).deviation(prediction)
    # No number is known better than it was written.
    rounding = decimal_precision(problem.target) * float(np.abs(problem.target).max())
    return np.asarray(np.maximum(np.nan_to_num(deviation), rounding), float)


@np.errstate(all="ignore")
def law_prediction(expression: Expression, points: FloatArray, problem: Problem) -> Prediction | None:
    """Values and their spread; None for a law whose constants the rows do not determine."""
    skeleton, values = distinct_constants(expression)
    mean = np.asarray(evaluate(expression, points) + np.zeros(len(points)), float)
    if not values:
        return Prediction(mean, np.zeros((0, len(points))))
    if problem.rows <= len(values):
        return None
    known = uncertainty(
        skeleton,
        np.array(values),
        problem.inputs,
        problem.target,
        weights=problem.weights,
        covariance="classical",
    )
    if not np.isfinite(known.standard_errors).all():
        return None
    jacobian = EvaluationTape(skeleton, points).value_and_jacobian(np.array(values))[1]
    size, vectors = np.linalg.eigh(known.correlation)
    root = vectors * np.sqrt(np.maximum(size, 0.0))
    spread = root.T @ (known.standard_errors[:, None] * jacobian)
    return Prediction(mean, np.where(np.isfinite(spread), spread, 0.0))


@np.errstate(all="ignore")
def _same(prediction: Prediction, other: Prediction, noise: FloatArray) -> bool:
    apart = np.abs(prediction.mean - other.mean)
    return bool((apart <= POLICY.same * noise).all())


def _measurement(
    predictions: Sequence[Prediction], points: FloatArray, noise: FloatArray, place: int
) -> NextMeasurement:
    apart, one, other = separation(predictions, noise, place)
    return NextMeasurement(
        inputs=tuple(float(value) for value in points[place]),
        noise=float(noise[place]),
        values=tuple(float(law.mean[place]) for law in predictions),
        errors=tuple(float(np.sqrt(law.variance[place])) for law in predictions),
        separation=apart,
        between=(one, other),
    )
