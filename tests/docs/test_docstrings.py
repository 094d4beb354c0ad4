"""Docstrings: their examples run, and those of the public interface are complete."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import physdiffuser
from physdiffuser import hookspecs, specs, testing

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "physdiffuser").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
ESTIMATOR = physdiffuser.PhysDiffuserRegressor
# Errors that a function raises itself; a Raises section says when.
RAISED = re.compile(r"\w+Error$")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0 and results.attempted > 0


def public() -> list[tuple[str, Any]]:
    """What users and authors of plugins call, by name."""
    found = [(f"physdiffuser.{name}", getattr(physdiffuser, name)) for name in ("solve", "start")]
    for module in (testing, specs, hookspecs):
        found += [
            (f"{module.__name__}.{name}", value)
            for name, value in vars(module).items()
            if name in getattr(module, "__all__", vars(module))
            and not name.startswith("_")
            and (inspect.isfunction(value) or inspect.isclass(value))
            and value.__module__.startswith("physdiffuser")
        ]
    found += [
        (f"PhysDiffuserRegressor.{name}", value)
        for name, value in vars(ESTIMATOR).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__ == ESTIMATOR.__module__
    ]
    return [*found, ("PhysDiffuserRegressor", ESTIMATOR)]


def section(text: str, *titles: str) -> str:
    """The body of the first of some sections of a docstring."""
    for title in titles:
        match = re.search(rf"^{title}\n-+\n(.*?)(?=^[A-Z][\w ]*\n-+\n|\Z)", text, re.MULTILINE | re.DOTALL)
        if match is not None:
            return match[1]
    return ""


@pytest.mark.parametrize(("name", "value"), public(), ids=[name for name, _ in public()])
def test_the_public_interface_is_documented(name: str, value: Any) -> None:
    text = inspect.getdoc(value) or ""
    assert text.split("\n\n")[0].endswith((".", ":")), name
    fields = section(text, "Parameters", "Attributes")
    explained = {
        word.strip().lstrip("*")
        for line in re.findall(r"^(\S.*)$", fields, re.MULTILINE)
        for word in line.split(" : ")[0].split(",")
    }
    if not (inspect.isclass(value) and issubclass(value, BaseException)):
        parameters = [one for one in inspect.signature(value).parameters if one != "self"]
        assert set(parameters) <= explained, f"{name}: {set(parameters) - explained} not explained"
    if inspect.isfunction(value):
        returns = value.__annotations__.get("return")
        if returns not in (None, "None") and value.__module__ != hookspecs.__name__:
            assert section(text, "Returns"), f"{name}: no Returns section"
        body = ast.parse(textwrap.dedent(inspect.getsource(value)))
        raised = {
            ast.unparse(node.exc.func)
            for node in ast.walk(body)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        }
        for error in raised:
            if RAISED.fullmatch(error) and error != "NotImplementedError":
                assert error in section(text, "Raises"), f"{name}: {error} not explained"
