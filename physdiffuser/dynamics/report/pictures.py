"""Charts of the page: trajectories with their band, residuals, and the phase portrait."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.dynamics.phase.fixed_points import FixedPoint, is_autonomous
from physdiffuser.dynamics.report.solution import DynamicsSolution, SimulatedRun
from physdiffuser.expressions import evaluate
from physdiffuser.io.display import visible
from physdiffuser.report.html.charts import Axis, Chart, Layer, axes, line_path, points_path

MAX_RUNS = 4
"""Runs that are drawn, each with all of its states."""
MAX_STATES = 6
_MAX_POINTS = 400
_BAND = 1.96
_ARROWS = (15, 11)
_WIDENED = 0.12


def trajectory_charts(solution: DynamicsSolution) -> list[Chart]:
    """Measured and simulated values of each state against the time, for each of the first runs."""
    charts = []
    for run in solution.runs[:MAX_RUNS]:
        for index, column in enumerate(solution.states[:MAX_STATES]):
            measured, simulated = run.measured[:, index], run.simulated[:, index]
            sigma = None if run.errors is None else _BAND * run.errors[:, index]
            edges = [] if sigma is None else [simulated - sigma, simulated + sigma]
            x, y = axes(run.times, _within(measured, np.concatenate([measured, simulated, *edges])))
            layers = [] if sigma is None else [Layer("outside", _band(x, y, run.times, *edges), "95 % band")]
            layers += _measured(run, x, y, run.times, measured)
            layers.append(Layer("law", line_path(x, y, run.times, simulated), "simulated"))
            title = f"{visible(column.name, 40)}{_of_run(run)}"
            description = f"Measured and simulated values of {title} against the time."
            charts.append(_chart(title, description, (solution.time.name, column.name), (x, y), layers))
    return charts


def residual_charts(solution: DynamicsSolution) -> list[Chart]:
    """Measured minus simulated values of each state, all drawn runs together."""
    charts = []
    for index, column in enumerate(solution.states[:MAX_STATES]):
        runs = solution.runs[:MAX_RUNS]
        times = np.concatenate([run.times for run in runs])
        with np.errstate(all="ignore"):
            residuals = [run.measured[:, index] - run.simulated[:, index] for run in runs]
        x, y = axes(times, np.concatenate(residuals), zero=True)
        layers: list[Layer] = []
        for number, (run, residual) in enumerate(zip(runs, residuals, strict=True)):
            marks = _measured(run, x, y, run.times, residual)
            layers += marks if number == 0 else [Layer(one.kind, one.path) for one in marks]
        ends = np.array([times.min(), times.max()])
        layers.append(Layer("guide", line_path(x, y, ends, np.zeros(2))))
        name = visible(column.name, 40)
        labels = (solution.time.name, f"{column.name}: measured − simulated")
        charts.append(
            _chart(f"Residuals of {name}", f"Residuals of {name} against the time.", labels, (x, y), layers)
        )
    return charts


def phase_portrait(solution: DynamicsSolution, points: Sequence[FixedPoint]) -> Chart | None:
    """The vector field with the simulated runs and the fixed points; None in more than two dimensions."""
    coordinates = len(solution.phase)
    if coordinates > 2 or not solution.runs or not is_autonomous(solution.flow):
        return None
    every = np.concatenate([run.simulated for run in solution.runs])
    every = np.concatenate([every, *(point.state[None, :] for point in points)])
    every = every[np.isfinite(every).all(axis=1)]
    return _line_portrait(solution, points, every) if coordinates == 1 else _plane(solution, points, every)


def _line_portrait(solution: DynamicsSolution, points: Sequence[FixedPoint], every: FloatArray) -> Chart:
    """The rate of change against the only state."""
    low, high = _ends(every[:, 0])
    grid = np.linspace(low, high, 161)
    rate = evaluate(solution.flow[0], grid[:, None])
    x, y = axes(grid, rate[np.isfinite(rate)])
    layers = [Layer("guide", line_path(x, y, np.array([low, high]), np.zeros(2)))]
    layers.append(Layer("law", line_path(x, y, grid, rate), "rate of change"))
    layers += _marks(x, y, points, np.zeros(len(points)))
    name = solution.states[0].name
    labels = (name, solution.equations[0].target)
    return _chart("Phase line", f"Rate of change of {name} against {name}.", labels, (x, y), layers)


def _plane(solution: DynamicsSolution, points: Sequence[FixedPoint], every: FloatArray) -> Chart:
    """Arrows of the vector field in a plane, all of the same length."""
    (left, right), (bottom, top) = _ends(every[:, 0]), _ends(every[:, 1])
    x, y = axes(np.array([left, right]), np.array([bottom, top]))
    across, up = (np.linspace(a.low, a.high, n + 2)[1:-1] for a, n in zip((x, y), _ARROWS, strict=True))
    nodes = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    rates = [evaluate(rate, nodes) for rate in solution.flow]
    layers = [Layer("front solid", _arrows(x, y, nodes, np.stack(rates, axis=1)), "vector field")]
    for number, run in enumerate(solution.runs):
        some = slice(None, None, max(run.times.size // _MAX_POINTS, 1))
        path = line_path(x, y, run.simulated[some, 0], run.simulated[some, 1])
        layers.append(Layer("law", path, "" if number else "simulated runs"))
    layers += _marks(x, y, points, np.array([point.state[1] for point in points]))
    first, second = (column.name for column in solution.phase)
    description = (
        f"Vector field over {first} and {second}, with the simulated runs and {len(points)} fixed points."
    )
    return _chart("Phase portrait", description, (first, second), (x, y), layers)


def _marks(x: Axis, y: Axis, points: Sequence[FixedPoint], heights: FloatArray) -> list[Layer]:
    """Fixed points, stable and others apart."""
    layers = []
    for stable, kind, label in (
        (True, "seen big", "stable fixed point"),
        (False, "test big", "other fixed point"),
    ):
        chosen = [place for place, point in enumerate(points) if point.is_stable == stable]
        if chosen:
            places = np.array([points[place].state[0] for place in chosen])
            layers.append(Layer(kind, points_path(x, y, places, heights[chosen]), label))
    return layers


def _arrows(x: Axis, y: Axis, nodes: FloatArray, rates: FloatArray) -> str:
    """Arrows in the direction of the rates on the page, with heads."""
    scale = np.array([(x.end - x.start) / (x.high - x.low), (y.end - y.start) / (y.high - y.low)])
    with np.errstate(all="ignore"):
        direction = rates * scale
        direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
    length = 0.32 * abs(x.end - x.start) / _ARROWS[0]
    begin = np.stack([x.place(nodes[:, 0]), y.place(nodes[:, 1])], axis=1)
    parts = []
    for place, way in zip(begin, direction, strict=True):
        if not np.isfinite(way).all():
            continue
        tip, side = place + length * way, np.array([-way[1], way[0]])
        back = tip - 3.5 * way
        head = [back + 2.2 * side, tip, back - 2.2 * side]
        tail = place - length * way
        parts.append(f"M{tail[0]:.1f} {tail[1]:.1f}L{tip[0]:.1f} {tip[1]:.1f}")
        parts.append("M" + "L".join(f"{one[0]:.1f} {one[1]:.1f}" for one in head))
    return "".join(parts)


def _measured(run: SimulatedRun, x: Axis, y: Axis, times: FloatArray, values: FloatArray) -> list[Layer]:
    """Dots of the fitted points, and of those that were held out."""
    some = spread_places(times.size, _MAX_POINTS)
    fitted, held = some[some < run.fitted], some[some >= run.fitted]
    layers = []
    if fitted.size:
        layers.append(Layer("seen", points_path(x, y, times[fitted], values[fitted]), "measured"))
    if held.size:
        layers.append(Layer("test", points_path(x, y, times[held], values[held]), "measured, held out"))
    return layers


def _within(measured: FloatArray, values: FloatArray) -> FloatArray:
    """Values not far outside of the measured range: a simulation that blows up must not flatten the rest."""
    low, high = np.nanmin(measured), np.nanmax(measured)
    size = float(high - low) or 1.0
    return values[(values >= low - size) & (values <= high + size)]


def _band(x: Axis, y: Axis, times: FloatArray, lower: FloatArray, upper: FloatArray) -> str:
    """The area between two curves, as far as both are finite."""
    known = np.isfinite(lower) & np.isfinite(upper)
    if known.sum() < 2:
        return ""
    across = x.place(times[known])
    down, up = y.place(lower[known]), y.place(upper[known])
    there = "L".join(f"{a:g} {b:g}" for a, b in zip(across, up, strict=True))
    back = "L".join(f"{a:g} {b:g}" for a, b in zip(across[::-1], down[::-1], strict=True))
    return f"M{there}L{back}Z"


def _ends(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = _WIDENED * (high - low) or 1.0
    return low - margin, high + margin


def _of_run(run: SimulatedRun) -> str:
    return f", run {visible(run.label, 20)}" if run.label else ""


def _chart(
    title: str, description: str, labels: tuple[str, str], pair: tuple[Axis, Axis], layers: list[Layer]
) -> Chart:
    x, y = pair
    across, down = (visible(label, 40) for label in labels)
    return Chart(title, description, across, down, x.ticks, y.ticks, layers)
