"""States as smooth curves: values and derivatives at any time, with the noise estimated.

Values without noise are interpolated by a spline of degree seven. Others are smoothed by a spline with a
penalty on a high derivative, whose strength maximises the restricted likelihood; its posterior covariance
gives the errors of values and derivatives. Of values of one sign with relative errors the logarithm is
smoothed, whose errors are constant, if that explains them better.

References
----------
Wahba, *Spline Models for Observational Data* (1990). Eilers and Marx, *Statistical Science* 11 (1996).
Wood, *JRSS B* 73 (2011), for the restricted likelihood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.interpolate import BSpline, make_interp_spline
from scipy.linalg import cho_solve, cholesky, solve_triangular

from physdiffuser.arrays import FloatArray

NoiseKind = Literal["constant", "relative"]


@dataclass(frozen=True)
class SmoothingPolicy:
    """How trajectories are smoothed and their noise is found.

    Set on the development systems with and without noise (docs/dynamics.md).
    """

    degree: int = 7
    max_knots: int = 240
    """Degree of the splines, and most pieces of a smoothed curve: a normal matrix of this size is solved in
    milliseconds."""
    no_noise: float = 1e-8
    """Noise below this share of a state's standard deviation is none: the curve is interpolated."""
    relative_floor: float = 0.02
    logarithm_floor: float = 1e-4
    """Relative errors count as if no value were smaller than this share of the root mean square; the second
    where the logarithm is smoothed."""
    decisive: float = 3.0
    """Nats by which relative errors must explain the residuals better than constant ones."""
    still_falling: float = 2.5
    """The noise still falls with the degree of the polynomials through neighbours if it is so many times
    less."""
    coarsely: float = 4.0
    """Polynomials of higher degree miss the points of a coarsely sampled curve by so many times less."""
    coarse_step: float = 1.5
    fine_step: float = 0.25
    """Coarse and fine steps of the decimal logarithm of the penalty."""


POLICY = SmoothingPolicy()

_ORDERS = (3, 4)
_NEIGHBOURS = (2, 4, 6, 8, 10, 12, 14)
_NORMAL_MEDIAN = 1.4826


@dataclass(frozen=True, eq=False)
class Curve:
    """One state of one run.

    Attributes
    ----------
    spline
        The state as a function of time.
    noise
        Standard deviation of the noise; of the noise over the value for relative errors.
    kind
        Whether the noise is constant or in proportion to the value.
    covariance
        Of the coefficients of the spline, shape (coefficients, coefficients); None for an interpolation.
    likelihood
        Logarithm of the restricted likelihood, up to a constant of the data.
    shift
        1 for the derivative of the state as a state of its own.
    sign
        1 or -1 where the spline is the logarithm of the absolute value; else 0.
    """

    spline: BSpline
    noise: float
    kind: NoiseKind
    covariance: FloatArray | None
    likelihood: float
    shift: int = 0
    sign: int = 0

    def derivative(self) -> Curve:
        """The derivative of the state, as a curve."""
        return replace(self, shift=self.shift + 1)

    @property
    def interpolates(self) -> bool:
        """Whether the curve passes through the values, because they have no noise."""
        return self.covariance is None

    def value(self, times: FloatArray, derivative: int = 0) -> FloatArray:
        """The state or its derivative, shape of `times`."""
        order = derivative + self.shift
        return self._exponentials(times, order)[order] if self.sign else self._spline(times, order)

    def error(self, times: FloatArray, derivative: int = 0) -> FloatArray:
        """Standard error of `value`, shape (times,); of an interpolation from a spline of lower degree."""
        if self.covariance is None:
            knots = np.unique(np.asarray(self.spline.t))
            degree = min(POLICY.degree - 2, knots.size - 1)
            if degree < 2:
                return np.zeros(times.size)
            coarse = make_interp_spline(self._sites, self.spline(self._sites), k=degree - 1 + degree % 2)
            order = derivative + self.shift
            difference = np.abs(coarse(times, nu=order) - self.spline(times, nu=order))
            return np.asarray(difference, dtype=np.float64)
        basis = self.basis(times, derivative)
        variance = np.maximum(np.einsum("tc,cd,td->t", basis, self.covariance, basis), 0.0)
        return np.asarray(np.sqrt(variance), dtype=np.float64)

    def basis(self, times: FloatArray, derivative: int = 0) -> FloatArray:
        """Values of the basis functions (or their derivatives), shape (times, coefficients)."""
        count = len(self.spline.t) - self.spline.k - 1
        functions = BSpline(self.spline.t, np.eye(count), self.spline.k)
        order = derivative + self.shift
        if not self.sign:
            return np.asarray(functions(times, nu=order), dtype=np.float64)
        # Product rule: a small change of the logarithm is multiplied by the value.
        exponentials = self._exponentials(times, order)
        parts = [
            math.comb(order, low) * exponentials[low][:, None] * functions(times, nu=order - low)
            for low in range(order + 1)
        ]
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    def _spline(self, times: FloatArray, order: int) -> FloatArray:
        return np.asarray(self.spline(times, nu=order), dtype=np.float64)

    def _exponentials(self, times: FloatArray, highest: int) -> list[FloatArray]:
        """The exponential of the spline, with its sign, and its derivatives up to the highest."""
        slopes = [self._spline(times, order) for order in range(highest + 1)]
        found = [self.sign * np.exp(slopes[0])]
        for order in range(1, highest + 1):
            parts = [math.comb(order - 1, low) * found[low] * slopes[order - low] for low in range(order)]
            found.append(np.sum(parts, axis=0))
        return found

    @property
    def floor(self) -> float:
        """Share of the root mean square below which relative errors fall no further."""
        return POLICY.logarithm_floor if self.sign else POLICY.relative_floor

    @property
    def _sites(self) -> FloatArray:
        """Times that the interpolation passes through: as many as it has coefficients."""
        knots, degree = np.asarray(self.spline.t), int(self.spline.k)
        count = knots.size - degree - 1
        sites: FloatArray = np.asarray([knots[i + 1 : i + degree + 1].mean() for i in range(count)])
        return sites


