"""Starts for nonlinear constants, from the data.

Frequencies from a periodogram, rates from the slope of log|target|, exponents from log-log slopes, offsets
from the values of what they are added to, and scale-aware random ones. Many are drawn, few are followed:
`fitting.fit` ranks them by the loss after the linear constants are solved for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import Expression, Parameter
from physdiffuser.expressions.tree import Apply, parameter_count, substitute
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape
from physdiffuser.fitting.starts.periodogram import periodogram_peaks, without_wave
from physdiffuser.fitting.starts.roles import Kind, Role, find_roles

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64


@np.errstate(all="ignore")
@checked
def draw_starts(
    skeleton: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    nonlinear: tuple[int, ...],
    count: int,
    rng: np.random.Generator,
) -> Float64[np.ndarray, "parameters starts"]:
    """Parameter vectors worth trying.

    Parameters
    ----------
    inputs
        Shape (rows, columns); a few hundred rows are enough.
    target
        Shape (rows,).
    nonlinear
        The parameters to draw; the others are left at 1.
    rng
        Equal generators give equal starts.

    Returns
    -------
    Shape (parameters, count), finite. The first column takes the most likely value of each parameter.
    """
    parameters = EvaluationTape(skeleton, inputs[:1]).parameters
    drawn = np.ones((parameters, count))
    if not nonlinear:
        return drawn
    surroundings = _Surroundings(skeleton, inputs, target, drawn)
    roles = find_roles(skeleton, nonlinear)
    surroundings.matched = _match_frequencies(roles, surroundings)
    for role in roles:
        likely, random = _PROPOSALS[role.kind](role, surroundings, rng)
        values = random
        if likely.shape[0]:
            # Half of the vectors take a likely value, each parameter in an order of its own, so that
            # every combination has a chance.
            pick = rng.integers(0, likely.shape[0], count)
            early = min(count, likely.shape[0])
            pick[:early] = np.arange(early)
            chosen = likely[pick, np.arange(count)]
            use = rng.random(count) < 0.5
            use[:early] = True
            values = np.where(use, chosen, random)
        values = _root(values, surroundings.number(role.power))
        drawn[role.index] = np.where(np.isfinite(values), values, 1.0)
    return drawn


_Proposal = tuple[FloatArray, FloatArray]
"""Likely values, shape (m, count), and random ones, shape (count,)."""


class _Surroundings:
    """Values of the expressions beside a parameter, at what has been drawn so far."""

    def __init__(
        self, skeleton: Expression, inputs: FloatArray, target: FloatArray, drawn: FloatArray
    ) -> None:
        self.skeleton = skeleton
        self.inputs = inputs
        self.target = target
        self.drawn = drawn
        self.count: int = drawn.shape[1]
        self.matched: dict[int, tuple[float, ...]] = {}
        self.log_target = np.log(np.abs(target))

    def values(self, expression: Expression | None) -> FloatArray | None:
        """Shape (count, rows), or (1, rows) when they are all alike; nan where not finite."""
        if expression is None:
            return None
        tape = EvaluationTape(expression, self.inputs)
        value = tape.value(self.drawn if tape.parameters else np.zeros((0, 1)))
        return np.where(np.isfinite(value), value, np.nan)

    def number(self, expression: Expression) -> FloatArray:
        """Shape (count,): value of an expression without variables."""
        tape = EvaluationTape(expression, self.inputs[:1])
        return self.wide(tape.value(self.drawn if tape.parameters else np.zeros((0, 1)))[:, 0])

    def size(self, expression: Expression | None) -> FloatArray:
        """Shape (count,): median magnitude; 1 without an expression or where it is 0."""
        values = self.values(expression)
        if values is None:
            return np.ones(self.count)
        return self.wide(_usable(_median(np.abs(values))))

    def wide(self, value: FloatArray) -> FloatArray:
        """Shape (..., count) from (..., count) or (..., 1)."""
        return np.array(np.broadcast_to(value, (*value.shape[:-1], self.count)))

    def spread(self, expression: Expression | None) -> FloatArray:
        """Shape (count,): largest minus smallest value; the size where that is 0."""
        values = self.values(expression)
        if values is None:
            return np.ones(self.count)
        values = np.where(np.isnan(values).all(axis=1, keepdims=True), 0.0, values)
        spread = np.nanmax(values, axis=1) - np.nanmin(values, axis=1)
        return self.wide(np.where(spread > 0.0, spread, _usable(_median(np.abs(values)))))


def _median(values: FloatArray) -> FloatArray:
    # The lower median, nan last: np.nanmedian is 20 times slower.
    ordered = np.sort(values, axis=1)
    finite = np.isfinite(values).sum(axis=1)
    middle: FloatArray = ordered[np.arange(values.shape[0]), np.maximum(finite - 1, 0) // 2]
    return middle


def _root(values: FloatArray, power: FloatArray) -> FloatArray:
    """c from c**power; where the values are negative and the power is not odd, from their magnitude."""
    power = np.where((power == 0.0) | ~np.isfinite(power), 1.0, power)
    size = np.abs(values) ** (1.0 / power)
    return np.where((values < 0.0) & (np.abs(power % 2.0) == 1.0), -size, size)


def _usable(size: FloatArray) -> FloatArray:
    return np.where(np.isfinite(size) & (size > 0.0), size, 1.0)


def _times(scale: FloatArray, factors: tuple[float, ...]) -> FloatArray:
    return np.array(factors)[:, None] * scale


def _log_uniform(rng: np.random.Generator, low: float, high: float, count: int) -> FloatArray:
    drawn: FloatArray = np.exp(rng.uniform(np.log(low), np.log(high), count))
    return drawn


def _signs(rng: np.random.Generator, count: int, positive: float) -> FloatArray:
    return np.where(rng.random(count) < positive, 1.0, -1.0)


def _slope(on: FloatArray, of: FloatArray) -> FloatArray:
    """Slopes of straight lines, shape (count,), over the rows where both are finite."""
    good = np.isfinite(on) & np.isfinite(of)
    weight = np.maximum(good.sum(axis=1), 1)
    x = np.where(good, on, 0.0)
    y = np.where(good, np.broadcast_to(of, on.shape), 0.0)
    x = np.where(good, x - (x.sum(axis=1) / weight)[:, None], 0.0)
    scale = _usable(np.abs(x).max(axis=1))[:, None]
    x = x / scale
    y = np.where(good, y - (y.sum(axis=1) / weight)[:, None], 0.0)
    slope: FloatArray = (x * y).sum(axis=1) / np.maximum((x * x).sum(axis=1), 1e-300) / scale[:, 0]
    return slope


def _frequency(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    spread = near.spread(role.factor)
    random = _log_uniform(rng, 0.5, 100.0, near.count) / spread
    inner = near.values(role.factor)
    assert inner is not None
    peaks = list(near.matched.get(role.index, ()))
    for amplitude in _amplitudes(role, near):
        peaks += [peak.frequency for peak in periodogram_peaks(inner[0], near.target, amplitude, 4)]
    # A squared sine shows twice its frequency.
    peaks += [peak / 2 for peak in peaks[:2]]
    likely = np.array(list(dict.fromkeys(peaks)))[:, None] * np.ones(near.count)
    return np.concatenate([likely, _times(1.0 / spread, (1.0, 6.3))]), random


def _match_frequencies(roles: list[Role], near: _Surroundings) -> dict[int, tuple[float, ...]]:
    """Peaks for each of several frequencies, the strongest wave taken out before the next is looked for."""
    waiting = {}
    for role in roles:
        if role.kind is Kind.FREQUENCY and role.factor is not None and not parameter_count(role.factor):
            inner = near.values(role.factor)
            if inner is not None:
                waiting[role.index] = inner[0]
    found: dict[int, tuple[float, ...]] = {}
    if len(waiting) < 2:
        return found
    even = np.ones(near.target.shape[0])
    signal = near.target
    while waiting:
        peaks = {index: periodogram_peaks(inner, signal, even, 3) for index, inner in waiting.items()}
        strongest = max(peaks, key=lambda index: max((peak.power for peak in peaks[index]), default=0.0))
        found[strongest] = tuple(peak.frequency for peak in peaks[strongest])
        inner = waiting.pop(strongest)
        if peaks[strongest]:
            signal = without_wave(inner, signal, peaks[strongest][0].frequency)
    return found


def _amplitudes(role: Role, near: _Surroundings) -> list[FloatArray]:
    """What the periodic function is multiplied with on each row: 1, and its slope in the skeleton."""
    rows = near.inputs.shape[0]
    found = [np.ones(rows)]
    place = near.drawn.shape[0]
    opened = substitute(near.skeleton, lambda node: Parameter(place) if node == role.node else None)
    values = np.append(near.drawn[:, 0], 0.5)
    _, jacobian = EvaluationTape(opened, near.inputs).value_and_jacobian(values, (place,))
    slope = jacobian[0]
    if np.isfinite(slope).all() and np.ptp(slope) > 1e-9 * np.abs(slope).max(initial=0.0):
        found.append(slope / np.abs(slope).max())
    return found


def _phase(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    likely = _times(np.ones(near.count), (0.0, np.pi / 2, -np.pi / 2, np.pi))
    return likely, rng.uniform(-np.pi, np.pi, near.count)


def _rate(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    scale = 1.0 / near.spread(role.factor)
    likely = _times(scale, (-1.0, 1.0, -3.0, 3.0, -0.3, 0.3, -10.0, 10.0))
    if role.around == "exp":
        inner = near.values(role.factor)
        assert inner is not None
        slope = near.wide(_slope(inner, near.log_target))
        likely = np.concatenate([np.stack([role.sign * slope, -role.sign * slope]), likely])
    return likely, _signs(rng, near.count, 0.5) * _log_uniform(rng, 0.1, 30.0, near.count) * scale


def _exponent(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    likely = _times(np.ones(near.count), (1.0, -1.0, 2.0, 0.5, -0.5, -2.0, 1.5, 3.0))
    if isinstance(role.node, Apply):
        base = near.values(role.node.arguments[0])
        if base is not None:
            slope = near.wide(_slope(np.log(np.abs(base)), near.log_target))
            likely = np.concatenate([slope[None, :], likely])
    return likely, rng.normal(0.0, 2.0, near.count)


def _coefficient(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    scale = near.size(role.rest) / near.size(role.factor)
    likely = _times(scale, (1.0, 0.1, 10.0, -1.0, 0.3, 3.0, 0.01, -0.3, -3.0))
    return likely, _signs(rng, near.count, 0.75) * _log_uniform(rng, 1e-3, 1e3, near.count) * scale


def _offset(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    beside = near.values(role.rest)
    assert beside is not None
    scale = near.size(role.rest)
    filled = np.where(np.isnan(beside), 0.0, beside)
    low, high = filled.min(axis=1), filled.max(axis=1)
    # Where the sum is 0: the centre of a peak, a pole, the middle of a step.
    top, bottom = int(np.argmax(near.target)), int(np.argmin(near.target))
    middle = int(np.argsort(near.target)[near.target.size // 2])
    zeros = near.wide(-role.sign * np.stack([filled[:, top], filled[:, bottom], filled[:, middle]]))
    same_sign = _times(scale, (1.0, 0.3, 3.0, -1.0))
    likely = np.concatenate([zeros, same_sign] if role.around in ("pow", "mul") else [same_sign, zeros])
    inside = -role.sign * (low + (high - low) * rng.uniform(-0.3, 1.3, near.count))
    outside = _signs(rng, near.count, 0.7) * _log_uniform(rng, 1e-2, 1e2, near.count) * scale
    return likely, np.where(rng.random(near.count) < 0.5, inside, outside)


def _lone(role: Role, near: _Surroundings, rng: np.random.Generator) -> _Proposal:
    return _times(np.ones(near.count), (1.0, 0.5, 2.0)), rng.normal(0.0, 2.0, near.count)


_PROPOSALS: dict[Kind, Callable[[Role, _Surroundings, np.random.Generator], _Proposal]] = {
    Kind.FREQUENCY: _frequency,
    Kind.PHASE: _phase,
    Kind.RATE: _rate,
    Kind.EXPONENT: _exponent,
    Kind.COEFFICIENT: _coefficient,
    Kind.OFFSET: _offset,
    Kind.LONE: _lone,
}
