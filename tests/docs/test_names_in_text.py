"""Modules that documents and docstrings name exist, and so does what is named in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = "|".join(sorted(path.name for path in (ROOT / "physdiffuser").iterdir() if path.is_dir()))
# `physdiffuser.search.archive.ParetoArchive`, `search.archive`; a function of `physdiffuser` is no module.
DOTTED = re.compile(rf"`(?:physdiffuser\.)?((?:{PACKAGES})(?:\.\w+)+)`")
FILES = (".md", ".html", ".json", ".csv")
PATHS = re.compile(r"`([\w./-]+/[\w-]+\.py)`")
# They tell of former states.
LOGS = ("development-log.md", "training-log.md")


def texts() -> dict[str, str]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for package in ("physdiffuser", "benchmarks_feynman"):
        found += (ROOT / package).rglob("*.py")
    kept = [path for path in found if path.name not in LOGS and "_build" not in path.parts]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in kept}


def exists(dotted: str) -> bool:
    """Whether a dotted name leads to a package, a module, or something that a module mentions."""
    place, rest = ROOT / "physdiffuser", dotted.split(".")
    while rest and (place / rest[0]).is_dir():
        place /= rest.pop(0)
    module = place / "__init__.py"
    if rest and (place / f"{rest[0]}.py").is_file():
        module = place / f"{rest.pop(0)}.py"
    return not rest or re.search(rf"\b{rest[0]}\b", module.read_text(encoding="utf-8")) is not None


def test_dotted_names_exist() -> None:
    wrong = [
        f"{name}: {one}"
        for name, text in texts().items()
        for one in DOTTED.findall(text)
        if not one.endswith(FILES) and not exists(one)
    ]
    assert not wrong


def test_paths_exist() -> None:
    known = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}
    wrong = [
        f"{name}: {one}"
        for name, text in texts().items()
        for one in PATHS.findall(text)
        if not any(path == one or path.endswith(f"/{one}") for path in known)
    ]
    assert not wrong
