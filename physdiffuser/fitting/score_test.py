"""What one more constant would gain, without fitting it: score tests of many at once.

At the value of a constant at which it changes nothing, the slopes of the formula by it tell how much of the
loss it would remove to first order, beside the constants that are there already (Rao, "Large sample tests
of statistical hypotheses", 1948). One pass of reverse mode gives the slopes by all nodes of a
formula, and matrix products judge some hundred constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import Apply, Expression, Parameter
from physdiffuser.expressions.tree import Path, add
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

# What must be left of a slope beside those of the constants that are there, as a share of its square.
INDEPENDENT = 1e-8


@dataclass(frozen=True)
class Score:
    """Score tests of some directions.

    Attributes
    ----------
    gains
        Shape (directions,): the share of the loss that a step along each removes to first order, all other
        constants following.
    steps
        Shape (directions,): that step.
    own
        Shape (directions, rows): what each direction has beside the constants that are there, of length 1.
    """

    gains: FloatArray
    steps: FloatArray
    own: FloatArray


@checked
def node_slopes(
    expression: Expression,
    nodes: Sequence[tuple[Path, Expression]],
    inputs: Float64[np.ndarray, "rows columns"],
) -> tuple[Float64[np.ndarray, " rows"], Float64[np.ndarray, "nodes rows"]]:
    """Values of a formula, shape (rows,), and its slopes by each of its nodes, shape (nodes, rows).

    Parameters
    ----------
    nodes
        All of them, as of `positions`.
    inputs
        Shape (rows, columns).
    """
    numbers = {path: index for index, (path, _) in enumerate(nodes)}

    def build(node: Expression, path: Path) -> Expression:
        if isinstance(node, Apply):
            arguments = (build(argument, (*path, place)) for place, argument in enumerate(node.arguments))
            node = Apply(node.operator, tuple(arguments))
        return add(node, Parameter(numbers[path]))

    return EvaluationTape(build(expression, ()), inputs).value_and_jacobian(np.zeros(len(nodes)))


@checked
def span(slopes: Float64[np.ndarray, "constants rows"]) -> Float64[np.ndarray, "rows directions"]:
    """Orthonormal columns, shape (rows, directions), that span the rows of a matrix (constants, rows)."""
    if not len(slopes):
        return np.zeros((slopes.shape[1], 0))
    length = np.sqrt((slopes**2).sum(axis=1, keepdims=True))
    basis, triangle = np.linalg.qr((slopes / np.where(length > 0.0, length, 1.0)).T)
    return basis[:, np.abs(np.diag(triangle)) > INDEPENDENT]


@checked
def score(
    directions: Float64[np.ndarray, "directions rows"],
    basis: Float64[np.ndarray, "rows basis"],
    residual: Float64[np.ndarray, " rows"],
) -> Score:
    """Test each direction.

    Parameters
    ----------
    directions
        Shape (directions, rows): slopes by the constants to test, times the roots of the weights. One that
        is not finite gains nothing.
    basis
        As of `span`, of the slopes by the constants that are there.
    residual
        Shape (rows,): target less prediction, times the roots of the weights.
    """
    usable = np.asarray(np.isfinite(directions).all(axis=1))
    directions = np.where(usable[:, None], directions, 0.0)
    size = np.sqrt((directions**2).sum(axis=1))
    usable &= (size > 0.0) & np.isfinite(size)
    size = np.where(usable, size, 1.0)
    directions = directions / size[:, None]
    own = directions - (directions @ basis) @ basis.T
    kept = np.sqrt((own**2).sum(axis=1))
    usable &= kept**2 > INDEPENDENT
    kept = np.where(usable, kept, 1.0)
    own = own / kept[:, None]
    along = own @ (residual - basis @ (basis.T @ residual))
    gains = np.where(usable, along**2 / (residual @ residual), 0.0)
    return Score(gains, np.where(usable, along / kept / size, 0.0), own)
