"""Suites of differential equations: systems, their trajectories with noise and gaps, and a judge of answers.

`odebench` is published (see `data/SOURCES.md`), `odes` is the development set, disjoint from it. Trajectories
have 150 equidistant points. *Reconstruction* is judged on the run or runs that were fitted, *generalisation*
on a second initial condition when the first alone was fitted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, Protocol

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import PhysdiffuserError, UsageError
from physdiffuser.expressions import Expression, complexity, evaluate, parse

SUITES = ("odebench", "odes")
PEERS = ("pysindy", "pyoperon")
OWN = "physdiffuser"
POINTS = 150
GOOD_R2 = 0.9
"""R2 of a simulation that counts as a success, as in the publication of ODEBench."""
_ROWS = 400
_EVALUATIONS = 1_000_000
"""Of the true equations: the fastest attractors need some 100,000."""
_SAME = 1e-7
_CONSTANTS = 1e-6
"""Relative difference of fitted constants from the true ones, without noise."""
_FACTOR, _ALLOWANCE = 2, 10
_SECONDS = 20.0


@dataclass(frozen=True)
class OdeSystem:
    """A system of a suite.

    Attributes
    ----------
    equations
        Right-hand sides over `names`.
    initial
        Two initial conditions.
    end
        Time at which the trajectories end; they begin at 0.
    order
        Of the equations. With 2, the states are measured and their derivatives are not; equations and initial
        conditions hold both.
    """

    id: str
    suite: str
    name: str
    equations: tuple[Expression, ...]
    initial: tuple[tuple[float, ...], ...]
    end: float
    order: int = 1

    @property
    def phase(self) -> tuple[str, ...]:
        """Names of the states and, for order 2, of their derivatives; the time stands behind them."""
        return self.names if self.order == 1 else (*self.names, *(f"{name}_dot" for name in self.names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the states."""
        return tuple(f"x_{index}" for index in range(len(self.equations)))

    def trajectory(self, number: int) -> FloatArray | None:
        """Phase from one initial condition, shape (points, phase); None if it blows up."""
        from physdiffuser.dynamics.integration.flow import System, simulate
        from physdiffuser.expressions import Variable

        count = len(self.names)
        derivatives = tuple(Variable(count + place) for place in range(count)) if self.order == 2 else ()
        system = System((*derivatives, *self.equations))
        path = simulate(
            system, np.array(self.initial[number]), self.times, tolerance=1e-12, max_evaluations=_EVALUATIONS
        )
        return path if np.isfinite(path).all() else None

    @property
    def times(self) -> FloatArray:
        """Shape (points,)."""
        return np.linspace(0.0, self.end, POINTS)


@dataclass(frozen=True)
class OdeSettings:
    """How the trajectories are sampled and the systems searched.

    Attributes
    ----------
    noise
        Multiplicative: values are multiplied by 1 + noise * normal.
    dropped
        Share of the points that are left out.
    fitted
        Whether both initial conditions are fitted or the first alone.
    seed, steps, seconds
        Of noise and search; limits of the search.
    """

    noise: float = 0.0
    dropped: float = 0.0
    fitted: Literal["both", "first"] = "both"
    seed: int = 0
    steps: int | None = None
    seconds: float | None = None


def load_systems(suite: str, only: Sequence[str] = (), every: int = 1) -> tuple[OdeSystem, ...]:
    """Systems of a suite, in its order.

    Raises
    ------
    UsageError
        If an id does not exist.
    """
    text = (files("benchmarks_feynman") / "data" / f"{suite}.json").read_text(encoding="utf-8")
    systems = []
    for row in json.loads(text):
        states = [f"x_{index}" for index in range(row["dimension"])]
        order = row.get("order", 1)
        names = [*states, *(f"{state}_dot" for state in states if order == 2), "t"]
        constants = {f"c_{index}": value for index, value in enumerate(row["constants"])}
        equations = tuple(
            _with_values(parse(equation.replace("cot(", "1/tan("), [*names, *constants]), names, constants)
            for equation in row["equations"]
        )
        initial = tuple(tuple(float(value) for value in start) for start in row["initial"])
        systems.append(
            OdeSystem(str(row["id"]), suite, row["name"], equations, initial, float(row["t_end"]), order)
        )
    known = {system.id for system in systems}
    for identifier in only:
        if identifier not in known:
            raise UsageError(f"no system {identifier!a} in {suite}; ids are 1 to {len(systems)}")
    chosen = [system for system in systems if not only or system.id in only]
    return tuple(chosen[::every])


