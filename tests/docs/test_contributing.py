"""The parts that CONTRIBUTING.md adds work in one new file each: they are added to a copy of the package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = {
    section.splitlines()[0]: re.findall(r"```python\n(.*?)```", section, re.S)
    for section in TEXT.partition("## Adding a part\n")[2].partition("\n## ")[0].split("\n### ")[1:]
}


def test_there_is_a_section_for_each_part() -> None:
    assert list(SECTIONS) == [
        "A stage of enumeration",
        "A function family",
        "An output transform",
        "A generator",
    ]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_part_is_one_new_file(name: str, tmp_path: Path) -> None:
    new, tried = SECTIONS[name]
    place = re.match(r"# (\S+\.py)\n", new)
    assert place is not None
    path = tmp_path / place[1]
    for source in (ROOT / "physdiffuser").rglob("*"):
        copy = tmp_path / source.relative_to(ROOT)
        if source.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        elif source.suffix != ".pyc":
            copy.symlink_to(source)
    assert not path.exists()
    path.write_text(new, encoding="utf-8")
    if path.parent == tmp_path:
        metadata = tmp_path / f"{path.stem}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {path.stem}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[physdiffuser]\n{path.stem} = {path.stem}\n")
    done = subprocess.run(
        [sys.executable, "-c", tried],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    expected = re.search(r"# prints (.*)", tried)
    assert expected is not None and done.stdout.strip() == expected[1]


@pytest.mark.parametrize("name", SECTIONS)
def test_the_code_keeps_the_style(name: str, tmp_path: Path) -> None:
    path = tmp_path / "part.py"
    path.write_text(SECTIONS[name][0], encoding="utf-8")
    for command in (["check"], ["format", "--check"]):
        options = ["--config", str(ROOT / "pyproject.toml"), str(path)]
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
