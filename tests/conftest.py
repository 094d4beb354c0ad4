"""For all tests: one process a run, since the tests themselves run on all cores."""

from __future__ import annotations

import os

from physdiffuser.search.parallel.cores import JOBS_VARIABLE

os.environ.setdefault(JOBS_VARIABLE, "1")
