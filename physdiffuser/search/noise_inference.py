"""The noise model is chosen together with the law.

Least squares with equal weights follows the rows with the largest values. Where the target spans more than a
small ratio, the table is therefore searched twice: with equal weights and with weights for errors in
proportion to the value. The descriptions of both searches are then compared under every noise model, with its
likelihood; see `physdiffuser.noise.models`. Where the target spans many decades the weights come first, and
the search with equal weights is left out if errors then grow beyond doubt. The search goes on with the
weights of the best one, or with the likelihood of Student's t. Of tables that span less, the formulas of the
one search are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Entry
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.fitting import refit
from physdiffuser.noise.models import KINDS, NoiseKind, NoiseModel, fit_noise_model
from physdiffuser.noise.reweighting import ENOUGH_ROWS
from physdiffuser.selection.description_length import residual_is_noise

if TYPE_CHECKING:
    from physdiffuser.core.problem import NoiseModelName
    from physdiffuser.search.loop import SearchLoop


@dataclass(frozen=True)
class NoiseInferencePolicy:
    """When weights are tried, and when another noise model is used; chosen on development laws."""

    wide: float = 3.0
    """Quotient of the 95 % and the 5 % quantile of the target's size from which weights may change the
    law."""
    min_rows: int = 6
    decisive: float = 3.0
    """Rows that can show how errors grow, and nats by which another model must describe them better than
    constant errors."""
    sure: float = 10.0
    moderate: float = 1e3
    """With so many nats in favour of constant errors, and values that span less, the other search is not
    needed."""
    smallest: float = 0.05
    """Sizes below this share of the median get no larger weights where the target takes both signs or is
    0."""
    early_share: float = 0.3
    early_steps: int = 80
    first_share: float = 0.55
    second_share: float = 0.85
    """Shares of the budget after which a search with weights that comes first ends (or after so many steps),
    the one with equal weights pauses, and one with weights that comes after it ends."""
    reweighted: tuple[NoiseKind, ...] = ("relative", "poisson", "mixed")
    reweightings: int = 2
    few_steps: int = 10
    """Models under which constants are fitted again before they are compared; fits, and steps of each."""


POLICY = NoiseInferencePolicy()


@dataclass(frozen=True)
class NoisyLaw:
    """A formula with the noise model that describes the table best with it.

    Attributes
    ----------
    expression
        The formula.
    model
        The noise model.
    nats
        Length of the description, comparable between noise models.
    advantage
        Nats by which it is shorter than with constant errors.
    """

    expression: Expression
    model: NoiseModel
    nats: float
    advantage: float


def is_wide(target: FloatArray) -> bool:
    """Whether rows with small values would hardly count without weights."""
    if len(target) < POLICY.min_rows:
        return False
    low, high = np.quantile(np.abs(target), (0.05, 0.95))
    return bool(high > POLICY.wide * low)


def spans_decades(target: FloatArray) -> bool:
    """Whether the values have one sign and span so much that equal weights follow only the largest."""
    if len(target) < POLICY.min_rows or target.min() <= 0 <= target.max():
        return False
    low, high = np.quantile(np.abs(target), (0.05, 0.95))
    return bool(high > POLICY.moderate * low)


def grows_surely(loop: SearchLoop) -> bool:
    """Whether no formula of a search with weights for relative errors is described as well by constant ones.

    The formulas are fitted with equal weights for that.
    """
    law = best_law([loop], [kind for kind in _kinds(loop.problem.all_rows) if kind in POLICY.reweighted])
    if law is None:
        return False
    rows, constant_nats = loop.problem.all_rows, loop.description_length.constant_nats
    for entry in loop.archive.front():
        expression = refit(
            entry.candidate.expression, rows.inputs, rows.target, iterations=POLICY.few_steps
        ).expression
        prediction = evaluate(expression, rows.inputs)
        if np.isfinite(prediction).all():
            model = fit_noise_model("constant", rows.target, prediction, entry.constants)
            if entry.nats + entry.constants * constant_nats + model.nats < law.nats + POLICY.sure:
                return False
    return True


def relative_weights(target: FloatArray) -> FloatArray:
    """Weights for errors in proportion to the value, mean 1, shape (rows,)."""
    size = np.abs(target)
    if target.min() <= 0 <= target.max():
        size = np.maximum(size, POLICY.smallest * float(np.median(size)))
    if not size.min() > 0:
        return np.ones(len(target))
    # From logarithms: the squares of 1e200 are no numbers.
    exponent = -2 * np.log(size)
    weights = np.exp(np.maximum(exponent - exponent.max(), -600.0))
    return np.asarray(weights / weights.mean(), float)


def decided_law(loops: list[SearchLoop], model: NoiseModelName) -> NoisyLaw | None:
    """The shortest description whose noise model is asked for, or clearly better than constant errors.

    Parameters
    ----------
    loops
        The searches that have been made; of a table that does not span much only one.
    model
        "mixed", or "auto".
    """
    if model == "mixed":
        return best_law(loops, ("mixed",))
    rows = loops[0].problem.all_rows
    law = best_law(loops)
    if law is not None and law.model.kind == "robust" and not _leaves_noise(law, rows):
        # What a law misses, a narrow peak say, looks like heavy tails.
        law = best_law(loops, [kind for kind in KINDS if kind != "robust"])
    if law is None or law.model.kind == "constant" or law.advantage < POLICY.decisive:
        return None
    return law if len(loops) > 1 or _leaves_noise(law, rows) else None


def _leaves_noise(law: NoisyLaw, rows: Problem) -> bool:
    with np.errstate(all="ignore"):
        residual = rows.target - evaluate(law.expression, rows.inputs)
    return residual_is_noise(rows.inputs, residual, rows.weights)


def best_law(loops: list[SearchLoop], kinds: Sequence[NoiseKind] = KINDS) -> NoisyLaw | None:
    """The shortest description of the rows by a formula of some searches, under any of the noise models.

    Models that need a target of one sign are left out where it has both.
    """
    laws: list[NoisyLaw] = []
    for loop in loops:
        for entry in loop.archive.front():
            law = _under_best_model(entry, loop.problem, loop.description_length.constant_nats, kinds)
            if law is not None:
                laws.append(law)
    if not laws:
        return None
    best = min(laws, key=lambda law: law.nats)
    constant = min(law.nats + law.advantage for law in laws)
    return replace(best, advantage=constant - best.nats)


def needs_other_search(loop: SearchLoop) -> bool:
    """Whether weights for relative errors might lead to another law than equal weights did."""
    rows, best = loop.problem.all_rows, loop.best
    if best is None:
        return True
    low, high = np.quantile(np.abs(rows.target), (0.05, 0.95))
    if high > POLICY.moderate * low:
        return True
    models = _noise_models(best, rows)
    if not models:
        return True
    # A formula that follows the large values alone has errors of its own in the small ones, which look like
    # constant errors: all formulas are asked.
    growing = best_law([loop], [kind for kind in _kinds(rows) if kind in ("relative", "poisson")])
    if growing is not None and growing.advantage > -POLICY.sure:
        return True
    # With a large constant part the mixed model is that of constant errors, only longer by its parameter.
    # Weights by it lead elsewhere only if the rows ask for them.
    return models["mixed"].nats < models["constant"].nats


def _under_best_model(
    entry: Entry, problem: Problem, constant_nats: float, kinds: Sequence[NoiseKind]
) -> NoisyLaw | None:
    rows = problem.all_rows
    models = _noise_models(entry, rows)
    if not models:
        return None
    expression = entry.candidate.expression
    fits = [(models[kind], expression) for kind in kinds if kind in models]
    fits += [fit for model, _ in fits if (fit := _reweighted(entry, model, problem)) is not None]
    if not fits:
        return None
    best, expression = min(fits, key=lambda fit: fit[0].nats)
    constant = models["constant"].nats
    if not np.isfinite(best.nats):
        return None
    described = entry.nats + entry.constants * constant_nats
    return NoisyLaw(expression, best, described + best.nats, constant - best.nats)


@np.errstate(all="ignore")
def _reweighted(entry: Entry, model: NoiseModel, problem: Problem) -> tuple[NoiseModel, Expression] | None:
    """The noise model with the constants that fit under it; None where no weights follow from it.

    Constants that were fitted under weights by the measured values follow the rows that lie low by chance,
    and speak against the law.
    """
    if model.kind not in POLICY.reweighted or not entry.constants:
        return None
    rows, expression = problem.all_rows, entry.candidate.expression
    for _ in range(POLICY.reweightings):
        weights = model.weights(evaluate(expression, problem.inputs))
        if not np.isfinite(weights).all():
            return None
        expression = refit(
            expression, problem.inputs, problem.target, weights=weights, iterations=POLICY.few_steps
        ).expression
        prediction = evaluate(expression, rows.inputs)
        if not np.isfinite(prediction).all():
            return None
        model = fit_noise_model(model.kind, rows.target, prediction, entry.constants)
    return model, expression


def _noise_models(entry: Entry, rows: Problem) -> dict[NoiseKind, NoiseModel]:
    """The noise models that fit the sign of the target, constant errors first; none without finite values."""
    with np.errstate(all="ignore"):
        prediction = evaluate(entry.candidate.expression, rows.inputs)
        if not np.isfinite(prediction).all():
            return {}
        return {
            kind: fit_noise_model(kind, rows.target, prediction, entry.constants) for kind in _kinds(rows)
        }


def _kinds(rows: Problem) -> tuple[NoiseKind, ...]:
    signed = ("relative", "poisson") if rows.target.min() <= 0 <= rows.target.max() else ()
    # Outliers of smaller tables are found one by one.
    few = ("robust",) if rows.rows < ENOUGH_ROWS else ()
    return tuple(kind for kind in KINDS if kind not in (*signed, *few))
