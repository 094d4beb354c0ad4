"""The diagram in the documentation is that of the import contracts, which name every package."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_diagram_is_up_to_date() -> None:
    tool = ROOT / "tools" / "draw_architecture.py"
    assert subprocess.run([sys.executable, str(tool), "--check"], check=False).returncode == 0


def test_every_package_and_module_has_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    there = {path.stem for path in (ROOT / "physdiffuser").glob("*.py")}
    there |= {path.parent.name for path in (ROOT / "physdiffuser").glob("*/__init__.py")}
    assert there - {"__init__", "__main__"} == {name.removeprefix("physdiffuser.") for name in layers}
