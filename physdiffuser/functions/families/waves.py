"""Waves: on a level, on a trend, and damped."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import block_frequencies, column, cross, curve_rates
from physdiffuser.functions.table import register


def _frequencies(u: FloatArray) -> FloatArray:
    # Half a cycle more over the span is still close enough for the next one to take over.
    cycles = np.arange(0.25, 40, 0.25)
    return cross(2 * np.pi * cycles / np.ptp(u), np.array([0.0, 0.25, 0.5, 0.75]) * np.pi)


def _damped(u: FloatArray) -> FloatArray:
    cycles = np.arange(0.25, max(4.0, min(30.0, u.size / 3)), 0.25)
    return cross(-curve_rates(u, 12), 2 * np.pi * cycles / np.ptp(u))


def _curve_frequencies(u: FloatArray) -> FloatArray:
    cycles = np.arange(0.25, max(4.0, min(60.0, u.size / 3)), 0.125)
    return column(2 * np.pi * cycles / np.ptp(u))


register(FamilySpec("wave", "sin(c*u + p)", ("c", "p"), {"enumeration": _frequencies}, products=30))
register(FamilySpec("sine", "sin(c*u)", ("c",), {"blocks": block_frequencies}))
register(FamilySpec("cosine", "cos(c*u)", ("c",), {"blocks": block_frequencies}))
register(
    FamilySpec(
        "damped wave on a level",
        "exp(r*u)*(a*cos(w*u) + b*sin(w*u))",
        ("r", "w"),
        {"curves": _damped},
        ("a", "b"),
    )
)
register(
    FamilySpec(
        "wave on a trend",
        "a*u + (b*cos(w*u) + c*sin(w*u))",
        ("w",),
        {"curves": _curve_frequencies},
        ("a", "b", "c"),
    )
)