def _with_values(equation: Expression, names: Sequence[str], constants: dict[str, float]) -> Expression:
    """The equation with exact decimal numbers for its constants."""
    from fractions import Fraction

    from physdiffuser.expressions import Number, Variable
    from physdiffuser.expressions.tree import substitute

    values = list(constants.values())

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Variable) and node.index >= len(names):
            exact = Fraction(str(values[node.index - len(names)]))
            return Number(int(exact) if exact.denominator == 1 else exact)
        return None

    return substitute(equation, replace)


def sample(system: OdeSystem, settings: OdeSettings) -> dict[str, FloatArray]:
    """The table that a system is searched in: `run`, `t` and the states."""
    rng = np.random.default_rng([settings.seed, int(system.id)])
    columns: list[FloatArray] = []
    for number in range(1 if settings.fitted == "first" else 2):
        path = system.trajectory(number)
        if path is None:
            continue
        path = path[:, : len(system.names)]
        noisy = path * (1.0 + settings.noise * rng.standard_normal(path.shape))
        kept = np.sort(rng.choice(POINTS, round(POINTS * (1.0 - settings.dropped)), replace=False))
        columns.append(np.column_stack([np.full(kept.size, float(number)), system.times[kept], noisy[kept]]))
    if not columns:
        raise UsageError(f"{system.name}: its trajectories blow up")
    rows = np.concatenate(columns)
    return dict(zip(["run", "t", *system.names], rows.T, strict=True))


class Answer(Protocol):
    """By what an answer is judged: `DynamicsSolution`, or what a peer has found."""

    @property
    def states(self) -> Sequence[Any]:
        """Columns, with their `name`."""

    @property
    def phase(self) -> Sequence[Any]:
        """The states and, for order 2, their derivatives."""

    @property
    def expressions(self) -> Sequence[Expression]:
        """Right-hand sides."""

    @property
    def order(self) -> int:
        """Of the equations."""

    def simulate(self, initial: list[float], times: FloatArray, /) -> FloatArray:
        """Shape (points, phase)."""


def judged(system: OdeSystem, found: Answer, settings: OdeSettings) -> dict[str, Any]:
    """Whether an answer is the true system, and how well it simulates."""
    return {
        "complexity": sum(complexity(expression) for expression in found.expressions),
        "symbolic": _is_symbolic(system, found, settings),
        "r2": [_r2(system, found, number) for number in range(2)],
    }


def heading(system: OdeSystem, settings: OdeSettings, name: str) -> dict[str, Any]:
    """What was searched, and by whom: the beginning of a result."""
    return {
        "system": name,
        "suite": system.suite,
        "id": system.id,
        "name": system.name,
        "noise": settings.noise,
        "dropped": settings.dropped,
        "fitted": settings.fitted,
        "seed": settings.seed,
    }


def run_system(system: OdeSystem, settings: OdeSettings) -> dict[str, Any]:
    """Search one system and judge the answer: one result, as plain data."""
    from physdiffuser.dynamics.solve import solve_dynamics

    result = heading(system, settings, OWN)
    started, processor = time.monotonic(), time.process_time()
    try:
        found = solve_dynamics(
            sample(system, settings),
            time_column="t",
            runs="run",
            order=1 if system.order == 1 else "auto",
            steps=settings.steps,
            time=settings.seconds,
            seed=settings.seed,
        )
    except PhysdiffuserError as error:
        return result | {"error": str(error), "symbolic": False, "verified": False, "r2": [None, None]}
    result["seconds"] = time.monotonic() - started
    result["processor_seconds"] = time.process_time() - processor
    texts = [one.best.text for one in found.equations if one.best is not None]
    return result | {"equations": texts, "verified": found.is_verified} | judged(system, found, settings)


