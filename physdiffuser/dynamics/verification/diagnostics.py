"""What to warn of: states without dynamics, and equations that do not follow the rows."""

from __future__ import annotations

import math

import numpy as np

from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.dynamics.verification.simulation import Simulation

INDEPENDENT = 1.2
"""Mean squared difference of neighbours over the variance: 2 for independent values, near 0 for a curve."""
FEWEST = 12
"""Values in a row from which that is judged."""
MIN_R2 = 0.5


def diagnostics(table: Trajectories, simulation: Simulation) -> tuple[str, ...]:
    """Warnings for the user.

    Parameters
    ----------
    simulation
        Of the system that was found.
    """
    loose = [state for state in range(table.measured) if _looks_independent(table, state)]
    found = [
        f"'{table.states[state].shown}': successive values are as different as independent ones; "
        "the table shows no dynamics of it"
        for state in loose
    ]
    if simulation.horizon is not None:
        return tuple(found)  # of a chaotic system no simulation follows all rows
    for state in range(table.measured):
        r2 = float(simulation.r2_fitted[state])
        if state not in loose and not r2 >= MIN_R2:
            size = f"R² is {r2:.2g}" if math.isfinite(r2) else "it blows up"
            name = table.states[state].shown
            found.append(f"'{name}': a simulation of these equations does not follow the rows ({size})")
    return tuple(found)


def _looks_independent(table: Trajectories, state: int) -> bool:
    """Whether the values of a state change from row to row as much as they vary at all."""
    squares, values = [], []
    for run in table.runs:
        known = run.states[np.isfinite(run.states[:, state]), state]
        squares.append(np.diff(known) ** 2)
        values.append(known)
    steps, every = np.concatenate(squares), np.concatenate(values)
    variance = float(every.var())
    return steps.size >= FEWEST and variance > 0.0 and float(steps.mean()) > INDEPENDENT * variance
