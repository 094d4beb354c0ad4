"""`physdiffuser predict`: apply a law that was found to another table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.arrays import FloatArray
from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.options import FiniteNumber, InitialState, WholeNumber, table_options
from physdiffuser.cli.shared.stored import (
    chosen_equation,
    load_run,
    load_runs,
    row_option,
    target_option,
    write_output,
)
from physdiffuser.errors import DataError, UsageError

if TYPE_CHECKING:
    from physdiffuser.core.solution import Equation, Solution
    from physdiffuser.core.solution_parts.group_constants import GroupNames
    from physdiffuser.dynamics.report.solution import DynamicsSolution

    FloatArray = FloatArray


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("table", required=False)
@click.option(
    "--initial", type=InitialState(), metavar="X=1,Y=0", help="Simulate a run of 'dynamics' from this state."
)
@click.option(
    "--until",
    type=FiniteNumber(above=0),
    metavar="T",
    help="Simulate a run of 'dynamics' from time 0 to this time: from --initial, or from each row of TABLE.",
)
@click.option(
    "--points", type=WholeNumber(2), metavar="N", help="With --until: number of times; 200 by default."
)
@row_option
@target_option
@click.option("--intervals", is_flag=True, help="Add the 95 % confidence interval of each prediction.")
@table_options
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write there instead of stdout.")
@reserved_stdout()
def predict(
    run: Path,
    table: str | None,
    initial: dict[str, float] | None,
    until: float | None,
    points: int | None,
    row: int | None,
    target: str | None,
    intervals: bool,
    out: Path | None,
    **written: Any,
) -> int:
    """Apply the law found by RUN (a run folder, or its result.json) to TABLE, or simulate its equations.

    Writes CSV: one line for each row of TABLE, nan where an input is missing or outside the domain, and a
    column for each target; of a run of 'dynamics', one line for each time.
    """
    if out is not None:
        from physdiffuser.io.output_folder import check_writable_file

        check_writable_file(out)  # before a large table is read
    if initial is not None or until is not None:
        start = initial if table is None else table
        if start is None or None not in (initial, table) or row is not None or intervals or until is None:
            raise UsageError(
                "a simulation needs --until, and either --initial or a TABLE of initial states; of the other "
                "options it takes --points alone."
            )
        write_output(_simulated(run, start, until, points or 200, written), out)
        return 0
    if points is not None:
        raise UsageError("--points needs --until, and --initial or a TABLE of initial states.")
    if table is None:
        raise UsageError("Missing argument 'TABLE', or --initial and --until for a run of 'dynamics'.")
    from physdiffuser.report.predictions import prediction_csv

    solutions = load_runs(run, target)
    if row is not None:
        load_run(run, target)  # a row of which table?
    if len(solutions) > 1 and table == "-":
        raise UsageError("the run has several targets: name a file instead of -, it is read for each.")
    columns: dict[str, FloatArray] = {}
    for solution in solutions.values():
        columns |= _predicted(solution, chosen_equation(solution, row, run), table, intervals, written)
    write_output(prediction_csv(columns), out)
    return 0


def _predicted(
    solution: Solution, equation: Equation, table: str, intervals: bool, written: dict[str, Any]
) -> dict[str, FloatArray]:
    """The columns of the predictions of one law."""
    import numpy as np

    from physdiffuser.report.predictions import group_prediction_interval, prediction_interval
    from physdiffuser.report.text.group_table import inputs_with_groups

    inputs, labels = _read_inputs(solution, equation, table, written), None
    if solution.groups is not None:
        labels = _read_labels(solution.groups, table, written)
        inputs = inputs_with_groups(solution, equation, inputs, labels)
    prediction = _evaluate(equation, inputs)
    columns = {solution.target: prediction}
    if intervals:
        low, high = (
            prediction_interval(equation, inputs)
            if labels is None
            else group_prediction_interval(solution, equation, inputs, labels)
        )
        columns |= {f"{solution.target}_low": low, f"{solution.target}_high": high}
    undefined = int(np.count_nonzero(~np.isfinite(prediction)))
    if undefined:
        messages.warning(
            f"{undefined:,} of {prediction.size:,} rows have no finite prediction: an input is missing, or "
            "outside the domain of the formula"
        )
    return columns


def _simulated(
    run: Path, start: dict[str, float] | str, until: float, points: int, written: dict[str, Any]
) -> str:
    """The equations of a run of `dynamics`, simulated from time 0, as CSV.

    Of a table of initial states each row is a run, and a column in front tells the runs apart.
    """
    import numpy as np

    from physdiffuser.dynamics.report.document import solution_from_dynamics
    from physdiffuser.report.predictions import prediction_csv
    from physdiffuser.report.runfolder import load_result

    solution = solution_from_dynamics(*load_result(run))
    if solution.inputs:
        raise UsageError(
            "the equations are driven by inputs, which cannot be given here: simulate from Python."
        )
    times = np.linspace(0.0, until, points)
    starts = _read_starts(solution, start, written) if isinstance(start, str) else [_known(solution, start)]
    paths = [solution.simulate(one, times) for one in starts]
    for number, path in enumerate(paths, 1):
        reached = np.isfinite(path).all(axis=1)
        if not reached.all():
            which = f" of row {number}" if isinstance(start, str) else ""
            moment = times[reached][-1] if reached.any() else 0.0
            messages.warning(f"the simulation{which} blows up after {solution.time.shown} = {moment:g}")
    columns = {solution.time.name: np.tile(times, len(paths))}
    columns |= dict(zip((one.name for one in solution.phase), np.concatenate(paths).T, strict=True))
    if isinstance(start, str):
        name = "run"
        while name in columns:
            name += "_"
        columns = {name: np.repeat(np.arange(1.0, len(paths) + 1.0), points)} | columns
    return prediction_csv(columns)


def _known(solution: DynamicsSolution, initial: dict[str, float]) -> dict[str, float]:
    """The initial state, if all of its names are those of states."""
    known = {name for column in solution.phase for name in (column.name, column.alias)}
    unknown = [name for name in initial if name not in known]
    if unknown:
        states = ", ".join(column.shown for column in solution.phase)
        raise UsageError(f"--initial: {unknown[0]!a} is no state; the states are {states}")
    return initial


def _read_starts(solution: DynamicsSolution, table: str, written: dict[str, Any]) -> list[dict[str, float]]:
    """Initial states, one in each row."""
    import numpy as np

    from physdiffuser.data.loading import read_columns

    names = [column.name for column in solution.phase]
    values = read_columns(table, names, **written)
    missing = np.argwhere(~np.isfinite(values))
    if missing.size:
        row, place = missing[0].tolist()
        raise DataError(f"{solution.phase[place].shown} has no initial value in data row {row + 1}.")
    return [dict(zip(names, row, strict=True)) for row in values.tolist()]


def _evaluate(equation: Equation, inputs: FloatArray) -> FloatArray:
    from physdiffuser.expressions import evaluate

    return evaluate(equation.expression, inputs)


def _read_labels(named: GroupNames, table: str, written: dict[str, Any]) -> list[str]:
    """The group of each row."""
    from physdiffuser.data.loading import read_labels

    if table == "-":
        raise UsageError("the law has groups, so the table is read twice: name a file instead of -.")
    return list(read_labels(table, named.columns, **written))


def _read_inputs(solution: Solution, equation: Equation, table: str, written: dict[str, Any]) -> FloatArray:
    """The columns that the formula needs, at the positions of its variables; nan elsewhere."""
    import numpy as np

    from physdiffuser.data.loading import read_columns
    from physdiffuser.data.readers.formats import read_table
    from physdiffuser.expressions.tree import variables

    own = 0 if solution.groups is None else len(solution.groups.constants)
    columns = len(solution.columns) - own
    used = [index for index in sorted(variables(equation.expression)) if index < columns]
    if not used:
        return np.full((read_table(table, **written).rows, len(solution.columns)), np.nan)
    values = read_columns(table, [solution.columns[index] for index in used], **written)
    # Column by column in memory, as it is read: rows may be many.
    inputs = np.full((len(solution.columns), values.shape[0]), np.nan).T
    inputs[:, used] = values
    return inputs
