"""Running the program with a stand-in for the search."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_program import FAKE, program_environment

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four rows near a straight line, with a name that needs an alias."""
    path = tmp_path / "data.csv"
    path.write_text("v (m/s),T\n1,2.1\n2,3.9\n3,6.2\n4,7.9\n")
    return path


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run("solve", "data.csv", FAKE_MODE="none")` in a folder of its own."""

    def call(*words: str, stdin: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(FAKE), *words],
            cwd=tmp_path,
            env=program_environment(**variables),
            capture_output=True,
            text=True,
            encoding="utf-8",
            input=stdin,
            timeout=60,
            check=False,
        )

    return call
