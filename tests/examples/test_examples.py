"""Every table in `examples/` gives the law that `examples/README.md` states."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from physdiffuser import solve
from physdiffuser.data import load_dataset
from physdiffuser.expressions import complexity, evaluate, parse

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")
LAWS = {
    name: (target, law)
    for name, target, law in re.findall(r"^\| \[([\w.]+)\]\(\1\) \|.*\| `(\w+) = (.+)` \|$", README, re.M)
}
GENERATED = ("damped_oscillation.csv", "gravity.csv", "langmuir.csv", "lens.csv")
OPTIONS: dict[str, dict[str, Any]] = {
    "gravity.csv": {"units": EXAMPLES / "gravity_units.yaml", "constants": {"G": None}}
}
# Limits with room for a busy machine.
SECONDS = {"damped_oscillation.csv": 90, "lens.csv": 60}
KNOWN = {"gravity.csv": {"G": 6.6743e-11}}


def test_every_table_is_listed_with_its_law() -> None:
    assert sorted(LAWS) == sorted(path.name for path in EXAMPLES.glob("*.csv"))
    assert len(set(LAWS) - set(GENERATED)) >= 4
    assert set(GENERATED) < set(LAWS)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_law_of_the_readme_is_found(name: str) -> None:
    target, law = LAWS[name]
    options = OPTIONS.get(name, {})
    found = solve(EXAMPLES / name, time=SECONDS.get(name, 30), **options)
    dataset = load_dataset(EXAMPLES / name)
    expected = parse(law, dataset.names, KNOWN.get(name, {}))

    assert found.target == target
    assert found.best is not None
    assert found.best.complexity <= complexity(expected), found.best.text
    # The constants of the README are rounded.
    size = np.sqrt(np.mean(np.square(dataset.target)))
    difference = evaluate(found.best.expression, dataset.inputs) - evaluate(expected, dataset.inputs)
    assert np.abs(difference).max() < 0.01 * size, found.best.text


@pytest.mark.parametrize("name", sorted(LAWS))
def test_every_table_says_where_it_comes_from(name: str) -> None:
    comments = [line for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines() if line[0] == "#"]
    text = " ".join(comments)
    if name in GENERATED:
        assert re.search(r"Law: .* Noise: .*; seed \d+\.", text)
        assert "generate.py" in text
    else:
        assert len(comments) >= 2
        assert re.search(r"\b(1[6-9]|20)\d\d\b|Jet Propulsion Laboratory", text)


def test_generated_tables_are_reproduced_to_the_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(EXAMPLES / "generate.py"), str(tmp_path)], check=True, timeout=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(GENERATED)
    for name in GENERATED:
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()
