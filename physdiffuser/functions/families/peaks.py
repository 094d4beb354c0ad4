"""Peaks."""

from __future__ import annotations

from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import block_peaks, bumps
from physdiffuser.functions.table import register

register(FamilySpec("Gaussian", "exp(-(c*(u - p))**2)", ("c", "p"), {"enumeration": bumps}))
register(FamilySpec("Lorentzian", "1/(1 + (c*(u - p))**2)", ("c", "p"), {"enumeration": bumps}))
register(FamilySpec("Gaussian of a width", "exp(-((u - p)/w)**2)", ("p", "w"), {"blocks": block_peaks}))
register(FamilySpec("Lorentzian of a width", "1/(1 + ((u - p)/w)**2)", ("p", "w"), {"blocks": block_peaks}))
register(FamilySpec("bell at zero", "exp(k*u**2)", ("k",), standard=("a*f",), alternatives=("exp(k*(u*u))",)))
register(
    FamilySpec(
        "bell",
        "exp(k*(u + p)**2)",
        ("k", "p"),
        standard=("a*f",),
        alternatives=("exp(k*((u + p)*(u + p)))",),
    )
)
register(
    FamilySpec("resonance at zero", "1/(k + u**2)", ("k",), standard=("a*f",), alternatives=("1/(k + u*u)",))
)
register(
    FamilySpec(
        "resonance",
        "1/(k + (u + p)**2)",
        ("k", "p"),
        standard=("a*f",),
        alternatives=("1/(k + (u + p)*(u + p))",),
    )
)
