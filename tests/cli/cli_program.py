"""How the tests start the program."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).with_name("fake_pipeline.py")


def program_environment(**variables: str) -> dict[str, str]:
    """The environment of a run: this checkout first on the path, one thread, no debug mode."""
    environment = {name: value for name, value in os.environ.items() if name != "PHYSDIFFUSER_DEBUG"}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return environment | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "COLUMNS": "100"} | variables
