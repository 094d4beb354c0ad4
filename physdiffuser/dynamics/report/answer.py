"""Solutions of the equations, as plain data: constants with errors, the Pareto table, the derivation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.data.dataset import Column
from physdiffuser.dynamics.report.solution import DynamicsSolution, SimulationSummary, derivative_text
from physdiffuser.dynamics.search.candidates import Candidate, Preparation
from physdiffuser.dynamics.search.choice import Rival
from physdiffuser.dynamics.search.constants import parameter_errors, tidy
from physdiffuser.dynamics.search.selection import Fitted, Selector
from physdiffuser.dynamics.trajectories.runs import Trajectories
from physdiffuser.dynamics.verification.simulation import Simulation
from physdiffuser.dynamics.verification.verdict import SystemVerdict
from physdiffuser.expressions import Apply, Expression, Number, Symbol, complexity, evaluate, to_text
from physdiffuser.expressions.printing.format import number_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import free_constants, walk
from physdiffuser.report.text.digits import concise

MAX_ROWS = 8
"""Rows of the Pareto table of an equation."""
_T95 = 1.96


def equations(
    table: Trajectories,
    selector: Selector,
    fitted: Fitted,
    found: Sequence[Sequence[Candidate]],
    rivals: Sequence[Rival],
    judged: SystemVerdict,
    seed: int,
) -> tuple[Solution, ...]:
    """One solution for each state."""
    from physdiffuser.version import version

    errors = parameter_errors(selector, fitted)
    prepared = selector.prepared
    solutions = []
    for position, column in enumerate(table.states[: table.measured]):
        state = position + (table.order - 1) * table.measured
        expression = fitted.expressions[state]
        best = _equation(prepared, state, expression, errors[state])
        steps = _derivation(prepared, column, state, len(found[state]), expression)
        best = _with(
            best,
            verdict=judged.verdict,
            verification=judged.sentences,
            check_states=judged.states,
            probability=judged.probability,
        )
        best = _with(best, derivation=steps)
        own = [one for place, one, _ in rivals if place == state]
        rows = _pareto(prepared, state, best, [*own, *found[state]])
        solutions.append(
            Solution(
                target=derivative_text(column.alias, table.time.alias, table.order),
                status="exact" if prepared.exact and judged.verdict == "verified" else "approximate",
                best=best,
                pareto=rows,
                names=table.names,
                columns=tuple(one.name for one in (*table.states, *table.inputs, table.time)),
                aliases={
                    one.alias: one.name
                    for one in (*table.states, *table.inputs, table.time)
                    if one.alias != one.name
                },
                derivation=steps,
                rows=table.points,
                seed=seed,
                version=version(),
            )
        )
    return tuple(solutions)


def _with(equation: Equation, **changes: object) -> Equation:
    from dataclasses import replace

    return replace(equation, **changes)  # type: ignore[arg-type]


def _equation(prepared: Preparation, state: int, expression: Expression, errors: FloatArray) -> Equation:
    names, weak = prepared.table.names, prepared.weak
    with np.errstate(all="ignore"):
        missed = weak.mean(evaluate(expression, weak.nodes)) - weak.rates[:, state]
    rates = weak.rates[:, state]
    square = float(np.mean(missed**2))
    spread = float(np.var(rates))
    r2 = 1.0 - square / spread if spread > 0 else math.nan
    with np.errstate(all="ignore"):
        relative = float(np.nanmax(np.abs(missed[rates != 0] / rates[rates != 0]), initial=0.0))
    return Equation(
        expression=expression,
        text=to_text(expression, names),
        latex=to_latex(expression, names, 6),
        complexity=complexity(expression),
        rmse=math.sqrt(square),
        r2=r2,
        max_relative_error=relative,
        constants=_constants(expression, errors, prepared.exact),
        generator="dynamics",
    )


def _constants(expression: Expression, errors: FloatArray, noise_free: bool) -> tuple[ConstantEstimate, ...]:
    """Fitted constants with 95 % intervals, and those that were set, in order of appearance."""
    estimates: list[ConstantEstimate] = []
    free = 0

    def visit(node: Expression, in_exponent: bool) -> None:
        nonlocal free
        name = f"c{len(estimates) + 1}"
        if isinstance(node, Number) and not node.exact:
            error = float(errors[free]) if free < errors.size else math.nan
            value, known = float(node.value), math.isfinite(error)
            text = concise(value, error) if known else number_text(value)
            low, high = (value - _T95 * error, value + _T95 * error) if known else (None, None)
            sigma = error if known else None
            estimates.append(ConstantEstimate(name, value, low, high, text, False, fitted=value, sigma=sigma))
            free += 1
        elif isinstance(node, Number | Symbol):
            if not in_exponent:
                text = to_text(node)
                estimates.append(
                    ConstantEstimate(name, float(node.value), None, None, text, noise_free, set_to=text)
                )
        elif isinstance(node, Apply):
            for position, argument in enumerate(node.arguments):
                visit(argument, node.operator == "pow" and position == 1)

    visit(expression, False)
    return tuple(estimates)


def _pareto(
    prepared: Preparation, state: int, best: Equation, found: Sequence[Candidate]
) -> tuple[Equation, ...]:
    """Formulas that no simpler one meets as well, the chosen one among them, simple ones first."""
    nothing = np.zeros(0)
    rows = [best]
    for one in _front(prepared, state, found):
        expression = tidy(one.expression, prepared.weak.nodes)
        if len(free_constants(expression)[1]) <= one.parameters.size:
            rows.append(_equation(prepared, state, expression, nothing))
    rows.sort(key=lambda row: (row.complexity, row.rmse))
    front: list[Equation] = []
    for row in rows:
        better = row.rmse < 0.98 * min((one.rmse for one in front), default=math.inf)
        taken = any(one.complexity == row.complexity for one in front)
        if row is best or (better and not taken and row.complexity != best.complexity):
            front.append(row)
    place = next(index for index, row in enumerate(front) if row is best)
    begin = max(0, min(place - MAX_ROWS // 2, len(front) - MAX_ROWS))
    return tuple(front[begin : begin + MAX_ROWS])


def _front(prepared: Preparation, state: int, found: Sequence[Candidate]) -> list[Candidate]:
    """Candidates that no simpler one meets as well, as they are written before they are arranged."""
    weak = prepared.weak
    scored: list[tuple[int, float, Candidate]] = []
    for one in found:
        expression = one.expression
        with np.errstate(all="ignore"):
            missed = weak.mean(evaluate(expression, weak.nodes)) - weak.rates[:, state]
        scored.append((complexity(expression), float(np.mean(missed**2)), one))
    scored.sort(key=lambda row: row[:2])
    front: list[Candidate] = []
    least = math.inf
    for _, square, one in scored:
        if square < least:
            front.append(one)
            least = square
    return front


def _derivation(
    prepared: Preparation, column: Column, state: int, candidates: int, expression: Expression
) -> tuple[str, ...]:
    curve = prepared.curves[0][state]
    if curve.interpolates:
        first = f"{column.shown} has no noise that can be seen; it is interpolated by a spline of degree 7"
    elif curve.kind == "relative":
        what = f"the logarithm of {column.shown}" if curve.sign else column.shown
        first = f"{what} is smoothed by a spline; the noise is {100 * curve.noise:.2g} % of the value"
    else:
        first = f"{column.shown} is smoothed by a spline; its noise is {curve.noise:.2g}"
    what = "rate" if prepared.table.order == 1 else "second derivative"
    steps = [first, f"{candidates} candidates for its {what} were compared in the weak form"]
    steps.append(
        "systems of the best candidates were fitted to the trajectories, all equations together; "
        "this one has the minimum description length"
    )
    exact = sum(1 for node in walk(expression) if isinstance(node, Number) and node.exact)
    if exact:
        steps.append("constants are set to special values where the trajectories support it")
    return tuple(steps)


def summary(table: Trajectories, solutions: tuple[Solution, ...], simulation: Simulation) -> DynamicsSolution:
    """The solution of the whole system."""
    from physdiffuser.version import version

    def by_state(values: FloatArray) -> dict[str, float | None]:
        return {
            column.name: float(value) if math.isfinite(value) else None
            for column, value in zip(table.states[: table.measured], values, strict=True)
        }

    return DynamicsSolution(
        time=table.time,
        states=table.states[: table.measured],
        derivatives=table.states[table.measured :],
        inputs=table.inputs,
        order=table.order,
        equations=solutions,
        simulation=SimulationSummary(
            by_state(simulation.r2_fitted),
            by_state(simulation.r2_held_out),
            simulation.held_out,
            simulation.diverged,
            None if simulation.horizon is None else simulation.horizon.exponent,
            None if simulation.horizon is None else simulation.horizon.lyapunov_times,
        ),
        version=version(),
    )
