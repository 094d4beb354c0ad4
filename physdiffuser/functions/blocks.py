"""Functions of one column with constants inside, as building blocks that formulas are made of."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import Grid
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Variable
from physdiffuser.functions.family import Family
from physdiffuser.functions.table import families


def with_constants(index: int, column: FloatArray) -> list[Expression]:
    """The families for blocks of one column, shape (rows,), at each point of their grids.

    Families with the same grid take turns, point by point.
    """
    if np.ptp(column) <= 0.0:
        return []
    groups: dict[Grid, list[Family]] = {}
    for family in families():
        if "blocks" in family.spec.grids:
            groups.setdefault(family.spec.grids["blocks"], []).append(family)
    return [block for group in groups.values() for block in _of_group(group, index, column)]


def _of_group(group: list[Family], index: int, column: FloatArray) -> Iterator[Expression]:
    with np.errstate(all="ignore"):
        grids = [family.tries("blocks", column) for family in group]
    for place in range(max(map(len, grids))):
        for family, grid in zip(group, grids, strict=True):
            if place < len(grid):
                yield _built(family.tree, Variable(index), grid[place].tolist())


def _built(node: Expression, argument: Expression, constants: list[float]) -> Expression:
    """The template of an argument and constants, with operations on constants alone done."""
    if isinstance(node, Variable):
        return argument
    if isinstance(node, Parameter):
        return Number(constants[node.index])
    if not isinstance(node, Apply):
        return node
    parts = tuple([_built(part, argument, constants) for part in node.arguments])
    numbers = [part for part in parts if isinstance(part, Number)]
    if len(numbers) == len(parts) and not all(number.exact for number in numbers):
        return Number(float(OPERATORS[node.operator].evaluate(*[np.float64(one.value) for one in numbers])))
    return Apply(node.operator, parts)
