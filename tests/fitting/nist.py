"""NIST's reference problems of nonlinear regression: tables of the suite `measured`, certified values.

Statistical Reference Datasets, https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from skeletons import skeleton_of

from benchmarks_feynman.measured_tables import measured_table
from physdiffuser.expressions import Expression

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NistProblem:
    """One problem; NIST fits the logarithm of Nelson's target."""

    name: str
    skeleton: Expression
    inputs: FloatArray
    target: FloatArray
    starts: tuple[FloatArray, FloatArray]
    certified: FloatArray
    standard_errors: FloatArray
    residual_sum_of_squares: float


@cache
def nist_problems() -> tuple[NistProblem, ...]:
    """All 27 problems."""
    path = Path(__file__).parent / "nist_certified.csv"
    entries: dict[str, list[dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            entries.setdefault(row["dataset"], []).append(row)
    return tuple(_problem(name, rows) for name, rows in entries.items())


def _problem(name: str, rows: list[dict[str, str]]) -> NistProblem:
    table = measured_table(f"nist_{name.lower()}")
    law, target = table.law, table.target
    if name == "Nelson":
        law, target = law.removeprefix("exp(").removesuffix(")"), np.log(target)

    def column(key: str) -> FloatArray:
        return np.array([float(row[key]) for row in rows])

    return NistProblem(
        name=name,
        skeleton=skeleton_of(law, table.names, [row["constant"] for row in rows]),
        inputs=table.inputs,
        target=target,
        starts=(column("start1"), column("start2")),
        certified=column("value"),
        standard_errors=column("standard_error"),
        residual_sum_of_squares=float(rows[0]["residual_sum_of_squares"]),
    )
