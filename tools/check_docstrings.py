"""Check the docstrings of the public packages with `numpydoc lint`.

    python tools/check_docstrings.py

`[tool.numpydoc_validation]` in pyproject.toml says which checks, and why the others are left out.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What a user or the author of a plugin calls, and what their own methods are built on.
PUBLIC = (
    "hookspecs.py",
    "estimator.py",
    "options.py",
    "pipeline.py",
    "running.py",
    "specs.py",
    "core",
    "fitting",
    "library",
    "models",
    "testing",
)


def modules() -> list[Path]:
    """The modules that are checked."""
    package = ROOT / "physdiffuser"
    found = [path for name in PUBLIC for path in ((package / name), *(package / name).rglob("*.py"))]
    return sorted(path for path in found if path.is_file())


def main() -> int:
    """Run the tool; the exit code is 1 if a docstring fails a check."""
    names = [str(path.relative_to(ROOT)) for path in modules()]
    return subprocess.run(
        [sys.executable, "-m", "numpydoc", "lint", *names], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
