"""What a state of snapping is worth: the evidence of its free constants less the price of its exact ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import bind, parameter_count
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.fitting.exact_constants.odds import DEFAULT_RULE, SettingRule
from physdiffuser.fitting.levenberg_marquardt import levenberg_marquardt
from physdiffuser.fitting.losses import Loss
from physdiffuser.fitting.student import student_weights
from physdiffuser.fitting.uncertainty import uncertainty
from physdiffuser.fitting.varpro import SeparableModel

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class EvidencePolicy:
    """Prices and tolerances of the evidence for an exact constant, in nats where nothing else is said.

    The price of a free constant was chosen by measurement (docs/fitting.md): an arbitrary constant known
    to 1 % is then taken for an exact one about one time in five, one known to 1e-4 one time in fifteen,
    one known to 1e-8 hardly ever, while small integers, halves and multiples of pi are found from 1 % on
    nearly always.
    """

    free_price: float = 2.5
    """Price of a free constant, beside its digits."""
    prior_width: float = 10.0
    """Standard deviation of a constant that the data do not fix, in units of its own size."""
    min_squares: float = 1e-290
    """Smallest sum of squares, in units of the largest value's square; its quotients are normal numbers."""
    blind: float = 1e-12
    """Smallest singular value, relative to the largest, of directions the rows say anything about."""
    window: float = 4.0
    """Standard errors within which exact values are tried."""
    rounding: float = 8.0
    """Rounding errors assumed per operation on a row, in units in the last place."""


POLICY = EvidencePolicy()


@dataclass(frozen=True)
class State:
    """Some constants exact, the others fitted again.

    Attributes
    ----------
    skeleton
        The free constants are parameters.
    values
        Shape (parameters,).
    errors
        Shape (parameters,): standard errors, each with all the others free.
    relative
        Shape (parameters, parameters): covariance of the relative errors.
    null
        Shape (directions, parameters): relative changes of the constants, together, that change no value.
    cost
        Price of the exact constants, in nats.
    fit
        Logarithm of the likelihood relative to the free fit's.
    score
        Logarithm of the posterior probability, up to a constant.
    changes
        What led here.
    """

    skeleton: Expression
    values: FloatArray
    errors: FloatArray
    relative: FloatArray
    null: FloatArray
    cost: float
    fit: float
    score: float
    changes: tuple[str, ...]

    @checked
    def moved(self, index: int, to: float) -> Float64[np.ndarray, " parameters"]:
        """All constants, when one of them is moved along what the data are blind to.

        Products keep their value when the logarithms move, sums when the numbers do: the first is
        taken for a move to 1, the second for a move to 0.
        """
        values = self.values.copy()
        part = self.null[:, index] if self.null.size else np.zeros(0)
        if part @ part > 0.0:
            direction = part @ self.null / (part @ part)
            if to == 0.0:
                values = values - direction * values
            elif values[index] * to > 0.0:
                values = values * (to / values[index]) ** np.where(np.abs(direction) > 1e-9, direction, 0.0)
        values[index] = to
        return np.where(np.isfinite(values), values, self.values)

    @property
    def loose(self) -> list[int]:
        """Constants that the data do not fix at all while the others are free."""
        size = np.maximum(np.abs(self.values), 5e-324)
        return [int(index) for index in np.flatnonzero(self.errors >= 0.3 * POLICY.prior_width * size)]

    @property
    def expression(self) -> Expression:
        """The formula with its numbers."""
        return bind(self.skeleton, list(self.values))


@dataclass(frozen=True)
class Proposal:
    """One step: a constant made exact, tied to another, or dropped.

    Attributes
    ----------
    skeleton
        The formula after it.
    values
        Shape (parameters,): where to start fitting the constants that stay free.
    cost
        Price of what became exact.
    gain
        What the score should rise by, from the errors at hand.
    change
        In words.
    """

    skeleton: Expression
    values: FloatArray
    cost: float
    gain: float
    change: str


