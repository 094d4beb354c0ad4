"""Where one more constant would help: every place of a formula is tried with one score test each.

`node` may become `c*node` or `node + c`, and an exact number a fitted one. At the neutral value of c (1, 0,
the number itself) the formula is unchanged, and `fitting.score_test` tells what each c would gain beside the
constants, scale and offset that the formula has already.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, Number, evaluate
from physdiffuser.expressions.tree import add, mul, positions, replace_at
from physdiffuser.fitting.score_test import node_slopes, score, span

# Share of the remaining loss that a constant must promise to remove.
_MIN_GAIN = 0.02


def enriched(
    expression: Expression,
    inputs: FloatArray,
    target: FloatArray,
    share: FloatArray,
    allowed: frozenset[str],
    count: int,
) -> list[Expression]:
    """The formula with the most promising new constants, one each, at their first-order value.

    Parameters
    ----------
    expression
        With fitted constants as float numbers.
    inputs, target, share
        Shapes (rows, columns), (rows,), (rows,).
    allowed
        Operators that may be put in.
    count
        Most formulas to return, best first.
    """
    nodes = positions(expression)
    root = np.sqrt(share)
    places: list[tuple[int, str]] = []
    directions: list[FloatArray] = []
    with np.errstate(all="ignore"):
        value, slopes = node_slopes(expression, nodes, inputs)
        shape, slopes = value * root, slopes * root
        if not np.isfinite(shape).all():
            return []
        for index, (path, node) in enumerate(nodes):
            if isinstance(node, Number):
                if node.exact:
                    places.append((index, "exact"))
                    directions.append(slopes[index])
            elif path:  # the outer scale and offset do that for the whole
                if "mul" in allowed:
                    places.append((index, "mul"))
                    directions.append(slopes[index] * evaluate(node, inputs))
                if "add" in allowed:
                    places.append((index, "add"))
                    directions.append(slopes[index])
        if not places:
            return []
        fitted = slopes[[isinstance(node, Number) and not node.exact for _, node in nodes]]
        basis = span(np.vstack([root, shape, fitted[np.isfinite(fitted).all(axis=1)]]))
        wanted = root * target
        residual = wanted - basis @ (basis.T @ wanted)
        if not 0.0 < residual @ residual < np.inf:
            return []
        factor = float(np.linalg.lstsq(np.column_stack([root, shape]), wanted, rcond=None)[0][1]) or 1.0
        tested = score(np.array(directions), basis, residual)
    found: list[Expression] = []
    for place in np.argsort(-tested.gains, kind="stable")[:count].tolist():
        if tested.gains[place] > _MIN_GAIN:
            index, kind = places[place]
            path, node = nodes[index]
            found.append(replace_at(expression, path, _with(node, kind, tested.steps[place] / factor)))
    return found


def _with(node: Expression, kind: str, step: float) -> Expression:
    """The node with the constant in it, at a step from its neutral value."""
    match kind:
        case "mul":
            return mul(Number(1.0 + float(step)), node)
        case "add":
            return add(node, Number(float(step)))
        case _:
            assert isinstance(node, Number)
            return Number(float(node.value) + float(step))
