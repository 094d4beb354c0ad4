"""Products of powers, by regression on logarithms: where many laws begin."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from physdiffuser.expressions import Expression, Number, Variable
from physdiffuser.expressions.tree import div, mul, number_expression, power
from physdiffuser.generation.evolution.scoring import Scorer

_LEAST = 0.05


def power_laws(scorer: Scorer, columns: list[int]) -> list[Expression]:
    """`prod x_i**p_i` over the positive columns: with fitted exponents, and with halves nearby.

    Empty when the target changes sign or no column is positive.
    """
    positive = [index for index in columns if scorer.inputs[:, index].min() > 0.0]
    target = scorer.target
    if not positive or not ((target > 0.0).all() or (target < 0.0).all()):
        return []
    root = np.sqrt(scorer.share)
    design = np.column_stack([np.ones(target.size), np.log(scorer.inputs[:, positive])])
    solution = np.linalg.lstsq(design * root[:, None], np.log(np.abs(target)) * root, rcond=None)[0]
    fitted = {
        index: float(value)
        for index, value in zip(positive, solution[1:], strict=True)
        if abs(value) > _LEAST
    }
    halves = {index: Fraction(round(2 * value), 2) for index, value in fitted.items()}
    found = [
        _product({index: Number(value) for index, value in fitted.items()}),
        _product({index: number_expression(value) for index, value in halves.items() if value}),
    ]
    return [one for one in dict.fromkeys(found) if one is not None]


def _product(exponents: dict[int, Number]) -> Expression | None:
    above: Expression | None = None
    below: Expression | None = None
    for index, exponent in exponents.items():
        size = Number(exponent.value if exponent.value > 0 else -exponent.value)
        factor: Expression = Variable(index) if size.value == 1 else power(Variable(index), size)
        if exponent.value > 0:
            above = factor if above is None else mul(above, factor)
        else:
            below = factor if below is None else mul(below, factor)
    if below is None:
        return above
    return div(Number(1) if above is None else above, below)
