"""Logarithms."""

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
    positive_rates,
    saturations,
)
from physdiffuser.functions.table import register


def _offsets(u: FloatArray) -> FloatArray:
    if u.min() <= 0:
        return column([])
    return column(np.geomspace(0.02 * u.min(), 30 * u.max(), 20))


def _hyperbolas(u: FloatArray) -> FloatArray:
    return cross(np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0]), np.square(distances(u, 20)))


register(FamilySpec("logarithm", "log(1 + c*u)", ("c",), {"enumeration": saturations}, standard=("a*f",)))
register(FamilySpec("natural logarithm", "log(u)", positive=("u",), standard=("a*f", "a + b*f")))
register(
    FamilySpec(
        "logarithm with offset", "log(u + c)", ("c",), {"enumeration": _offsets, "blocks": block_offsets}
    )
)
register(FamilySpec("logarithm up to an end", "log(k - u)", ("k",), {"blocks": block_ends}))
register(
    FamilySpec(
        "inverse hyperbolic sine", "log(c*u + sqrt((c*u)**2 + 1))", ("c",), {"enumeration": positive_rates}
    )
)
register(
    FamilySpec(
        "logarithm above a hyperbola",
        "log(c*u + sqrt(u**2 + k))",
        ("c", "k"),
        {"curves": _hyperbolas},
        positive=("c*u + sqrt(u**2 + k)",),
    )
)
