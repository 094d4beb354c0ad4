"""The tool that says what each part of the search is worth: arms do what they are called."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from physdiffuser.functions.table import families
from physdiffuser.generation import builtin
from physdiffuser.generation.builtin import DEFAULT_GENERATORS
from physdiffuser.generation.enumeration.registry import STAGES
from physdiffuser.generation.evolution.blind import VARIATIONS
from physdiffuser.search import stopping
from physdiffuser.search.refinement import polishing
from physdiffuser.transforms.transform import known_transforms

PATH = Path(__file__).parents[2] / "tools" / "ablate_search.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    if not PATH.exists():
        pytest.skip("the tools are not part of an installed package")
    spec = importlib.util.spec_from_file_location("ablate_search", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_arms(tool: ModuleType) -> None:
    assert tool.parse_arm("full").generators == tuple(DEFAULT_GENERATORS)
    assert tool.parse_arm("-evolution").generators == tuple(
        name for name in DEFAULT_GENERATORS if name != "evolution"
    )
    assert tool.parse_arm("=enumeration,diffusion").generators == ("enumeration", "diffusion")
    both = tool.parse_arm("+diffusion;search.stopping.POLICY.grace_steps=3")
    assert both.generators == (*DEFAULT_GENERATORS, "diffusion")
    assert both.constants == (("physdiffuser.search.stopping", "POLICY.grace_steps", 3),)
    for wrong in ("-nothing", "evolution", "search=3"):
        with pytest.raises(ValueError, match="is no change"):
            tool.parse_arm(wrong)


def test_a_constant_is_changed_and_put_back(tool: ModuleType) -> None:
    before = stopping.POLICY.grace_steps, builtin.SPECS
    with tool.changed(tool.parse_arm("-sparse;search.stopping.POLICY.grace_steps=3")):
        assert stopping.POLICY.grace_steps == 3 and not builtin.SPECS[1].default
    with tool.changed(tool.parse_arm("search.refinement.polishing.WORTH_ARRANGING=3")):
        assert polishing.WORTH_ARRANGING == 3
    assert before == (stopping.POLICY.grace_steps, builtin.SPECS)
    with pytest.raises(AttributeError), tool.changed(tool.parse_arm("search.stopping.NO_SUCH=3")):
        pass


def test_a_part_is_left_out_and_put_back(tool: ModuleType) -> None:
    def parts() -> tuple[int, ...]:
        names = {family.spec.name for family in families()}
        transforms = {transform.ids for transform in known_transforms(2)}
        return len(names), len(VARIATIONS.parts()), len(transforms)

    before = parts()
    arm = "-family:decay|rise;-variation:crossover;-transform:square+reciprocal"
    with tool.changed(tool.parse_arm(arm)):
        assert parts() == (before[0] - 2, before[1] - 1, before[2] - 1)
    with tool.changed(tool.parse_arm("-stage:curves")):
        assert not STAGES["curves"].accepts(None, None)
    assert parts() == before
    with pytest.raises(ValueError, match="no function family"), tool.changed(tool.parse_arm("-family:none")):
        pass


def _record(arm: str, law: str, recovered: bool) -> dict[str, Any]:
    return {
        "arm": arm, "law": law, "seed": 0, "noise": 0.0, "recovered": recovered, "form": recovered,
        "cpu_seconds": 2.0,
    }  # fmt: skip


def test_the_table_compares_laws_that_all_arms_have_run(tool: ModuleType) -> None:
    records = [
        _record("full", "a", True),
        _record("full", "b", False),
        _record("full", "c", True),
        _record("-sparse", "a", False),
        _record("-sparse", "b", True),
    ]
    lines = tool.table(records).splitlines()
    assert lines[-2] == "| `full` | 0 | 2 | 1 | 1 | 0 / 0 | 2.0 | 4 |"
    assert lines[-1] == "| `-sparse` | 0 | 2 | 1 | 1 | 1 / 1 | 2.0 | 4 |"


def test_a_run_is_recorded_and_not_repeated(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    arguments = ["--arm", "-evolution", "--only", "dev_001", "--steps", "5", "--results", str(results)]
    tool.main(arguments)
    (line,) = results.read_text().splitlines()
    record = json.loads(line)
    assert record["arm"] == "-evolution" and record["recovered"] and "evolution" not in record["steps_used"]
    tool.main(arguments)
    assert results.read_text().splitlines() == [line]
    assert "| `-evolution` | 0 | 1 | 1 | 1 | 0 / 0 |" in capsys.readouterr().out
