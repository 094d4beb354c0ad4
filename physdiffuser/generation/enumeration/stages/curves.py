"""Curves of one feature with several constants inside."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import evaluate, to_text
from physdiffuser.functions.curves import best_points, skeleton
from physdiffuser.functions.family import Family, linear_form
from physdiffuser.functions.table import families_for
from physdiffuser.generation.enumeration.context import Context, TransformedTarget
from physdiffuser.generation.enumeration.parametric import POLICY as PARAMETRIC
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.generation.enumeration.skeletons import Skeleton, offer_fitted
from physdiffuser.transforms.output_transforms import INVERSE
from physdiffuser.transforms.transform import OutputTransform


@register
class Curves(Stage):
    """`y = F*T(curve(u))`: the factor F of a reduction, its only feature u, and T none or the reciprocal."""

    name = "curves"
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether the reduction has one feature."""
        return len(reduction.features) == 1

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Rank each curve over its grid of constants, then fit the best; see `Stage`."""
        problem, rows = context.problem, context.screening_rows
        u = evaluate(reduction.features[0], problem.inputs[rows])
        weights = None if problem.weights is None else problem.weights[rows]
        left = reduction.divided_out(problem.inputs[rows], problem.target[rows], weights)
        if left is None or not (np.isfinite(u).all() and np.ptp(u) > 0):
            return
        sign = -1.0 if (left[0] < 0).all() else 1.0
        transforms = [
            OutputTransform(()),
            *([OutputTransform((INVERSE,))] if INVERSE.needs <= problem.operators else []),
        ]
        skeletons: list[Skeleton] = []
        for family in families_for("curves"):
            if not family.needs <= problem.operators:
                continue
            for transform in transforms:
                target = _target(family, transform, *left, sign)
                if target is not None:
                    skeletons += _skeletons(problem, reduction, family, u, target, sign)
                    yield 0.02
        yield from offer_fitted(context, reduction, skeletons, iterations=60, tolerance=1e-14)


def _target(
    family: Family, transform: OutputTransform, divided: FloatArray, weights: FloatArray, sign: float
) -> TransformedTarget | None:
    """What the terms of a curve add up to; None where that is no number."""
    if linear_form(family).logarithmic:
        # The reciprocal of a product is a product of the same kind.
        if transform.steps or not (sign * divided > 0).all():
            return None
        return TransformedTarget(transform, np.log(sign * divided), np.square(divided) * weights)
    transformed = transform.undo(divided)
    return (
        None
        if transformed is None
        else TransformedTarget(transform, transformed[0], transformed[1] * weights)
    )


def _skeletons(
    problem: Problem,
    reduction: Reduction,
    family: Family,
    u: FloatArray,
    target: TransformedTarget,
    sign: float,
) -> Iterator[Skeleton]:
    """The curve at the best points of its grid, as far as there are rows for its constants."""
    feature = reduction.features[0]
    for _, inside, coefficients in best_points(family, u, target.target, target.weights):
        if PARAMETRIC.rows_of_constant * (len(inside) + len(coefficients)) > problem.rows:
            break
        law, start = skeleton(family, feature, inside, coefficients, sign)
        said = f"fitted a {family.name} of {to_text(feature, problem.names)}"
        yield Skeleton(target.transform, law, start, (*target.transform.sentences(), said))
