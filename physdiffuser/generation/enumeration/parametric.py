"""Functions with an unknown constant inside: `exp(-c*x)`, `sin(c*x + p)`, `1/(1 + c*x*y)`, `x**c`.

A grid of values of the constant (and of an offset or phase, where the function has one) turns each
such function into library entries. The screening then finds which function, of which power product,
with about which constants; Levenberg-Marquardt finishes the constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from physdiffuser.device import HOST, Device
from physdiffuser.expressions import ONE, Expression, Number, Parameter
from physdiffuser.expressions.tree import add, call, div, mul, power, sub
from physdiffuser.fitting import Fit, fit_alike
from physdiffuser.search.problem import Problem

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A function of one power product u with one or two constants inside.

    Attributes
    ----------
    products
        With two constants: on how many power products it is tried; 0 for the single columns only.
    grid
        From the values of u (shape (rows,)) to the constants to try, shape (tries, constants).
    evaluate
        From u (1, rows) and each constant (tries, 1) to values (tries, rows).
    build
        The formula, from that of u and those of the constants.
    """

    name: str
    constants: int
    needs: frozenset[str]
    grid: Callable[[FloatArray], FloatArray]
    evaluate: Callable[..., FloatArray]
    build: Callable[..., Expression]
    products: int = 0


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


def _b_hill(u: Expression, c: Expression, p: Expression) -> Expression:
    return div(ONE, add(ONE, power(mul(c, u), p)))


def _b_hinge(u: Expression, c: Expression, p: Expression) -> Expression:
    return call("log", add(ONE, call("exp", mul(c, sub(u, p)))))


def _b_bernoulli(u: Expression, c: Expression, p: Expression) -> Expression:
    return div(sub(u, p), sub(call("exp", mul(c, sub(u, p))), ONE))


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
    _family("Hill", 2, "div pow add mul", _cooperations, _e_hill, _b_hill),
)


@dataclass(frozen=True)
class ParametricEntries:
    """Entries made from a family: which family, which power product, which constants."""

    values: FloatArray
    family: npt.NDArray[np.int64]
    product: npt.NDArray[np.int64]
    constants: FloatArray

    def skeleton(self, entry: int, products: list[Expression], first: int) -> tuple[Expression, list[float]]:
        """The formula with parameters from index `first` on, and their starting values."""
        family = FAMILIES[int(self.family[entry])]
        starts = [float(value) for value in self.constants[entry, : family.constants]]
        holders = [Parameter(first + position) for position in range(family.constants)]
        return family.build(products[int(self.product[entry])], *holders), starts


def entries(products: FloatArray, plain: int, operators: frozenset[str]) -> ParametricEntries:
    """All families on all power products.

    Parameters
    ----------
    products
        Shape (products, probes).
    plain
        The first so many are single columns; most families with two constants are tried on these only.
    """
    values: list[FloatArray] = []
    families: list[int] = []
    which: list[int] = []
    constants: list[FloatArray] = []
    for code, family in enumerate(FAMILIES):
        if not family.needs <= operators:
            continue
        most = len(products) if family.constants == 1 else family.products or plain
        for row, u in enumerate(products[:most]):
            if not np.ptp(u) > 0:
                continue
            with np.errstate(all="ignore"):
                grid = family.grid(u)
                made = family.evaluate(u[None], *(grid[:, [k]] for k in range(family.constants)))
                size = np.abs(made).max(axis=1)
                good = np.isfinite(size) & (np.ptp(made, axis=1) > 1e-5 * size)
            values.append(made[good])
            families.extend([code] * int(good.sum()))
            which.extend([row] * int(good.sum()))
            padded = np.zeros((int(good.sum()), 2))
            padded[:, : family.constants] = grid[good]
            constants.append(padded)
    if not values:
        empty = np.empty(0, np.int64)
        return ParametricEntries(np.empty((0, products.shape[1])), empty, empty, np.empty((0, 2)))
    return ParametricEntries(
        np.concatenate(values), np.array(families), np.array(which), np.concatenate(constants)
    )


# Steps of Levenberg-Marquardt for a find, and the relative gain below which they end.
ITERATIONS, TOLERANCE = 15, 1e-8
# Skeletons fitted in one go: enough to share the overhead, few enough to stop in time.
TOGETHER = 60
# Finds followed up with Levenberg-Marquardt: of all, of each family, and of each complexity.
BEST, BEST_OF_FAMILY, BEST_OF_COMPLEXITY = 40, 5, 6


def finds(
    found: list[tuple[float, int, int]],
    entries_: ParametricEntries,
    product_sizes: list[int],
    target_sizes: list[int],
) -> list[tuple[int, int]]:
    """The (entry, target) pairs that are worth a fit, the best first.

    The grid of constants is coarse, so the true law may rank behind wrong ones that happen to be near a
    grid point: the best of each family, and of each complexity, are taken as well.

    Parameters
    ----------
    found
        (residual, entry, target).
    product_sizes, target_sizes
        Complexity of each power product, and of what stands around each target.
    """
    seen: set[tuple[int, int, int]] = set()
    families: dict[int, int] = {}
    complexities: dict[int, int] = {}
    chosen: list[tuple[int, int]] = []
    for rank, (_, entry, target) in enumerate(sorted(found)):
        family, product = int(entries_.family[entry]), int(entries_.product[entry])
        if (family, product, target) in seen:
            continue
        seen.add((family, product, target))
        size = product_sizes[product] + target_sizes[target]
        families[family] = families.get(family, 0) + 1
        complexities[size] = complexities.get(size, 0) + 1
        if rank < BEST or families[family] <= BEST_OF_FAMILY or complexities[size] <= BEST_OF_COMPLEXITY:
            chosen.append((entry, target))
    return chosen


def fitted(
    problem: Problem,
    skeletons: Sequence[Expression],
    initial: Sequence[Sequence[float]],
    device: Device = HOST,
) -> Iterator[list[Fit]]:
    """The skeletons of finds with their constants fitted, in order, `TOGETHER` in one go.

    What is kept is polished when it is archived.
    """
    for start in range(0, len(skeletons), TOGETHER):
        yield fit_alike(
            skeletons[start : start + TOGETHER],
            initial[start : start + TOGETHER],
            problem.inputs,
            problem.target,
            weights=problem.weights,
            loss=problem.loss,
            iterations=ITERATIONS,
            tolerance=TOLERANCE,
            device=device,
        )
