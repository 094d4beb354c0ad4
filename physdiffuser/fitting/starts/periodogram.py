"""The least-squares periodogram of unevenly spaced rows (Lomb 1976, Scargle 1982)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.fitting.linear import linear_least_squares

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

_FREQUENCIES = 512
_OVERSAMPLING = 5
"""Grid points, and how many of them per peak width: up to 100 periods over the range."""


@dataclass(frozen=True)
class Peak:
    """A frequency at which a wave fits best, and the part of the signal's power it explains."""

    frequency: float
    power: float


@checked
def periodogram_peaks(
    position: Float64[np.ndarray, " rows"],
    target: Float64[np.ndarray, " rows"],
    amplitude: Float64[np.ndarray, " rows"],
    count: int,
) -> list[Peak]:
    """Frequencies at which `amplitude * (a*sin(w*position) + b*cos(w*position)) + c` fits best.

    Parameters
    ----------
    position, target, amplitude
        Shape (rows,); rows need not be evenly spaced.
    count
        Most peaks to return, best first.
    """
    good = np.isfinite(position) & np.isfinite(target)
    position, target, amplitude = position[good], target[good], amplitude[good]
    if position.size < 4:
        return []
    extent = float(np.ptp(position))
    size = float(np.abs(target).max())
    if not (0.0 < extent < np.inf) or size == 0.0:
        return []
    signal = target / size
    if np.ptp(amplitude) == 0.0:
        signal = signal - signal.mean()
    total = float(signal @ signal)
    if total == 0.0:
        return []
    unit = (position - position.min()) / extent
    step = 2 * np.pi / _OVERSAMPLING
    # exp(i*k*step*u) from two short tables: a complex product is much cheaper than a sine.
    fine = np.exp(1j * step * np.arange(32)[:, None] * unit)
    coarse = np.exp(1j * step * 32 * np.arange(_FREQUENCIES // 32)[:, None] * unit)
    wave = (coarse[:, None, :] * fine[None, :, :]).reshape(_FREQUENCIES, -1)[1:]
    wave = wave * amplitude
    cosine, sine = wave.real, wave.imag
    if np.ptp(amplitude) == 0.0:
        cosine = cosine - cosine.mean(axis=1, keepdims=True)
        sine = sine - sine.mean(axis=1, keepdims=True)
    cc = np.einsum("kr,kr->k", cosine, cosine)
    ss = np.einsum("kr,kr->k", sine, sine)
    cs = np.einsum("kr,kr->k", cosine, sine)
    yc, ys = cosine @ signal, sine @ signal
    determinant = np.maximum(cc * ss - cs * cs, 1e-9 * cc * ss + 1e-300)
    power = (yc * yc * ss - 2 * yc * ys * cs + ys * ys * cc) / determinant
    frequency = step * np.arange(1, _FREQUENCIES) / extent
    inside = np.ones(power.size, dtype=np.bool_)
    inside[1:] &= power[1:] >= power[:-1]
    inside[:-1] &= power[:-1] >= power[1:]
    tops = np.flatnonzero(inside)
    best = tops[np.argsort(-power[tops], kind="stable")][:count]
    return [
        Peak(float(frequency[top]) + step / extent * _vertex(power, int(top)), float(power[top]) / total)
        for top in best
    ]


def _vertex(power: FloatArray, top: int) -> float:
    """Where the parabola through a peak and its neighbours has its top, in grid steps from the peak."""
    if not 0 < top < power.size - 1:
        return 0.0
    left, middle, right = (float(power[top + shift]) for shift in (-1, 0, 1))
    bend = left - 2.0 * middle + right
    return 0.5 * (left - right) / bend if bend < 0.0 else 0.0


@checked
def without_wave(
    position: Float64[np.ndarray, " rows"], signal: Float64[np.ndarray, " rows"], frequency: float
) -> Float64[np.ndarray, " rows"]:
    """A signal less its best wave of a frequency and its mean.

    Parameters
    ----------
    position, signal
        Shape (rows,).
    frequency
        In radians per unit of the position.
    """
    columns = np.stack([np.sin(frequency * position), np.cos(frequency * position), np.ones_like(position)])
    if not np.isfinite(columns).all():
        return signal
    return linear_least_squares(columns, signal).residual
