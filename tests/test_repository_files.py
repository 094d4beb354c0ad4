"""The files that hosting and tools read are well-formed, and run what `.ci/run` runs."""

from __future__ import annotations

import ast
import importlib.util
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FILES = sorted(
    [*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml", ROOT / "CITATION.cff"], key=str
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_a_mapping(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_the_workflow_runs_all_checks_on_all_systems() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["checks"]
    assert len(job["strategy"]["matrix"]["system"]) == 3
    assert job["strategy"]["matrix"]["python"][0] == "3.11"
    assert any(step.get("run") == ".ci/run" for step in job["steps"])


def test_slow_tests_run_each_week_and_before_a_release() -> None:
    folder = ROOT / ".github" / "workflows"
    weekly, release = (
        yaml.safe_load((folder / f"{name}.yml").read_text(encoding="utf-8")) for name in ("slow", "release")
    )
    # YAML reads the key `on` as a truth value.
    assert "schedule" in weekly[True]
    for job in (weekly["jobs"]["slow"], release["jobs"]["build"]):
        assert any("pytest -m slow" in step.get("run", "") for step in job["steps"])


def test_every_fragment_of_the_changelog_has_a_known_type() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    assert settings["start_string"] in (ROOT / settings["filename"]).read_text(encoding="utf-8")
    types = {kind["directory"] for kind in settings["type"]}
    for path in (ROOT / settings["directory"]).glob("[!.]*"):
        name, kind, ending = path.name.rsplit(".", 2)
        assert name and kind in types and ending == "md", path.name
        assert path.read_text(encoding="utf-8").strip(), f"{path.name} is empty"


def test_only_publishing_may_write() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        granted = [job.get("permissions", {}) for job in workflow["jobs"].values()]
        assert all(set(one) <= {"id-token"} for one in granted)


@pytest.mark.parametrize("tool", sorted((ROOT / "tools").glob("*.py")), ids=lambda path: path.stem)
def test_what_a_tool_imports_of_the_package_exists(tool: Path) -> None:
    for node in ast.walk(ast.parse(tool.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            ("physdiffuser", "benchmarks_feynman")
        ):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                assert hasattr(module, alias.name) or importlib.util.find_spec(name), name
