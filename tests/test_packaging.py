"""What is shipped besides the wheel: the recipe agrees with `pyproject.toml`, and shells can complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Names that conda-forge gives to packages of PyPI.
RENAMED = {"matplotlib": "matplotlib-base", "torch": "pytorch"}


def test_the_recipe_needs_what_the_package_needs() -> None:
    recipe = yaml.safe_load((ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    listed = dict(text.split() for text in recipe["requirements"]["run"])
    wanted = {"python": PROJECT["requires-python"]}
    for text in PROJECT["dependencies"]:
        name, bounds = re.match(r"([\w-]+)([^;]*)", text).groups()  # type: ignore[union-attr]
        wanted[RENAMED.get(name, name)] = bounds.strip()
    assert listed == wanted
    optional = [text for texts in PROJECT["optional-dependencies"].values() for text in texts]
    assert {text.replace(" ", "") for text in recipe["requirements"]["run_constraints"]} <= set(optional)
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license_file"] == PROJECT["license-files"]
    program = PROJECT["scripts"]["physdiffuser"]
    assert recipe["build"]["python"]["entry_points"] == [f"physdiffuser = {program}"]


def test_the_image_runs_the_program_as_nobody_special() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert 'ENTRYPOINT ["physdiffuser"]' in lines and lines.index("USER user") < lines.index("WORKDIR /data")
    extras = re.search(r"'\.\[([\w,]+)\]'", "\n".join(lines))
    assert extras is not None and set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])


@pytest.mark.skipif(os.name != "posix", reason="shells")
@pytest.mark.parametrize(
    ("words", "expected"), [("physdiffuser so", "solve"), ("physdiffuser solve --jso", "--json")]
)
def test_shells_can_complete(words: str, expected: str) -> None:
    asked = {
        "_PHYSDIFFUSER_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    program = Path(sys.executable).with_name("physdiffuser")
    if not program.exists():
        pytest.skip("the program is not installed")
    done = subprocess.run([program], env=os.environ | asked, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"plain,{expected}\n"
