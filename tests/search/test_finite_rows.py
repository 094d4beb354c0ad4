"""A law without a value on a row of the table is not chosen, even if search and fit have not seen the row."""

from __future__ import annotations

import numpy as np

from benchmarks_feynman.measured_tables import measured_table
from physdiffuser import solve
from physdiffuser.expressions import evaluate


def test_the_chosen_law_of_a_measured_table_has_a_value_on_every_row() -> None:
    # The first row, at time 0, is in the test set: a law with exp(1/time**2) fits all others well.
    table = measured_table("cooling_water")
    found = solve(table.inputs, table.target, names=list(table.names), target="temp", steps=20)
    assert found.best is not None and np.isfinite(found.best.rmse)
    for row in found.pareto:
        assert np.isfinite(evaluate(row.expression, table.inputs)).all(), row.text
