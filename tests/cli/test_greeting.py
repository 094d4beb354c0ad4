"""`physdiffuser` without arguments, and what the report shows on request."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from physdiffuser.cli import main
from physdiffuser.cli.greeting import EXAMPLE

PROGRAM = Path(sys.executable).with_name("physdiffuser")


def test_three_things_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.err == "" and EXAMPLE in shown.out
    assert re.findall(r"^  (\d)\. ", shown.out, re.M) == ["1", "2", "3"]
    assert max(len(line) for line in shown.out.splitlines()) <= 125


@pytest.mark.skipif(os.name != "posix" or shutil.which("bash") is None, reason="needs a shell")
@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not installed")
@pytest.mark.parametrize("option", ["", " --ascii"])
def test_the_first_of_them_finds_its_law(tmp_path: Path, option: str) -> None:
    line = EXAMPLE.replace("physdiffuser solve", f"'{PROGRAM}' solve") + f" --steps 20{option}"
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        check=True,
        timeout=120,
    )
    text = done.stdout.decode("utf-8")
    assert "  T = a**1.5\n" in text
    assert text.isascii() == bool(option)
    assert "\x1b" not in text, "no colour where there is no terminal"
