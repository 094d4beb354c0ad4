"""For all tests: a run uses one process, since the tests themselves use all cores."""

from __future__ import annotations

import os
from typing import Any

import pytest

from physdiffuser.search.parallel.cores import JOBS_VARIABLE

os.environ.setdefault(JOBS_VARIABLE, "1")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Tests that share a fixture run in one process, which makes it once."""
    for item in items:
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            # Those of pytest and its plugins have no place; sessions' ones are cheap.
            if definitions[-1].scope == "module" and definitions[-1].baseid:
                item.add_marker(pytest.mark.xdist_group(definitions[-1].baseid))
