"""The checks that keep a law from being verified, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.finalize import solution
from physdiffuser.pipeline import solve_dataset
from physdiffuser.verification.checks import competitor_check


def test_a_row_that_explains_the_data_as_well_is_named() -> None:
    assert competitor_check([]).state == "passed"
    one, many = competitor_check([3]), competitor_check([2, 4])
    assert one.state == many.state == "failed"
    assert one.reason == "row 3 of the Pareto table explains the data almost as well"
    assert many.reason == "rows 2, 4 of the Pareto table explain the data almost as well"


@pytest.mark.parametrize("close", [[], [1]])
def test_no_law_is_verified_beside_a_row_that_explains_the_data_as_well(
    close: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solution, "_nearly_as_brief", lambda front, floor: close)
    random = np.random.default_rng(0)
    inputs = random.uniform(1.0, 3.0, (300, 2))
    target = inputs[:, 0] * inputs[:, 1] ** 2 * (1 + 0.01 * random.normal(size=300))
    found = solve_dataset(dataset_from_arrays(inputs, target), steps=20, time=None)
    assert found.best is not None
    assert found.best.verdict == ("unknown" if close else "verified")
    said = "row 1 of the Pareto table explains the data almost as well"
    assert (said in found.warnings) is (said in (found.best.verdict_reason or "")) is bool(close)
