"""Subsets of columns that explain a target, grown term by term from the best of the size below (a beam)."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray

BEAM = 16
"""Subsets of each size that the next size grows from."""


def pairs(unit: FloatArray, target: FloatArray) -> list[tuple[int, ...]]:
    """The best pairs of terms out of all: neither need be good alone."""
    along, cross = unit.T @ target, unit.T @ unit
    first, second = np.triu_indices(unit.shape[1], 1)
    cosine = cross[first, second]
    apart = 1.0 - cosine**2
    gain = along[first] ** 2 + along[second] ** 2 - 2.0 * cosine * along[first] * along[second]
    gain = np.where(apart > 1e-10, gain / np.where(apart > 1e-10, apart, 1.0), -1.0)
    order = np.argsort(-gain, kind="stable")[: 4 * BEAM]
    return [(int(first[place]), int(second[place])) for place in order]


def extended(unit: FloatArray, target: FloatArray, beam: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All subsets with one more term, the best fit first."""
    found: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {}
    for subset in beam:
        basis = np.linalg.qr(unit[:, subset])[0] if subset else np.zeros((target.size, 0))
        left = target - basis @ (basis.T @ target)
        apart = unit - basis @ (basis.T @ unit)
        size = np.square(apart).sum(axis=0)
        gain = np.where(size > 1e-12, (apart.T @ left) ** 2 / np.where(size > 1e-12, size, 1.0), -1.0)
        square = float(left @ left)
        for place in np.argsort(-gain)[: 2 * BEAM]:
            if gain[place] < 0 or place in subset:
                continue
            key = frozenset((*subset, int(place)))
            found.setdefault(key, (max(square - float(gain[place]), 0.0), (*subset, int(place))))
    return [subset for _, subset in sorted(found.values())]
