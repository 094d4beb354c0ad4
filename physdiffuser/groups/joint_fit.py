"""Fit one skeleton to all groups at once, with some constants shared and the others of each group's own.

The constants of a group enter the residuals of its own rows alone, so the normal equations have the form
of an arrow: the groups' constants are eliminated block by block in every step (their best values for given
shared constants, to first order), and what is left is a system in the shared ones alone. The cost grows in
proportion to the number of groups. See Golub & Pereyra, "The differentiation of pseudo-inverses and nonlinear
least squares problems whose variables separate", SIAM J. Numer. Anal. 10 (1973), and Björck, *Numerical
Methods for Least Squares Problems*, ch. 9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, IndexArray
from physdiffuser.expressions import Expression, Number, Parameter, Variable
from physdiffuser.expressions.tree import parameter_count, substitute, walk
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape

_ITERATIONS, _TOLERANCE = 80, 1e-13
_FIRST_DAMPING, _MIN_DAMPING, _MAX_DAMPING = 1e-3, 1e-12, 1e12
# Relative to the spread of the target: what is left when every row is met.
_EXACT = 1e-30


@dataclass(frozen=True)
class GroupedRows:
    """The rows of a table, group by group, padded to equal numbers.

    Attributes
    ----------
    inputs
        Shape (groups, most rows, columns).
    target
        Shape (groups, most rows).
    roots
        Shape (groups, most rows): square roots of the weights, of mean square 1; 0 where a group has fewer
        rows.
    counts
        Shape (groups,): rows of each group.
    variance_factor
        By how much constants vary more than the mean square of the weighted residuals says: 1 but where
        the weights depend on the residuals.
    """

    inputs: FloatArray
    target: FloatArray
    roots: FloatArray
    counts: IndexArray
    variance_factor: float = 1.0

    @classmethod
    def of(
        cls,
        inputs: FloatArray,
        target: FloatArray,
        weights: FloatArray | None,
        codes: IndexArray,
        groups: int = 0,
    ) -> GroupedRows:
        """Sort rows into groups; `codes`, shape (rows,), numbers the group of each from 0.

        There are at least `groups` of them: the last ones, and some between, may have no row.
        """
        places = [np.flatnonzero(codes == code) for code in range(max(int(codes.max()) + 1, groups))]
        most = max(len(rows) for rows in places)
        # A group with fewer rows repeats its first one, without weight: every value stays in the domain.
        index = np.array([np.r_[rows, np.full(most - len(rows), (*rows, 0)[0])] for rows in places])
        counts = np.array([len(rows) for rows in places], dtype=np.intp)
        roots = np.sqrt(np.ones(target.shape[0]) if weights is None else weights / weights.mean())[index]
        roots[np.arange(most)[None, :] >= counts[:, None]] = 0.0
        return cls(inputs[index], target[index], roots, counts)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.target.shape[0])

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def spread(self) -> float:
        """Weighted sum of squares about the weighted mean: the loss of the constant model."""
        shares = np.square(self.roots)
        mean = float((shares * self.target).sum() / shares.sum())
        return float((shares * np.square(self.target - mean)).sum())

    @property
    def present(self) -> BoolArray:
        """Shape (groups, most rows): which places hold a row of the table."""
        return np.asarray(np.arange(self.target.shape[1])[None, :] < self.counts[:, None])

    def weighted(self, weights: FloatArray, variance_factor: float = 1.0) -> GroupedRows:
        """The same rows with other weights, one for each place in `present`, shape (rows,)."""
        roots = np.zeros(self.target.shape)
        roots[self.present] = np.sqrt(weights / weights.mean())
        return replace(self, roots=roots, variance_factor=variance_factor)

    def take(self, groups: IndexArray | list[int]) -> GroupedRows:
        """Some of the groups."""
        return replace(
            self,
            inputs=self.inputs[groups],
            target=self.target[groups],
            roots=self.roots[groups],
            counts=self.counts[groups],
        )


@dataclass(frozen=True)
class JointFit:
    """A skeleton fitted to all groups.

    Attributes
    ----------
    skeleton
        With `Parameter` nodes.
    shared
        Shape (parameters,): which have one value for all groups.
    parameters
        Shape (parameters, groups); rows of shared ones hold one value.
    loss
        Sum of squares relative to that of the constant model; inf when not finite.
    """

    skeleton: Expression
    shared: BoolArray
    parameters: FloatArray
    loss: float

    @property
    def constants(self) -> int:
        """Number of fitted values."""
        groups = self.parameters.shape[1]
        shared = int(self.shared.sum())
        return shared + int(groups) * (len(self.shared) - shared)

    @property
    def own(self) -> list[int]:
        """Parameters of the groups' own constants, in the order in which they stand in the formula."""
        found = [node.index for node in walk(self.skeleton) if isinstance(node, Parameter)]
        return [index for index in dict.fromkeys(found) if not self.shared[index]]

    def filled(self, columns: int) -> Expression:
        """The formula with its shared constants, and variables from `columns` on for those of the groups."""
        place = {index: columns + number for number, index in enumerate(self.own)}

        def fill(node: Expression) -> Expression | None:
            if not isinstance(node, Parameter):
                return None
            if self.shared[node.index]:
                return Number(float(self.parameters[node.index, 0]))
            return Variable(place[node.index])

        return substitute(self.skeleton, fill)


