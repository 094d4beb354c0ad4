"""Conserved quantities of the found equations, with their drift along the measured runs."""

from __future__ import annotations

from typing import Literal

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.conservation.observed import observed_quantities
from physdiffuser.dynamics.conservation.search import Quantity, conserved_quantities, drift
from physdiffuser.dynamics.report.solution import Conserved, DynamicsSolution
from physdiffuser.dynamics.search.candidates import Preparation
from physdiffuser.dynamics.search.constants import tidy
from physdiffuser.expressions import to_text

MAX_DRIFT = 0.5
"""What varies more along the measured runs is conserved by the equations alone, which do not follow them."""


def conserved(solution: DynamicsSolution, prepared: Preparation, seed: int) -> tuple[Conserved, ...]:
    """What the equations conserve; what the trajectories show where the equations conserve nothing.

    Parameters
    ----------
    prepared
        Smoothed curves of all rows.
    seed
        Of the states at which rates are compared.
    """
    pairs = list(zip(prepared.table.runs, prepared.curves, strict=True))
    runs = [np.column_stack([curve.value(run.times) for curve in own]) for run, own in pairs]
    proven = conserved_quantities(solution.flow, np.concatenate(runs), seed)
    if proven or prepared.exact:
        stated = (_stated(one, "equations", solution, runs) for one in proven)
        return tuple(one for one in stated if one.drift < MAX_DRIFT)
    errors = [np.column_stack([curve.error(run.times) for curve in own]) for run, own in pairs]
    observed = observed_quantities(solution.flow, runs, errors, len(solution.flow) - 1)
    return tuple(_stated(one, "trajectories", solution, runs) for one in observed)


def _stated(
    one: Quantity,
    source: Literal["equations", "trajectories"],
    solution: DynamicsSolution,
    runs: list[FloatArray],
) -> Conserved:
    varies = drift(one.expression, runs)
    nodes = np.concatenate(runs)
    expression = tidy(one.expression, nodes)
    return Conserved(expression, to_text(expression, solution.names), varies, one.proven, source)
