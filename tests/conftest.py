"""For all tests: a run uses one process with one thread, since the tests themselves use all cores."""

from __future__ import annotations

import os
from typing import Any

import pytest

# Before numpy is loaded: threads of a matrix product that wait for each other can slow a test tenfold.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

from physdiffuser.search.parallel.cores import JOBS_VARIABLE  # noqa: E402

os.environ.setdefault(JOBS_VARIABLE, "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Tests that share a fixture run in one process, which makes it once."""
    for item in items:
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            # Those of pytest and its plugins have no place; sessions' ones are cheap.
            if definitions[-1].scope == "module" and definitions[-1].baseid:
                item.add_marker(pytest.mark.xdist_group(definitions[-1].baseid))
