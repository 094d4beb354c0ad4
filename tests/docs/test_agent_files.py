"""What coding agents read: the commands of the skill run, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKILL = ROOT / "skills" / "physdiffuser" / "SKILL.md"
TABLE = "l,T\n" + "".join(f"{k / 10},{2 * 3.14159265358979 * (k / 98.1) ** 0.5:.9f}\n" for k in range(1, 31))


def commands() -> list[str]:
    """The lines of the console blocks, in their order."""
    blocks = re.findall(r"^```console\n(.*?)^```", SKILL.read_text(encoding="utf-8"), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


@pytest.mark.skipif(os.name != "posix" or shutil.which("bash") is None, reason="needs a shell")
def test_the_commands_of_the_skill_run(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(TABLE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    outputs = []
    for command in commands():
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        outputs.append(done.stdout)
    assert len(outputs) == 8
    assert "sqrt(l)" in outputs[6] and outputs[6].split()[0] in ("exact", "approximate")
    assert "def predict_T" in (tmp_path / "law.py").read_text() and r"\sqrt{l}" in outputs[4]


def test_the_skill_says_what_it_is() -> None:
    head = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", SKILL.read_text(encoding="utf-8"))
    assert head is not None and head[1] == SKILL.parent.name
    assert "Use when" in head[2] and len(head[2]) < 1024


@pytest.mark.parametrize("path", [ROOT / "llms.txt"], ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8"))
    assert len(links) > 8
    assert [link for link in links if not (path.parent / link).is_file()] == []


def test_options_that_the_skill_names_exist() -> None:
    described = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    named = set(re.findall(r"--[a-z][a-z-]+", SKILL.read_text(encoding="utf-8")))
    assert named and [option for option in named if f"`{option}" not in described] == []
