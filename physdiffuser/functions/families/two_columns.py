"""Functions of a weighted sum of two columns, or of their squares."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import column, of_either_sign
from physdiffuser.functions.table import register


def _ratios(u: FloatArray, v: FloatArray) -> FloatArray:
    """Weights of v beside u, of either sign, from little to much."""
    return column(of_either_sign(np.geomspace(0.02, 50.0, 20) * u.std() / v.std()))


def _ratios_of_squares(u: FloatArray, v: FloatArray) -> FloatArray:
    return _ratios(u * u, v * v)


register(FamilySpec("logarithm of two", "log(u + c*v)", ("c",), {"enumeration": _ratios}))
register(FamilySpec("root of two", "sqrt(u + c*v)", ("c",), {"enumeration": _ratios}))
# A pole between the rows is no law.
register(FamilySpec("inverse of two", "1/(u + c*v)", ("c",), {"enumeration": _ratios}, positive=("u + c*v",)))
register(FamilySpec("root of squares", "sqrt(u**2 + c*v**2)", ("c",), {"enumeration": _ratios_of_squares}))
register(
    FamilySpec(
        "inverse root of squares", "1/sqrt(u**2 + c*v**2)", ("c",), {"enumeration": _ratios_of_squares}
    )
)
