"""Steps and bends: from one level, or one slope, to another."""

from __future__ import annotations

from physdiffuser.core.family import FamilySpec
from physdiffuser.functions.grids import block_peaks, block_rates, bumps, hinges, positive_rates
from physdiffuser.functions.table import register

register(
    FamilySpec(
        "tanh",
        "tanh(c*u)",
        ("c",),
        {"enumeration": positive_rates, "blocks": block_rates},
        standard=("a*f",),
    )
)
register(FamilySpec("sinh", "sinh(c*u)", ("c",), {"enumeration": positive_rates}))
register(FamilySpec("cosh", "cosh(c*u)", ("c",), {"enumeration": positive_rates}))
register(FamilySpec("arctangent", "atan(c*u)", ("c",), {"enumeration": positive_rates}))
# With 4*c as rate its steepest slope is c, so that it is as wide as the other bumps.
register(FamilySpec("logistic", "1/(1 + exp(-4*c*(u - p)))", ("c", "p"), {"enumeration": bumps}))
register(
    FamilySpec(
        "logistic growth",
        "1/(1 + k*exp(r*u))",
        ("k", "r"),
        standard=("a*f",),
        alternatives=("1/(1 + k*r**u)",),
    )
)
register(FamilySpec("soft hinge", "log(1 + exp(c*(u - p)))", ("c", "p"), {"enumeration": hinges}))
register(FamilySpec("Bernoulli", "(u - p)/(exp(c*(u - p)) - 1)", ("c", "p"), {"enumeration": hinges}))
register(FamilySpec("shifted tanh", "tanh((u - p)/w)", ("p", "w"), {"blocks": block_peaks}))
