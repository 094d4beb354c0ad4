"""Noisy data: the same questions as `hashing`, answered by matrix products.

For targets t_k with row weights w_k, and every library entry f, the least-squares fit
`t_k ~ a + b*f` has a residual that needs only the sums of w f t, w f and w f**2: three matrix
products for all entries and all targets at once. A product law `t ~ A*(a + b*B)` is the same
question with target t/A and weights w*A**2.

Everything is single precision: residuals below about 1e-6 of the variance cannot be told apart
here, and the best are fitted again in double precision by the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
FloatArray32 = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Standardised:
    """Library values prepared for screening, shape (entries, probes), and their squares."""

    values: FloatArray32
    squares: FloatArray32

    @classmethod
    def of(cls, values: FloatArray) -> Standardised:
        """Centre and scale each entry; an affine map changes no residual."""
        centre = values.mean(axis=1, keepdims=True)
        spread = values.std(axis=1, keepdims=True)
        unit = ((values - centre) / spread).astype(np.float32)
        return cls(unit, unit * unit)


def affine_residuals(library: Standardised, targets: FloatArray, weights: FloatArray) -> FloatArray32:
    """Weighted residual sum of squares of the best `a + b*f`.

    Parameters
    ----------
    library
        Entries f, shape (entries, probes).
    targets, weights
        Shape (targets, probes).

    Returns
    -------
    Shape (entries, targets).
    """
    total = weights.sum(axis=1)
    centred = targets - (weights * targets).sum(axis=1, keepdims=True) / total[:, None]
    variance = (weights * centred * centred).sum(axis=1)
    # Scaled so that single precision neither overflows nor vanishes.
    unit = centred / np.sqrt(variance / total)[:, None]
    relative = weights / total[:, None]
    cross = library.values @ (relative * unit).T.astype(np.float32)
    mean = library.values @ relative.T.astype(np.float32)
    square = library.squares @ relative.T.astype(np.float32)
    square -= mean * mean
    np.maximum(square, 1e-6, out=square)
    np.multiply(cross, cross, out=cross)
    cross /= square
    np.subtract(1.0, cross, out=cross)
    np.maximum(cross, 0.0, out=cross)
    cross *= variance.astype(np.float32)
    return cross


def pair_residuals(library: FloatArray32, first: slice, target_correlation: FloatArray32) -> FloatArray32:
    """Unexplained share of variance of the best `a + b*A + c*B` for all pairs of entries.

    Parameters
    ----------
    library
        Shape (entries, probes): weighted, centred, of unit norm.
    first
        The block of entries taken as A.
    target_correlation
        Shape (entries,): correlation of each entry with the target.

    Returns
    -------
    Shape (block, entries).
    """
    correlation = library[first] @ library.T
    left = target_correlation[first][:, None]
    right = target_correlation[None, :]
    # R**2 = (r1**2 + r2**2 - 2 r1 r2 r12) / (1 - r12**2)
    explained = left * left + right * right - 2.0 * left * right * correlation
    np.multiply(correlation, correlation, out=correlation)
    np.subtract(1.0, correlation, out=correlation)
    # Nearly equal entries: their difference is rounding noise, not a law.
    close = correlation < 1e-4
    np.maximum(correlation, 1e-4, out=correlation)
    explained /= correlation
    np.subtract(1.0, explained, out=explained)
    explained[close] = 1.0
    return explained
