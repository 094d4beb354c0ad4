"""The site: every page is in it, and no link of a page leads out of it by mistake."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    # Under a name of its own: `build` is also a package that makes wheels.
    found = importlib.util.spec_from_file_location("site_builder", DOCS / "build.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_page_is_staged_and_in_the_side_bar(builder: ModuleType, tmp_path: Path) -> None:
    builder.stage(tmp_path)
    index = (tmp_path / "docs" / "index.md").read_text(encoding="utf-8")
    side_bar = "\n".join(re.findall(r"```\{toctree\}.*?```", index, re.S))
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS).as_posix()
        if "_build" not in page.parts:
            assert (tmp_path / "docs" / name).is_file()
            assert name == "index.md" or f"\n{name}\n" in side_bar, f"{name} is not listed in docs/index.md"


def test_links_lead_to_staged_files_or_to_the_repository(builder: ModuleType, tmp_path: Path) -> None:
    builder.stage(tmp_path)
    for page in tmp_path.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).is_file(), f"{page.name}: {target}"


def test_the_modules_of_the_api_exist_and_say_what_they_are(builder: ModuleType) -> None:
    for modules in builder.API.values():
        for name in modules:
            assert importlib.import_module(name).__doc__, name
