"""Variable projection: the parameters that enter linearly are solved for, the others searched.

A model `f0(x; u) + sum_j c_j * g_j(x; u)` is a function of `u` alone once the best `c` for each `u` is
put in (Golub & Pereyra, *SIAM J. Numer. Anal.* 10, 1973), with Kaufman's simpler derivative
(*BIT* 15, 1975). Fewer dimensions to search, no starts needed for `c`, and fewer iterations.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, IndexArray, checked
from physdiffuser.expressions import Apply, Expression, Parameter
from physdiffuser.expressions.tree import walk
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape, EvaluationTapes
from physdiffuser.fitting.linear import solve_columns

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float64

_STALE = 0.1
"""Change of the linear parameters, relative to them, from which derivatives are taken anew."""
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


def vanishes_with(node: Expression, chosen: tuple[int, ...]) -> bool:
    """Whether a formula is 0 when the chosen parameters, which enter linearly, are."""
    if isinstance(node, Parameter):
        return node.index in chosen
    if not isinstance(node, Apply):
        return False
    match node.operator:
        case "add" | "sub":
            return all(vanishes_with(argument, chosen) for argument in node.arguments)
        case "neg" | "div":
            return vanishes_with(node.arguments[0], chosen)
        case "mul":
            return any(vanishes_with(argument, chosen) for argument in node.arguments)
        case _:
            return False


@dataclass(frozen=True)
class Projected:
    """The model at many values of the nonlinear parameters, the linear ones solved for.

    Attributes
    ----------
    parameters
        Shape (parameters, starts): all of them.
    residual
        Shape (starts, rows), weighted and in units of the target's scale; nan where not finite.
    slopes
        Shape (starts, nonlinear, rows): derivatives of the projected model (Kaufman's approximation),
        weighted, in units of the target's scale.
    loss
        Shape (starts,): sum of squares of `residual`; inf where not finite.
    """

    parameters: FloatArray
    residual: FloatArray
    slopes: FloatArray
    loss: FloatArray

    def take(self, chosen: BoolArray | IndexArray) -> Projected:
        """The chosen starts only."""
        return Projected(
            self.parameters[:, chosen], self.residual[chosen], self.slopes[chosen], self.loss[chosen]
        )

    @checked
    def where(self, better: Bool[np.ndarray, " starts"], other: Projected) -> Projected:
        """`other` where `better`, this elsewhere."""
        if better.all():
            return other
        if not better.any():
            return self
        return Projected(
            np.where(better, other.parameters, self.parameters),
            np.where(better[:, None], other.residual, self.residual),
            np.where(better[:, None, None], other.slopes, self.slopes),
            np.where(better, other.loss, self.loss),
        )


class SeparableModel:
    """A skeleton, its rows and their target, with the linear parameters set apart.

    Rows, target and weights may be arrays of another device (`physdiffuser.device`). What has rows is then
    worked out there, while parameters and losses are numpy's.

    The caller silences numpy's warnings, as for `Tape`.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), positive, or None.
    """

    @checked
    def __init__(
        self,
        skeleton: Expression,
        inputs: Float64[np.ndarray, "*starts rows columns"],
        target: Float64[np.ndarray, " rows"],
        weights: Float64[np.ndarray, " rows"] | None = None,
    ) -> None:
        linear = linear_parameters(skeleton)
        self._bind(EvaluationTape(skeleton, inputs), linear, vanishes_with(skeleton, linear), target, weights)

    @classmethod
    @checked
    def side_by_side(
        cls,
        tapes: EvaluationTapes,
        linear: tuple[int, ...],
        homogeneous: bool,
        target: Float64[np.ndarray, " rows"],
        weights: Float64[np.ndarray, " rows"] | None = None,
    ) -> SeparableModel:
        """Several skeletons as one model, whose starts are theirs.

        Parameters
        ----------
        tapes
            Of skeletons with the same linear parameters.
        homogeneous
            Whether every skeleton is 0 when they are (`vanishes_with`).
        target, weights
            Shape (rows,); equal weights when None.
        """
        model = cls.__new__(cls)
        model._bind(tapes, linear, homogeneous, target, weights)
        return model

    def _bind(
        self,
        tape: EvaluationTape | EvaluationTapes,
        linear: tuple[int, ...],
        homogeneous: bool,
        target: FloatArray,
        weights: FloatArray | None,
    ) -> None:
        self.tape = tape
        self.target = target
        self.linear = linear
        self.nonlinear = tuple(i for i in range(self.tape.parameters) if i not in self.linear)
        self.nonlinear_index = np.array(self.nonlinear, dtype=np.intp)
        self._linear_index = np.array(self.linear, dtype=np.intp)
        self._order = (*self.linear, *self.nonlinear)
        self._homogeneous = homogeneous
        largest = float(np.abs(target).max(initial=0.0))
        # A power of two, so that scaling is exact; residuals near 1 can be squared safely.
        self.scale = float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if 0.0 < largest < np.inf else 1.0
        self.root_weights = None if weights is None else np.sqrt(weights / weights.mean())
        self._unit_target = target / self.scale

    def take(self, chosen: BoolArray | IndexArray) -> SeparableModel:
        """The model for some of the starts: of skeletons side by side, those that these belong to."""
        if isinstance(self.tape, EvaluationTape):
            return self
        part = copy.copy(self)
        part.tape = self.tape.take(chosen)
        return part

    @checked
    def start(
        self,
        parameters: Float64[np.ndarray, "parameters starts"],
        row_weights: Float64[np.ndarray, "starts rows"] | None = None,
    ) -> Projected:
        """Solve for the linear parameters, whose values are not known yet."""
        if not self.linear:
            return self.project(parameters, row_weights)
        blank = parameters.copy()
        blank[self._linear_index] = 0.0
        first = self.loss_only(blank, row_weights)
        return self.project(first.parameters, row_weights) if self.nonlinear else first

    @checked
    def loss_only(
        self,
        parameters: Float64[np.ndarray, "parameters starts"],
        row_weights: Float64[np.ndarray, "starts rows"] | None = None,
    ) -> Projected:
        """Like `project`, without the derivatives by the nonlinear parameters."""
        return self._solve(parameters, row_weights, self.linear)

    @checked
    def project(
        self,
        parameters: Float64[np.ndarray, "parameters starts"],
        row_weights: Float64[np.ndarray, "starts rows"] | None = None,
    ) -> Projected:
        """Solve for the linear parameters at the given nonlinear ones.

        Parameters
        ----------
        parameters
            Shape (parameters, starts). The linear ones are where derivatives are taken; where they turn
            out to lie elsewhere, the derivatives are taken again.
        row_weights
            Shape (starts, rows): further factors on the residuals (square roots of weights), for
            robust losses.
        """
        found = self._solve(parameters, row_weights, self._order)
        if self.linear and self.nonlinear:
            new, old = found.parameters[self._linear_index], parameters[self._linear_index]
            stale = (np.abs(new - old) > _STALE * np.abs(new)).any(axis=0) & np.isfinite(found.loss)
            if stale.any():
                part = None if row_weights is None else row_weights[stale]
                again = self.take(stale)._solve(found.parameters[:, stale], part, self._order)
                found.slopes[stale] = again.slopes
        return found

    def _solve(
        self, parameters: FloatArray, row_weights: FloatArray | None, wanted: tuple[int, ...]
    ) -> Projected:
        count = len(self.linear)
        value, jacobian = self.tape.value_and_jacobian(parameters, wanted)
        root = self.root_weights
        if row_weights is not None:
            root = row_weights if root is None else row_weights * root
        if not count:
            side = self._unit_target - value / self.scale
        elif self._homogeneous:
            side = self._unit_target
        else:
            known = np.matmul(parameters[self._linear_index].T[:, None, :], jacobian[:, :count])[:, 0]
            side = self._unit_target - (value - known) / self.scale
        if root is not None:
            side = side * root
            jacobian *= root if root.ndim == 1 else root[:, None, :]
        slopes = jacobian[:, count:]
        slopes /= self.scale
        if count:
            solved = solve_columns(jacobian[:, :count], side)
            side = solved.residual
            parameters = parameters.copy()
            parameters[self._linear_index] = np.asarray(solved.coefficients).T * self.scale
            if slopes.shape[1]:
                before = np.abs(slopes).max(axis=-1, initial=0.0)
                overlap = np.matmul(slopes, solved.basis.transpose(0, 2, 1))
                slopes -= np.matmul(overlap, solved.basis)
                # What a linear parameter can do as well leaves rounding errors behind; scaled to length 1
                # they would send the parameter on a random walk.
                lost = np.abs(slopes).max(axis=-1, initial=0.0) <= _LOST * before
                if lost.any():
                    slopes[lost] = 0.0
        loss = np.asarray(np.einsum("sr,sr->s", side, side))
        return Projected(parameters, side, slopes, np.where(np.isfinite(loss), loss, np.inf))
