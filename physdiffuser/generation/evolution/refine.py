"""A lean Levenberg-Marquardt for one formula and one start: a few steps in well under a millisecond each.

`fitting.refit` follows many starts of a general model; here there is one start, the outer scale and offset
are projected out in closed form, and the point is to improve thousands of formulas a little.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import bind, free_constants
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape

_REJECTIONS = 4
_SMALL_GAIN = 1e-3
# In columns of ordinary size no law has such constants; one that grows without end means that the formula
# is turning into a limit of itself, a product into a sum, which is better found as such.
RUNAWAY = 1e5


def refine(
    expression: Expression,
    inputs: FloatArray,
    target: FloatArray,
    share: FloatArray,
    offset: bool,
    iterations: int,
) -> tuple[Expression, bool] | None:
    """The formula with better float constants, or None when there are none or they cannot be improved.

    The second value tells whether the steps have converged; more may be gained when they have not.

    Minimises `sum(share*(target - a - b*f)**2)` over the constants of f, with a and b (a only if
    `offset`) at their best for each (variable projection with Kaufman's derivative).

    Parameters
    ----------
    expression
        f, with fitted constants as float numbers.
    inputs, target, share
        Shapes (rows, columns), (rows,), (rows,).
    """
    skeleton, values = free_constants(expression)
    if not values:
        return None
    model = _Model(EvaluationTape(skeleton, inputs), target, np.sqrt(share), offset)
    point = np.array(values)
    damping = 1e-2
    with np.errstate(all="ignore"):
        now = model.at(point)
        if now is None:
            return None
        first = now[0]
        converged = False
        for _ in range(iterations):
            loss, residual, slopes = now
            normal = slopes @ slopes.T
            diagonal = np.maximum(np.diag(normal), 1e-12 * np.trace(normal) + 1e-300)
            gradient = slopes @ residual
            for _ in range(_REJECTIONS):
                try:
                    step = np.linalg.solve(normal + np.diag(damping * diagonal), gradient)
                except np.linalg.LinAlgError:
                    step = gradient / diagonal
                following = model.at(point + step)
                if following is not None and following[0] < loss:
                    break
                damping = max(damping, 1e-6) * 8.0
            else:
                converged = True
                break
            point = point + step
            now = following
            damping *= 0.1
            if now[0] > loss * (1.0 - _SMALL_GAIN):
                converged = True
                break
    if now[0] >= first or np.abs(point).max() > max(RUNAWAY, 10.0 * np.abs(values).max()):
        return None
    return bind(skeleton, point.tolist()), converged


class _Model:
    def __init__(self, tape: EvaluationTape, target: FloatArray, root: FloatArray, offset: bool) -> None:
        self.tape = tape
        self.root = root
        self.offset = root / np.sqrt(root @ root) if offset else None
        self.wanted = root * target
        if self.offset is not None:
            self.wanted = self.wanted - self.offset * (self.offset @ self.wanted)

    def at(self, point: FloatArray) -> tuple[float, FloatArray, FloatArray] | None:
        """Loss, residual (rows,) and slopes (parameters, rows); None where not finite."""
        value, jacobian = self.tape.value_and_jacobian(point)
        shape = value * self.root
        slopes = jacobian * self.root
        if self.offset is not None:
            shape = shape - self.offset * (self.offset @ shape)
            slopes -= np.outer(slopes @ self.offset, self.offset)
        size = shape @ shape
        if not (0.0 < size < np.inf):
            return None
        factor = (shape @ self.wanted) / size
        residual = self.wanted - factor * shape
        slopes -= np.outer(slopes @ shape / size, shape)
        slopes *= factor
        loss = float(residual @ residual)
        if not np.isfinite(loss) or not np.isfinite(slopes).all():
            return None
        return loss, residual, slopes