def smooth(times: FloatArray, values: FloatArray, kind: NoiseKind = "constant") -> Curve:
    """A curve through one state of one run.

    Parameters
    ----------
    times
        Shape (points,), increasing.
    values
        Shape (points,), finite.
    kind
        How the noise depends on the value.
    """
    scale = float(values.std()) or 1.0
    noise = neighbour_noise(times, values)
    if noise < POLICY.no_noise * scale:
        return interpolated(times, values, kind)
    if kind == "constant":
        return _penalised(times, values, np.ones(times.size), "constant")
    curve = _penalised(times, values, np.ones(times.size), "constant")
    floor = POLICY.relative_floor * float(np.sqrt(np.mean(values**2)))
    for _ in range(3):
        size = np.maximum(np.abs(curve.value(times)), floor)
        curve = _penalised(times, values, 1.0 / size**2, "relative")
    return curve


def interpolated(times: FloatArray, values: FloatArray, kind: NoiseKind = "constant") -> Curve:
    """A curve through all values, which have no noise."""
    degree = min(POLICY.degree, 2 * ((times.size - 1) // 2) - 1)
    return Curve(make_interp_spline(times, values, k=degree), 0.0, kind, None, math.inf)


def smooth_all(
    series: list[tuple[FloatArray, FloatArray]], kind: NoiseKind | Literal["auto"] = "auto"
) -> list[Curve]:
    """The same state in several runs, with one kind of noise for all of them.

    Parameters
    ----------
    kind
        "auto" takes relative errors where they explain the residuals better.
    """
    constant = [smooth(times, values) for times, values in series]
    if kind == "constant" or all(curve.interpolates for curve in constant):
        return constant
    relative = [smooth(times, values, "relative") for times, values in series]
    if all((values > 0).all() or (values < 0).all() for _, values in series):
        logarithmic = [
            curve if curve.interpolates else smooth_logarithm(times, values)
            for (times, values), curve in zip(series, relative, strict=True)
        ]
        if _gain(relative, logarithmic) > POLICY.decisive:
            relative = logarithmic
    return relative if kind == "relative" or _gain(constant, relative) > POLICY.decisive else constant


def _gain(before: list[Curve], after: list[Curve]) -> float:
    """By how much the likelihood of other curves is higher."""
    pairs = zip(before, after, strict=True)
    return sum(b.likelihood - a.likelihood for a, b in pairs if math.isfinite(a.likelihood))


def smooth_logarithm(times: FloatArray, values: FloatArray) -> Curve:
    """A curve through values of one sign whose errors are in proportion to them."""
    size = np.abs(values)
    curve = _penalised(times, np.log(size), np.ones(times.size), "relative")
    # The density of the values is that of their logarithms over the values; the polynomials that no penalty
    # holds, one for each order, count in units of the values.
    lost = float(np.log(size).sum()) * (1.0 - _ORDERS[0] / times.size)
    return replace(curve, likelihood=curve.likelihood - lost, sign=1 if values[0] > 0 else -1)


def neighbour_noise(times: FloatArray, values: FloatArray) -> float:
    """The noise, from polynomials through the neighbours of each point; 0 when it is too small to be seen.

    With few neighbours what is left over is the curve's own bending, which falls from degree to degree;
    noise does not. If it still falls at the highest degree, no noise is seen.
    """
    left = _missed_by_neighbours(times, values)
    if not left:
        return math.inf
    if (
        len(left) == len(_NEIGHBOURS)
        and left[-1] < left[-2] / POLICY.still_falling < left[-3] / POLICY.still_falling**2
    ):
        return 0.0
    return min(left)


def falls_with_neighbours(times: FloatArray, values: FloatArray) -> bool:
    """Whether polynomials through more neighbours miss the points by far less, as they do not miss noise."""
    left = _missed_by_neighbours(times, values)
    return len(left) == len(_NEIGHBOURS) and min(left) < left[1] / POLICY.coarsely


def _missed_by_neighbours(times: FloatArray, values: FloatArray) -> list[float]:
    """By how much a point differs from the polynomial through its neighbours, for ever more of these."""
    left: list[float] = []
    for count in _NEIGHBOURS:
        if times.size < count + 3:
            break
        half = count // 2
        middle = np.arange(half, times.size - half)
        near = middle[:, None] + np.r_[-half:0, 1 : half + 1]
        weights = _lagrange(times[near], times[middle])
        missed = values[middle] - np.einsum("pn,pn->p", weights, values[near])
        unit = np.abs(missed) / np.sqrt(1.0 + np.square(weights).sum(axis=1))
        # The median: a few sharp bends are no noise.
        left.append(_NORMAL_MEDIAN * float(np.median(unit)))
    return left


def _lagrange(sites: FloatArray, at: FloatArray) -> FloatArray:
    """Weights of the values at `sites` (points, neighbours) in the polynomial through them at `at`."""
    apart = sites[:, :, None] - sites[:, None, :]
    count = sites.shape[1]
    apart[:, np.arange(count), np.arange(count)] = 1.0
    away = np.broadcast_to((at[:, None] - sites)[:, None, :], apart.shape).copy()
    away[:, np.arange(count), np.arange(count)] = 1.0
    return np.asarray(np.prod(away / apart, axis=2), dtype=np.float64)


def _penalised(times: FloatArray, values: FloatArray, weights: FloatArray, kind: NoiseKind) -> Curve:
    """The spline with the penalty that maximises the restricted likelihood."""
    pieces = min(times.size, POLICY.max_knots)
    begin, end = float(times[0]), float(times[-1])
    step = (end - begin) / pieces
    degree = min(POLICY.degree - 2, 5)
    knots = begin + step * np.arange(-degree, pieces + degree + 1)
    count = knots.size - degree - 1
    design = np.asarray(BSpline(knots, np.eye(count), degree)(times), dtype=np.float64)
    mean = float(weights.mean())
    unit = weights / mean
    gram = design.T @ (unit[:, None] * design)
    moment = design.T @ (unit * values)
    square = float(unit @ values**2)
    best: tuple[float, FloatArray, FloatArray, float] | None = None
    for order in _ORDERS:
        if times.size <= 2 * order:
            continue
        difference = np.diff(np.eye(count), order, axis=0)
        penalty = difference.T @ difference
        found = _maximised(gram, penalty, moment, square, times.size, order)
        if best is None or found[0] > best[0]:
            best = found
    assert best is not None
    likelihood, coefficients, inverse, variance = best
    likelihood += 0.5 * float(np.log(unit).sum())
    noise = math.sqrt(variance * mean)
    return Curve(BSpline(knots, coefficients, degree), noise, kind, variance * inverse, likelihood)


def _maximised(
    gram: FloatArray, penalty: FloatArray, moment: FloatArray, square: float, rows: int, order: int
) -> tuple[float, FloatArray, FloatArray, float]:
    """Likelihood, coefficients, inverse normal matrix and noise variance at the best penalty."""
    rank = gram.shape[0] - order
    ridge = 1e-13 * float(np.trace(gram)) / gram.shape[0] * np.eye(gram.shape[0])

    def at(exponent: float) -> tuple[float, FloatArray, float]:
        strength = 10.0**exponent
        try:
            factor = cholesky(gram + strength * (penalty + ridge) + ridge, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -math.inf, gram, 0.0
        half = solve_triangular(factor, moment, lower=True, check_finite=False)
        left = max(square - float(half @ half), 1e-300)
        value = (
            -0.5 * (rows - order) * math.log(left)
            - float(np.log(np.diag(factor)).sum())
            + 0.5 * rank * math.log(strength)
        )
        return value, factor, left / (rows - order)

    coarse = np.arange(-9.0, 9.1, POLICY.coarse_step)
    centre = max(coarse, key=lambda exponent: at(exponent)[0])
    fine = centre + np.arange(-POLICY.coarse_step + POLICY.fine_step, POLICY.coarse_step, POLICY.fine_step)
    value, factor, variance = at(max(fine, key=lambda exponent: at(exponent)[0]))
    if not math.isfinite(value):
        raise ValueError("no penalty gives a positive definite system")
    inverse = cho_solve((factor, True), np.eye(gram.shape[0]), check_finite=False)
    return value, inverse @ moment, inverse, variance
