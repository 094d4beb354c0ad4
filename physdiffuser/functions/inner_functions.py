"""Functions with one or two unknown constants inside, and the values of these that are tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import ONE, Expression, Number
from physdiffuser.expressions.tree import add, call, div, mul, power, sub

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A function of one power product u, or of two columns u and v, with one or two constants inside.

    Attributes
    ----------
    products
        With two constants: on how many power products it is tried; 0 for the single columns only.
    grid
        From the values of u, and v, (shape (rows,)) to the constants to try, shape (tries, constants).
    evaluate
        From u, and v, (1, rows) and each constant (tries, 1) to values (tries, rows).
    build
        The formula, from those of u, and v, and of the constants.
    of_two
        Whether it is a function of two columns.
    """

    name: str
    constants: int
    needs: frozenset[str]
    grid: Callable[..., FloatArray]
    evaluate: Callable[..., FloatArray]
    build: Callable[..., Expression]
    products: int = 0
    of_two: bool = False


def _rates(u: FloatArray) -> FloatArray:
    span = np.ptp(u)
    sizes = np.geomspace(0.1, 40, 20) / span
    return np.concatenate([-sizes, sizes])[:, None]


def _positive_rates(u: FloatArray) -> FloatArray:
    return (np.geomspace(0.1, 40, 20) / np.ptp(u))[:, None]


def _saturations(u: FloatArray) -> FloatArray:
    largest, least = np.abs(u).max(), np.abs(u).min()
    sizes = np.geomspace(0.05 / largest, 50 / max(least, 1e-3 * largest), 16)
    if (u < 0).any():
        sizes = sizes[sizes < 1 / -u.min()]
    poles = -np.array([0.2, 0.4, 0.6, 0.75, 0.87, 0.95]) / u.max() if u.max() > 0 else np.empty(0)
    if u.min() > 0:
        # The pole may also lie below the range: 1/(1 - 3*u) for u > 0.6.
        poles = np.concatenate([poles, -np.array([1.03, 1.15, 1.4, 2.0, 3.5]) / u.min()])
    return np.concatenate([sizes, poles])[:, None]


def _exponents(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 1))
    return np.array([-3.7, -2.7, -1.7, -1.3, -0.7, -0.3, -0.15, 0.15, 0.3, 0.7, 1.3, 1.7, 2.3, 2.7, 3.5])[
        :, None
    ]


def _frequencies(u: FloatArray) -> FloatArray:
    span = np.ptp(u)
    # Half a cycle more over the span is still close enough for the next one to take over.
    cycles = np.arange(0.25, 40, 0.25)
    omega = 2 * np.pi * cycles / span
    phase = np.array([0.0, 0.25, 0.5, 0.75]) * np.pi
    return np.stack([np.repeat(omega, phase.size), np.tile(phase, omega.size)], axis=1)


def _bumps(u: FloatArray) -> FloatArray:
    centres = np.quantile(u, [0.02, 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 0.98])
    widths = np.geomspace(1.0, 25.0, 7) / np.ptp(u)
    return np.stack([np.repeat(widths, centres.size), np.tile(centres, widths.size)], axis=1)


def _hinges(u: FloatArray) -> FloatArray:
    bumps = _bumps(u)
    return np.concatenate([bumps, bumps * (-1, 1)])


def _stretches(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 2))
    rates = np.geomspace(0.3, 10.0, 8) / u.max()
    powers = np.array([0.33, 0.5, 0.7, 1.4, 2.0, 3.0])
    return np.stack([np.repeat(rates, powers.size), np.tile(powers, rates.size)], axis=1)


def _cooperations(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 2))
    rates = 1.0 / np.quantile(u, [0.03, 0.12, 0.25, 0.4, 0.6, 0.8, 0.97])
    powers = np.array([0.5, 0.75, 1.5, 2.0, 2.7, 4.0])
    return np.stack([np.repeat(rates, powers.size), np.tile(powers, rates.size)], axis=1)


