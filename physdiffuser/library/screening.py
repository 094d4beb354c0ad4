"""Noisy data: the same questions as `hashing`, answered by matrix products.

For targets t_k with row weights w_k, and every library entry f, the least-squares fit
`t_k ~ a + b*f` has a residual that needs only the sums of w f t, w f and w f**2: three matrix
products for all entries and all targets at once. A product law `t ~ A*(a + b*B)` is the same
question with target t/A and weights w*A**2.

Everything is single precision: residuals below about 1e-6 of the variance cannot be distinguished
here, and the best are fitted again in double precision by the caller.

Libraries, and what is worked out with them, may be arrays of another device (`physdiffuser.device`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import CHECK_ARRAYS, IntArray, checked

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float32, Float64

FloatArray32 = npt.NDArray[np.float32]
Precision = TypeVar("Precision", np.float32, np.float64)

# Share of a second moment below which a variance is lost in single precision.
CANCELS = 1e-5
# The same for pairs, where the residual after two entries is to be distinguished from 0.
PAIR_CANCELS = 1e-3
# In single precision: entries that have less apart are one, and what rounding adds to an explained share of
# variance, times what two entries have apart.
CLOSE, ROUNDING = 1e-4, 4e-7


@dataclass(frozen=True)
class Standardised:
    """Library values prepared for screening, shape (entries, probes), and their squares."""

    values: FloatArray32
    squares: FloatArray32

    @classmethod
    @checked
    def of(cls, values: Float64[np.ndarray, "entries probes"]) -> Standardised:
        """Centre and scale each entry; an affine map changes no residual."""
        centre = values.mean(axis=1, keepdims=True)
        spread = values.std(axis=1, keepdims=True)
        unit = ((values - centre) / spread).astype(np.float32)
        return cls(unit, unit * unit)


@dataclass(frozen=True)
class Affine:
    """Targets prepared for the question `t ~ a + b*f`.

    Attributes
    ----------
    cross, mean
        Shape (targets, probes): what the sums over `w f t` and `w f` (and `w f**2`) are taken with.
    variance
        Shape (targets,): weighted sum of squares about the mean.
    """

    cross: FloatArray32
    mean: FloatArray32
    variance: FloatArray32

    @classmethod
    @checked
    def of(
        cls, targets: Float64[np.ndarray, "targets probes"], weights: Float64[np.ndarray, "targets probes"]
    ) -> Affine:
        """Prepare targets of shape (targets, probes) with row weights of the same shape."""
        total = weights.sum(axis=1, keepdims=True)
        centred = targets - (weights * targets).sum(axis=1, keepdims=True) / total
        variance = (weights * centred * centred).sum(axis=1, keepdims=True)
        # Scaled so that single precision neither overflows nor vanishes.
        unit = centred / np.sqrt(variance / total)
        relative = weights / total
        return cls(
            (relative * unit).astype(np.float32),
            relative.astype(np.float32),
            variance[:, 0].astype(np.float32),
        )

    @checked
    def residuals(self, library: Standardised, entries: slice) -> Float32[np.ndarray, "targets entries"]:
        """Weighted residual sum of squares of the best fit, shape (targets, entries)."""
        values, squares = library.values[entries], library.squares[entries]
        cross = self.cross @ values.T
        mean = self.mean @ values.T
        square = self.mean @ squares.T
        # What cancels in single precision is not distinguished from rounding: it explains less, never more.
        least = square * np.float32(CANCELS)
        np.multiply(mean, mean, out=mean)
        square -= mean
        np.maximum(square, least, out=square)
        np.maximum(square, 1e-6, out=square)
        np.multiply(cross, cross, out=cross)
        cross /= square
        np.subtract(1.0, cross, out=cross)
        np.maximum(cross, 0.0, out=cross)
        cross *= self.variance[:, None]
        return cross


@checked
def variation(target: Float64[np.ndarray, " probes"], weights: Float64[np.ndarray, " probes"]) -> float:
    """Weighted sum of squares of a target about its mean, in double precision."""
    return float((weights * np.square(target - np.average(target, weights=weights))).sum())


@dataclass(frozen=True)
class LeadingPairs:
    """Pairs of one of the entries that alone say most about a target with any other.

    Attributes
    ----------
    leading
        Shape (leading,): those entries.
    correlation, root
        Shape (entries,): correlation with the target, and root of the weighted variance.
    weighted
        Shape (leading, probes): the leading entries, centred, weighted and of unit variance.
    """

    leading: IntArray
    correlation: FloatArray32
    root: FloatArray32
    weighted: FloatArray32

    @classmethod
    @checked
    def of(
        cls,
        library: Standardised,
        target: Float64[np.ndarray, " probes"],
        weights: Float64[np.ndarray, " probes"],
        count: int,
    ) -> LeadingPairs:
        """Prepare a target of shape (probes,) with row weights of the same shape."""
        relative = weights / weights.sum()
        centred = target - relative @ target
        unit = centred / np.sqrt(relative @ np.square(centred))
        sums = np.stack([relative, relative * unit]).astype(np.float32)
        mean, cross, square = (
            np.asarray(product, np.float32)
            for product in (library.values @ sums[0], library.values @ sums[1], library.squares @ sums[0])
        )
        variance = square - mean * mean
        # What cancels in single precision is not distinguished from rounding: it explains nothing.
        root = np.sqrt(np.where(variance > PAIR_CANCELS * square, variance, np.inf)).astype(np.float32)
        correlation = cross / root
        leading = np.argsort(-np.abs(correlation), kind="stable")[:count]
        weighted = (library.values[leading] - mean[leading, None]) * (sums[0] / root[leading, None])
        return cls(leading, correlation, root, weighted)

    @checked
    def residuals(self, library: Standardised, entries: slice) -> Float32[np.ndarray, "leading entries"]:
        """Unexplained share of variance of the best `a + b*A + c*B`, shape (leading, entries)."""
        free = self.weighted @ library.values[entries].T
        free /= self.root[None, entries]
        return unexplained(free, self.correlation[self.leading][:, None], self.correlation[None, entries])


@checked
def pair_residuals(
    library: Float32[np.ndarray, "entries probes"],
    first: slice,
    second: slice,
    target_correlation: Float32[np.ndarray, " entries"],
) -> Float32[np.ndarray, "first second"]:
    """Unexplained share of variance of the best `a + b*A + c*B` for a block of pairs.

    Parameters
    ----------
    library
        Shape (entries, probes): weighted, centred, of unit norm.
    first, second
        The entries taken as A and as B.
    target_correlation
        Shape (entries,): correlation of each entry with the target.

    Returns
    -------
    Shape (first, second).
    """
    return unexplained(
        library[first] @ library[second].T,
        target_correlation[first][:, None],
        target_correlation[second][None, :],
    )


def unexplained(
    free: npt.NDArray[Precision],
    left: npt.NDArray[Precision],
    right: npt.NDArray[Precision],
    close: float = CLOSE,
    rounding: float = ROUNDING,
) -> npt.NDArray[Precision]:
    """Unexplained share of variance of the best `a + b*A + c*B`, of the precision of what is given.

    Parameters
    ----------
    free
        Correlations of A with B; overwritten.
    left, right
        Correlations of A and of B with the target.
    close
        Entries that have less apart, as a share of variance, are one: their difference is no law.
    rounding
        What rounding adds to an explained share, times what the entries have apart; 0 if it is nothing.
    """
    # R**2 = (r1**2 + r2**2 - 2 r1 r2 r12) / (1 - r12**2)
    explained: npt.NDArray[Precision] = free * (-2.0 * left)
    explained *= right
    explained += left * left
    explained += right * right
    np.multiply(free, free, out=free)
    np.subtract(1.0, free, out=free)
    same = free < close
    explained /= free
    np.subtract(1.0, explained, out=explained)
    if rounding:
        # Entries that are nearly one explain no more than the rounding of their difference tells.
        np.divide(np.float32(rounding), free, out=free)
        np.maximum(explained, free, out=explained)
    explained[same] = 1.0
    return explained