class JointModel:
    """A skeleton on grouped rows.

    Parameters
    ----------
    skeleton
        With `Parameter` nodes.
    rows
        All groups.
    """

    def __init__(self, skeleton: Expression, rows: GroupedRows) -> None:
        self.skeleton, self.rows = skeleton, rows
        self.count = parameter_count(skeleton)
        self._tape = EvaluationTape(skeleton, rows.inputs)
        self._spread = rows.spread or 1.0

    @np.errstate(all="ignore")
    def loss(self, parameters: FloatArray) -> float:
        """Relative sum of squares, parameters of shape (parameters, groups)."""
        residual = self.rows.roots * (self._tape.value(parameters) - self.rows.target)
        value = float(np.square(residual).sum()) / self._spread
        return value if np.isfinite(value) else np.inf

    @np.errstate(all="ignore")
    def predicted(self, parameters: FloatArray) -> FloatArray:
        """Values of the rows of the table, shape (rows,), in the order of `GroupedRows.present`."""
        values = np.broadcast_to(self._tape.value(parameters), self.rows.target.shape)
        return np.asarray(values[self.rows.present])

    @np.errstate(all="ignore")
    def normal_equations(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Products of derivatives, shape (groups, parameters, parameters), and with the residuals."""
        value, jacobian = self._tape.value_and_jacobian(parameters)
        weighted = jacobian * self.rows.roots[:, None, :]
        residual = self.rows.roots * (value - self.rows.target)
        products = np.einsum("gpr,gqr->gpq", weighted, weighted)
        return products, np.einsum("gpr,gr->gp", weighted, residual)

    @np.errstate(all="ignore")
    def fit(self, start: FloatArray, shared: BoolArray, held: BoolArray | None = None) -> JointFit:
        """Levenberg-Marquardt from one start.

        Parameters
        ----------
        start
            Shape (parameters, groups); of shared parameters the mean over the groups is taken.
        shared
            Shape (parameters,).
        held
            Shape (parameters,): those that keep their values; none when None.
        """
        held = np.zeros(self.count, bool) if held is None else held
        parameters = np.array(start, dtype=np.float64)
        parameters[shared] = parameters[shared].mean(axis=1, keepdims=True)
        loss, damping = self.loss(parameters), _FIRST_DAMPING
        if not np.isfinite(loss):
            return JointFit(self.skeleton, shared, parameters, np.inf)
        products, slopes = self.normal_equations(parameters)
        for _ in range(_ITERATIONS):
            step = _step(products, slopes, shared & ~held, ~shared & ~held, damping)
            trial = parameters + step
            new = self.loss(trial) if np.isfinite(step).all() else np.inf
            if new < loss:
                done = loss - new <= _TOLERANCE * loss or new < _EXACT
                parameters, loss = trial, new
                damping = max(damping / 5, _MIN_DAMPING)
                if done:
                    break
                products, slopes = self.normal_equations(parameters)
            else:
                damping *= 7
                if damping > _MAX_DAMPING:
                    break
        return JointFit(self.skeleton, shared, parameters, loss)

    @np.errstate(all="ignore")
    def covariance(self, fit: JointFit) -> tuple[FloatArray, FloatArray, float]:
        """Covariance of the constants that each group's rows depend on, and the residual variance.

        Returns
        -------
        blocks
            Shape (groups, parameters, parameters); nan where not determined.
        errors
            Shape (parameters, groups): standard errors of all constants.
        variance
            Of a row of weight 1, shape ().
        """
        products, _ = self.normal_equations(fit.parameters)
        left = self.rows.rows - fit.constants
        variance = float(fit.loss * self._spread / left) if left > 0 else float("nan")
        own, common = np.flatnonzero(~fit.shared), np.flatnonzero(fit.shared)
        blocks = np.full(products.shape, np.nan)
        try:
            inverse = np.linalg.inv(products[:, own[:, None], own])
            coupling = products[:, common[:, None], own]
            # Of the groups' constants, for each change of the shared ones.
            reach = -np.einsum("glm,gsm->gls", inverse, coupling)
            schur = products[:, common[:, None], common] + np.einsum("gsl,glt->gst", coupling, reach)
            together = np.linalg.inv(schur.sum(axis=0))
        except np.linalg.LinAlgError:
            return blocks, np.full(fit.parameters.shape, np.nan), variance
        follow = np.einsum("gls,st->glt", reach, together)
        blocks[:, common[:, None], common] = together
        blocks[:, own[:, None], common] = follow
        blocks[:, common[:, None], own] = np.swapaxes(follow, 1, 2)
        blocks[:, own[:, None], own] = inverse + np.einsum("gls,gms->glm", follow, reach)
        blocks *= variance * self.rows.variance_factor
        return blocks, np.sqrt(np.einsum("gpp->pg", blocks)), variance

    @np.errstate(all="ignore")
    def left_out_ratio(self, fit: JointFit) -> float:
        """Error of rows predicted without themselves over the error of the fit, to first order.

        The residual of a row that is left out is that of the fit divided by one less its leverage (Cook and
        Weisberg, *Residuals and Influence in Regression*, 1982).
        """
        value, jacobian = self._tape.value_and_jacobian(fit.parameters)
        blocks, _, variance = self.covariance(fit)
        slopes = jacobian * self.rows.roots[:, None, :]
        inverse = blocks / (variance * self.rows.variance_factor)
        leverage = np.einsum("gpr,gpq,gqr->gr", slopes, inverse, slopes)
        residual = self.rows.roots * (value - self.rows.target)
        without = np.square(residual / (1.0 - np.minimum(leverage, 1.0)))
        return float(np.sqrt(without.sum() / np.square(residual).sum()))


def _step(
    products: FloatArray, slopes: FloatArray, shared: BoolArray, own: BoolArray, damping: float
) -> FloatArray:
    """The damped Gauss-Newton step, shape (parameters, groups): the groups' own constants are eliminated."""
    groups, count, _ = products.shape
    diagonal = np.einsum("gpp->gp", products)
    step = np.zeros((count, groups))
    local, common = np.flatnonzero(own), np.flatnonzero(shared)
    reduced = reduced_slope = None
    if common.size:
        reduced = products[:, common[:, None], common].sum(axis=0)
        reduced = reduced + np.diag(damping * _positive(diagonal[:, common].sum(axis=0)))
        reduced_slope = slopes[:, common].sum(axis=0)
    try:
        if local.size:
            blocks = products[:, local[:, None], local].copy()
            place = np.arange(local.size)
            blocks[:, place, place] += damping * _positive(diagonal[:, local])
            coupling = products[:, common[:, None], local]
            right = np.concatenate([slopes[:, local, None], np.swapaxes(coupling, 1, 2)], axis=2)
            solved = np.linalg.solve(blocks, right)
            if reduced is not None and reduced_slope is not None:
                reduced = reduced - np.einsum("gsl,glt->st", coupling, solved[:, :, 1:])
                reduced_slope = reduced_slope - np.einsum("gsl,gl->s", coupling, solved[:, :, 0])
        if reduced is not None and reduced_slope is not None:
            step[common] = -np.linalg.solve(reduced, reduced_slope)[:, None]
        if local.size:
            back = np.einsum("gls,s->gl", solved[:, :, 1:], step[common, 0]) if common.size else 0.0
            step[local] = -(solved[:, :, 0] + back).T
    except np.linalg.LinAlgError:
        return np.full((count, groups), np.nan)
    return step


def _positive(diagonal: FloatArray) -> FloatArray:
    return np.where(diagonal > 0, diagonal, 1e-300)
