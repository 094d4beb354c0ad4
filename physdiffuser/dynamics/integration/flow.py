"""Right-hand sides as functions, and their integration: batched with fixed steps, or adaptive for one run.

A solution that blows up or becomes too stiff is a value (nan from there on), not an exception.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import DOP853, solve_ivp

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.scalar import compile_scalar
from physdiffuser.dynamics.schedule import Stop, never
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Symbol, Variable

_POWERS: dict[object, Callable[[FloatArray], FloatArray]] = {
    2: np.square,
    3: lambda base: base * base * base,
}
"""Powers that need no look at the exponent: right-hand sides are evaluated at few places, but often."""

Function = Callable[[Sequence[FloatArray], FloatArray], FloatArray]
InputsAt = Callable[[FloatArray], FloatArray]
"""Values of the inputs, shape (inputs, *times), at times of any shape."""


@dataclass(frozen=True, eq=False)
class Method:
    """An explicit Runge-Kutta method: coefficients (stages, stages), weights and nodes (stages,).

    References
    ----------
    Hairer, Norsett and Wanner, *Solving Ordinary Differential Equations I* (1993).
    """

    coefficients: FloatArray
    weights: FloatArray
    nodes: FloatArray

    @cached_property
    def stages(self) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]:
        """Node of each stage, and which slopes lead to it with which weights; the whole step last."""
        rows = (*self.coefficients, self.weights)
        places = (*self.nodes.tolist(), 1.0)
        used = [tuple((int(at), float(row[at])) for at in np.flatnonzero(row)) for row in rows]
        return tuple(zip(places, used, strict=True))


_STAGES = DOP853.n_stages
ORDER_8 = Method(
    np.asarray(DOP853.A)[:_STAGES, :_STAGES], np.asarray(DOP853.B), np.asarray(DOP853.C)[:_STAGES]
)
"""Dormand and Prince's method of order 8, for values without noise."""
ORDER_4 = Method(
    np.array([[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1.0, 0]]),
    np.array([1.0, 2.0, 2.0, 1.0]) / 6.0,
    np.array([0.0, 0.5, 0.5, 1.0]),
)
"""The classical method of order 4."""

LARGEST = 1e12
"""Values beyond so many times the scale of a state have diverged."""


def compile_expression(expression: Expression) -> Function:
    """A function of the variables (a sequence of arrays) and the parameters (an array, one row each).

    Equal subtrees are compiled once, but computed each time they occur.
    """
    known: dict[Expression, Function] = {}

    def visit(node: Expression) -> Function:
        found = known.get(node)
        if found is None:
            found = known[node] = build(node)
        return found

    def build(node: Expression) -> Function:
        match node:
            case Variable(index=index):
                return lambda variables, parameters: variables[index]
            case Parameter(index=index):
                return lambda variables, parameters: parameters[index]
            case Number(value=value) | Symbol(value=value):
                number = np.asarray(float(value))
                return lambda variables, parameters: number
            case Apply(operator="pow", arguments=(base, Number(value=value))) if value in _POWERS:
                root, raised = visit(base), _POWERS[value]
                return lambda variables, parameters: raised(root(variables, parameters))
            case Apply(operator=operator, arguments=(left,)):
                inner, outer = visit(left), OPERATORS[operator].evaluate
                return lambda variables, parameters: outer(inner(variables, parameters))
            case Apply(operator=operator, arguments=(left, right)):
                first, second, both = visit(left), visit(right), OPERATORS[operator].evaluate
                return lambda variables, parameters: both(
                    first(variables, parameters), second(variables, parameters)
                )
        raise TypeError(f"no expression: {node!r}")

    return visit(expression)


@dataclass(frozen=True)
class System:
    """Right-hand sides of a system of first order, one for each state.

    Attributes
    ----------
    equations
        Over the states, the inputs and the time, in that order; they may hold parameters.
    inputs
        How many inputs there are.
    """

    equations: tuple[Expression, ...]
    inputs: int = 0

    @property
    def dimension(self) -> int:
        """Number of states."""
        return len(self.equations)

    def compiled(self) -> Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]:
        """A function of states (states, ...), inputs (inputs, ...), times (...) and parameters."""
        functions = [compile_expression(equation) for equation in self.equations]

        def rates(
            states: FloatArray, inputs: FloatArray, times: FloatArray, parameters: FloatArray
        ) -> FloatArray:
            variables = [*states, *inputs, times]
            result = np.empty_like(states)
            for index, function in enumerate(functions):
                result[index] = function(variables, parameters)
            return result

        return rates


