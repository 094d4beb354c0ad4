"""`docs/command-line.md` names every option, every key and every exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

import physdiffuser.errors
from physdiffuser.cli.app import BUILT_IN, cli
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.report.json_document import document

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


def keys_of_the_document() -> set[str]:
    from physdiffuser.expressions import Number

    constant = ConstantEstimate("c1", 1.0, 0.9, 1.1, "1", False)
    row = Equation(Number(1.0), "1", "1", 1, 0.0, 1.0, 0.0, constants=(constant,))
    content = document(Solution("T", "exact", row, (row,), ("a",), ("a",), {}))
    keys = set(content) | set(content["best"]) | set(content["pareto"][0]) | set(content["held_out"])
    return keys | set(content["best"]["constants"][0]) | set(content["inputs"][0])


@pytest.mark.parametrize("key", sorted(keys_of_the_document()))
def test_every_key_of_the_document_is_documented(key: str) -> None:
    assert f"`{key}`" in PAGE


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
