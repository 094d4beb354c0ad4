"""Tables of extreme magnitudes are solved in other units, by powers of two, which change no digit.

Squares of 1e-200 vanish and those of 1e200 are infinite, in fits, distances, variances and everywhere else.
Rather than guard each of these places, columns, target and weights that are that small or that large are
brought near 1 before anything else is done, and the solution is put into the units of the table at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import ConstantEstimate, Equation, FitPoints, Solution
from physdiffuser.data.checks import moderate_weights
from physdiffuser.data.dataset import Dataset, summaries
from physdiffuser.data.ranges import parse_ranges
from physdiffuser.expressions import Expression, complexity, evaluate, parse, to_text
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import walk
from physdiffuser.expressions.units.rescale import FORMS, Rescaled, rescaled
from physdiffuser.finalize.rescaling.suggestions import ranges_inside, suggestions_outside
from physdiffuser.finalize.scoring import rms_error, with_digits
from physdiffuser.finalize.shown_rows import rows_to_show
from physdiffuser.report.text.digits import ALL_DIGITS, concise, shown_digits

if TYPE_CHECKING:
    from physdiffuser.core.progress import Progress
    from physdiffuser.options import SolveOptions

    OnProgress = Callable[[Progress], None]


# Columns whose largest value is outside of 2**-SAFE to 2**SAFE are brought near 1: outside of about 1e-50 to
# 1e50, so that the square of a product of three columns is a normal double.
SAFE = 166
# Exponents of two are multiples of this, so that roots and powers of a power of two are powers of two.
STEP = 12
# Columns whose largest values differ by at most this exponent of two are scaled by the same.
ALIKE = 40
_MIN_EXPONENT, _MAX_EXPONENT = -1022, 1023
# The restored formula must agree with the one that was found to this relative error.
_AGREES = 1e-9
# Errors below this share of the largest value are those of rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Magnitudes:
    """The units that a table is solved in.

    Attributes
    ----------
    columns
        Exponent of two by column: values of the table are `2**exponent` times those that are solved.
    target
        The same of the target.
    """

    columns: tuple[int, ...]
    target: int

    @classmethod
    def of(cls, dataset: Dataset) -> Magnitudes:
        """Exponents that bring extreme columns near 1; 0 for all others.

        Columns of similar magnitude share one: a law that is simple in them then keeps its constants.
        """
        every = [*dataset.inputs.T, dataset.target]
        sizes = [_size(values) for values in every]
        exponents = [0] * len(every)
        shared: tuple[int, int] | None = None
        for number in sorted(range(len(every)), key=lambda number: sizes[number]):
            size = sizes[number]
            if abs(size) <= SAFE:
                continue
            if shared is None or size - shared[0] > ALIKE:
                shared = size, STEP * round(size / STEP)
            exponents[number] = _possible(shared[1], every[number])
        return cls(tuple(exponents[:-1]), exponents[-1])

    @property
    def usual(self) -> bool:
        """Whether nothing is extreme."""
        return not (self.target or any(self.columns))

    def apply(self, dataset: Dataset) -> Dataset:
        """The table in these units."""
        columns = -np.array(self.columns, dtype=np.int64)
        return replace(
            dataset,
            inputs=np.ldexp(dataset.inputs, columns),
            input_errors=None if dataset.input_errors is None else np.ldexp(dataset.input_errors, columns),
            target=np.ldexp(dataset.target, -self.target),
            stated_errors=(
                None if dataset.stated_errors is None else np.ldexp(dataset.stated_errors, -self.target)
            ),
        )

    def inner(self, text: str, names: Sequence[str], known: dict[str, float]) -> str:
        """A formula in the units of the table, in these units."""
        found = rescaled(parse(text, names, known), self.columns, -self.target)
        return text if found is None else to_text(found.expression, names)

    def outer(
        self, text: str, names: Sequence[str], known: dict[str, float], digits: int | None = None
    ) -> str:
        """A formula in these units, in the units of the table; for progress only."""
        for form in FORMS:
            found = rescaled(
                parse(text, names, known), [-exponent for exponent in self.columns], self.target, form
            )
            if found is not None:
                return to_text(found.expression, names, digits)
        return text

    def restored(self, expression: Expression, inputs: FloatArray) -> Rescaled | None:
        """The formula in the units of the table; None where no form of it has these values.

        Parameters
        ----------
        expression
            In these units.
        inputs
            Some rows of the table, shape (rows, columns), in these units.
        """
        columns = np.array(self.columns, dtype=np.int64)
        with np.errstate(over="ignore"):
            wanted = np.ldexp(evaluate(expression, inputs), self.target)
        for form in FORMS:
            found = rescaled(expression, [-exponent for exponent in self.columns], self.target, form)
            if found is None:
                continue
            value = evaluate(found.expression, np.ldexp(inputs, columns))
            with np.errstate(all="ignore"):
                near = np.abs(value - wanted) <= _AGREES * np.abs(wanted) + 4 * 5e-324
            if near.all():
                return found
        return None


def _size(values: FloatArray) -> int:
    """Exponent of two of the largest value; 0 where all are zero."""
    return math.frexp(float(np.abs(values).max(initial=0.0)))[1]


def _possible(exponent: int, values: FloatArray) -> int:
    """An exponent not beyond the one wanted that leaves the smallest value a normal number."""
    if exponent > 0:
        room = math.frexp(float(np.abs(values[values != 0]).min()))[1] - _MIN_EXPONENT - STEP
        possible = min(exponent, STEP * (room // STEP))
        # Values that span most of the range stay as they are: little would be gained.
        exponent = possible if possible > exponent / 2 else 0
    return max(min(exponent, _MAX_EXPONENT), _MIN_EXPONENT)


def solve_in_moderate_units(
    solve: Callable[[Dataset, SolveOptions, OnProgress | None], Solution],
    dataset: Dataset,
    options: SolveOptions,
    on_progress: OnProgress | None,
) -> Solution:
    """Solve a table of any magnitude with a solver for moderate ones.

    Parameters
    ----------
    dataset, options, on_progress
        As for `solve_dataset`, in the units of the table.
    """
    if dataset.weights is not None:
        dataset = replace(dataset, weights=moderate_weights(dataset.weights))
    magnitudes = Magnitudes.of(dataset)
    if magnitudes.usual:
        return solve(dataset, options, on_progress)
    names = dataset.names
    resumed, initial, proposed = options.formulas(dataset), options.initial, options.proposed
    if resumed or initial or proposed or on_progress is not None:
        from physdiffuser.data.statements.constants import parse_constants

        constants = parse_constants(options.constants, taken=names)
        known = {constant.symbol.name: constant.symbol.value for constant in constants}
        resumed, initial, proposed = (
            [magnitudes.inner(text, names, known) for text in texts] for texts in (resumed, initial, proposed)
        )
        on_progress = on_progress and _reporting(on_progress, magnitudes, names, known)
    from physdiffuser.data.statements.constants import without_auto

    ranges = ranges_inside(parse_ranges(options.suggest_range, dataset), dataset, magnitudes.columns)
    # Numbers in other units are not those of physical constants.
    options = options.changed(
        initial=initial,
        resumed=resumed,
        proposed=proposed,
        constants=without_auto(options.constants),
        suggest_range=ranges,
    )
    solution = solve(magnitudes.apply(dataset), options, on_progress)
    return in_table_units(solution, magnitudes, dataset)


def _reporting(
    report: OnProgress, magnitudes: Magnitudes, names: Sequence[str], known: dict[str, float]
) -> OnProgress:
    def rescaled(progress: Progress) -> None:
        front = tuple(magnitudes.outer(text, names, known) for text in progress.front)
        best = magnitudes.outer(progress.best, names, known, 6)
        report(replace(progress, best=best, front=front, latex=""))

    return rescaled


@np.errstate(over="ignore")
def in_table_units(solution: Solution, magnitudes: Magnitudes, dataset: Dataset) -> Solution:
    """A solution of the table in other units, in those of the table.

    Parameters
    ----------
    solution
        Of `magnitudes.apply(dataset)`.
    """
    sample = magnitudes.apply(dataset.sample(2_000)).inputs
    equations: list[Equation] = []
    best: Equation | None = None
    for one in solution.pareto:
        made = _restored(one, magnitudes, sample, dataset)
        if made is None:
            continue
        equations.append(made)
        if one == solution.best:
            best = made
    warnings = solution.warnings
    if best is None and solution.best is not None:
        best = min(equations, key=lambda one: one.rmse, default=None)
        lost = "the chosen law cannot be written in the units of the table"
        warnings = (*warnings, f"{lost}: a value or constant exceeds double precision; use other units")
    return replace(
        solution,
        status=solution.status if best is not None else "none",
        best=best,
        pareto=tuple(_front(equations, best)),
        derivation=() if best is None else best.derivation,
        warnings=warnings,
        fit_points=_points(solution.fit_points, magnitudes, best),
        summaries=summaries(dataset),
        next_measurements=suggestions_outside(
            solution.next_measurements,
            lambda law: magnitudes.restored(law, sample),
            (*magnitudes.columns, magnitudes.target),
            dataset.names,
        ),
    )


def _front(equations: list[Equation], best: Equation | None) -> list[Equation]:
    """The rows of the table: constants that were added cost complexity, and change their order."""
    ordered = sorted(equations, key=lambda one: one.complexity)
    chosen = next((place for place, one in enumerate(ordered) if one is best), 0)
    return [ordered[place] for place in rows_to_show(ordered, chosen)]


def _restored(one: Equation, magnitudes: Magnitudes, sample: FloatArray, dataset: Dataset) -> Equation | None:
    found = magnitudes.restored(one.expression, sample)
    if found is None or not np.isfinite(evaluate(found.expression, dataset.inputs)).all():
        return None
    names = dataset.names
    constants, covariance = _constants(one, found)
    made = replace(
        one,
        expression=found.expression,
        text=to_text(found.expression, names),
        latex=to_latex(found.expression, names),
        complexity=complexity(found.expression),
        rmse=float(np.ldexp(one.rmse, magnitudes.target)),
        test_rmse=(None if one.test_rmse is None else float(np.ldexp(one.test_rmse, magnitudes.target))),
        constants=constants,
        covariance=covariance,
    )
    made = _with_digits(made, dataset)
    name = dataset.target_column.alias
    law = f"in the units of the table: {name} = {to_text(found.expression, names, shown_digits(made))}"
    return replace(made, derivation=(_stated(magnitudes, dataset), *one.derivation, law))


def _with_digits(made: Equation, dataset: Dataset) -> Equation:
    """With the digits that constants need in the units of the table, where they are rounded anew."""
    error = rms_error(made.expression, dataset)
    if max(error, made.rmse) <= _ROUNDING * float(np.abs(dataset.target).max()):
        made = replace(made, rmse=error)  # the rounding errors of these units
    if not math.isclose(error, made.rmse, rel_tol=1e-6):
        # Its rows are weighted by their errors, or the formula has no value in these units.
        return replace(made, table_digits=ALL_DIGITS, extra_digits=ALL_DIGITS)
    return with_digits(made, dataset)


def _stated(magnitudes: Magnitudes, dataset: Dataset) -> str:
    columns = zip(dataset.names, magnitudes.columns, strict=True)
    every = [*columns, (dataset.target_column.alias, magnitudes.target)]
    stands = [f"{name} for {name}/2**{exponent}" for name, exponent in every if exponent]
    return f"because of extreme magnitudes, the next steps write {', '.join(stands)}"


def _constants(
    one: Equation, found: Rescaled
) -> tuple[tuple[ConstantEstimate, ...], tuple[tuple[float, ...], ...] | None]:
    """The constants of a restored formula, with intervals and covariance in its units."""
    from physdiffuser.core.problem import Problem
    from physdiffuser.finalize.constants.physical import agreement_text
    from physdiffuser.finalize.constants.statements import constants_of

    count = 1 + max((node.index for node in walk(found.expression) if hasattr(node, "index")), default=0)
    nothing = Problem(np.zeros((0, count)), np.zeros(0), tuple(f"x{i}" for i in range(count)))
    listed, _, _ = constants_of(found.expression, nothing)
    free = [constant for constant in one.constants if not constant.is_set]
    position = {constant.value: number for number, constant in enumerate(free)}
    fitted = [constant for constant in listed if not constant.is_set]
    factors = np.zeros((len(fitted), len(free)))
    made: list[ConstantEstimate] = []
    row = 0
    for constant in listed:
        if not constant.is_set:
            old, exponent = found.origins.get(constant.value, (None, 0))
            number = None if old is None else position.get(old)
            low = high = constant.value
            sigma = None
            if number is not None:
                factors[row, number] = np.ldexp(1.0, exponent)
                low, high = (_ldexp(end, exponent) for end in (free[number].low, free[number].high))  # type: ignore[assignment]
                sigma = _ldexp(free[number].sigma, exponent)
            text, named = concise(constant.value, sigma), agreement_text(constant.value, sigma)
            constant = replace(constant, low=low, high=high, sigma=sigma, text=text, agrees_with=named)
            row += 1
        else:
            same = next((old for old in one.constants if old.set_to == constant.set_to), constant)
            constant = replace(same, name=constant.name)
        made.append(constant)
    covariance = None
    if one.covariance is not None:
        with np.errstate(all="ignore"):
            matrix = factors @ np.array(one.covariance).reshape(len(free), len(free)) @ factors.T
        if np.isfinite(matrix).all():
            covariance = tuple(tuple(float(part) for part in row) for row in matrix)
    return tuple(made), covariance


def _ldexp(value: float | None, exponent: int) -> float | None:
    if value is None:
        return None
    result = float(np.ldexp(value, exponent))
    return result if math.isfinite(result) else None


def _points(points: FitPoints | None, magnitudes: Magnitudes, best: Equation | None) -> FitPoints | None:
    if points is None or points.inputs is None or best is None:
        return None
    inputs = np.ldexp(points.inputs, np.array(magnitudes.columns, dtype=np.int64))
    truth = np.ldexp(points.truth, magnitudes.target)
    return replace(points, truth=truth, prediction=evaluate(best.expression, inputs), inputs=inputs)
