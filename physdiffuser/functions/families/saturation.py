"""Saturation: values that level off, and what decays like a power."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import block_offsets, cross, saturating_powers, saturations
from physdiffuser.functions.table import register


def _cooperations(u: FloatArray) -> FloatArray:
    rates = 1.0 / np.quantile(u, [0.03, 0.12, 0.25, 0.4, 0.6, 0.8, 0.97])
    return cross(rates, np.array([0.5, 0.75, 1.5, 2.0, 2.7, 4.0]))


register(FamilySpec("saturation", "1/(1 + c*u)", ("c",), {"enumeration": saturations}))
register(FamilySpec("squared saturation", "1/(1 + c*u)**2", ("c",), {"enumeration": saturations}))
register(
    FamilySpec(
        "shifted reciprocal", "1/(u + k)", ("k",), {"blocks": block_offsets}, standard=("a*f", "a + b*f")
    )
)
register(FamilySpec("Langmuir", "u/(k + u)", ("k",), standard=("a*f",), alternatives=("1/(1 + k/u)",)))
register(
    FamilySpec(
        "squared Langmuir",
        "u**2/(k + u**2)",
        ("k",),
        standard=("a*f",),
        alternatives=("(u*u)/(k + u*u)",),
    )
)
register(
    FamilySpec("cooperative saturation", "u**p/(k + u**p)", ("k", "p"), positive=("u",), standard=("a*f",))
)
register(FamilySpec("Hill", "1/(1 + (c*u)**p)", ("c", "p"), {"enumeration": _cooperations}, positive=("u",)))
register(
    FamilySpec(
        "power over a power of a saturating power",
        "u**a*(k + u**n)**b",
        ("k", "n"),
        {"curves": saturating_powers},
        ("a", "b"),
        positive=("u",),
    )
)
register(
    FamilySpec(
        "feature over a saturating power on a level",
        "u/(k + u**n)",
        ("k", "n"),
        {"curves": saturating_powers},
        positive=("u",),
    )
)
