"""`physdiffuser predict`: apply a law that was found to another table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from physdiffuser.cli.options import table_options
from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.stored import chosen_equation, load_run, row_option, write_output
from physdiffuser.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from physdiffuser.core.solution import Equation, Solution

    FloatArray = npt.NDArray[np.float64]


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("table")
@row_option
@click.option("--intervals", is_flag=True, help="Add the 95 % confidence interval of each prediction.")
@table_options
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write there instead of stdout.")
@reserved_stdout()
def predict(run: Path, table: str, row: int | None, intervals: bool, out: Path | None, **written: Any) -> int:
    """Apply the law found by RUN (a run folder, or its result.json) to TABLE.

    Writes CSV: one line for each row of TABLE, nan where an input is missing or outside the domain.
    """
    if out is not None:
        from physdiffuser.io.output_folder import check_writable_file

        check_writable_file(out)  # before a large table is read
    import numpy as np

    from physdiffuser.report.predictions import prediction_csv, prediction_interval

    solution = load_run(run)
    equation = chosen_equation(solution, row, run)
    inputs = _read_inputs(solution, equation, table, written)
    if solution.groups is not None:
        if intervals:
            raise UsageError("--intervals is not available for laws of groups yet. Leave it out.")
        inputs = _with_groups(solution, equation, inputs, table, written)
    prediction = _evaluate(equation, inputs)
    columns = {solution.target: prediction}
    if intervals:
        low, high = prediction_interval(equation, inputs)
        columns |= {f"{solution.target}_low": low, f"{solution.target}_high": high}
    undefined = int(np.count_nonzero(~np.isfinite(prediction)))
    if undefined:
        messages.warning(
            f"{undefined:,} of {prediction.size:,} rows have no finite prediction: an input is missing, or "
            "outside the domain of the formula"
        )
    write_output(prediction_csv(columns), out)
    return 0


def _evaluate(equation: Equation, inputs: FloatArray) -> FloatArray:
    from physdiffuser.expressions import evaluate

    return evaluate(equation.expression, inputs)


def _with_groups(
    solution: Solution, equation: Equation, inputs: FloatArray, table: str, written: dict[str, Any]
) -> FloatArray:
    """The inputs with the constants of each row's group."""
    from physdiffuser.data.loading import read_labels
    from physdiffuser.report.group_table import inputs_with_groups

    assert solution.groups is not None  # the caller has looked
    if table == "-":
        raise UsageError("the law has groups, so the table is read twice: name a file instead of -.")
    labels = read_labels(table, solution.groups.columns, **written)
    return inputs_with_groups(solution, equation, inputs, labels)


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
