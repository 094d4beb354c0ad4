"""What a function family is: a function with constants inside, and the values of these that are tried."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from physdiffuser.arrays import FloatArray

Use = Literal["enumeration", "curves", "blocks"]
"""Where a family is tried. "enumeration": on power products of the columns, times and beside others.
"curves": on one column, with its linear coefficients solved for. "blocks": on single columns, as a building
block that evolution and neighbours put into formulas."""

Standard = Literal["a*f", "a + b*f"]
"""How a family is fitted to a table with one input before anything else is tried."""

Grid = Callable[..., FloatArray]
"""From the values of each argument, shape (rows,), to the constants to try, shape (tries, constants)."""

ARGUMENTS = ("u", "v")
_NAME = re.compile(r"[^\W\d]\w*")


def everywhere(grid: Grid) -> dict[Use, Grid]:
    """One grid for all uses.

    Parameters
    ----------
    grid
        From the values of the argument, shape (rows,), to the constants to try, shape (tries, constants).

    Returns
    -------
    The `grids` of a `FamilySpec`.
    """
    return dict.fromkeys(get_args(Use), grid)


@dataclass(frozen=True)
class FamilySpec:
    """A function of one or two arguments with constants inside, as a row of the table of families.

    Attributes
    ----------
    name
        What derivations call it.
    template
        The formula. `u` is the argument, or `u` and `v` are; all other names are constants. Its values are
        computed from it, so there is no other form to write.
    constants
        Names of the constants inside, in the order of the columns of a grid.
    grids
        For each use the constants that are tried: a function of the values of the arguments, each of shape
        (rows,), that returns an array of shape (tries, constants). It returns no rows where the family is of
        no use, such as a power for negative arguments. A family takes no part in a use without a grid.
        `everywhere(grid)` is one grid for all uses.
    coefficients
        Names of the constants in which the formula, or its logarithm, is linear: they are solved for at each
        point of the grid. Not for the uses "enumeration" and "blocks"; without any, the formula has a factor.
    offset
        Whether curves add a constant to the formula.
    positive
        Formulas in the arguments and constants that have to be positive on every row: "u" for powers of the
        argument, "u + c*v" where a pole between the rows is no law.
    products
        With several constants: on how many power products enumeration tries the family; 0 for the columns
        only. With one constant it is tried on all.
    standard
        How the family is fitted to tables with one input before the search, out of "a*f" and "a + b*f".
    alternatives
        Other ways to write the template, for `standard`, where an operator in it is not allowed.

    Raises
    ------
    ValueError
        If a field contradicts another.
    """

    name: str
    template: str
    constants: tuple[str, ...] = ()
    grids: Mapping[Use, Grid] = field(default_factory=dict, hash=False)
    coefficients: tuple[str, ...] = ()
    offset: bool = True
    positive: tuple[str, ...] = ()
    products: int = 0
    standard: tuple[Standard, ...] = ()
    alternatives: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        what = f"family {str(self.name)[:40]!a}"
        names = (*self.constants, *self.coefficients)
        if len(set(names)) < len(names) or {"u", "v", "pi"} & set(names):
            raise ValueError(f"{what}: the names of constants must differ from each other and from u, v, pi")
        if unknown := [use for use in self.grids if use not in get_args(Use)]:
            raise ValueError(f"{what}: no use is called {unknown[0]!a}; there are {', '.join(get_args(Use))}")
        if wrong := [form for form in self.standard if form not in get_args(Standard)]:
            raise ValueError(f"{what}: standard holds {wrong[0]!a}; it may hold 'a*f' and 'a + b*f'")
        if self.grids and not self.constants:
            raise ValueError(f"{what}: a grid needs constants inside the formula")
        if not self.grids and not self.standard:
            raise ValueError(f"{what}: it is used nowhere; give it a grid, everywhere(grid), or standard")
        if self.coefficients and set(self.grids) - {"curves"}:
            raise ValueError(f"{what}: coefficients are for the use 'curves' only")
        if self.arity == 2 and (set(self.grids) - {"enumeration"} or self.standard):
            raise ValueError(f"{what}: a function of u and v is for enumeration only")

    @property
    def arity(self) -> int:
        """Number of arguments, 1 or 2."""
        return 2 if "v" in _NAME.findall(self.template) else 1