def integrate(
    system: System,
    parameters: FloatArray,
    initial: FloatArray,
    times: FloatArray,
    inputs_at: InputsAt | None = None,
    substeps: int = 1,
    method: Method = ORDER_8,
    stop: Stop = never,
) -> FloatArray:
    """Integrate many copies and segments at once, with fixed steps.

    Parameters
    ----------
    parameters
        Shape (parameters, copies).
    initial
        Shape (states, copies, segments).
    times
        Shape (segments, points): each segment has its own times.
    inputs_at
        Values of the inputs; None without inputs.
    substeps
        Steps from one time to the next.
    method
        Of the steps.
    stop
        Asked at each time whether to end there.

    Returns
    -------
    Shape (points, states, copies, segments); nan once a copy has diverged, and after a stop.
    """
    rates = system.compiled()
    values = parameters[:, :, None]
    points = times.shape[1]
    result = np.empty((points, *initial.shape))
    result[0] = state = initial
    nothing = np.zeros((0, times.shape[0]))
    *stages, (_, last) = method.stages
    with np.errstate(all="ignore"):
        limit = LARGEST * (1.0 + np.abs(initial).max())
        for point in range(1, points):
            if stop():
                result[point:] = np.nan
                break
            step = (times[:, point] - times[:, point - 1]) / substeps
            for part in range(substeps):
                begin = times[:, point - 1] + part * step
                slopes: list[FloatArray] = []
                for node, row in stages:
                    moment = begin + node * step
                    driving = nothing if inputs_at is None else inputs_at(moment)
                    slopes.append(rates(_moved(state, step, row, slopes), driving, moment, values))
                state = _moved(state, step, last, slopes)
            state = np.where(np.abs(state) < limit, state, np.nan)
            result[point] = state
    return result


def _moved(
    state: FloatArray, step: FloatArray, weights: Sequence[tuple[int, float]], slopes: Sequence[FloatArray]
) -> FloatArray:
    """The state after a step along the weighted mean of slopes."""
    if not weights:
        return state
    (first, weight), *others = weights
    total = slopes[first] if weight == 1.0 else weight * slopes[first]
    for place, weight in others:
        total = total + weight * slopes[place]
    return state + step * total


def simulate(
    system: System,
    initial: FloatArray,
    times: FloatArray,
    inputs_at: InputsAt | None = None,
    tolerance: float = 1e-9,
    max_evaluations: int = 40_000,
) -> FloatArray:
    """Integrate one run adaptively (LSODA, which copes with stiff systems).

    Parameters
    ----------
    system
        The equations, without parameters.
    initial
        Shape (states,), the states at the first time.
    times
        Shape (points,), increasing.
    inputs_at
        Values of the inputs; None without inputs.
    tolerance
        Relative error of a step; the absolute one is that share of the size of the initial state.
    max_evaluations
        Of the right-hand sides, or more where many times are asked for; one that needs more ends there.

    Returns
    -------
    Shape (points, states); nan from where the solution blows up.
    """
    rates = [compile_scalar(equation) for equation in system.equations]
    states = np.full((times.size, system.dimension), np.nan)
    states[0] = initial
    if times.size < 2:
        return states
    evaluations, most = 0, max(max_evaluations, _EACH_EVALUATIONS * times.size)

    def derivative(time: float, state: FloatArray) -> FloatArray:
        nonlocal evaluations
        evaluations += 1
        if evaluations > most:
            # A value that is not finite would not end the integration: it repeats its smallest step.
            raise FloatingPointError("the solution needs too many steps")
        driving = () if inputs_at is None else inputs_at(np.asarray(time)).tolist()
        variables = (*state.tolist(), *driving, float(time))
        try:
            found = [rate(variables) for rate in rates]
        except (ArithmeticError, ValueError, TypeError):  # a complex number where a power has no value
            return np.full(len(rates), _STOP)
        return np.array([value if math.isfinite(value) else _STOP for value in found])

    def runs_away(time: float, state: FloatArray) -> float:
        return float(limit - np.abs(state).max())

    runs_away.terminal = True  # type: ignore[attr-defined]
    size = float(np.abs(initial).max()) or 1.0
    limit = 1e8 * (1.0 + size)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = solve_ivp(
                derivative,
                (times[0], times[-1]),
                initial,
                method="LSODA",
                t_eval=times,
                rtol=tolerance,
                atol=tolerance * 1e-3 * size,
                events=runs_away,
            )
        except (ValueError, ArithmeticError):
            return states
    reached = found.y.shape[1] if found.y.size else 0
    states[:reached] = found.y.T
    states[:reached][~np.isfinite(states[:reached]).all(axis=1)] = np.nan
    return states


_EACH_EVALUATIONS = 20
# A slope that ends the integration by `runs_away` where the right-hand side has no value.
_STOP = 1e30
