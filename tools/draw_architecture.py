"""Draw the packages in docs/architecture.md from the import contracts in pyproject.toml.

    python tools/draw_architecture.py            # write the diagram
    python tools/draw_architecture.py --check    # exit code 1 if the document shows another one

The diagram lists the packages as the contract of layers does, the highest first, each with the first sentence
of its docstring. `lint-imports` checks the contract.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- diagram: begin -->", "<!-- diagram: end -->"


def layers() -> list[str]:
    """The packages and modules of the contract, the highest first."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = configuration["tool"]["importlinter"]["contracts"]
    contract = next(one for one in contracts if one["type"] == "layers")
    names: list[str] = contract["layers"]
    return names


def purpose(name: str) -> str:
    """The first sentence of the docstring of a module or package."""
    path = ROOT / Path(*name.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").rstrip(".")


def diagram() -> str:
    """The diagram as a block of Markdown."""
    names = [name.removeprefix("physdiffuser.") for name in layers()]
    width = max(map(len, names))
    lines = [f"{short:<{width}}  {purpose(f'physdiffuser.{short}')}" for short in names]
    return "\n".join([BEGIN, "```text", *lines, "```", END])


def drawn(document: str) -> str:
    """A document with the diagram between its markers."""
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{DOCUMENT}: the markers {BEGIN} and {END} are missing")
    return before + diagram() + after


def main() -> int:
    """Run the tool."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="only compare")
    arguments = parser.parse_args()
    old = DOCUMENT.read_text(encoding="utf-8")
    new = drawn(old)
    if arguments.check:
        return int(new != old)
    DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
