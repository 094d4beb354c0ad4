"""What sums are fitted to: the target, factors divided out, under each outer inverse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.transforms.output_transforms import INVERSE, ROOT, SINGLE, SQUARE, OutputTransform

FloatArray = npt.NDArray[np.float64]

CHAINS = frozenset(
    {"took the reciprocal", "squared the target", "took the logarithm", "took the square root"}
)
# 1/y**2 and the like are polynomials often enough: y = k/sqrt(a**2 + b**2 - 2*a*b*cos(t)).
DOUBLE_CHAINS = (OutputTransform((SQUARE, INVERSE)), OutputTransform((ROOT, INVERSE)))


def transformed(
    problem: Problem, reduction: Reduction, names: frozenset[str] = CHAINS
) -> Iterator[tuple[OutputTransform, FloatArray, FloatArray]]:
    """The target, factors divided out, under each outer inverse, with row weights."""
    left = reduction.divided_out(problem.inputs, problem.target, problem.weights)
    if left is None:
        return
    divided, base = left
    for transform in (*SINGLE, *DOUBLE_CHAINS):
        if not all(step.name in names and step.needs <= problem.operators for step in transform.steps):
            continue
        result = transform.undo(divided)
        if result is not None:
            yield transform, result[0], result[1] * base
