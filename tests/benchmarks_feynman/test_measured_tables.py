"""The measured tables: enough of them, complete, small, and each fitted by the law of its field."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from benchmarks_feynman.measured_tables import MeasuredTable, measured_tables
from physdiffuser.expressions import parse
from physdiffuser.expressions.tree import variables

TABLES = measured_tables()


def test_there_are_sixty_measured_tables_below_a_megabyte() -> None:
    assert sum(table.kind == "measured" for table in TABLES) >= 60
    assert sum(table.id.startswith("nist_") for table in TABLES) == 27
    assert len({table.id for table in TABLES}) == len(TABLES)
    folder = files("benchmarks_feynman") / "data"
    measured = [folder / "measured.csv", *(folder / "measured").iterdir()]
    assert len(measured) == len(TABLES) + 1
    assert sum(len(file.read_bytes()) for file in measured) < 1_000_000


@pytest.mark.parametrize("table", TABLES, ids=[table.id for table in TABLES])
def test_every_table_is_complete(table: MeasuredTable) -> None:
    assert table.rows >= 6
    assert np.isfinite(table.inputs).all() and np.isfinite(table.target).all()
    assert np.ptp(table.inputs, axis=0).min() > 0
    assert table.source and table.licence and table.title and table.group
    constants = [name for name, _ in table.constants]
    names = (*table.names, table.target_name, *constants)
    assert len(set(names)) == len(names)
    used = variables(parse(table.law, (*table.names, *constants)))
    # A column that the law does not need is one of the table, never a constant.
    assert used >= set(range(len(table.names), len(table.names) + len(constants)))
    assert used & set(range(len(table.names)))
