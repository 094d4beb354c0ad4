"""The answer: one solution for each state, what the simulation shows, and how to go on with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Solution
from physdiffuser.data.dataset import Column
from physdiffuser.dynamics.integration.flow import System, simulate
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression


@dataclass(frozen=True)
class Conserved:
    """A quantity that does not change along the flow.

    Attributes
    ----------
    expression, text
        Over the coordinates of the phase space.
    drift
        Largest variation along a measured run, relative to that of its terms.
    proven
        Whether sympy has shown from the equations that it is conserved.
    source
        `equations`, or `trajectories` where only the runs show it.
    """

    expression: Expression
    text: str
    drift: float
    proven: bool = False
    source: Literal["equations", "trajectories"] = "equations"


@dataclass(frozen=True)
class SimulationSummary:
    """How the simulated runs meet the measured ones.

    Attributes
    ----------
    r2_fitted, r2_held_out
        By name of the state; None where it cannot be computed.
    held_out
        What was held out, in words; empty for nothing.
    diverged
        Whether a simulation blew up.
    lyapunov_exponent, horizon
        Of a chaotic system: the largest exponent, per unit of time, and how many Lyapunov times (its inverse)
        the simulations from the first points follow the measured rows. None for others.
    """

    r2_fitted: Mapping[str, float | None]
    r2_held_out: Mapping[str, float | None]
    held_out: str
    diverged: bool
    lyapunov_exponent: float | None = None
    horizon: float | None = None


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """One run of the table beside its simulation.

    Attributes
    ----------
    label
        Value of the column of runs; empty for a table of one run.
    times
        Shape (points,).
    measured
        Shape (points, states), nan where a value is missing.
    simulated
        Shape (points, phase), from the first point.
    errors
        Standard deviation of `simulated` by the errors of the constants; None without noise.
    fitted
        So many of the points were fitted when the equations were checked; the others were held out.
    """

    label: str
    times: FloatArray
    measured: FloatArray
    simulated: FloatArray
    errors: FloatArray | None
    fitted: int


@dataclass(frozen=True)
class DynamicsSolution:
    """What `solve_dynamics` returns.

    Attributes
    ----------
    time, states, inputs
        The columns.
    order
        Of the equations.
    derivatives
        What the derivative of each state is called in equations of second order; empty for first order.
    equations
        One solution for each state; its target is the derivative.
    simulation
        Measured and simulated runs compared.
    conserved
        Conserved quantities.
    runs
        Measured and simulated runs; empty when read back from a file.
    warnings, notes, timing, seed, version
        As in `Solution`.
    """

    time: Column
    states: tuple[Column, ...]
    inputs: tuple[Column, ...]
    order: int
    equations: tuple[Solution, ...]
    simulation: SimulationSummary
    derivatives: tuple[Column, ...] = ()
    conserved: tuple[Conserved, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    timing: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    version: str = ""
    runs: tuple[SimulatedRun, ...] = field(default=(), compare=False, repr=False)

    def _repr_html_(self) -> str:
        """The report in a notebook: a page in a frame."""
        from physdiffuser.report.html.frame import Page

        # The page and the exports are built on this record, so they are loaded when one of them is asked for.
        page = import_module("physdiffuser.dynamics.report.page").dynamics_html(self)
        return Page(page)._repr_html_()

    @property
    def names(self) -> tuple[str, ...]:
        """Aliases of the variables in the equations: states, their derivatives, inputs, time."""
        return tuple(column.alias for column in self.columns)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The variables in the equations: states, their derivatives (second order), inputs, time."""
        return (*self.phase, *self.inputs, self.time)

    @property
    def phase(self) -> tuple[Column, ...]:
        """Coordinates of the phase space: the states, and their derivatives in equations of second order."""
        return (*self.states, *self.derivatives)

    @property
    def flow(self) -> tuple[Expression, ...]:
        """Rate of change of each coordinate of the phase space."""
        count = len(self.states)
        definitions = tuple(_variable(count + place) for place in range(len(self.derivatives)))
        return (*definitions, *self.expressions)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Right-hand sides, in the order of the states."""
        found = []
        for equation in self.equations:
            if equation.best is None:
                raise UsageError(f"no equation was found for {equation.target}")
            found.append(equation.best.expression)
        return tuple(found)

    @property
    def is_verified(self) -> bool:
        """Whether every equation is verified."""
        return all(one.best is not None and one.best.verdict == "verified" for one in self.equations)

    def simulate(
        self,
        initial: Mapping[str, float] | Sequence[float],
        times: npt.ArrayLike,
        inputs: Mapping[str, Any] | None = None,
    ) -> FloatArray:
        """Integrate the equations.

        Parameters
        ----------
        initial
            State at the first time, by name or in the order of `phase`: the states, and for equations of
            second order then their derivatives (`x_dot`).
        times
            Shape (points,), increasing.
        inputs
            By name: numbers, or values of shape (points,) at the times, interpolated linearly.

        Returns
        -------
        Shape (points, phase), in the order of `phase`; nan from where the solution blows up.

        Raises
        ------
        UsageError
            If a state or an input is missing, or times do not increase.
        """
        moments = np.asarray(times, dtype=np.float64)
        if moments.ndim != 1 or moments.size < 1 or (np.diff(moments) <= 0).any():
            raise UsageError("times must be a series of increasing numbers")
        start = self._ordered("initial", self.phase, initial)
        driving = None
        if self.inputs:
            given = self._inputs(inputs or {}, moments)

            def driving_at(moment: FloatArray) -> FloatArray:
                return np.stack([np.interp(moment, moments, row) for row in given])

            driving = driving_at
        return simulate(System(self.flow, len(self.inputs)), start, moments, driving)

    def _ordered(
        self, what: str, columns: Sequence[Column], given: Mapping[str, float] | Sequence[float]
    ) -> FloatArray:
        if isinstance(given, Mapping):
            missing = [c.name for c in columns if c.name not in given and c.alias not in given]
            if missing:
                raise UsageError(f"{what}: no value for {', '.join(missing)}; give one for each state")
            given = [given[c.name] if c.name in given else given[c.alias] for c in columns]
        start = np.asarray(given, dtype=np.float64)
        if start.shape != (len(columns),) or not np.isfinite(start).all():
            raise UsageError(f"{what}: {len(columns)} finite numbers are needed, one for each state")
        return start

    def _inputs(self, inputs: Mapping[str, Any], moments: FloatArray) -> list[FloatArray]:
        rows = []
        for column in self.inputs:
            given = inputs.get(column.name, inputs.get(column.alias))
            if given is None:
                raise UsageError(f"inputs: no value for '{column.shown}'; the equations are driven by it")
            rows.append(np.broadcast_to(np.asarray(given, dtype=np.float64), moments.shape))
        return rows

    def to_sympy(self) -> list[Any]:
        """The equations as sympy `Eq` of `Derivative`, the states as functions of the time."""
        import sympy

        from physdiffuser.expressions.sympy_bridge import to_sympy

        time = sympy.Symbol(self.time.alias, real=True)
        functions = [sympy.Function(column.alias)(time) for column in self.states]
        rates = [sympy.Derivative(function, time) for function in functions]
        symbols = [sympy.Symbol(column.alias, real=True) for column in self.phase]
        known = dict(zip(symbols, [*functions, *rates][: len(symbols)], strict=True))
        return [
            sympy.Eq(
                sympy.Derivative(function, (time, self.order)), to_sympy(expression, self.names).subs(known)
            )
            for function, expression in zip(functions, self.expressions, strict=True)
        ]

    def export(self, format_name: str) -> str:
        """Source code of the equations.

        Parameters
        ----------
        format_name
            `python` (a right-hand side for `solve_ivp`), `torch`, `c`, `julia` (ModelingToolkit), `sympy` or
            `latex`.

        Raises
        ------
        UsageError
            If the format is unknown, or an operator has no form in it.
        """
        code: str = import_module("physdiffuser.dynamics.report.exports").export_system(self, format_name)
        return code

    def latex(self) -> str:
        """The system in LaTeX, one line for each state."""
        from physdiffuser.expressions.printing.latex import to_latex

        time = to_latex(_variable(len(self.names) - 1), self.names)
        lines = []
        for index, expression in enumerate(self.expressions):
            state = to_latex(_variable(index), self.names)
            power = "" if self.order == 1 else f"^{self.order}"
            left = rf"\frac{{d{power} {state}}}{{d {time}{power}}}"
            lines.append(f"{left} &= {to_latex(expression, self.names)}")
        return r"\begin{aligned}" + r" \\ ".join(lines) + r"\end{aligned}"


def derivative_text(state: str, time: str, order: int) -> str:
    """`dx/dt` or `d2x/dt2`."""
    power = "" if order == 1 else str(order)
    return f"d{power}{state}/d{time}{power}"


def _variable(index: int) -> Expression:
    from physdiffuser.expressions import Variable

    return Variable(index)
