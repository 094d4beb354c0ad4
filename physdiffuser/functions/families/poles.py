"""Poles and ends beside the rows: exponentials of a pole, and products of powers above or below one."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import (
    block_ends,
    block_offsets,
    column,
    cross,
    distances,
    of_either_sign,
    two_below,
)
from physdiffuser.functions.table import register


def _rates_over_poles(u: FloatArray, poles: FloatArray, sizes: FloatArray) -> FloatArray:
    """Rates of an exponential of `1/(u + p)`, by how much its logarithm rises over the rows, and p."""
    rates = of_either_sign(sizes)
    steps = 1 / (u.min() + poles) - 1 / (u.max() + poles)
    return np.stack([(rates / steps[:, None]).ravel(), np.repeat(poles, rates.size)], axis=1)


def _poles(u: FloatArray) -> FloatArray:
    """The pole lies below the rows, up to far below."""
    poles = np.geomspace(0.1, 30.0, 9) * np.ptp(u) - u.min()
    return _rates_over_poles(u, poles, np.array([0.5, 1.0, 2.0, 3.2, 5.0, 8.0, 12.0]))


def _curve_poles(u: FloatArray) -> FloatArray:
    return _rates_over_poles(u, distances(u, 20) - u.min(), np.geomspace(0.3, 20, 10))


def _block_activations(u: FloatArray) -> FloatArray:
    sizes = -np.array([0.1, 0.5, 2.0, 8.0]) * np.abs(u).max()
    return column(sizes if u.min() > 0 else np.empty(0))


def _below(u: FloatArray) -> FloatArray:
    return column(distances(u, 60) - u.min())


def _above(u: FloatArray) -> FloatArray:
    return column(distances(u, 60) + u.max())


def _below_and_above(u: FloatArray) -> FloatArray:
    return cross(distances(u, 20) - u.min(), distances(u, 20) + u.max())


def _quadratics(u: FloatArray) -> FloatArray:
    """Coefficients of quadratics that are 1 at 0 and have no root among the rows, real roots or none."""
    peaked = cross(u.min() + np.ptp(u) * np.linspace(-1.0, 2.0, 13), np.ptp(u) * np.geomspace(0.03, 5.0, 12))
    size = np.square(peaked).sum(axis=1)
    rootless = np.stack([-2 * peaked[:, 0] / size, 1 / size], axis=1)
    poles = two_below(u)
    rooted = np.stack([1 / poles[:, 0] + 1 / poles[:, 1], 1 / poles.prod(axis=1)], axis=1)
    return np.concatenate([rootless, rooted])


register(FamilySpec("reciprocal up to an end", "1/(k - u)", ("k",), {"blocks": block_ends}))
register(FamilySpec("squared pole", "1/(u + k)**2", ("k",), {"blocks": block_offsets}))
register(FamilySpec("reciprocal of squares", "1/(u**2 + k**2)", ("k",), {"blocks": block_offsets}))
register(FamilySpec("hypotenuse", "sqrt(u**2 + k**2)", ("k",), {"blocks": block_offsets}))
register(FamilySpec("exponential of a distance", "exp(k/(u + k))", ("k",), {"blocks": block_offsets}))
register(FamilySpec("Arrhenius", "exp(k/u)", ("k",), {"blocks": _block_activations}, standard=("a*f",)))
register(
    FamilySpec(
        "Vogel exponential", "exp(c/(u + p))", ("c", "p"), {"enumeration": _poles, "curves": _curve_poles}
    )
)
register(FamilySpec("exponential of a pole", "exp(a/(u + p))", ("p",), {"curves": _below}, ("a",)))
register(
    FamilySpec(
        "power and exponential of a pole", "u**a*exp(b/(u + p))", ("p",), {"curves": _below}, ("a", "b")
    )
)
register(
    FamilySpec("powers of it and above a pole", "u**a*(u + p)**b", ("p",), {"curves": _below}, ("a", "b"))
)
register(
    FamilySpec("powers of it and below an end", "u**a*(q - u)**b", ("q",), {"curves": _above}, ("a", "b"))
)
register(
    FamilySpec(
        "powers above two poles", "(u + p)**a*(u + q)**b", ("p", "q"), {"curves": two_below}, ("a", "b")
    )
)
register(
    FamilySpec(
        "powers of it and above two poles",
        "u**a*((u + p)**b*(u + q)**c)",
        ("p", "q"),
        {"curves": two_below},
        ("a", "b", "c"),
    )
)
register(
    FamilySpec(
        "powers between two ends",
        "(u + p)**a*(q - u)**b",
        ("p", "q"),
        {"curves": _below_and_above},
        ("a", "b"),
    )
)
register(
    FamilySpec(
        "powers of it and between two ends",
        "u**a*((u + p)**b*(q - u)**c)",
        ("p", "q"),
        {"curves": _below_and_above},
        ("a", "b", "c"),
    )
)
register(
    FamilySpec(
        "line over a quadratic",
        "(a + b*u)/(1 + k*u + m*u**2)",
        ("k", "m"),
        {"curves": _quadratics},
        ("a", "b"),
        offset=False,
    )
)
