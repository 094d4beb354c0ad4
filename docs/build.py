"""Build the pages of docs/ as a site.

    python docs/build.py [FOLDER]        # needs pip install '.[docs]'; docs/_build/html when not given

The pages are written for reading in the repository too, so their links lead to files beside them. They are
copied as they lie there, the API pages are added, and Sphinx runs with warnings as errors.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "examples/README.md")
REPOSITORY = "https://github.com/physdiffuser/physdiffuser/blob/main"
# What the API pages show: title of the page, and its modules.
API = {
    "Solving": ["physdiffuser.pipeline", "physdiffuser.estimator", "physdiffuser.errors"],
    "Results": [
        "physdiffuser.core.solution",
        "physdiffuser.report.export.functions",
        "physdiffuser.report.export.exports",
    ],
    "Reports": [
        "physdiffuser.report.text.terminal",
        "physdiffuser.report.html",
        "physdiffuser.report.documents.json_document",
    ],
    "Formulas": [
        "physdiffuser.expressions.tree",
        "physdiffuser.expressions.operators",
        "physdiffuser.expressions.parser",
        "physdiffuser.expressions.printing.format",
        "physdiffuser.expressions.printing.latex",
        "physdiffuser.expressions.printing.mathml",
        "physdiffuser.expressions.evaluate",
        "physdiffuser.expressions.simplification.textbook.arrange",
        "physdiffuser.expressions.simplification.canonical",
        "physdiffuser.expressions.units.dimensions",
    ],
    "Data": ["physdiffuser.data.loading", "physdiffuser.data.dataset", "physdiffuser.units.unit"],
    "Fitting": [
        "physdiffuser.fitting.fit",
        "physdiffuser.fitting.exact_constants.snapping",
        "physdiffuser.fitting.uncertainty",
    ],
    "Verification": ["physdiffuser.verification.verify", "physdiffuser.verification.equivalence"],
    "Plugins": [
        "physdiffuser.hookspecs",
        "physdiffuser.specs",
        "physdiffuser.testing",
        "physdiffuser.core.generator",
        "physdiffuser.core.problem",
        "physdiffuser.core.candidate",
        "physdiffuser.search.archive",
    ],
    "Networks": [
        "physdiffuser.models.attention",
        "physdiffuser.models.encoder",
        "physdiffuser.models.denoiser",
        "physdiffuser.models.decoder",
    ],
    "Inspection": [
        "physdiffuser.inspection.networks",
        "physdiffuser.inspection.subjects",
        "physdiffuser.inspection.session",
        "physdiffuser.inspection.capture",
        "physdiffuser.inspection.slices",
        "physdiffuser.inspection.biases",
        "physdiffuser.inspection.trajectories",
        "physdiffuser.inspection.statistics",
        "physdiffuser.inspection.reports",
    ],
}


def build(output: Path) -> int:
    """Stage the pages in a temporary folder and run Sphinx on them; returns its exit code."""
    from sphinx.cmd.build import main

    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder)
        stage(staged)
        # Colours and progress would only fill a log.
        options = ["-W", "--keep-going", "-q", "--no-color", "-b", "html", "-d", str(staged / ".doctrees")]
        code = main([*options, "-c", str(ROOT / "docs"), str(staged), str(output)])
    if code == 0:
        home = '<!doctype html><meta charset="utf-8"><title>physdiffuser</title>'
        redirect = '<meta http-equiv="refresh" content="0; url=docs/index.html">'
        link = '<a href="docs/index.html">Documentation</a>'
        (output / "index.html").write_text(home + redirect + link + "\n", encoding="utf-8")
        print(f"{output / 'docs' / 'index.html'}")
    return code


def stage(folder: Path) -> None:
    """Copy the pages as they lie in the repository and write those of the API."""
    pages = [ROOT / name for name in PAGES]
    pages += [path for path in (ROOT / "docs").rglob("*") if path.is_file() and "_build" not in path.parts]
    for path in pages:
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            copy.write_text(relinked(path), encoding="utf-8")
        elif path.suffix not in (".py", ".jsonl"):
            shutil.copyfile(path, copy)
    names = write_api(folder / "docs" / "api")
    index = folder / "docs" / "index.md"
    text = index.read_text(encoding="utf-8")
    index.write_text(text + contents(text, names), encoding="utf-8")


def relinked(path: Path) -> str:
    """A page whose links to what is no page lead to the repository."""

    def replace(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if "://" in target or not target:
            return match[0]
        file = (path.parent / target).resolve()
        staged = file.suffix in (".md", ".svg", ".png") and file.is_file()
        if staged and (file.is_relative_to(ROOT / "docs") or str(file.relative_to(ROOT)) in PAGES):
            return match[0]
        return f"]({REPOSITORY}/{file.relative_to(ROOT).as_posix()}{anchor})"

    return re.sub(r"\]\(([^)#\s]+)(#[^)\s]*)?\)", replace, path.read_text(encoding="utf-8"))


def write_api(folder: Path) -> list[str]:
    """One page for each group of modules; returns their names."""
    folder.mkdir(parents=True)
    names = []
    for title, modules in API.items():
        name = title.lower()
        lines = [f"# {title}", ""]
        for module in modules:
            lines += [f"## `{module}`", "", "```{eval-rst}", f".. automodule:: {module}", "```", ""]
        (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")
        names.append(name)
    return names


def contents(index: str, api: list[str]) -> str:
    """The side bar: what the index lists under each of its headings, then the API."""
    parts = []
    for heading, body in re.findall(r"^\*\*(.+?)\*\*.*?\n(.*?)(?=^\*\*|\Z)", index, re.M | re.S):
        found = re.findall(r"\]\(([^)#\s:]+\.md)\)", body)
        parts.append((heading, found))
    parts.append(("The API", [f"api/{name}.md" for name in api]))
    parts.append(("The project", ["../README.md", "../examples/README.md", "../CHANGELOG.md"]))
    blocks = []
    for heading, pages in parts:
        entries = "\n".join(f"{'/' + page[3:] if page.startswith('../') else page}" for page in pages)
        blocks.append(f"```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{entries}\n```\n")
    return "\n" + "\n".join(blocks)


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "_build" / "html"
    sys.exit(build(chosen.resolve()))