class Evidence:
    """Rows, weights and the noise level against which all states are judged.

    The noise level is that of the free fit. It never falls below the rounding errors of the formula
    itself, which are measured by moving every input by a few units in the last place.
    """

    @checked
    def __init__(
        self,
        skeleton: Expression,
        inputs: Float64[np.ndarray, "rows columns"],
        target: Float64[np.ndarray, " rows"],
        weights: Float64[np.ndarray, " rows"] | None,
        loss: Loss,
        noise: float | None,
        rng: np.random.Generator,
        rule: SettingRule = DEFAULT_RULE,
    ) -> None:
        self.rule = rule
        self._inputs = inputs
        self._target = target
        self._given = weights
        self._weights = weights
        self._loss: Loss = loss
        self._noise = noise
        self._rng = rng
        self._freedom: int = max(target.shape[0] - parameter_count(skeleton), 1)
        self._scale = 1.0
        self._reference = 0.0
        self._floor = 0.0
        self._variance = 1.0
        self._inflation = 1.0
        self._known = False

    @checked
    def start(self, skeleton: Expression, values: Float64[np.ndarray, " parameters"]) -> State | None:
        """Fit everything freely and fix the noise level; None where the formula is not finite."""
        self._weights = self._given
        self._known, self._inflation = False, 1.0
        model = SeparableModel(skeleton, self._inputs, self._target, self._weights)
        found = levenberg_marquardt(model, values[:, None], iterations=60, loss=self._loss)
        if not math.isfinite(found.loss[0]):
            return None
        values = found.parameters[:, 0]
        prediction = model.tape.value(values)
        if self._loss == "robust":
            # The weights of the free fit stay for all states: which rows are outliers is then settled.
            root = 1.0 if model.root_weights is None else model.root_weights
            robust = student_weights(root * (self._target - prediction))
            self._weights = robust if self._weights is None else robust * self._weights
            model = SeparableModel(skeleton, self._inputs, self._target, self._weights)
            found = levenberg_marquardt(model, values[:, None], iterations=20)
            values = found.parameters[:, 0]
            prediction = model.tape.value(values)
        self._scale = model.scale
        root = 1.0 if model.root_weights is None else model.root_weights
        residual = root * (self._target - prediction) / self._scale
        self._floor = self._rounding(skeleton, values, prediction, root)
        self._reference = float(residual @ residual)
        self._variance = max(self._reference, self._floor) / self._freedom
        if self._noise:
            size = root * self._target / self._scale
            known = self._noise**2 * float(size @ size) / size.size
            self._known = known > self._floor / size.size
            if self._known:
                self._variance = known
        if not self._known and self._freedom > 20:
            args = (skeleton, values, self._inputs, self._target)
            even = uncertainty(*args, weights=self._weights, covariance="classical").standard_errors
            uneven = uncertainty(*args, weights=self._weights, covariance="sandwich").standard_errors
            ratio = float(
                np.nanmax(np.where(np.isfinite(even) & (even > 0), uneven / even, 0.0), initial=0.0)
            )
            # Noise that differs from row to row makes the likelihood too sure of itself.
            self._inflation = max(1.0, ratio * ratio) if ratio > 1.3 else 1.0
        return self._state(skeleton, values, 0.0, ())

    def _rounding(
        self, skeleton: Expression, values: FloatArray, prediction: FloatArray, root: FloatArray | float
    ) -> float:
        """Sum of squares that rounding alone explains."""
        tape_size = POLICY.rounding * _EPSILON
        moved = np.zeros_like(prediction)
        for _ in range(3):
            shaken = self._inputs * (1.0 + tape_size * self._rng.standard_normal(self._inputs.shape))
            # No constant is nearer to its true value than its own last bit.
            near = values * (1.0 + 2.0 * _EPSILON * self._rng.standard_normal(values.shape))
            change = (EvaluationTape(skeleton, shaken).value(near) - prediction) / self._scale
            moved += np.where(np.isfinite(change), change * change, 0.0) / 3.0
        # In units of the target's scale before they are squared: squares of 1e200 are not finite.
        largest = np.maximum(np.abs(prediction), np.abs(self._target)) / self._scale
        size = ((tape_size * largest) ** 2 + moved) * np.square(root)
        # Where weights count rows of tiny values alone, squares in units of the largest value vanish.
        return max(float(size.sum()), POLICY.min_squares)

    @property
    def window(self) -> float:
        """How many standard errors a term may lie from 0 to be dropped: 4 for many rows, more for few."""
        return self.with_few_rows(POLICY.window)

    def with_few_rows(self, deviations: float) -> float:
        """Standard errors that are as unlikely as so many of a known noise level: more for few rows."""
        if self._known:
            return deviations
        return math.sqrt(self._freedom * math.expm1(min(deviations**2 / self._freedom, 5.0)))

    def penalty(self, deviations: float) -> float:
        """What moving a constant by so many standard errors costs, in nats: Student's t."""
        if self._known:
            return 0.5 * deviations * deviations
        freedom = self._freedom
        return 0.5 * freedom * math.log1p(deviations * deviations / freedom)

    def follow(self, state: State, proposal: Proposal) -> State | None:
        """The state after a proposal, the free constants fitted again; None where that fails."""
        changes = (*state.changes, proposal.change) if proposal.change else state.changes
        values = proposal.values
        if values.size:
            model = SeparableModel(proposal.skeleton, self._inputs, self._target, self._weights)
            found = levenberg_marquardt(model, values[:, None], iterations=25)
            if not math.isfinite(found.loss[0]):
                return None
            values = found.parameters[:, 0]
        return self._state(proposal.skeleton, values, state.cost + proposal.cost, changes)

    def _state(
        self, skeleton: Expression, values: FloatArray, cost: float, changes: tuple[str, ...]
    ) -> State | None:
        count = values.size
        tape = EvaluationTape(skeleton, self._inputs)
        value, jacobian = tape.value_and_jacobian(values)
        root = 1.0 if self._weights is None else np.sqrt(self._weights / self._weights.mean())
        residual = root * (self._target - value) / self._scale
        squares = float(residual @ residual)
        if not math.isfinite(squares):
            return None
        fit = self._log_likelihood(squares)
        if count == 0:
            empty = np.zeros((0, 0))
            return State(skeleton, values, np.zeros(0), empty, empty, cost, fit, fit - cost, changes)
        slopes = root * jacobian / self._scale
        sigma = math.sqrt(self._variance * self._inflation)
        lengths = np.sqrt(np.einsum("pr,pr->p", slopes, slopes))
        lengths = np.where(np.isfinite(lengths), lengths, 0.0)
        # A constant near 0 has no size of its own: the error it has when the others are fixed stands in.
        alone = np.where(lengths > 0.0, sigma / np.where(lengths > 0.0, lengths, 1.0), 0.0)
        size = np.hypot(values, alone)
        size = np.where(size > 0.0, size, 1.0)
        unit = np.where(np.isfinite(slopes), slopes, 0.0) * size[:, None] / sigma
        # Singular values, not the squares of the normal matrix: clean data differ by 1e30 in precision.
        length = np.sqrt(np.einsum("pr,pr->p", unit, unit) + POLICY.prior_width**-2)
        if not np.isfinite(length).all():
            return None  # so steep in a constant that its squares are not finite: nothing to be judged
        singular, vectors = np.linalg.svd((unit / length[:, None]).T, full_matrices=False)[1:]
        blind = singular <= POLICY.blind * singular.max()
        inverse = np.where(blind, 0.0, 1.0 / np.where(blind, 1.0, singular) ** 2)
        covariance = (vectors.T * inverse) @ vectors / np.outer(length, length)
        # No error exceeds what the prior allows, and where the data are blind that is the error.
        errors = np.sqrt(np.diag(covariance))
        wide = (np.abs(vectors[blind]) > 1e-6).any(axis=0) | (errors > POLICY.prior_width)
        if singular.size < count:
            wide |= True
        factor = np.where(wide, POLICY.prior_width / np.where(errors > 0.0, errors, 1.0), 1.0)
        covariance = covariance * np.outer(factor, factor)
        errors = np.where(wide, POLICY.prior_width, errors)
        known = np.where(blind, 1.0, singular)
        log_determinant = 2.0 * float(np.log(known).sum() + np.log(np.where(wide, 1.0, length)).sum())
        log_determinant -= 2.0 * math.log(POLICY.prior_width) * int(wide.sum())
        free = 0.5 * count * math.log(2.0 * math.pi) - 0.5 * log_determinant - count * POLICY.free_price
        own = size / np.where(values == 0.0, size, values)
        relative = covariance * np.outer(own, own)
        null = vectors[blind] / length * own
        errors = np.maximum(size * errors, 2.0 * _EPSILON * np.abs(values))
        return State(skeleton, values, errors, relative, null, cost, fit, fit - cost + free, changes)

    def _log_likelihood(self, squares: float) -> float:
        if self._known:
            return -(squares - self._reference) / (2.0 * self._variance)
        # Student's: the noise level is itself an estimate.
        # Below the floor all fits are alike: what differs is rounding.
        gain = math.log(max(squares, self._floor)) - math.log(max(self._reference, self._floor))
        return float(-0.5 * self._freedom * gain / self._inflation)
