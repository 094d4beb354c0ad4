"""Leave out one group after the other: do the shared constants hold for a group that had no part in them?"""

from __future__ import annotations

import numpy as np

from physdiffuser.core.solution_parts.group_constants import GroupNames
from physdiffuser.groups.joint_fit import GroupedRows, JointFit, JointModel
from physdiffuser.io.display import counted

MAX_GROUPS = 20
# Standard errors by which the error without a group's part in the shared constants may be larger.
_DEVIATIONS = 4.0


def left_out_groups(fit: JointFit, rows: GroupedRows, named: GroupNames) -> tuple[bool, str]:
    """Fit the shared constants without a group, then only the group's own constants to it; for each group.

    Returns
    -------
    Whether the errors are as in the fit to all groups, and a sentence.
    """
    if not fit.shared.any():
        return True, "groups: not checked by leaving one out, since no fitted constant is shared"
    if rows.groups < 2:
        return True, "groups: not checked by leaving one out, since there is only one"
    chosen = np.linspace(0, rows.groups - 1, min(rows.groups, MAX_GROUPS)).astype(np.intp)
    without = within = 0.0
    count = 0
    for group in chosen:
        others = np.delete(np.arange(rows.groups), group)
        again = JointModel(fit.skeleton, rows.take(others)).fit(fit.parameters[:, others], fit.shared)
        start = np.where(fit.shared[:, None], again.parameters[:, [0]], fit.parameters[:, [group]])
        alone = rows.take([int(group)])
        model = JointModel(fit.skeleton, alone)
        own = model.fit(start, fit.shared, held=fit.shared)
        scale = alone.spread or 1.0
        without += own.loss * scale
        within += model.loss(fit.parameters[:, [group]]) * scale
        count += int(alone.counts[0])
    which = "each group" if len(chosen) == rows.groups else counted(len(chosen), "group")
    ratio = float(np.sqrt(without / within)) if within > 0 else 1.0
    # With errors at the level of rounding the ratio says nothing.
    tiny = without <= 1e-18 * (rows.spread or 1.0)
    holds = tiny or ratio <= 1.0 + _DEVIATIONS * float(np.sqrt(0.5 / count))
    error = float(np.sqrt(without / count))
    what = f"groups: with {which} left out in turn and only its own constants fitted to it, "
    found = f"the rms error is {error:.3g}, {1.0 if tiny else ratio:.2g} times that of the fit to all groups"
    return holds, what + found + ("" if holds else ", more than chance explains")
