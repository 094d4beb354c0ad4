"""`predict` and `export`: using a law that an earlier run found."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import Run

from physdiffuser.cli.shared.stored import load_run
from physdiffuser.expressions import OPERATORS, OperatorSpec, evaluate
from physdiffuser.expressions.operators import register
from physdiffuser.plugin_system import manager as plugin_manager

SLOPE = (2.1 * 1 + 3.9 * 2 + 6.2 * 3 + 7.9 * 4) / 30


@pytest.fixture
def solved(run: Run, table: Path, tmp_path: Path) -> Path:
    assert run("solve", "data.csv", "--out", "run").returncode == 0
    return tmp_path / "run"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_predictions_come_one_line_a_row(run: Run, solved: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("other,v (m/s)\nx,10\ny,\nz,-3\nw,\n")
    for source in ("run", "run/result.json"):
        done = run("predict", source, "new.csv")
        assert done.returncode == 0
        found = [float(row["T"]) for row in rows(done.stdout)]
        assert found[0] == pytest.approx(10 * SLOPE, rel=1e-15)
        assert found[2] == pytest.approx(-3 * SLOPE, rel=1e-15)
        assert math.isnan(found[1]) and math.isnan(found[3])
        assert "2 of 4 rows have no finite prediction" in done.stderr


def test_any_row_of_the_table_can_be_used(run: Run, solved: Path) -> None:
    first = rows(run("predict", "run", "data.csv", "--row", "1").stdout)
    assert {float(row["T"]) for row in first} == {(2.1 + 3.9 + 6.2 + 7.9) / 4}
    assert run("predict", "run", "data.csv", "--row", "2").stdout == run("predict", "run", "data.csv").stdout
    done = run("predict", "run", "data.csv", "--row", "3")
    assert done.returncode == 2
    assert "no row 3: the rows of its Pareto table are numbered from 1 to 2" in done.stderr


def test_intervals_hold_the_prediction_and_grow_with_the_distance(
    run: Run, solved: Path, tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_text("v (m/s)\n0\n1\n100\n")
    found = rows(run("predict", "run", "new.csv", "--intervals").stdout)
    assert list(found[0]) == ["T", "T_low", "T_high"]
    widths = [float(row["T_high"]) - float(row["T_low"]) for row in found]
    assert widths[0] == 0.0
    assert widths[2] == pytest.approx(100 * widths[1], rel=1e-6)
    # The stand-in's sigma of the slope, times twice the quantile of t with 3 degrees of freedom.
    document = json.loads((solved / "result.json").read_text())
    sigma = math.sqrt(document["best"]["covariance"][0][0])
    assert widths[1] == pytest.approx(2 * 3.182446305284263 * sigma, rel=1e-6)


def test_intervals_without_a_covariance_are_refused(run: Run, solved: Path) -> None:
    path = solved / "result.json"
    document = json.loads(path.read_text())
    document["best"]["covariance"] = None
    path.write_text(json.dumps(document))
    done = run("predict", "run", "data.csv", "--intervals")
    assert done.returncode == 2
    assert "Leave out --intervals" in done.stderr


def test_a_missing_column_is_a_data_error_that_names_it(run: Run, solved: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("speed,u\n1,2\n2,3\n")
    done = run("predict", "run", "new.csv")
    assert done.returncode == 3
    assert "v (m/s)" in done.stderr


def test_missing_files_and_broken_results(run: Run, solved: Path, tmp_path: Path) -> None:
    assert run("predict", "none", "data.csv").returncode == 4
    assert run("predict", "run", "none.csv").returncode == 4
    (tmp_path / "broken.json").write_text('{"schema": 1}')
    assert run("predict", "broken.json", "data.csv").returncode == 3
    (tmp_path / "broken.json").write_text('{"schema": 3}')
    assert run("export", "broken.json").returncode == 2


def test_a_payload_in_a_result_stays_text(run: Run, solved: Path, tmp_path: Path) -> None:
    document = json.loads((solved / "result.json").read_text())
    document["best"]["expression"] = "__import__('os').system('touch fired')"
    (tmp_path / "evil.json").write_text(json.dumps(document))
    assert run("predict", "evil.json", "data.csv").returncode == 3
    document = json.loads((solved / "result.json").read_text())
    document["version"] = "1\nimport os; os.system('touch fired')\n"
    (tmp_path / "evil.json").write_text(json.dumps(document))
    for format_name in ("python", "numpy", "c", "torch", "sympy"):
        done = run("export", "evil.json", "--format", format_name)
        assert done.returncode == 0
        assert "\nimport os" not in done.stdout
    assert not (tmp_path / "fired").exists()


def test_output_goes_to_a_file_when_asked(run: Run, solved: Path, tmp_path: Path) -> None:
    text = run("predict", "run", "data.csv").stdout
    done = run("predict", "run", "data.csv", "--out", "prediction.csv")
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "prediction.csv").read_text() == text
    assert run("export", "run", "--format", "c", "--out", "no/such/law.c").returncode == 4


def test_a_target_that_a_spreadsheet_would_run_is_made_harmless(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,=cmd|x\n1,2\n2,4.1\n3,6\n")
    run("solve", "data.csv", "--out", "run")
    assert run("predict", "run", "data.csv").stdout.splitlines()[0] == "'=cmd|x"


@pytest.mark.parametrize(
    ("format_name", "part"),
    [
        ("python", "import numpy as np"),
        ("numpy", "def predict_T(v_m_s):"),
        ("c", "double predict_T(double v_m_s)"),
        ("torch", "class Law(torch.nn.Module):"),
        ("sympy", 'v_m_s = sympy.Symbol("v_m_s", real=True)'),
        ("latex", r"\mathrm{v\_m\_s}"),
    ],
)
def test_every_format_is_written(run: Run, solved: Path, format_name: str, part: str) -> None:
    done = run("export", "run", "--format", format_name)
    assert done.returncode == 0
    assert part in done.stdout


def test_an_operator_of_a_plugin_is_found_when_a_stored_law_has_it(
    run: Run, solved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads((solved / "result.json").read_text())
    document["best"] |= {"expression": "cube(v_m_s)", "constants": [], "covariance": None}
    (solved / "result.json").write_text(json.dumps(document))
    assert run("predict", "run", "data.csv").returncode == 3

    cube = OperatorSpec(
        "cube", 1, 2, lambda x: x**3, (lambda x, value: 3 * x**2,), lambda x: x**3, domain="all reals"
    )
    monkeypatch.setattr(plugin_manager, "load_plugins", lambda: register(cube))
    try:
        best = load_run(solved).best
        assert best is not None
        assert evaluate(best.expression, np.array([[2.0]])).tolist() == [8.0]
    finally:
        del OPERATORS["cube"]
