"""Powers of the argument, of one shifted by a constant, and roots."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import block_centres, column, cross, saturations
from physdiffuser.functions.table import register


def _exponents(u: FloatArray) -> FloatArray:
    return column(
        [-3.7, -2.7, -1.7, -1.3, -0.7, -0.3, -0.15, 0.15, 0.3, 0.7, 1.3, 1.7, 2.3, 2.7, 3.5],
    )


def _block_exponents(u: FloatArray) -> FloatArray:
    return column([-3.5, -2.5, -1.5, -1.25, -0.75, -0.35, 0.35, 0.75, 1.25, 1.5, 1.75, 2.5, 3.5])


def _shifts(u: FloatArray) -> FloatArray:
    powers = np.array([-3.5, -2.5, -1.5, -0.7, -0.3, 0.3, 0.7, 1.5, 2.5, 3.5])
    return cross(np.geomspace(0.1 * u.min(), 3 * u.max(), 7), powers)


register(FamilySpec("line", "u", standard=("a*f", "a + b*f")))
register(
    FamilySpec(
        "parabola",
        "b*u + c*u**2",
        coefficients=("b", "c"),
        standard=("a + b*f",),
        alternatives=("b*u + c*(u*u)",),
    )
)
register(
    FamilySpec(
        "cubic",
        "b*u + c*u**2 + d*u**3",
        coefficients=("b", "c", "d"),
        standard=("a + b*f",),
        alternatives=("b*u + c*(u*u) + d*(u*u*u)",),
    )
)
register(FamilySpec("square", "u**2", standard=("a*f", "a + b*f"), alternatives=("u*u",)))
register(FamilySpec("reciprocal", "1/u", standard=("a*f", "a + b*f")))
register(FamilySpec("12-6 potential", "1/u**12 - k/u**6", ("k",), positive=("u",), standard=("a*f",)))
register(FamilySpec("reciprocal square", "1/u**2", standard=("a*f",), alternatives=("1/(u*u)",)))
register(
    FamilySpec(
        "power",
        "u**c",
        ("c",),
        {"enumeration": _exponents, "blocks": _block_exponents},
        positive=("u",),
        standard=("a*f", "a + b*f"),
        alternatives=("exp(c*log(u))",),
    )
)
register(
    FamilySpec(
        "square root",
        "sqrt(u)",
        positive=("u",),
        standard=("a*f", "a + b*f"),
        alternatives=("u**(1/2)", "exp(log(u)/2)"),
    )
)
register(FamilySpec("root", "sqrt(1 + c*u)", ("c",), {"enumeration": saturations}))
register(FamilySpec("inverse root", "1/sqrt(1 + c*u)", ("c",), {"enumeration": saturations}))
register(FamilySpec("shifted power", "(u + c)**p", ("c", "p"), {"enumeration": _shifts}, positive=("u",)))
register(FamilySpec("shifted square", "(u - p)**2", ("p",), {"blocks": block_centres}))
register(FamilySpec("distance", "abs(u - p)", ("p",), {"blocks": block_centres}))
register(FamilySpec("shifted cube", "(u - p)**3", ("p",), {"blocks": block_centres}))
