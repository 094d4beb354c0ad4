"""The script behind the page on the networks: it makes every picture, and is understood."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from physdiffuser.cli.inspect import inspect

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module", name="maker")
def _maker() -> ModuleType:
    found = importlib.util.spec_from_file_location("make_interpretability", DOCS / "make_interpretability.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # dataclasses look their module up
    found.loader.exec_module(module)
    return module


def test_every_picture_of_the_page_is_made(maker: ModuleType) -> None:
    page = (DOCS / "interpretability.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(interpretability/([\w-]+)\.png\)", page)
    made = [kept for view in maker.VIEWS.values() for kept in view.pictures.values()]
    assert sorted(shown) == sorted(made)
    assert {path.stem for path in (DOCS / "interpretability").glob("*.png")} == set(made)


def test_its_commands_are_understood_and_stand_on_the_page(maker: ModuleType) -> None:
    page = re.sub(r"\s+", " ", (DOCS / "interpretability.md").read_text(encoding="utf-8"))
    for view in maker.VIEWS.values():
        inspect.make_context("inspect", view.words.split())
        words = view.words.replace("physics-slice", "NAME").replace("biased", "NAME")
        assert view.words in page or words in page


def test_numbers_become_tables(maker: ModuleType) -> None:
    assert maker.shown([0.5, 0.25, 1.0]) == "0.50 [0.25, 1.00]"
    assert maker.shown([0.5, 0.25, 1.0], percent=True) == "50.0 % [25.0, 100.0]"
    assert maker.shown([None, None, None]) == ""
    assert maker.counted([[0.1, 0.05, 0.2], [-0.3, -0.4, -0.2], [0.2, -0.1, 0.5]]) == [
        "1",
        "1",
        "0.20 [-0.10, 0.50] (number 3 of 3)",
    ]
    costs = {"slices_seconds": {"rows": [64, 1024], "standard": [0.001, 0.02]}}
    lines = maker.tables(costs)[0].splitlines()
    assert lines[0] == "| milliseconds of rows | 64 | 1,024 |" and lines[-1] == "| standard | 1 | 20 |"
