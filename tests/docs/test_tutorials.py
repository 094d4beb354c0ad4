"""The tutorials run, what they claim holds (they assert it), and their pages are up to date."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "tutorials"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "render")
# What these show, the tests of that part of the package also state.
LONG = {
    "attention_plugin",
    "continuing",
    "dynamics",
    "groups",
    "known",
    "losses",
    "operators",
    "origins",
    "targets",
    "templates",
    "training",
}


@pytest.fixture(scope="module")
def render() -> ModuleType:
    found = importlib.util.spec_from_file_location("render_tutorials", FOLDER / "render.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_there_are_some() -> None:
    assert len(SCRIPTS) >= 8


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in SCRIPTS]
)
def test_a_tutorial_runs(name: str, tmp_path: Path) -> None:
    # A process of its own, in an empty folder: it may rely on nothing that lies about.
    environment = os.environ | {"MPLBACKEND": "Agg", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    # A package is installed without the network, with the build tools of this environment.
    environment |= {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    shutil.copytree(FOLDER.parents[1] / "examples", tmp_path / "examples")
    command = [sys.executable, str(FOLDER / f"{name}.py")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_page_is_that_of_the_script(name: str, render: ModuleType) -> None:
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    place = 0
    for kind, content in render.cells(FOLDER / f"{name}.py"):
        wanted = content if kind == "markdown" else f"```python\n{content}\n```"
        assert wanted in page[place:], f"run python docs/tutorials/render.py {name}"
        place = page.index(wanted, place)
    for picture in FOLDER.glob(f"{name}-*.png"):
        assert f"]({picture.name})" in page
