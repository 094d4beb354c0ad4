"""Polynomials in place of unknown functions, to begin with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import reduce

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, Number, Parameter, Variable
from physdiffuser.expressions.tree import add, mul, sub

# Degrees in functions of one argument, and of several, which have many more terms.
DEGREES = ((1, 1), (2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (4, 4), (6, 2), (6, 3), (6, 4), (8, 2), (8, 3))


def polynomial(degree: int, points: FloatArray) -> Expression:
    """A polynomial with a parameter for each term of at most a total degree.

    Parameters
    ----------
    degree
        The total degree.
    points
        Shape (points, arguments): where it is evaluated. Each argument is scaled to -1 to 1 there.

    Returns
    -------
    A formula of the arguments; the first parameter is the constant term.
    """
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = (low + high) / 2, np.where(high > low, (high - low) / 2, 1.0)
    scaled = [
        mul(sub(Variable(place), Number(float(middle[place]))), Number(float(1 / half[place])))
        for place in range(points.shape[1])
    ]
    terms: list[Expression] = []
    for number, powers in enumerate(_powers(degree, points.shape[1])):
        factors: list[Expression] = [Parameter(number)]
        for argument, power in zip(scaled, powers, strict=True):
            factors += [argument] * power
        terms.append(reduce(mul, factors))
    return reduce(add, terms)


def _powers(degree: int, arguments: int) -> Sequence[tuple[int, ...]]:
    every = itertools.product(range(degree + 1), repeat=arguments)
    return sorted(
        (powers for powers in every if sum(powers) <= degree), key=lambda powers: (sum(powers), powers)
    )


def terms(degree: int, arguments: int) -> int:
    """How many terms such a polynomial has."""
    return math.comb(degree + arguments, arguments)