def _is_symbolic(system: OdeSystem, found: Answer, settings: OdeSettings) -> bool:
    """Whether every right-hand side is the true one: by sympy, once its own constants are fitted to it."""
    names = [column.name for column in found.states]
    if sorted(names) != sorted(system.names) or found.order != system.order:
        return False
    paths = [path for path in (system.trajectory(number) for number in range(2)) if path is not None]
    every = np.concatenate(paths)
    low, high = every.min(axis=0), every.max(axis=0)
    places = [system.phase.index(column.name) for column in found.phase]
    ranges = [(float(low[place]), float(high[place])) for place in places]
    order = [*places, len(places)]  # the time stays last
    return all(
        is_same_law(
            expression, _reordered(system.equations[place], order), ranges, settings, (0.0, system.end)
        )
        for expression, place in zip(found.expressions, places, strict=False)
    )


def _reordered(expression: Expression, places: Sequence[int]) -> Expression:
    from physdiffuser.expressions import Variable
    from physdiffuser.expressions.tree import substitute

    def replace(node: Expression) -> Expression | None:
        return Variable(places.index(node.index)) if isinstance(node, Variable) else None

    return substitute(expression, replace)


def is_same_law(
    answer: Expression,
    truth: Expression,
    ranges: list[tuple[float, float]],
    settings: OdeSettings,
    time: tuple[float, float] = (0.0, 1.0),
) -> bool:
    """Whether an answer is the true right-hand side on some ranges of the states and of the time.

    Its fitted constants are fitted to the truth, from which they must not move without noise; the
    formulas must then agree in numbers, and sympy must not show them to be different.
    """
    from physdiffuser.expressions.tree import free_constants
    from physdiffuser.fitting import fit_constants
    from physdiffuser.verification.equivalence import equivalent

    if complexity(answer) > _FACTOR * complexity(truth) + _ALLOWANCE:
        return False
    rng = np.random.default_rng(0)
    ranges = [*ranges, time]  # formulas count the time as their last variable
    low, high = np.array(ranges).T
    wide = rng.uniform(low, high, (_ROWS, len(ranges)))
    with np.errstate(all="ignore"):
        clean = np.broadcast_to(evaluate(truth, wide), (_ROWS,))
        usable = np.isfinite(clean)
        skeleton, values = free_constants(answer)
        if values:
            fit = fit_constants(
                skeleton, wide[usable], clean[usable], initial=list(values), starts=4, iterations=200
            )
            moved = np.abs(fit.parameters - values) > _CONSTANTS * np.maximum(np.abs(fit.parameters), 1e-300)
            if settings.noise == 0.0 and moved.any():
                return False
            answer = fit.expression
        apart = np.abs(evaluate(answer, wide)[usable] - clean[usable])
    size = float(np.abs(clean[usable]).max(initial=0.0)) or 1.0
    if not (apart <= _SAME * size).all():
        return False
    return equivalent(answer, truth, ranges, seconds=_SECONDS) != "different"


def _r2(system: OdeSystem, found: Answer, number: int) -> float | None:
    """Mean over the states of R2 of a simulation from a true initial condition; None without a trajectory."""
    truth = system.trajectory(number)
    if truth is None:
        return None
    order = [system.names.index(column.name) for column in found.states]
    start = [float(truth[0, system.phase.index(column.name)]) for column in found.phase]
    path = found.simulate(start, system.times)[:, : len(order)]
    if not np.isfinite(path).all():
        return -1e9
    measured = truth[:, order]
    total = np.square(measured - measured.mean(axis=0)).sum(axis=0)
    left = np.square(path - measured).sum(axis=0)
    return float(np.mean(1.0 - left / np.where(total > 0.0, total, 1.0)))


def rates(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Counts over results: symbolic, reconstruction, generalisation, verified, and verified but wrong."""
    fitted = [0, 1] if results and results[0]["fitted"] == "both" else [0]

    def good(result: dict[str, Any], numbers: Sequence[int]) -> bool:
        values = [result["r2"][number] for number in numbers if result["r2"][number] is not None]
        return bool(values) and min(values) > GOOD_R2

    seconds = [result["seconds"] for result in results if "seconds" in result]
    return {
        "systems": len(results),
        "symbolic": sum(bool(result["symbolic"]) for result in results),
        "reconstruction": sum(good(result, fitted) for result in results),
        "generalisation": sum(good(result, [1]) for result in results) if fitted == [0] else None,
        "verified": sum(bool(result["verified"]) for result in results),
        "verified_wrong": sum(bool(result["verified"]) and not result["symbolic"] for result in results),
        "failed": sum("error" in result for result in results),
        "median_seconds": float(np.median(seconds)) if seconds else None,
    }
