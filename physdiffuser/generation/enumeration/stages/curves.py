"""The stage that fits curves of one feature with several constants inside."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.functions.curve_catalogue import CURVES
from physdiffuser.functions.curves import best_points
from physdiffuser.generation.enumeration.parametric import ROWS_OF_CONSTANT, fitted
from physdiffuser.generation.enumeration.run import Run
from physdiffuser.transforms.output_transforms import INVERSE, OutputTransform


def curve_stage(run: Run, reduction: Reduction) -> Work:
    """`y = F*T(curve(u))`: the factor F of a reduction, its only feature u, and T none or the reciprocal."""
    problem, rows = run.problem, run.noisy_rows
    feature = reduction.features[0]
    u = evaluate(feature, problem.inputs[rows])
    weights = None if problem.weights is None else problem.weights[rows]
    left = reduction.divided_out(problem.inputs[rows], problem.target[rows], weights)
    if left is None or not (np.isfinite(u).all() and np.ptp(u) > 0):
        return
    divided, base = left
    sign = -1.0 if (divided < 0).all() else 1.0
    output_transforms = [
        OutputTransform(()),
        *([OutputTransform((INVERSE,))] if INVERSE.needs <= problem.operators else []),
    ]
    laws: list[Expression] = []
    around: list[OutputTransform] = []
    initial: list[list[float]] = []
    said: list[tuple[str, ...]] = []
    of = to_text(feature, problem.names)
    for curve in CURVES:
        if not curve.needs <= problem.operators:
            continue
        for transform in output_transforms:
            if curve.logarithmic:
                # The reciprocal of a product is a product of the same kind.
                if transform.steps or not (sign * divided > 0).all():
                    continue
                target, weights = np.log(sign * divided), np.square(divided) * base
            else:
                transformed = transform.undo(divided)
                if transformed is None:
                    continue
                target, weights = transformed[0], transformed[1] * base
            for _, inside, coefficients in best_points(curve, u, target, weights):
                if ROWS_OF_CONSTANT * (len(inside) + len(coefficients)) > problem.rows:
                    break
                tree, starts = curve.skeleton(feature, inside, coefficients, sign)
                laws.append(tree)
                around.append(transform)
                initial.append(starts)
                said.append((*transform.sentences(), f"fitted a {curve.name} of {of}"))
            yield 0.02
    remaining = iter(said)
    for fits in fitted(
        problem, reduction, around, laws, initial, iterations=60, tolerance=1e-14, device=run.device
    ):
        for fit, sentences in zip(fits, remaining, strict=False):
            if np.isfinite(fit.loss):
                yield Candidate(fit.expression, "enumeration", sentences)
        yield 0.005 * len(fits)
