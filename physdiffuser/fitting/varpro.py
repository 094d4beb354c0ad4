"""Variable projection: the parameters that enter linearly are solved for, the others searched.

A model `f0(x; u) + sum_j c_j * g_j(x; u)` is a function of `u` alone once the best `c` for each `u` is
put in (Golub & Pereyra, *SIAM J. Numer. Anal.* 10, 1973), with Kaufman's simpler derivative
(*BIT* 15, 1975). Fewer dimensions to search, no starts needed for `c`, and fewer iterations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Apply, Expression, Parameter
from physdiffuser.expressions.tree import walk
from physdiffuser.fitting.linear import solve_columns
from physdiffuser.fitting.tape import Tape

FloatArray = npt.NDArray[np.float64]

_LOST = 1e-13
"""Part of a derivative that may be rounding error after what the linear parameters can do is taken out."""


def linear_parameters(skeleton: Expression) -> tuple[int, ...]:
    """Parameters that enter linearly, jointly, when the others are held fixed.

    The path from such a parameter to the root has only sums, differences, signs, numerators and products
    with factors that hold no other chosen parameter. Where two factors of a product both qualify, the one
    with more parameters is chosen, so `(c1 + c2*x)*(c3 + y)` gives c1 and c2.

    Returns
    -------
    Indices, in increasing order.
    """
    total = Counter(node.index for node in walk(skeleton) if isinstance(node, Parameter))
    found = _linear_occurrences(skeleton)
    return tuple(sorted(index for index, count in found.items() if count == total[index]))


def _linear_occurrences(node: Expression) -> Counter[int]:
    if isinstance(node, Parameter):
        return Counter({node.index: 1})
    if not isinstance(node, Apply):
        return Counter()
    match node.operator:
        case "add" | "sub":
            return _linear_occurrences(node.arguments[0]) + _linear_occurrences(node.arguments[1])
        case "neg":
            return _linear_occurrences(node.arguments[0])
        case "mul":
            left, right = (_linear_occurrences(argument) for argument in node.arguments)
            return right if len(right) > len(left) else left
        case "div":
            return _linear_occurrences(node.arguments[0])
        case _:
            return Counter()


@dataclass(frozen=True)
class Projected:
    """The model at many values of the nonlinear parameters, the linear ones solved for.

    Attributes
    ----------
    parameters
        Shape (parameters, starts): all of them.
    residual
        Shape (starts, rows), weighted and in units of the target's scale; nan where not finite.
    basis
        Shape (starts, rows, linear): orthonormal basis of what the linear parameters can reach, or None.
    loss
        Shape (starts,): sum of squares of `residual`; inf where not finite.
    """

    parameters: FloatArray
    residual: FloatArray
    basis: FloatArray | None
    loss: FloatArray

    def take(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Projected:
        """The chosen starts only."""
        return Projected(
            self.parameters[:, chosen],
            self.residual[chosen],
            None if self.basis is None else self.basis[chosen],
            self.loss[chosen],
        )

    def where(self, better: npt.NDArray[np.bool_], other: Projected) -> Projected:
        """`other` where `better`, this elsewhere."""
        if better.all():
            return other
        return Projected(
            np.where(better, other.parameters, self.parameters),
            np.where(better[:, None], other.residual, self.residual),
            None
            if self.basis is None or other.basis is None
            else np.where(better[:, None, None], other.basis, self.basis),
            np.where(better, other.loss, self.loss),
        )


class SeparableModel:
    """A skeleton, its rows and their target, with the linear parameters set apart.

    The caller silences numpy's warnings, as for `Tape`.

    Parameters
    ----------
    skeleton
        An expression with parameters.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), positive, or None.
    linear
        Which parameters to solve for; found from the skeleton when None.
    """

    def __init__(
        self,
        skeleton: Expression,
        inputs: FloatArray,
        target: FloatArray,
        weights: FloatArray | None = None,
        linear: tuple[int, ...] | None = None,
    ) -> None:
        self.tape = Tape(skeleton, inputs)
        self.target = target
        self.linear = linear_parameters(skeleton) if linear is None else linear
        self.nonlinear = tuple(i for i in range(self.tape.parameters) if i not in self.linear)
        self._linear_index = np.array(self.linear, dtype=np.intp)
        self.nonlinear_index = np.array(self.nonlinear, dtype=np.intp)
        largest = float(np.abs(target).max(initial=0.0))
        # A power of two, so that scaling is exact; residuals near 1 can be squared safely.
        self.scale = float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if 0.0 < largest < np.inf else 1.0
        self.root_weights = None if weights is None else np.sqrt(weights / weights.mean())
        self._unit_target = target / self.scale

    def project(self, parameters: FloatArray, row_weights: FloatArray | None = None) -> Projected:
        """Solve for the linear parameters at the given nonlinear ones.

        Parameters
        ----------
        parameters
            Shape (parameters, starts); the linear rows are ignored.
        row_weights
            Shape (starts, rows): further factors on the residuals (square roots of weights), for
            robust losses.
        """
        root = self._root(row_weights)
        if not self.linear:
            residual = self._unit_target - self.tape.value(parameters) / self.scale
            if root is not None:
                residual = residual * root
            return Projected(parameters, residual, None, self._loss(residual))
        at_zero = parameters.copy()
        at_zero[self._linear_index] = 0.0
        offset, columns = self.tape.value_and_jacobian(at_zero, self.linear)
        side = self._unit_target - offset / self.scale
        if root is not None:
            side = side * root
            columns = columns * (root if root.ndim == 1 else root[:, None, :])
        solved, residual, basis, _ = solve_columns(columns, side)
        at_zero[self._linear_index] = solved.T * self.scale
        return Projected(at_zero, residual, basis, self._loss(residual))

    def _root(self, row_weights: FloatArray | None) -> FloatArray | None:
        if row_weights is None:
            return self.root_weights
        return row_weights if self.root_weights is None else row_weights * self.root_weights

    @staticmethod
    def _loss(residual: FloatArray) -> FloatArray:
        loss = np.einsum("sr,sr->s", residual, residual)
        return np.where(np.isfinite(loss), loss, np.inf)

    def slopes(self, state: Projected, row_weights: FloatArray | None = None) -> FloatArray:
        """Derivatives of the projected model by the nonlinear parameters (Kaufman's approximation).

        Returns
        -------
        Shape (starts, nonlinear, rows), weighted, in units of the target's scale.
        """
        _, jacobian = self.tape.value_and_jacobian(state.parameters, self.nonlinear)
        jacobian /= self.scale
        root = self._root(row_weights)
        if root is not None:
            jacobian *= root if root.ndim == 1 else root[:, None, :]
        if state.basis is not None:
            before = np.abs(jacobian).max(axis=-1, initial=0.0)
            jacobian -= np.matmul(np.matmul(jacobian, state.basis), state.basis.transpose(0, 2, 1))
            # What a linear parameter can do as well leaves rounding errors behind; scaled to length 1 they
            # would send the parameter on a random walk.
            lost = np.abs(jacobian).max(axis=-1, initial=0.0) <= _LOST * before
            if lost.any():
                jacobian[lost] = 0.0
        return jacobian
