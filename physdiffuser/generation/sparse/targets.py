"""What sums are fitted to: the target, factors divided out, under each output transform."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.transforms.output_transforms import EXP, INVERSE, ROOT, SQUARE
from physdiffuser.transforms.transform import OutputTransform, known_transforms

# Where nothing is left over, what noise would spoil is of use as well: y = log(x**3 + 2*x + 1).
EXACT_TRANSFORMS = (OutputTransform((EXP,)),)
# 1/y**2 and the like are polynomials often enough: y = k/sqrt(a**2 + b**2 - 2*a*b*cos(t)).
DOUBLE_TRANSFORMS = (OutputTransform((SQUARE, INVERSE)), OutputTransform((ROOT, INVERSE)))


def transformed(
    problem: Problem,
    reduction: Reduction,
    single: Sequence[OutputTransform] | None = None,
    more: Sequence[OutputTransform] = (),
) -> Iterator[tuple[OutputTransform, FloatArray, FloatArray]]:
    """The target, factors divided out, under each output transform, with row weights.

    Parameters
    ----------
    single
        The transforms; those that tolerate noise, and some pairs of these, when None.
    more
        Transforms beside these.
    """
    left = reduction.divided_out(problem.inputs, problem.target, problem.weights)
    if left is None:
        return
    divided, base = left
    every = (*known_transforms(1), *DOUBLE_TRANSFORMS)
    tolerant = [transform for transform in every if transform.noise_tolerant]
    for transform in (*(tolerant if single is None else single), *more):
        if not transform.allowed(problem.operators):
            continue
        result = transform.undo(divided)
        if result is not None:
            yield transform, result[0], result[1] * base