def _shifts(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 2))
    offsets = np.geomspace(0.1 * u.min(), 3 * u.max(), 7)
    powers = np.array([-3.5, -2.5, -1.5, -0.7, -0.3, 0.3, 0.7, 1.5, 2.5, 3.5])
    return np.stack([np.repeat(offsets, powers.size), np.tile(powers, offsets.size)], axis=1)


def _poles_beside(u: FloatArray) -> FloatArray:
    """Rates of an exponential of 1/(u + p), and p: the pole lies below the rows, up to far below."""
    span = np.ptp(u)
    poles = np.geomspace(0.1, 30.0, 9) * span - u.min()
    steps = 1 / (u.min() + poles) - 1 / (u.max() + poles)
    sizes = np.array([0.5, 1.0, 2.0, 3.2, 5.0, 8.0, 12.0])
    rates = np.concatenate([-sizes, sizes])
    return np.stack([(rates / steps[:, None]).ravel(), np.repeat(poles, rates.size)], axis=1)


def _offsets(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return np.empty((0, 1))
    return np.geomspace(0.02 * u.min(), 30 * u.max(), 20)[:, None]


def _e_exp(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.exp(c * u)


def _e_bose(u: FloatArray, c: FloatArray) -> FloatArray:
    return 1 / np.expm1(c * u)


def _e_saturation(u: FloatArray, c: FloatArray) -> FloatArray:
    return 1 / (1 + c * u)


def _e_saturation_squared(u: FloatArray, c: FloatArray) -> FloatArray:
    return 1 / np.square(1 + c * u)


def _e_root(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.sqrt(1 + c * u)


def _e_inverse_root(u: FloatArray, c: FloatArray) -> FloatArray:
    return 1 / np.sqrt(1 + c * u)


def _e_log(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.log(1 + c * u)


def _e_log_offset(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.log(u + c)


def _e_power(u: FloatArray, c: FloatArray) -> FloatArray:
    return u**c


def _e_tanh(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.tanh(c * u)


def _e_sinh(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.sinh(c * u)


def _e_cosh(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.cosh(c * u)


def _e_atan(u: FloatArray, c: FloatArray) -> FloatArray:
    return np.arctan(c * u)


def _e_wave(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return np.sin(c * u + p)


def _e_logistic(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-4 * c * (u - p)))


def _e_gauss(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return np.exp(-np.square(c * (u - p)))


def _e_lorentz(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return 1 / (1 + np.square(c * (u - p)))


def _e_stretched(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return np.exp(-((c * u) ** p))


def _e_shifted_power(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return (u + c) ** p


def _e_vogel(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return np.exp(c / (u + p))


def _e_hill(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return 1 / (1 + (c * u) ** p)


def _e_hinge(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return np.logaddexp(0.0, c * (u - p))


def _e_bernoulli(u: FloatArray, c: FloatArray, p: FloatArray) -> FloatArray:
    return (u - p) / np.expm1(c * (u - p))


def _b_exp(u: Expression, c: Expression) -> Expression:
    return call("exp", mul(c, u))


def _b_bose(u: Expression, c: Expression) -> Expression:
    return div(ONE, sub(call("exp", mul(c, u)), ONE))


def _b_saturation(u: Expression, c: Expression) -> Expression:
    return div(ONE, add(ONE, mul(c, u)))


def _b_saturation_squared(u: Expression, c: Expression) -> Expression:
    return div(ONE, power(add(ONE, mul(c, u)), Number(2)))


def _b_root(u: Expression, c: Expression) -> Expression:
    return call("sqrt", add(ONE, mul(c, u)))


def _b_inverse_root(u: Expression, c: Expression) -> Expression:
    return div(ONE, call("sqrt", add(ONE, mul(c, u))))


def _b_log(u: Expression, c: Expression) -> Expression:
    return call("log", add(ONE, mul(c, u)))


def _b_log_offset(u: Expression, c: Expression) -> Expression:
    return call("log", add(u, c))


def _b_power(u: Expression, c: Expression) -> Expression:
    return power(u, c)


def _b_tanh(u: Expression, c: Expression) -> Expression:
    return call("tanh", mul(c, u))


def _b_sinh(u: Expression, c: Expression) -> Expression:
    return call("sinh", mul(c, u))


def _b_cosh(u: Expression, c: Expression) -> Expression:
    return call("cosh", mul(c, u))


def _b_atan(u: Expression, c: Expression) -> Expression:
    return call("atan", mul(c, u))


def _b_wave(u: Expression, c: Expression, p: Expression) -> Expression:
    return call("sin", add(mul(c, u), p))


def _b_logistic(u: Expression, c: Expression, p: Expression) -> Expression:
    # -4*c is one constant: the caller's start for it is scaled to match.
    return div(ONE, add(ONE, call("exp", mul(mul(Number(-4), c), sub(u, p)))))


def _b_gauss(u: Expression, c: Expression, p: Expression) -> Expression:
    return call("exp", call("neg", power(mul(c, sub(u, p)), Number(2))))


def _b_lorentz(u: Expression, c: Expression, p: Expression) -> Expression:
    return div(ONE, add(ONE, power(mul(c, sub(u, p)), Number(2))))


def _b_stretched(u: Expression, c: Expression, p: Expression) -> Expression:
    return call("exp", call("neg", power(mul(c, u), p)))


def _b_shifted_power(u: Expression, c: Expression, p: Expression) -> Expression:
    return power(add(u, c), p)


def _b_vogel(u: Expression, c: Expression, p: Expression) -> Expression:
    return call("exp", div(c, add(u, p)))


def _b_hill(u: Expression, c: Expression, p: Expression) -> Expression:
    return div(ONE, add(ONE, power(mul(c, u), p)))


def _b_hinge(u: Expression, c: Expression, p: Expression) -> Expression:
    return call("log", add(ONE, call("exp", mul(c, sub(u, p)))))


def _b_bernoulli(u: Expression, c: Expression, p: Expression) -> Expression:
    return div(sub(u, p), sub(call("exp", mul(c, sub(u, p))), ONE))


def _ratios(u: FloatArray, v: FloatArray) -> FloatArray:
    """Weights of v beside u, of either sign, from little to much."""
    sizes = np.geomspace(0.02, 50.0, 20) * u.std() / v.std()
    return np.concatenate([-sizes, sizes])[:, None]


def _ratios_of_squares(u: FloatArray, v: FloatArray) -> FloatArray:
    return _ratios(u * u, v * v)


def _e_log_of_two(u: FloatArray, v: FloatArray, c: FloatArray) -> FloatArray:
    return np.log(u + c * v)


def _e_root_of_two(u: FloatArray, v: FloatArray, c: FloatArray) -> FloatArray:
    return np.sqrt(u + c * v)


def _e_inverse_of_two(u: FloatArray, v: FloatArray, c: FloatArray) -> FloatArray:
    # A pole between the rows is no law.
    below = u + c * v
    return np.where((below > 0).all(axis=1, keepdims=True), 1 / below, np.nan)


def _e_root_of_squares(u: FloatArray, v: FloatArray, c: FloatArray) -> FloatArray:
    return np.sqrt(u * u + c * v * v)


def _e_inverse_root_of_squares(u: FloatArray, v: FloatArray, c: FloatArray) -> FloatArray:
    return 1 / np.sqrt(u * u + c * v * v)


def _weighted(u: Expression, v: Expression, c: Expression) -> Expression:
    return add(u, mul(c, v))


def _b_log_of_two(u: Expression, v: Expression, c: Expression) -> Expression:
    return call("log", _weighted(u, v, c))


def _b_root_of_two(u: Expression, v: Expression, c: Expression) -> Expression:
    return call("sqrt", _weighted(u, v, c))


def _b_inverse_of_two(u: Expression, v: Expression, c: Expression) -> Expression:
    return div(ONE, _weighted(u, v, c))


def _b_root_of_squares(u: Expression, v: Expression, c: Expression) -> Expression:
    return call("sqrt", _weighted(power(u, Number(2)), power(v, Number(2)), c))


def _b_inverse_root_of_squares(u: Expression, v: Expression, c: Expression) -> Expression:
    return div(ONE, _b_root_of_squares(u, v, c))


def _family(name: str, constants: int, needs: str, grid: object, evaluate: object, build: object) -> Family:
    return Family(name, constants, frozenset(needs.split()), grid, evaluate, build)  # type: ignore[arg-type]


FAMILIES = (
    _family("exponential", 1, "exp", _rates, _e_exp, _b_exp),
    _family("power", 1, "pow", _exponents, _e_power, _b_power),
    _family("saturation", 1, "div add", _saturations, _e_saturation, _b_saturation),
    _family("logarithm", 1, "log add", _saturations, _e_log, _b_log),
    _family("logarithm with offset", 1, "log add", _offsets, _e_log_offset, _b_log_offset),
    _family("root", 1, "sqrt add", _saturations, _e_root, _b_root),
    _family("inverse root", 1, "sqrt add div", _saturations, _e_inverse_root, _b_inverse_root),
    _family(
        "squared saturation", 1, "div add pow", _saturations, _e_saturation_squared, _b_saturation_squared
    ),
    _family("Bose", 1, "exp div sub", _positive_rates, _e_bose, _b_bose),
    _family("tanh", 1, "tanh", _positive_rates, _e_tanh, _b_tanh),
    _family("sinh", 1, "sinh", _positive_rates, _e_sinh, _b_sinh),
    _family("cosh", 1, "cosh", _positive_rates, _e_cosh, _b_cosh),
    _family("arctangent", 1, "atan", _positive_rates, _e_atan, _b_atan),
    replace(_family("wave", 2, "sin add", _frequencies, _e_wave, _b_wave), products=30),
    _family("logistic", 2, "exp div add", _bumps, _e_logistic, _b_logistic),
    _family("Gaussian", 2, "exp pow neg", _bumps, _e_gauss, _b_gauss),
    _family("Lorentzian", 2, "div pow add", _bumps, _e_lorentz, _b_lorentz),
    _family("soft hinge", 2, "log exp add", _hinges, _e_hinge, _b_hinge),
    _family("Bernoulli", 2, "exp div sub", _hinges, _e_bernoulli, _b_bernoulli),
    _family("stretched exponential", 2, "exp pow neg mul", _stretches, _e_stretched, _b_stretched),
    _family("shifted power", 2, "pow add", _shifts, _e_shifted_power, _b_shifted_power),
    _family("Vogel", 2, "exp div add", _poles_beside, _e_vogel, _b_vogel),
    _family("Hill", 2, "div pow add mul", _cooperations, _e_hill, _b_hill),
    *(
        replace(family, of_two=True)
        for family in (
            _family("logarithm of two", 1, "log add mul", _ratios, _e_log_of_two, _b_log_of_two),
            _family("root of two", 1, "sqrt add mul", _ratios, _e_root_of_two, _b_root_of_two),
            _family("inverse of two", 1, "div add mul", _ratios, _e_inverse_of_two, _b_inverse_of_two),
            _family(
                "root of squares",
                1,
                "sqrt pow add mul",
                _ratios_of_squares,
                _e_root_of_squares,
                _b_root_of_squares,
            ),
            _family(
                "inverse root of squares",
                1,
                "sqrt pow div add mul",
                _ratios_of_squares,
                _e_inverse_root_of_squares,
                _b_inverse_root_of_squares,
            ),
        )
    ),
)
