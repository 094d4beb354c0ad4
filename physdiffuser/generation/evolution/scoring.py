"""Scores of many formulas at once, their scale and offset fitted in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.expressions import Expression
from physdiffuser.expressions.batch import Evaluator

# An offset, a scale stay only if they lower the loss by this share: each costs two nodes.
OFFSET_GAIN = 0.02
SCALE_GAIN = 0.01
# Losses below cannot be distinguished from rounding in the closed form.
LOSS_FLOOR = 1e-15
_PROBES = 8


@dataclass(frozen=True)
class Scores:
    """Closed-form fits of `offset + factor*f` for n formulas f.

    Attributes
    ----------
    loss
        Shape (n,): weighted mean square residual over that of the best constant; inf if a value is not
        finite or the formula is constant.
    factor, offset
        Shape (n,). The offset is 0 where it does not pay.
    keys
        One per formula: equal for formulas that are affine functions of each other.
    """

    loss: FloatArray
    factor: FloatArray
    offset: FloatArray
    keys: tuple[bytes, ...]


class Scorer:
    """Scores formulas on fixed rows.

    Parameters
    ----------
    inputs, target
        Shapes (rows, columns) and (rows,).
    weights
        Shape (rows,), positive, or None.
    """

    def __init__(self, inputs: FloatArray, target: FloatArray, weights: FloatArray | None) -> None:
        self.inputs = inputs
        self.target = target
        self.evaluator = Evaluator(inputs)
        self.scored = 0
        self._buffer = np.empty((0, target.shape[0]))
        # Probes spread over the target's range tell formulas apart better than neighbours.
        order = np.argsort(target, kind="stable")
        self._probes = order[spread_places(order.size, _PROBES)]
        self.reweight(weights)

    def reweight(self, weights: FloatArray | None) -> None:
        """Use other row weights from now on."""
        rows = self.target.shape[0]
        share = np.full(rows, 1.0 / rows) if weights is None else weights / weights.sum()
        self.share = share
        self._mean = float(share @ self.target)
        self._centred = self.target - self._mean
        self._variance = max(float(share @ self._centred**2), 1e-300)
        self._square = self._variance + self._mean**2

    @property
    def variance(self) -> float:
        """Weighted variance of the target: the loss of the constant model."""
        return self._variance

    def values(self, expressions: Sequence[Expression]) -> FloatArray:
        """Shape (expressions, rows); valid until the next call."""
        if self._buffer.shape[0] < len(expressions):
            self._buffer = np.empty((len(expressions), self.target.shape[0]))
        values = self._buffer[: len(expressions)]
        self.evaluator(expressions, values)
        return values

    def score(self, expressions: Sequence[Expression]) -> Scores:
        """Fit scale and offset of each formula and score it."""
        self.scored += len(expressions)
        with np.errstate(all="ignore"):
            return self._score(self.values(expressions))

    def _score(self, values: FloatArray) -> Scores:
        mean = values @ self.share
        # Overflow in the squares below must not reject 1e200*x: bring each formula to size one.
        size = np.abs(values).max(axis=1, initial=0.0)
        size = np.where((size > 0.0) & np.isfinite(size), size, 1.0)
        values /= size[:, None]
        mean /= size
        values -= mean[:, None]
        spread = np.einsum("nr,nr,r->n", values, values, self.share)
        along = values @ (self.share * self._centred)
        square = spread + mean**2
        with_offset = 1.0 - along**2 / (spread * self._variance)
        product = along + mean * self._mean
        without = (self._square - product**2 / square) / self._variance
        constant = ~(spread > 1e-24 * square)
        with_offset = np.where(constant | ~np.isfinite(with_offset), np.inf, with_offset)
        plain = without <= with_offset * (1.0 + OFFSET_GAIN) + LOSS_FLOOR
        factor = np.where(plain, product / square, along / spread)
        offset = np.where(plain, 0.0, self._mean - factor * mean)
        loss = np.maximum(np.where(plain, without, with_offset), LOSS_FLOOR)
        bare = (spread * size - 2.0 * along) * size + self._variance + (size * mean - self._mean) ** 2
        bare /= self._variance
        unscaled = bare <= loss * (1.0 + SCALE_GAIN) + LOSS_FLOOR
        factor = np.where(unscaled, size, factor)
        offset = np.where(unscaled, 0.0, offset)
        loss = np.where(unscaled, np.maximum(bare, LOSS_FLOOR), loss)
        loss = np.where(constant | ~np.isfinite(loss), np.inf, loss)
        probes = values[:, self._probes] / np.sqrt(spread)[:, None] * np.sign(along)[:, None]
        rounded = np.nan_to_num(np.round(probes * 1e7), nan=0.0, posinf=0.0, neginf=0.0)
        codes = rounded.astype(np.int64)
        return Scores(loss, factor / size, offset, tuple(code.tobytes() for code in codes))
