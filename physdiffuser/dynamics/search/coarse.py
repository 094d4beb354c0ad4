"""Trajectories without noise that are sampled too coarsely to be interpolated.

What polynomials through the neighbours miss there looks like noise. A system shows whether it is: around
roughly right equations, the residuals over single intervals, which start from the values as they are, are
linear in small changes of the equations. If these lead to a system that meets all values to the accuracy of
the integration, the values were exact.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.dynamics.search.candidates import Preparation, ranked, term_candidates
from physdiffuser.dynamics.search.choice import POLICY as CHOICE
from physdiffuser.dynamics.search.choice import Beam, Choice, Rival
from physdiffuser.dynamics.search.selection import Selector, mean_square
from physdiffuser.dynamics.trajectories.smoothing import falls_with_neighbours, neighbour_noise

MAX_NOISE = 0.03
"""Largest noise, as a share of a state's standard deviation, that coarse sampling may have feigned."""
ROUNDS = 6
STALLED = 0.5
"""A round that leaves more than this share of the mean square has led nowhere."""


def has_exact_values(prepared: Preparation) -> bool:
    """Whether single intervals can be simulated from values without noise."""
    return prepared.exact and _measured_everywhere(prepared)


def _measured_everywhere(prepared: Preparation) -> bool:
    return prepared.table.order == 1 and not any(np.isnan(run.states).any() for run in prepared.table.runs)


def may_be_exact(prepared: Preparation) -> bool:
    """Whether what looks like noise may be the bending of curves between the points."""
    table = prepared.table
    if prepared.exact or not _measured_everywhere(prepared):
        return False
    return any(
        falls_with_neighbours(run.times, values) for run in table.runs for values in run.states.T
    ) and all(
        neighbour_noise(run.times, values) < MAX_NOISE * scale
        for run in table.runs
        for values, scale in zip(run.states.T, table.scales, strict=True)
    )


def system_of_exact_values(selector: Selector, enough: float) -> tuple[Beam, list[Rival]] | None:
    """The system that meets exact values, if sums of terms lead to one.

    Parameters
    ----------
    enough
        Mean squared residual of a system that meets exact values.
    """
    choice, prepared = Choice(selector), selector.prepared
    states = range(len(prepared.table.states))
    found = [ranked(term_candidates(prepared, state), CHOICE.exact_joint) for state in states]
    if not all(found):
        return None
    beam = choice.exchanged(found)
    beam.best = selector.refined(beam.best)
    for _ in range(ROUNDS):
        before = mean_square(beam.best)
        if before < enough or not choice.with_linearised(beam) or selector.stop():
            break
        beam.best = selector.refined(beam.best)
        if mean_square(beam.best) > max(enough, STALLED * before):
            break
    if not mean_square(beam.best) < enough:
        return None
    choice.with_linearised(beam)
    choice.without_needless_terms(beam)
    return beam, choice.rivals(beam)
