"""Which constants of a law are shared: the choice with the shortest description."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import bind, parameter_count
from physdiffuser.fitting import fit_constants
from physdiffuser.groups.joint_fit import GroupedRows, JointFit, JointModel
from physdiffuser.selection.description_length import DescriptionLength

# With so many constants every choice is tried; with more, one after the other becomes shared.
_ALL_CHOICES = 4
MAX_CONSTANTS = 8
_STARTS, _FEW_STARTS = 16, 6


@dataclass(frozen=True)
class GroupLaw:
    """A skeleton with its constants divided into shared ones and those of each group.

    Attributes
    ----------
    fit
        The constants.
    length
        Nats to describe the table by it.
    form
        Nats of these for its form.
    """

    fit: JointFit
    length: float
    form: float = 0.0


class GroupDescriptionLength:
    """Lengths of descriptions of a table with groups.

    A shared constant takes half a log of the number of rows, a group's own one half a log of the group's rows
    (Rissanen 1978); the rest is as for a table without groups.

    Parameters
    ----------
    rows
        The table.
    floor
        Relative loss that rounding alone causes.
    """

    def __init__(self, rows: GroupedRows, floor: float) -> None:
        self._measure = DescriptionLength(rows.rows, rows.inputs.shape[2], floor)
        self.floor = floor
        self._shared = 0.5 * float(np.log(max(rows.rows, 2)))
        self._own = 0.5 * float(np.log(np.maximum(rows.counts, 2)).sum())

    def form(self, fit: JointFit) -> float:
        """Nats for the form."""
        return self._measure.formula_nats(bind(fit.skeleton, [1.5] * parameter_count(fit.skeleton)))

    def law(self, fit: JointFit) -> GroupLaw:
        """The fit with its lengths."""
        return GroupLaw(fit, self(fit), self.form(fit))

    def law_nats(self, fit: JointFit) -> float:
        """Nats for the form and the constants, without the residuals."""
        constants = self._shared * float(fit.shared.sum()) + self._own * float((~fit.shared).sum())
        return self.form(fit) + constants

    def __call__(self, fit: JointFit) -> float:
        """Nats, up to a constant of the table."""
        return self._measure.left(fit.constants, fit.loss) + self.law_nats(fit)


@np.errstate(all="ignore")
def separate_fits(
    skeleton: Expression, rows: GroupedRows, seed: int, known: FloatArray | None = None
) -> FloatArray:
    """Constants of each group by itself, shape (parameters, groups); nan where there are none.

    The group with the most rows is fitted from many starts, the others from its constants and a few more.

    Parameters
    ----------
    known
        Shape (parameters, starts): constants that one group is known to have.
    """
    count = parameter_count(skeleton)
    found = np.full((count, rows.groups), np.nan)
    starts = np.empty((count, 0)) if known is None or not count else known.reshape(count, -1)
    for group in np.argsort(-rows.counts, kind="stable"):
        here = slice(0, int(rows.counts[group]))
        first = starts.shape[1] == 0
        fit = fit_constants(
            skeleton,
            rows.inputs[group, here],
            rows.target[group, here],
            weights=np.square(rows.roots[group, here]),
            initial=starts[:, -4:] if starts.size else None,
            starts=_STARTS if first else _FEW_STARTS,
            rng=np.random.default_rng([seed, 13, int(group)]),
        )
        if not np.isfinite(fit.loss):
            return found
        found[:, group] = fit.parameters
        starts = np.concatenate([starts, fit.parameters[:, None]], axis=1)
    return found


def best_sharing(
    skeleton: Expression, rows: GroupedRows, measure: GroupDescriptionLength, own: FloatArray
) -> GroupLaw | None:
    """The division of the constants with the shortest description; None where no fit is finite.

    Parameters
    ----------
    own
        Shape (parameters, groups): constants of each group by itself, from `separate_fits`.
    """
    if not np.isfinite(own).all():
        return None
    model = JointModel(skeleton, rows)
    count = model.count
    if count == 0:
        none = np.zeros((0, rows.groups))
        fit = JointFit(skeleton, np.zeros(0, bool), none, model.loss(none))
        return measure.law(fit) if np.isfinite(fit.loss) else None
    free = _law(model, own, np.zeros(count, bool), measure)
    if count <= _ALL_CHOICES:
        choices = [np.array(choice) for choice in product([False, True], repeat=count) if any(choice)]
        laws = [free, *(_law(model, own, choice, measure) for choice in choices)]
        best = min(laws, key=lambda law: law.length)
    else:
        best = _one_after_the_other(model, free, measure)
    return best if np.isfinite(best.length) else None


def _one_after_the_other(model: JointModel, law: GroupLaw, measure: GroupDescriptionLength) -> GroupLaw:
    """Make the constant shared that shortens the description most, until none does."""
    while True:
        shared = law.fit.shared
        further = []
        for position in np.flatnonzero(~shared):
            choice = shared.copy()
            choice[position] = True
            further.append(_law(model, law.fit.parameters, choice, measure))
        best = min(further, key=lambda one: one.length, default=law)
        if best.length >= law.length:
            return law
        law = best


def _law(model: JointModel, own: FloatArray, shared: BoolArray, measure: GroupDescriptionLength) -> GroupLaw:
    """The joint fit; shared constants begin at the median of the groups' own, or at those of one group."""
    starts = [np.where(shared[:, None], np.median(own, axis=1, keepdims=True), own)]
    if shared.any() and not shared.all():
        largest = int(np.argmax(model.rows.counts))
        starts.append(np.where(shared[:, None], own[:, [largest]], own))
        # All constants from one group: those of the groups then follow the shared ones.
        starts.append(np.broadcast_to(own[:, [largest]], own.shape))
    fits = [model.fit(start, shared) for start in starts]
    fit = min(fits, key=lambda one: one.loss)
    return measure.law(fit)
