"""`docs/command-line.md` names every option and every exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import physdiffuser.errors
from physdiffuser.cli.app import BUILT_IN, cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")


def section(command: str) -> str:
    start = PAGE.index(f"\n## `{command} ")
    return PAGE[start : PAGE.index("\n## ", start + 1)]


def parameters() -> list[tuple[str, click.Parameter]]:
    context = click.Context(cli)
    found = []
    for name in BUILT_IN:
        command = cli.get_command(context, name)
        assert command is not None
        found += [
            (name, parameter) for parameter in command.params if not getattr(parameter, "hidden", False)
        ]
    return found


@pytest.mark.parametrize(
    ("command", "parameter"), parameters(), ids=lambda value: getattr(value, "name", value)
)
def test_every_option_and_argument_is_documented(command: str, parameter: click.Parameter) -> None:
    text = section(command)
    if isinstance(parameter, click.Option):
        assert parameter.help, "an option without help"
        for spelling in (*parameter.opts, *parameter.secondary_opts):
            assert f"`{spelling}" in text, f"{spelling} of {command} is not in docs/command-line.md"
    else:
        assert str(parameter.name).upper() in text


def test_the_help_of_solve_has_titles_above_its_options() -> None:
    text = CliRunner().invoke(cli, ["solve", "--help"]).output
    titles = ("The table", "What the law may be", "Errors of the measurements", "The search", "The output")
    places = [text.index(f"\n{title}:\n") for title in titles]
    assert places == sorted(places)
    assert places[1] < text.index("--template") < places[2] < places[3] < text.index("--steps") < places[4]


def test_every_exit_code_is_documented() -> None:
    table = PAGE[PAGE.index("## Exit codes") : PAGE.index("## The JSON document")]
    codes = {
        error.exit_code
        for error in vars(physdiffuser.errors).values()
        if isinstance(error, type) and issubclass(error, physdiffuser.errors.PhysdiffuserError)
    }
    assert codes == {1, 2, 3, 4, 5, 6}
    for code in sorted({0} | codes):
        assert f"\n| {code} |" in table
    assert "130, 143" in table


def test_commands_import_no_heavy_module_for_their_help() -> None:
    import subprocess

    code = (
        "import sys\nfrom physdiffuser.cli import main\n"
        "for command in ('solve', 'predict', 'export'):\n    assert main([command, '--help']) == 0\n"
        "heavy = {'torch', 'sympy', 'pandas', 'sklearn', 'matplotlib', 'scipy', 'tqdm'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
