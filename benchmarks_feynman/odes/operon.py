"""Peer: Operon on derivatives, one search for each state (`benchmarks_feynman.systems.operon`).

Noisy values are smoothed by local cubic polynomials over 11 points, as in the smoothed finite differences of
pysindy; derivatives come from the same polynomials. Each search has the same processor time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks_feynman.odes.sindy import MIN_POINTS, Named, PeerSystem
from benchmarks_feynman.sampling import Table
from benchmarks_feynman.systems import operon
from benchmarks_feynman.tasks import Settings, Task
from physdiffuser.arrays import FloatArray
from physdiffuser.errors import PhysdiffuserError
from physdiffuser.expressions import Expression

SECONDS = 10.0
"""Processor time of the search for one equation, where no time is given."""
DEGREE = 3


def solve(
    table: Mapping[str, FloatArray], names: Sequence[str], noisy: bool, seconds: float | None, seed: int
) -> PeerSystem | None:
    """The equations that Operon chooses for the derivatives; None if one cannot be read.

    Parameters
    ----------
    table
        `run`, `t` and the states.
    names
        The states.
    noisy
        Whether the values have noise.
    seconds, seed
        Of each search.
    """
    values, rates = [], []
    for number in np.unique(table["run"]):
        rows = table["run"] == number
        measured = np.column_stack([table[name][rows] for name in names])
        smooth, slopes = derivatives(table["t"][rows], measured, MIN_POINTS if noisy else DEGREE + 2)
        values.append(smooth)
        rates.append(slopes)
    inputs, targets = np.concatenate(values), np.concatenate(rates)
    settings = Settings(time=SECONDS if seconds is None else seconds)
    task = Task("pyoperon", "odes", "", seed, 0.0, settings)
    equations: list[Expression] = []
    for name, target in zip(names, targets.T, strict=True):
        try:
            answer = operon.solve(Table(tuple(names), f"d{name}", inputs, target, target), task, None)
        except PhysdiffuserError:
            return None
        if answer.expression is None:
            return None
        equations.append(answer.expression)
    return PeerSystem(tuple(Named(name) for name in names), tuple(equations))


def derivatives(times: FloatArray, values: FloatArray, window: int) -> tuple[FloatArray, FloatArray]:
    """Values and slopes of a cubic polynomial through the points around each time.

    Parameters
    ----------
    values
        Shape (points, states).
    window
        Points of each polynomial; at the ends the window does not move on.
    """
    count = times.size
    window = min(window, count)
    smooth, slopes = np.empty_like(values), np.empty_like(values)
    for place in range(count):
        begin = min(max(place - window // 2, 0), count - window)
        near = slice(begin, begin + window)
        apart = times[near] - times[place]
        scale = float(np.abs(apart).max())
        powers = np.vander(apart / scale, DEGREE + 1, increasing=True)
        factors = np.linalg.lstsq(powers, values[near], rcond=None)[0]
        smooth[place], slopes[place] = factors[0], factors[1] / scale
    return smooth, slopes
