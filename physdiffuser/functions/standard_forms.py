"""The usual laws of one input, and of several inputs together, as skeletons.

A line, a power law, an exponential on a level, a saturation: what most measured curves are fitted with first.
Those of one input are the rows of the table of families that say so (`FamilySpec.standard`).
"""

from __future__ import annotations

from functools import cache, reduce
from typing import get_args

from physdiffuser.core.family import Standard
from physdiffuser.expressions import ONE, Apply, Expression, Parameter, Variable
from physdiffuser.expressions.tree import add, call, div, mul, power, walk
from physdiffuser.functions.family import Family, alternatives
from physdiffuser.functions.table import families


def standard_forms(columns: int, positive: frozenset[int], operators: frozenset[str]) -> list[Expression]:
    """Skeletons that only hold the given operators.

    Parameters
    ----------
    columns
        Number of inputs. Of several inputs there are a linear function, a product of powers and an
        exponential of a linear function.
    positive
        The inputs that are positive in all rows.
    operators
        Names of the operators that may occur.
    """
    choices = _of_one(0 in positive) if columns == 1 else _of_several(columns, positive)
    found = []
    for ways in choices:
        allowed = [way for way in ways if _operators(way) <= operators]
        found.extend(allowed[:1])
    return found


def further_forms(positive: frozenset[int], operators: frozenset[str]) -> list[Expression]:
    """Skeletons of one input that are not usual: all families with a factor, alone and on a level.

    Parameters
    ----------
    positive
        The inputs that are positive in all rows.
    operators
        Names of the operators that may occur.
    """
    found = []
    for family in families():
        if family.spec.arity == 1 and (0 in positive or not family.spec.positive):
            for form in get_args(Standard):
                if form not in family.spec.standard:
                    allowed = [way for way in _written(family, form) if _operators(way) <= operators]
                    found.extend(allowed[:1])
    return found


def _operators(skeleton: Expression) -> frozenset[str]:
    return frozenset(node.operator for node in walk(skeleton) if isinstance(node, Apply))


def _of_one(positive: bool) -> list[tuple[Expression, ...]]:
    """The forms of each family, with the other ways to write each."""
    return [
        _written(family, form)
        for family in families()
        if positive or not family.positive
        for form in family.spec.standard
    ]


@cache
def _written(family: Family, form: Standard) -> tuple[Expression, ...]:
    offset, factor = form == "a + b*f", not family.spec.coefficients
    first = offset + factor
    holders = [Parameter(first + place) for place in range(family.constants + len(family.spec.coefficients))]
    ways = []
    for tree in alternatives(family):
        body = family.build([Variable(0)], holders, tree)
        if factor:
            body = _times(Parameter(int(offset)), body)
        ways.append(add(Parameter(0), body) if offset else body)
    return tuple(ways)


def _times(factor: Expression, formula: Expression) -> Expression:
    """The formula times a factor, which goes into the numerator of a fraction."""
    match formula:
        case Apply("div", (above, below)):
            return div(factor if above == ONE else mul(factor, above), below)
    return mul(factor, formula)


def _of_several(columns: int, positive: frozenset[int]) -> list[tuple[Expression, ...]]:
    linear = reduce(add, (mul(Parameter(index + 1), Variable(index)) for index in range(columns)))
    forms: list[tuple[Expression, ...]] = [
        (add(Parameter(0), linear),),
        (mul(Parameter(0), call("exp", linear)),),
    ]
    if len(positive) == columns:
        powers = reduce(mul, (power(Variable(index), Parameter(index + 1)) for index in range(columns)))
        forms.append((mul(Parameter(0), powers),))
    return forms
