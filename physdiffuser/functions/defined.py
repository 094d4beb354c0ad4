"""Families of the operators that the user of a run defines: each function of `k*u`, and of `u`."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec, everywhere
from physdiffuser.expressions import OPERATORS
from physdiffuser.expressions.definitions import Definition
from physdiffuser.expressions.parser import FUNCTIONS
from physdiffuser.functions.grids import column, of_either_sign, positive_rates


def _factors(u: FloatArray) -> FloatArray:
    """Rates of both signs, and half cycles over the range of u, for functions that oscillate."""
    cycles = column(2 * np.pi * np.arange(0.25, 12.0, 0.25) / np.ptp(u))
    return np.concatenate([of_either_sign(positive_rates(u)), cycles])


_GRIDS = everywhere(_factors)


def defined_families() -> tuple[FamilySpec, ...]:
    """A row for each operator of one argument that is defined in this thread."""
    found = (OPERATORS[key].definition for key in FUNCTIONS.get().values())
    return tuple(_family(one) for one in found if one is not None and len(one.arguments) == 1)


def _family(definition: Definition) -> FamilySpec:
    # The definition is part of the name: rows are compiled once, and another definition is another row.
    name = f"{definition.head} = {definition.text}"
    return FamilySpec(name, f"{definition.name}(k*u)", ("k",), _GRIDS, standard=("a*f", "a + b*f"))
