"""The README: its commands, its code, its links and its picture."""

from __future__ import annotations

import doctest
import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import click
import pytest

from physdiffuser import solve
from physdiffuser.cli.app import cli
from physdiffuser.report.text.terminal import render

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
PAGES += [ROOT / "examples" / "README.md"]
BLOCK = re.compile(r"^```\w*\n(.*?)^```|((?:^ {4}\S.*\n)+)", re.M | re.S)
COMMANDS = {
    line.strip()
    for page in PAGES
    for block in BLOCK.findall(page.read_text(encoding="utf-8"))
    for line in "".join(block).splitlines()
    if line.strip().startswith("physdiffuser ")
}


def test_the_two_commands() -> None:
    blocks = re.findall(r"^```\n(.*?)\n```$", README, re.M | re.S)
    assert blocks[:2] == [
        "pip install . && physdiffuser solve examples/kepler.csv",
        "pip install '.[test]' && pytest",
    ]


@pytest.mark.parametrize("line", sorted(COMMANDS))
def test_commands_and_options_exist(line: str) -> None:
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "|"]
    if words[0].startswith("-") or words[0].isupper():
        return
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None, f"no command {words[0]}"
    while isinstance(command, click.Group):
        words = words[1:]
        command = command.get_command(click.Context(command), words[0])
        assert command is not None, line
    # Unknown options are refused, while files need not exist.
    command.make_context(words[0], words[1:], resilient_parsing=True)


def test_python_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    results = doctest.testfile(str(ROOT / "README.md"), module_relative=False, encoding="utf-8")
    assert results.failed == 0
    assert results.attempted >= 9


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index


def test_the_picture_shows_what_is_found() -> None:
    picture = ElementTree.parse(ROOT / "docs" / "solve.svg")
    lines = [text.text or "" for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert lines[0].startswith("$ physdiffuser solve ")
    table = lines[0].split()[-1]
    shown = next(line for line in lines if re.match(r"\w+ = ", line))
    found = solve(ROOT / table, time=60)
    assert found.best is not None
    assert shown.startswith(f"{found.target} = ") and shown in render(found)
    # The probability depends on how many rivals the search has found in its time.
    verdict = lines[lines.index("Verdict") + 1].partition(":")[0]  # in a colour of its own
    assert f"Verdict    {verdict}" in render(found)
