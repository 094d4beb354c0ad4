"""The curves: which grids they are tried on, what their terms are, and how they are written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import ONE, Expression, Number
from physdiffuser.expressions.tree import add, call, div, mul, power, sub
from physdiffuser.functions.curves import Curve

FloatArray = npt.NDArray[np.float64]

# What stands under a logarithm is at least this, relative to its largest.
_LEAST = 1e-12


def _grid(*axes: FloatArray) -> FloatArray:
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def _beyond(u: FloatArray, points: int) -> FloatArray:
    """Distances of a pole from the nearest row, from close by to far away."""
    span: FloatArray = np.ptp(u) * np.geomspace(0.01, 40.0, points)
    return span


def _below(u: FloatArray) -> FloatArray:
    return np.asarray(_beyond(u, 60) - u.min())[:, None]


def _above(u: FloatArray) -> FloatArray:
    return np.asarray(_beyond(u, 60) + u.max())[:, None]


def _below_and_above(u: FloatArray) -> FloatArray:
    return _grid(_beyond(u, 20) - u.min(), _beyond(u, 20) + u.max())


def _two_below(u: FloatArray) -> FloatArray:
    grid = _grid(_beyond(u, 26) - u.min(), _beyond(u, 26) - u.min())
    chosen: FloatArray = grid[grid[:, 0] < grid[:, 1]]
    return chosen


def _saturating(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 2))
    grid = _grid(np.geomspace(0.05 * u.min(), 20 * u.max(), 24), np.geomspace(0.2, 5.0, 24))
    return np.stack([grid[:, 0] ** grid[:, 1], grid[:, 1]], axis=1)


def _powers(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 1))
    sizes = np.geomspace(0.15, 5.0, 40)
    return np.concatenate([-sizes, sizes])[:, None]


def _rates(u: FloatArray, points: int = 16) -> FloatArray:
    sizes: FloatArray = np.geomspace(0.2, 40.0, points) / np.ptp(u)
    return sizes


def _grown(u: FloatArray) -> FloatArray:
    """Factor and rate of an exponential that is added to 1."""
    rates = np.concatenate([-_rates(u), _rates(u)])
    centres = u.min() + np.ptp(u) * np.linspace(-1.0, 2.0, 16)
    added = _grid(centres, rates)
    grown = np.stack([np.exp(np.clip(-added[:, 1] * added[:, 0], -600, 600)), added[:, 1]], axis=1)
    taken = _grid(np.array([0.2, 0.5, 0.75, 0.9, 0.97]), rates)
    largest = np.exp(np.maximum(taken[:, 1] * u.min(), taken[:, 1] * u.max()))
    return np.concatenate([grown, np.stack([-taken[:, 0] / largest, taken[:, 1]], axis=1)])


def _damped(u: FloatArray) -> FloatArray:
    cycles = np.arange(0.25, max(4.0, min(30.0, u.size / 3)), 0.25)
    return _grid(-_rates(u, 12), 2 * np.pi * cycles / np.ptp(u))


def _waves(u: FloatArray) -> FloatArray:
    cycles = np.arange(0.25, max(4.0, min(60.0, u.size / 3)), 0.125)
    return (2 * np.pi * cycles / np.ptp(u))[:, None]


def _either_rate(u: FloatArray) -> FloatArray:
    return np.concatenate([-_rates(u, 40), _rates(u, 40)])[:, None]


def _power_and_rate(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 2))
    rates = np.concatenate([-_rates(u), _rates(u)])
    return _grid(np.concatenate([-np.geomspace(0.2, 4, 8), np.geomspace(0.2, 6, 12)]), rates)


def _vogel(u: FloatArray) -> FloatArray:
    poles = _beyond(u, 20) - u.min()
    steps = 1 / (u.min() + poles) - 1 / (u.max() + poles)
    sizes = np.geomspace(0.3, 20, 10)
    rates = np.concatenate([-sizes, sizes])
    scaled = np.asarray(rates / steps[:, None], np.float64)
    return np.stack([scaled.ravel(), np.repeat(poles, rates.size)], axis=1)


def _quadratics(u: FloatArray) -> FloatArray:
    """Coefficients of quadratics that are 1 at 0 and have no root among the rows, real roots or none."""
    centres = u.min() + np.ptp(u) * np.linspace(-1.0, 2.0, 13)
    peaked = _grid(centres, np.ptp(u) * np.geomspace(0.03, 5.0, 12))
    size = np.square(peaked).sum(axis=1)
    rootless = np.stack([-2 * peaked[:, 0] / size, 1 / size], axis=1)
    poles = _two_below(u)
    rooted = np.stack([1 / poles[:, 0] + 1 / poles[:, 1], 1 / poles.prod(axis=1)], axis=1)
    return np.concatenate([rootless, rooted])


def _log(value: FloatArray) -> FloatArray:
    logarithm: FloatArray = np.log(np.maximum(value, _LEAST * np.abs(value).max()))
    return logarithm


_Trees = list[Expression]


def _pole_and_power(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), call("exp", div(c[1], add(u, k[0]))))


def _pole(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return call("exp", div(c[0], add(u, k[0])))


def _powers_below(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(add(u, k[0]), c[0]), power(add(u, k[1]), c[1]))


def _power_and_powers_below(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), _powers_below(u, k, c[1:]))


def _powers_around(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(add(u, k[0]), c[0]), power(sub(k[1], u), c[1]))


def _power_and_powers_around(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), _powers_around(u, k, c[1:]))


def _power_and_below(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), power(add(u, k[0]), c[1]))


def _power_and_above(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), power(sub(k[0], u), c[1]))


def _power_and_saturating(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), power(add(k[0], power(u, k[1])), c[1]))


def _power_and_stretched(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(power(u, c[0]), call("exp", mul(c[1], power(u, k[0]))))


def _power_of_grown(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return power(add(ONE, mul(k[0], call("exp", mul(k[1], u)))), c[0])


def _damped_wave(u: Expression, k: _Trees, c: _Trees) -> Expression:
    wave = add(mul(c[0], call("cos", mul(k[1], u))), mul(c[1], call("sin", mul(k[1], u))))
    return mul(call("exp", mul(k[0], u)), wave)


def _wave_on_trend(u: Expression, k: _Trees, c: _Trees) -> Expression:
    wave = add(mul(c[1], call("cos", mul(k[0], u))), mul(c[2], call("sin", mul(k[0], u))))
    return add(mul(c[0], u), wave)


def _critical(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(add(c[0], mul(c[1], u)), call("exp", mul(k[0], u)))


def _power_exponential(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(c[0], mul(power(u, k[0]), call("exp", mul(k[1], u))))


def _vogel_on_level(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(c[0], call("exp", div(k[0], add(u, k[1]))))


def _feature_over_power(u: Expression, k: _Trees, c: _Trees) -> Expression:
    return mul(c[0], div(u, add(k[0], power(u, k[1]))))


def _line_over_quadratic(u: Expression, k: _Trees, c: _Trees) -> Expression:
    below = add(add(ONE, mul(k[0], u)), mul(k[1], power(u, Number(2))))
    return div(add(c[0], mul(c[1], u)), below)


def _curve(name: str, logarithmic: bool, needs: str, grid: object, terms: object, build: object) -> Curve:
    return Curve(name, logarithmic, frozenset(needs.split()), grid, terms, build)  # type: ignore[arg-type]


CURVES = (
    _curve(
        "exponential of a pole",
        True,
        "exp div add mul",
        _below,
        lambda u, p: [1 / (u + p)],
        _pole,
    ),
    _curve(
        "power and exponential of a pole",
        True,
        "pow exp div add mul",
        _below,
        lambda u, p: [_log(u), 1 / (u + p)],
        _pole_and_power,
    ),
    _curve(
        "powers of it and above a pole",
        True,
        "pow add mul",
        _below,
        lambda u, p: [_log(u), np.log(u + p)],
        _power_and_below,
    ),
    _curve(
        "powers of it and below an end",
        True,
        "pow sub mul",
        _above,
        lambda u, p: [_log(u), np.log(p - u)],
        _power_and_above,
    ),
    _curve(
        "powers above two poles",
        True,
        "pow add mul",
        _two_below,
        lambda u, p, q: [np.log(u + p), np.log(u + q)],
        _powers_below,
    ),
    _curve(
        "powers of it and above two poles",
        True,
        "pow add mul",
        _two_below,
        lambda u, p, q: [_log(u), np.log(u + p), np.log(u + q)],
        _power_and_powers_below,
    ),
    _curve(
        "powers between two ends",
        True,
        "pow add sub mul",
        _below_and_above,
        lambda u, p, q: [np.log(u + p), np.log(q - u)],
        _powers_around,
    ),
    _curve(
        "powers of it and between two ends",
        True,
        "pow add sub mul",
        _below_and_above,
        lambda u, p, q: [_log(u), np.log(u + p), np.log(q - u)],
        _power_and_powers_around,
    ),
    _curve(
        "power over a power of a saturating power",
        True,
        "pow add mul",
        _saturating,
        lambda u, k, n: [_log(u), np.log(k + u**n)],
        _power_and_saturating,
    ),
    _curve(
        "power and stretched exponential",
        True,
        "pow exp mul",
        _powers,
        lambda u, n: [_log(u), u**n],
        _power_and_stretched,
    ),
    _curve(
        "power of one plus an exponential",
        True,
        "pow exp add mul",
        _grown,
        lambda u, k, r: [np.log1p(k * np.exp(r * u))],
        _power_of_grown,
    ),
    _curve(
        "damped wave on a level",
        False,
        "exp sin cos add mul",
        _damped,
        lambda u, r, w: [np.exp(r * u) * np.cos(w * u), np.exp(r * u) * np.sin(w * u)],
        _damped_wave,
    ),
    _curve(
        "wave on a trend",
        False,
        "sin cos add mul",
        _waves,
        lambda u, w: [u, np.cos(w * u), np.sin(w * u)],
        _wave_on_trend,
    ),
    _curve(
        "line times an exponential on a level",
        False,
        "exp add mul",
        _either_rate,
        lambda u, r: [np.exp(r * u), u * np.exp(r * u)],
        _critical,
    ),
    _curve(
        "power and exponential on a level",
        False,
        "pow exp add mul",
        _power_and_rate,
        lambda u, n, r: [u**n * np.exp(r * u)],
        _power_exponential,
    ),
    _curve(
        "exponential of a pole on a level",
        False,
        "exp div add mul",
        _vogel,
        lambda u, c, p: [np.exp(c / (u + p))],
        _vogel_on_level,
    ),
    _curve(
        "feature over a saturating power on a level",
        False,
        "pow div add mul",
        _saturating,
        lambda u, k, n: [u / (k + u**n)],
        _feature_over_power,
    ),
    replace(
        _curve(
            "line over a quadratic",
            False,
            "div pow add mul",
            _quadratics,
            lambda u, k, m: [1 / (1 + k * u + m * u * u), u / (1 + k * u + m * u * u)],
            _line_over_quadratic,
        ),
        level=False,
    ),
)
