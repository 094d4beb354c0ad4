"""The table of function families: one row for each function with constants inside, whoever uses it.

The modules of `physdiffuser.functions.families` hold the rows, in groups; each is registered where it is
defined. The rows of plugins are behind them.
"""

from __future__ import annotations

import importlib
from functools import cache

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec, Use, everywhere
from physdiffuser.core.registry import Registry
from physdiffuser.expressions import OPERATORS
from physdiffuser.expressions.definitions import Definition
from physdiffuser.expressions.parser import FUNCTIONS
from physdiffuser.functions.family import Family, compiled
from physdiffuser.functions.grids import column, of_either_sign, positive_rates
from physdiffuser.plugin_system.manager import load_plugins

ROWS: Registry[FamilySpec] = Registry("function family")


def register(spec: FamilySpec) -> FamilySpec:
    """Add a row to the table; a name that is taken is a ValueError."""
    ROWS.add(spec.name, spec)
    return spec


@cache
def built_in() -> tuple[FamilySpec, ...]:
    """The families of this package, in the order of registration."""
    importlib.import_module("physdiffuser.functions.families")
    return tuple(ROWS.parts().values())


def built_in_names() -> frozenset[str]:
    """Names of the families of this package."""
    return frozenset(spec.name for spec in built_in())


@cache
def compiled_built_in() -> tuple[Family, ...]:
    """The same families, compiled."""
    return tuple(map(compiled, built_in()))


def families() -> tuple[Family, ...]:
    """All families: those of this package in the order of registration, of plugins by name, of the user."""
    plugins = load_plugins().families
    specs = (*(plugins[name].spec for name in sorted(plugins)), *defined_families())
    return (*compiled_built_in(), *map(compiled, specs))


def families_for(use: Use) -> tuple[Family, ...]:
    """The families of a use: functions of one argument first, then by the number of constants inside."""
    chosen = [family for family in families() if use in family.spec.grids]
    return tuple(sorted(chosen, key=lambda family: (family.spec.arity, family.constants)))


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
