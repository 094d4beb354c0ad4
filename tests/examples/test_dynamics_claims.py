"""The differential equations that examples/README.md states are found by the commands beside them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from physdiffuser.cli.app import cli
from physdiffuser.expressions import complexity, evaluate, parse

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\|.*\| `(physdiffuser dynamics [^`|]+)` \| (`d\w+/d\w+ = .+`) \|$", re.M)
CLAIMS = dict(ROW.findall((ROOT / "examples" / "README.md").read_text(encoding="utf-8")))


def test_there_is_a_measured_and_a_generated_table() -> None:
    assert len(CLAIMS) == 2


@pytest.mark.parametrize("command", CLAIMS)
def test_the_equations_are_found(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run = CliRunner().invoke(cli, [*shlex.split(command)[1:], "--json"])
    assert run.exit_code == 0, run.output
    content = json.loads(run.stdout)
    names = content["states"]
    # The measured table has too few rows to hold any out.
    verdict = "unknown" if "hare" in names else "verified"
    assert {equation["verdict"] for equation in content["equations"]} == {verdict}
    stated = dict(re.findall(r"`d(\w+)/d\w+ = ([^`]+)`", CLAIMS[command]))
    assert list(stated) == names
    inputs = np.random.default_rng(0).uniform(2.0, 60.0, (50, 2))
    for equation in content["equations"]:
        claim = parse(stated[equation["state"]], names)
        found = parse(equation["expression"], names)
        assert complexity(found) == complexity(claim)
        expected = evaluate(claim, inputs)
        assert np.abs(evaluate(found, inputs) - expected).max() < 0.02 * np.abs(expected).max()
