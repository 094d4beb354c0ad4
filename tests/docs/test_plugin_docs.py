"""The documentation names every extension point, and its examples run."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import re
import tomllib
from pathlib import Path

import pytest

from physdiffuser import PhysDiffuserRegressor, hookspecs
from physdiffuser.specs import ATTENTION_CAPABILITIES, AttentionSpec, FamilySpec, GeneratorSpec, OperatorSpec

DOCS = Path(__file__).resolve().parents[2] / "docs"
PLUGINS = (DOCS / "plugins.md").read_text(encoding="utf-8")
API = (DOCS / "python-api.md").read_text(encoding="utf-8")
HOOKS = {
    name: function
    for name, function in vars(hookspecs).items()
    if inspect.isfunction(function) and hasattr(function, "physdiffuser_spec")
}


def test_there_are_five_hooks() -> None:
    assert set(HOOKS) == {
        "physdiffuser_attentions",
        "physdiffuser_generators",
        "physdiffuser_operators",
        "physdiffuser_functions",
        "physdiffuser_commands",
    }


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_and_argument_is_documented(name: str) -> None:
    arguments = ", ".join(inspect.signature(HOOKS[name]).parameters)
    assert f"`{name}({arguments})`" in PLUGINS
    assert inspect.getdoc(HOOKS[name])


@pytest.mark.parametrize("spec", [AttentionSpec, FamilySpec, GeneratorSpec, OperatorSpec])
def test_every_field_of_the_records_is_documented(spec: type) -> None:
    for field in dataclasses.fields(spec):
        assert f"`{field.name}`" in PLUGINS or f"`{field.name}(" in PLUGINS, field.name
        assert re.search(rf"^ *[\w, ]*\b{field.name}\b", inspect.getdoc(spec) or "", re.M), field.name
    if spec is AttentionSpec:
        for capability in ATTENTION_CAPABILITIES:
            assert f"`{capability}`" in PLUGINS


def test_every_parameter_and_method_of_the_estimator_is_documented() -> None:
    docstring = inspect.getdoc(PhysDiffuserRegressor) or ""
    for parameter, default in PhysDiffuserRegressor().get_params().items():
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        assert f"| `{parameter}` | {shown} |" in API
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)*$", docstring, re.M)
    for name in (
        "best_",
        "equations_",
        "solution_",
        "predict",
        "score",
        "latex",
        "sympy",
        "to_numpy",
        "to_torch",
    ):
        assert name in API


def test_code_of_the_tutorial_is_that_of_the_example() -> None:
    example = DOCS.parent / "examples" / "plugins" / "power-law"
    module = (example / "physdiffuser_power_law" / "__init__.py").read_text()
    project = tomllib.loads((example / "pyproject.toml").read_text())
    blocks = re.findall(r"```(\w+)\n(.*?)```", PLUGINS, re.S)
    entry = next(text for kind, text in blocks if kind == "toml")
    assert tomllib.loads(entry)["project"]["entry-points"] == project["project"]["entry-points"]
    hook = next(text for kind, text in blocks if "physdiffuser_generators" in text and kind == "python")
    for line in hook.splitlines():
        assert line.strip() in module


def test_the_examples_of_the_api_run() -> None:
    results = doctest.testfile(str(DOCS / "python-api.md"), module_relative=False, encoding="utf-8")
    assert results.failed == 0
    assert results.attempted > 15
