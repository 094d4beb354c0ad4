"""What README.md and the texts in `examples/` say that a command finds, is found by that command.

Convention: a claim is a row of a table in examples/README.md whose last two cells are a command and the law
that it finds. Every formula elsewhere in these texts must be one of these laws, so that no claim is without a
test.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser.cli.app import cli
from physdiffuser.data import load_dataset
from physdiffuser.expressions import complexity, evaluate, parse

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
README = (ROOT / "README.md").read_text(encoding="utf-8")
LIST = (EXAMPLES / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\|.*\| `(physdiffuser solve [^`|]+)` \| `(\w+ = [^`|]+)` \|$", re.M)
CLAIMS: dict[str, str] = dict(ROW.findall(LIST))
# The equations that these find are tested in test_dynamics_claims.py.
DYNAMICS: list[str] = re.findall(r"^\|.*\| `(physdiffuser dynamics [^`|]+)` \|", LIST, re.M)
LAWS = set(CLAIMS.values())
TEXTS = {
    "README.md": README,
    "examples/README.md": LIST,
    **{
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (*EXAMPLES.rglob("*.py"), *EXAMPLES.glob("plugins/*/README.md"))
    },
}
# Formulas that state no result: how constants look, how a formula would look without exact constants, how to
# give weights, and what the generator of examples/plugins proposes.
ILLUSTRATIONS = {
    "1.5",
    "2*pi",
    "2.504*exp(-0.3005*t)*cos(4.001*t)",
    "c * x1**p1 * x2**p2 * ...",
}
KNOWN = {"G": 6.6743e-11}
# Answers are kept: in one process each command runs once.
pytestmark = pytest.mark.xdist_group("claims")


def formulas(text: str) -> list[str]:
    """The code spans of a text that are numbers, formulas or equations."""
    return [span for span in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text) if _is_formula(span)]


def _is_formula(span: str) -> bool:
    left, equals, right = span.rpartition(" = ")
    if (equals and not left.isidentifier()) or span.startswith("-"):
        return False
    try:
        tree = ast.parse(right.strip(), mode="eval")
    except SyntaxError:
        return False
    nodes = [*ast.walk(tree.body)]
    allowed = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Constant, ast.Name, ast.operator, ast.unaryop, ast.Load)
    if not all(isinstance(node, allowed) for node in nodes):
        return False
    numbers = [node.value for node in nodes if isinstance(node, ast.Constant)]
    if not all(
        isinstance(number, int | float | type(...)) and not isinstance(number, bool) for number in numbers
    ):
        return False
    return bool(equals) or bool(numbers) or any(isinstance(node, ast.Mult | ast.Pow) for node in nodes)


def unclaimed(text: str) -> list[str]:
    """The formulas of a text that are neither claims nor illustrations."""
    claimed = LAWS | {law.partition(" = ")[2] for law in LAWS}
    return [formula for formula in formulas(text) if formula not in claimed | ILLUSTRATIONS]


@cache
def answer(command: str) -> dict[str, Any]:
    """The JSON document of a command, run with its own options."""
    words = shlex.split(command)[1:]
    done = CliRunner().invoke(cli, [*words, *(word for word in ("--json", "--quiet") if word not in words)])
    assert done.exit_code == 0, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_every_table_has_a_claim() -> None:
    commands = [*CLAIMS, *DYNAMICS]
    tables = [
        next(Path(word).name for word in shlex.split(command) if ".csv" in word) for command in commands
    ]
    assert sorted(tables) == sorted(path.name for path in EXAMPLES.glob("*.csv"))
    # Every row of the tables of laws follows the convention.
    assert len(commands) == len(re.findall(r"^\| \[[\w.]+\.csv\]", LIST, re.M))


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_every_formula_is_a_claim(name: str) -> None:
    assert unclaimed(TEXTS[name]) == []


def test_a_new_claim_without_a_command_is_noticed() -> None:
    assert unclaimed("Without them the same law is found with `6.672e-11` in place of `G`.") == ["6.672e-11"]
    assert unclaimed("`q = a/b`, `3*x`, `sin(x)**2` and `2.5037*exp(-0.30051*t)*cos(4.0009*t)`") == [
        "q = a/b",
        "3*x",
        "sin(x)**2",
    ]
    assert (
        unclaimed("`--max-complexity 9`, `power-law`, `docs/solve.svg`, `runs/`, `dy`, `G`, `latex()`") == []
    )


@pytest.mark.parametrize("command", sorted(CLAIMS))
def test_the_command_finds_the_law(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    target, law = CLAIMS[command].split(" = ")
    document = answer(command)
    dataset = load_dataset(next(word for word in shlex.split(command) if ".csv" in word))
    # Constants of groups stand for any number: here for the largest target.
    own = document.get("groups", {"constants": []})["constants"]
    names, size = (*dataset.names, *own), float(np.abs(dataset.target).max())
    inputs = np.column_stack([dataset.inputs, np.full((dataset.rows, len(own)), size)])
    expected = parse(law, names, KNOWN)
    found = parse(document["best"]["expression"], names, document["known_constants"])
    assert document["target"] == target
    assert complexity(found) <= complexity(expected), found
    # The constants of the claim are rounded.
    difference = evaluate(found, inputs) - evaluate(expected, inputs)
    assert np.abs(difference).max() < 0.01 * np.sqrt(np.mean(np.square(dataset.target))), found
    measured = LIST[LIST.index("## Measured") : LIST.index("## Generated")]
    assert "*not verified*" in measured
    assert not (command in measured and document["best"]["verdict"] == "verified")


def test_the_commands_of_the_readme_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those for the tables that ship, in order. The README states no law of another command.

    Rows of examples/README.md on differential equations run in `test_dynamics_claims.py`.
    """
    commands = [
        line for block in re.findall(r"^```\n(.*?)^```", README, re.M | re.S) for line in block.splitlines()
    ]
    commands = [line.partition("&& ")[2] or line for line in commands]
    commands = [line for line in commands if line.startswith("physdiffuser ") and "data.csv" not in line]
    assert len(commands) == 8
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    # That a command runs does not depend on the default time limit.
    monkeypatch.setattr("physdiffuser.options.DEFAULT_SECONDS", 4.0)
    for command in [command for command in commands if command not in DYNAMICS]:
        done = None if command in CLAIMS else CliRunner().invoke(cli, shlex.split(command)[1:])
        assert answer(command) if done is None else done.exit_code == 0, done and done.output
    assert (tmp_path / "runs" / "hubble" / "report.html").is_file()
    # The law that the README names stands beside the first command there.
    assert {law for law in formulas(README) if " = " in law} == {CLAIMS[commands[0]]}
