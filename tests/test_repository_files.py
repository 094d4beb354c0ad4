"""The files that hosting and tools read are well-formed, and run what `.ci/run` runs."""

from __future__ import annotations

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


def test_only_publishing_may_write() -> None:
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}
        granted = [job.get("permissions", {}) for job in workflow["jobs"].values()]
        assert all(set(one) <= {"id-token"} for one in granted)
