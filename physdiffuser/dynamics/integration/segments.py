"""Trajectories cut into segments for shooting, with the error of each value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.dynamics.integration.flow import InputsAt
from physdiffuser.dynamics.integration.shooting import Segments
from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.dynamics.trajectories.smoothing import Curve

EXACT_ERROR = 1e-10
"""Error of values without noise, as a share of the standard deviation of the state: that of integration."""

MAX_POINTS = 1_500
"""About as many points are fitted: what form an equation has does not take more."""
MAX_KNOWN = 4_096
"""Times whose inputs are remembered."""


def value_errors(table: Trajectories, curves: Sequence[Sequence[Curve]], exact: bool) -> list[FloatArray]:
    """Standard deviation of each value of each run, shape (points, states)."""
    scales = table.scales
    if exact:
        return [np.tile(EXACT_ERROR * scales, (run.points, 1)) for run in table.runs]
    # Of derivatives nothing is measured, so their errors are never used.
    errors = [np.tile(scales, (run.points, 1)) for run in table.runs]
    for state in range(table.measured):
        own = [smoothed[state] for smoothed in curves]
        # One noise level for all runs: runs are short, and measured alike.
        counts = np.array([np.isfinite(run.states[:, state]).sum() for run in table.runs])
        noises = np.array([curve.noise for curve in own])
        noise = max(float(np.sqrt((counts @ noises**2) / counts.sum())), 1e-12 * scales[state])
        known = np.concatenate([run.states[:, state] for run in table.runs])
        size = float(np.sqrt(np.nanmean(known**2)))
        for run, curve, error in zip(table.runs, own, errors, strict=True):
            values = np.maximum(np.abs(curve.value(run.times)), curve.floor * size)
            error[:, state] = noise * values if curve.kind == "relative" and not curve.interpolates else noise
    return errors


def cut(
    table: Trajectories,
    curves: Sequence[Sequence[Curve]],
    errors: Sequence[FloatArray],
    length: int,
    *,
    fixed: bool = False,
    driven: tuple[int, ...] | None = None,
) -> Segments:
    """Segments of `length` intervals.

    Parameters
    ----------
    table, curves, errors
        The runs, their smoothed curves and the errors of their values.
    length
        Intervals of a segment; neighbouring segments share a point. Of long tables not all are taken.
    fixed
        Whether each segment starts from the values as they are.
    driven
        These states alone, driven by the smoothed curves of the others, which become inputs; None for all.
    """
    times, values, initial, sizes, owner = [], [], [], [], []
    states = list(range(len(table.states)) if driven is None else driven)
    for number, (run, smoothed, error) in enumerate(zip(table.runs, curves, errors, strict=True)):
        starts = range(0, max(run.points - 1, 1), length)
        for begin in starts[:: max(table.points // MAX_POINTS, 1)]:
            place = np.arange(begin, begin + length + 1)
            inside = np.minimum(place, run.points - 1)
            moment = run.times[inside]
            seen = np.where((place < run.points)[:, None], run.states[inside][:, states], np.nan)
            times.append(moment)
            values.append(seen)
            start = np.array([float(smoothed[state].value(moment[:1])[0]) for state in states])
            initial.append(np.where(np.isfinite(seen[0]), seen[0], start) if fixed else start)
            sizes.append(error[inside][:, states])
            owner.append(number)
    return Segments(
        np.array(times),
        np.array(values),
        np.array(initial),
        np.array(sizes),
        table.scales[states],
        fixed,
        inputs_by_segment(table, curves, np.array(owner), driven),
    )


def inputs_by_segment(
    table: Trajectories,
    curves: Sequence[Sequence[Curve]],
    owner: IndexArray,
    driven: tuple[int, ...] | None,
) -> InputsAt | None:
    """Inputs (the other states first where one is driven by them) at one time for each segment."""
    others = [] if driven is None else [state for state in range(len(table.states)) if state not in driven]
    count = len(others) + len(table.inputs)
    if not count:
        return None
    rows = [np.flatnonzero(owner == number) for number in range(len(table.runs))]
    known: dict[bytes, FloatArray] = {}

    def at(moment: FloatArray) -> FloatArray:
        # All systems are integrated with the same steps, and ask for the same times.
        key = moment.tobytes()
        if key not in known:
            if len(known) >= MAX_KNOWN:
                known.clear()
            known[key] = computed(moment)
        return known[key]

    def computed(moment: FloatArray) -> FloatArray:
        found = np.empty((count, *np.shape(moment)))
        for number, (run, smoothed) in enumerate(zip(table.runs, curves, strict=True)):
            chosen = rows[number]
            if not chosen.size:
                continue
            here = moment[chosen]
            for place, state in enumerate(others):
                found[place, chosen] = smoothed[state].value(here)
            for index in range(len(table.inputs)):
                found[len(others) + index, chosen] = np.interp(here, run.times, run.inputs[:, index])
        return found

    return at


def run_inputs(table: Trajectories, number: int) -> InputsAt | None:
    """Inputs of one run at any time."""
    if not table.inputs:
        return None
    run = table.runs[number]

    def at(moment: FloatArray) -> FloatArray:
        return np.stack([np.interp(moment, run.times, column) for column in run.inputs.T])

    return at
