"""The stage that fits curves of one feature with several constants inside."""

from __future__ import annotations

import numpy as np

from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.generation.enumeration.curve_catalogue import CURVES
from physdiffuser.generation.enumeration.curves import best_points
from physdiffuser.generation.enumeration.frame import Frame
from physdiffuser.generation.enumeration.outer import INVERSE, Chain
from physdiffuser.generation.enumeration.parametric import fitted
from physdiffuser.generation.enumeration.run import Run
from physdiffuser.generation.work import Work
from physdiffuser.search.candidate import Candidate

# Rows to each constant: with fewer, such curves describe chance.
ROWS_OF_CONSTANT = 4


def curve_stage(run: Run, frame: Frame) -> Work:
    """`y = F*T(curve(u))`: the factor F of a frame, its only feature u, and T nothing or the reciprocal."""
    problem, rows = run.problem, run.noisy_rows
    feature = frame.features[0]
    u = evaluate(feature, problem.inputs[rows])
    product = frame.product(problem.inputs[rows])
    divided = problem.target[rows] / product
    if not (np.isfinite(u).all() and np.ptp(u) > 0 and np.isfinite(divided).all()):
        return
    base = np.square(product / np.abs(product).max())
    if problem.weights is not None:
        base = base * problem.weights[rows]
    sign = -1.0 if (divided < 0).all() else 1.0
    chains = [
        chain
        for chain in (Chain(()), Chain((INVERSE,)))
        if all(s.needs <= problem.operators for s in chain.steps)
    ]
    laws: list[Expression] = []
    around: list[Chain] = []
    initial: list[list[float]] = []
    said: list[tuple[str, ...]] = []
    of = to_text(feature, problem.names)
    for curve in CURVES:
        if not curve.needs <= problem.operators:
            continue
        for chain in chains:
            if curve.logarithmic:
                # The reciprocal of a product is a product of the same kind.
                if chain.steps or not (sign * divided > 0).all():
                    continue
                target, weights = np.log(sign * divided), np.square(divided) * base
            else:
                undone = chain.undo(divided)
                if undone is None:
                    continue
                target, weights = undone[0], undone[1] * base
            for _, inside, coefficients in best_points(curve, u, target, weights):
                if ROWS_OF_CONSTANT * (len(inside) + len(coefficients)) > problem.rows:
                    break
                tree, starts = curve.skeleton(feature, inside, coefficients, sign)
                laws.append(tree)
                around.append(chain)
                initial.append(starts)
                said.append((*chain.sentences(), f"fitted a {curve.name} of {of}"))
            yield 0.02
    remaining = iter(said)
    for fits in fitted(
        problem, frame, around, laws, initial, iterations=60, tolerance=1e-14, device=run.device
    ):
        for fit, sentences in zip(fits, remaining, strict=False):
            if np.isfinite(fit.loss):
                yield Candidate(fit.expression, "enumeration", sentences)
        yield 0.005 * len(fits)
