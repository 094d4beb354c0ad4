"""The tables in `examples/` say where they come from; `test_claims.py` has the laws found in them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TABLES = sorted(path.name for path in EXAMPLES.glob("*.csv"))
GENERATED = ("damped_oscillation.csv", "gravity.csv", "langmuir.csv", "lens.csv", "lotka_volterra.csv")


@pytest.mark.parametrize("name", TABLES)
def test_every_table_says_where_it_comes_from(name: str) -> None:
    comments = [line for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines() if line[0] == "#"]
    text = " ".join(comments)
    if name in GENERATED:
        assert re.search(r"Laws?: .* Noise: .*; seed \d+\.", text)
        assert "generate.py" in text
    else:
        assert len(comments) >= 2
        assert re.search(r"\b(1[6-9]|20)\d\d\b|Jet Propulsion Laboratory", text)


def test_generated_tables_are_reproduced_to_the_byte(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(EXAMPLES / "generate.py"), str(tmp_path)], check=True, timeout=60)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(GENERATED)
    for name in GENERATED:
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()
