"""Exponentials: growth and decay, stretched ones, and ones with a power or a line before them."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import (
    block_rates,
    column,
    cross,
    curve_rates,
    of_either_sign,
    positive_rates,
    rates,
)
from physdiffuser.functions.table import register


def _stretches(u: FloatArray) -> FloatArray:
    return cross(np.geomspace(0.3, 10.0, 8) / u.max(), np.array([0.33, 0.5, 0.7, 1.4, 2.0, 3.0]))


def _curve_stretches(u: FloatArray) -> FloatArray:
    return column(of_either_sign(np.geomspace(0.15, 5.0, 40)))


def _either_rate(u: FloatArray) -> FloatArray:
    return column(of_either_sign(curve_rates(u, 40)))


def _power_and_rate(u: FloatArray) -> FloatArray:
    powers = np.concatenate([-np.geomspace(0.2, 4, 8), np.geomspace(0.2, 6, 12)])
    return cross(powers, of_either_sign(curve_rates(u)))


def _grown(u: FloatArray) -> FloatArray:
    """Factor and rate of an exponential that is added to 1."""
    both = of_either_sign(curve_rates(u))
    added = cross(u.min() + np.ptp(u) * np.linspace(-1.0, 2.0, 16), both)
    grown = np.stack([np.exp(np.clip(-added[:, 1] * added[:, 0], -600, 600)), added[:, 1]], axis=1)
    taken = cross(np.array([0.2, 0.5, 0.75, 0.9, 0.97]), both)
    largest = np.exp(np.maximum(taken[:, 1] * u.min(), taken[:, 1] * u.max()))
    return np.concatenate([grown, np.stack([-taken[:, 0] / largest, taken[:, 1]], axis=1)])


register(FamilySpec("decay", "exp(-(c*u))", ("c",), {"blocks": block_rates}))
register(
    FamilySpec(
        "exponential",
        "exp(c*u)",
        ("c",),
        {"enumeration": rates, "blocks": block_rates},
        standard=("a*f", "a + b*f"),
        alternatives=("c**u",),
    )
)
register(FamilySpec("two exponentials", "exp(r*u) + c*exp(k*u)", ("r", "c", "k"), standard=("a*f",)))
register(FamilySpec("rise and decay", "exp(r*u) - exp(k*u)", ("r", "k"), standard=("a*f",)))
register(FamilySpec("power of 2", "2**u", standard=("a*f", "a + b*f")))
register(FamilySpec("power of 10", "10**u", standard=("a*f", "a + b*f")))
register(FamilySpec("rise", "1 - exp(c*u)", ("c",), standard=("a*f",), alternatives=("1 + (-1)*exp(c*u)",)))
register(FamilySpec("Weibull rise", "1 - exp(k*u**p)", ("k", "p"), positive=("u",), standard=("a*f",)))
register(FamilySpec("Gompertz", "exp(k*exp(r*u))", ("k", "r"), standard=("a*f",)))
register(FamilySpec("Morse", "(1 - k*exp(r*u))**2", ("k", "r"), standard=("a*f",)))
register(FamilySpec("Planck", "u**3/(exp(k*u) - 1)", ("k",), positive=("u",), standard=("a*f",)))
register(
    FamilySpec(
        "Planck in wavelength",
        "1/(u**5*(exp(k/u) - 1))",
        ("k",),
        positive=("u",),
        standard=("a*f",),
    )
)
register(FamilySpec("Bose", "1/(exp(c*u) - 1)", ("c",), {"enumeration": positive_rates}))
register(
    FamilySpec(
        "stretched exponential",
        "exp(-(c*u)**p)",
        ("c", "p"),
        {"enumeration": _stretches},
        positive=("u",),
    )
)
register(
    FamilySpec(
        "power and stretched exponential",
        "u**a*exp(b*u**n)",
        ("n",),
        {"curves": _curve_stretches},
        ("a", "b"),
        positive=("u",),
    )
)
register(
    FamilySpec(
        "power of one plus an exponential", "(1 + k*exp(r*u))**a", ("k", "r"), {"curves": _grown}, ("a",)
    )
)
register(
    FamilySpec(
        "line times an exponential on a level",
        "(a + b*u)*exp(r*u)",
        ("r",),
        {"curves": _either_rate},
        ("a", "b"),
    )
)
register(
    FamilySpec(
        "power and exponential on a level",
        "u**n*exp(r*u)",
        ("n", "r"),
        {"curves": _power_and_rate},
        positive=("u",),
    )
)
