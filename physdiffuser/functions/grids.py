"""Grids of constants that several families share: from the values of the argument to the constants to try.

Grids for enumeration are coarse, because hundreds of targets are compared with each of their points. Those
for curves are fine, because the targets are few. Those for building blocks are as coarse as starts of fits
may be. All span the range of the values u, shape (rows,).
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray


def cross(*axes: FloatArray) -> FloatArray:
    """All combinations, shape (tries, axes); the last axis varies fastest."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def column(values: FloatArray | list[float]) -> FloatArray:
    """A grid of one constant, shape (tries, 1)."""
    return np.asarray(values, np.float64)[:, None]


def of_either_sign(sizes: FloatArray) -> FloatArray:
    """Negative and positive values of these sizes."""
    return np.concatenate([-sizes, sizes])


# -- for enumeration ---------------------------------------------------------------------------


def positive_rates(u: FloatArray) -> FloatArray:
    """Factors of u in an exponential."""
    return column(np.geomspace(0.1, 40, 20) / np.ptp(u))


def rates(u: FloatArray) -> FloatArray:
    """The same with both signs."""
    return of_either_sign(positive_rates(u))


def saturations(u: FloatArray) -> FloatArray:
    """Factors c for which `1 + c*u` is positive on all rows, or negative on all."""
    largest, least = np.abs(u).max(), np.abs(u).min()
    sizes = np.geomspace(0.05 / largest, 50 / max(least, 1e-3 * largest), 16)
    if (u < 0).any():
        sizes = sizes[sizes < 1 / -u.min()]
    poles = -np.array([0.2, 0.4, 0.6, 0.75, 0.87, 0.95]) / u.max() if u.max() > 0 else np.empty(0)
    if u.min() > 0:
        # The pole may also lie below the range: 1/(1 - 3*u) for u > 0.6.
        poles = np.concatenate([poles, -np.array([1.03, 1.15, 1.4, 2.0, 3.5]) / u.min()])
    return column(np.concatenate([sizes, poles]))


def bumps(u: FloatArray) -> FloatArray:
    """Inverse widths, and centres among the values."""
    centres = np.quantile(u, [0.02, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 0.98])
    return cross(np.geomspace(1.0, 25.0, 7) / np.ptp(u), centres)


def hinges(u: FloatArray) -> FloatArray:
    """The same with inverse widths of both signs."""
    found = bumps(u)
    return np.concatenate([found, found * (-1, 1)])


# -- for curves --------------------------------------------------------------------------------


def curve_rates(u: FloatArray, points: int = 16) -> FloatArray:
    """Sizes of factors in an exponential, shape (points,)."""
    sizes: FloatArray = np.geomspace(0.2, 40.0, points) / np.ptp(u)
    return sizes


def distances(u: FloatArray, points: int) -> FloatArray:
    """Distances of a pole from the nearest row, from close by to far away, shape (points,)."""
    span: FloatArray = np.ptp(u) * np.geomspace(0.01, 40.0, points)
    return span


def two_below(u: FloatArray) -> FloatArray:
    """Constants p < q of `u + p` and `u + q`, with both poles below the rows."""
    grid = cross(distances(u, 26) - u.min(), distances(u, 26) - u.min())
    chosen: FloatArray = grid[grid[:, 0] < grid[:, 1]]
    return chosen


def saturating_powers(u: FloatArray) -> FloatArray:
    """Constants k and n of `k + u**n`, for positive u."""
    grid = cross(np.geomspace(0.05 * u.min(), 20 * u.max(), 24), np.geomspace(0.2, 5.0, 24))
    return np.stack([grid[:, 0] ** grid[:, 1], grid[:, 1]], axis=1)


# -- for building blocks -----------------------------------------------------------------------


def block_rates(u: FloatArray) -> FloatArray:
    """Factors in an exponential."""
    return column(np.geomspace(0.2, 20.0, 7) / np.ptp(u))


def block_frequencies(u: FloatArray) -> FloatArray:
    """Factors in a sine: quarter cycles over the range."""
    return column(np.arange(1, 25) * (0.5 * np.pi / np.ptp(u)))


def _centres(u: FloatArray) -> FloatArray:
    return np.asarray(u.min() + np.ptp(u) * np.linspace(0.08, 0.92, 6))


def block_centres(u: FloatArray) -> FloatArray:
    """Values among those of the argument."""
    return column(_centres(u))


def block_peaks(u: FloatArray) -> FloatArray:
    """The same, and widths."""
    return cross(_centres(u), np.ptp(u) * np.array([0.05, 0.15, 0.4]))


def block_ends(u: FloatArray) -> FloatArray:
    """Values above all of the argument."""
    return column(u.max() + np.ptp(u) * np.array([0.05, 0.3, 1.0]))


def block_offsets(u: FloatArray) -> FloatArray:
    """What is added to a positive argument; nothing for others."""
    sizes = np.array([0.03, 0.2, 0.6, 1.5]) * np.abs(u).max()
    return column(sizes if u.min() > 0 else np.empty(0))
