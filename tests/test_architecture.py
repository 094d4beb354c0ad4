"""The diagram shows the import contracts, which name every package; every import finds what it names."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("physdiffuser", "benchmarks_feynman")
PLUGINS = (
    "physdiffuser_attention_standard",
    "physdiffuser_attention_physics_slice",
    "physdiffuser_attention_biased",
)
PACKAGES = SOURCES + PLUGINS


def test_the_diagram_is_up_to_date() -> None:
    tool = ROOT / "tools" / "draw_architecture.py"
    assert subprocess.run([sys.executable, str(tool), "--check"], check=False).returncode == 0


def test_every_package_and_module_has_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    there = {path.stem for path in (ROOT / "physdiffuser").glob("*.py")}
    there |= {path.parent.name for path in (ROOT / "physdiffuser").glob("*/__init__.py")}
    assert there - {"__init__", "__main__"} == {name.removeprefix("physdiffuser.") for name in layers}


def test_every_import_of_the_project_finds_what_it_names() -> None:
    # The type check does not read tests, tools and documentation, and an import inside a function runs late.
    missing = [
        f"{path}:{node.lineno}: {node.module}.{name.name}"
        for path in _python_files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES
        for name in node.names
        if name.name not in _names_of(str(node.module))
    ]
    assert not missing


def _python_files() -> list[Path]:
    folders = ("physdiffuser", "benchmarks_feynman", "plugins", "tests", "tools", "docs", "examples", ".ci")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


@functools.cache
def _names_of(module: str) -> frozenset[str]:
    """Return what can be imported from a module: what its text binds and, of a package, its modules."""
    base = (ROOT if module.split(".")[0] in SOURCES else ROOT / "plugins").joinpath(*module.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not file.is_file():
        return frozenset()
    names = {path.stem for path in base.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((name.asname or name.name).split(".")[0] for name in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)
