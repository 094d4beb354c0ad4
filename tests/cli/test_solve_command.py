"""`solve` as a user meets it: what goes where, and with which exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cli_program import FAKE, program_environment
from conftest import Run

from physdiffuser.cli import main


def recorded(run: Run, tmp_path: Path, *words: str) -> dict[str, Any]:
    """The options that reach the search."""
    path = tmp_path / "record.json"
    done = run("solve", "data.csv", *words, "--json", FAKE_RECORD=str(path))
    assert done.returncode == 0, done.stderr
    options: dict[str, Any] = json.loads(path.read_text())
    # When the program was started, and how long its report takes.
    assert options.pop("started") < time.monotonic()
    assert options.pop("report_seconds") > 0
    return options


def test_the_report_goes_to_stdout_and_messages_to_stderr(run: Run, table: Path, tmp_path: Path) -> None:
    done = run("solve", "data.csv", FAKE_PLOT="1")
    assert done.returncode == 0
    assert "T = 2.003*v_m_s" in done.stdout
    assert "note: target: T (last column)" in done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"note: saved in runs{os.sep}{folder.name}" in done.stderr
    assert folder.name.endswith("-data")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["fit.png", "pareto.csv", "report.html", "result.json"]


def test_json_prints_the_document_and_nothing_else_and_saves_nothing(
    run: Run, table: Path, tmp_path: Path
) -> None:
    done = run("solve", "data.csv", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema"] == 2
    assert not (tmp_path / "runs").exists()


def test_json_with_out_saves_what_it_prints(run: Run, table: Path, tmp_path: Path) -> None:
    done = run("solve", "data.csv", "--json", "--out", "here", FAKE_PLOT="1")
    assert json.loads((tmp_path / "here" / "result.json").read_text()) == json.loads(done.stdout)
    assert (tmp_path / "here" / "fit.png").exists()
    assert (tmp_path / "here" / "report.html").exists()


def test_quiet_leaves_warnings(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,k,T\n1,5,2\n2,5,4\n3,5,6.1\n")
    done = run("solve", "data.csv", "--quiet")
    assert done.stderr.startswith("warning: ")
    assert "note:" not in done.stderr


COLUMNS = "--target a --inputs b --weights w --operators add,mul --constants G=6.674e-11,c"
SEARCH = "--time 7.5 --steps 12 --seed 3 --generators enumeration,sparse --noise 0.01 --max-complexity 20"
READING = "--encoding utf-8 --delimiter semicolon --header --device cpu --loss robust --noise-model relative"

DESIGN = "--jobs 2 --scheduler local:2 --input-errors b=0.1 --suggest-next 3 --suggest-range b=0:5"
FORMS = "--auto-origin --operator f(x)=x*exp(x) --forbid sin(sin) --complexity exp=3"


def test_every_option_reaches_the_search(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('a;b;w;"T, K"\n1;2;1;2\n2;1;1;4\n3;0;2;6\n')
    words = f"{COLUMNS} {SEARCH} {READING} {DESIGN} {FORMS} --no-plugins --units units.yaml".split()
    options = recorded(run, tmp_path, *words, "--thousands", ",")
    assert options == {
        "source": "data.csv",
        "target": "a",
        "inputs": ["b"],
        "weights": "w",
        "errors": None,
        "units": "units.yaml",
        "units_row": False,
        "time": 7.5,
        "steps": 12,
        "seed": 3,
        "generators": ["enumeration", "sparse"],
        "attention": None,
        "device": "cpu",
        "noise": 0.01,
        "operators": ["add", "mul", "f(x)=x*exp(x)"],
        "forbid": ["sin(sin)"],
        "auto_origin": True,
        "complexity": "exp=3",
        "max_complexity": 20,
        "constants": "G=6.674e-11,c",
        "loss": "robust",
        "noise_model": "relative",
        "encoding": "utf-8",
        "delimiter": ";",
        "header": True,
        "thousands": ",",
        "plugins": False,
        "initial": [],
        "template": None,
        "known": None,
        "constraints": None,
        "resumed": [],
        "groups": [],
        "input_errors": "b=0.1",
        "suggest_next": 3,
        "suggest_range": "b=0:5",
        "jobs": 2,
        "scheduler": "local:2",
    }


def test_options_of_some_generators_are_refused_where_nothing_uses_them(run: Run, table: Path) -> None:
    done = run("solve", "data.csv", "--device", "cuda", "--generators", "sparse")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--device is for the generators " in done.stderr
    assert "none of this run's takes it: sparse. Name one with --generators, such as " in done.stderr
    done = run("solve", "data.csv", "--attention", "no-such-variant")
    assert (done.returncode, done.stdout) == (6, "")
    assert "no-such-variant" in done.stderr


def test_the_defaults(run: Run, table: Path, tmp_path: Path) -> None:
    options = recorded(run, tmp_path)
    given = {name: value for name, value in options.items() if value is not None}
    assert given == {
        "source": "data.csv",
        "time": 60.0,
        "seed": 0,
        "device": "auto",
        "max_complexity": 60,
        "loss": "auto",
        "noise_model": "auto",
        "units_row": False,
        "plugins": True,
        "initial": [],
        "resumed": [],
        "groups": [],
        "suggest_next": 0,
        "forbid": [],
        "auto_origin": False,
    }


def test_a_budget_of_steps_has_no_clock(run: Run, table: Path, tmp_path: Path) -> None:
    assert recorded(run, tmp_path, "--steps", "5")["time"] is None
    assert recorded(run, tmp_path, "--steps", "5", "--time", "2")["time"] == 2.0


def test_errors_reach_the_search(run: Run, table: Path, tmp_path: Path) -> None:
    assert recorded(run, tmp_path, "--errors", "b")["errors"] == "b"


def test_names_with_commas_are_quoted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('"a, m",b,T\n1,2,2\n2,1,4\n3,0,6\n')
    assert recorded(run, tmp_path, "--inputs", '"a, m", b')["inputs"] == ["a, m", "b"]
    done = run("solve", "data.csv", "--inputs", "a, m,b")
    assert done.returncode == 2 and "A name with a comma goes in double quotes" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["solve"], "Missing argument 'TABLE'"),
        (["sovle", "data.csv"], "Did you mean 'solve'?"),
        (["solve", "data.csv", "--targte", "T"], "'--target'"),
        (["solve", "data.csv", "--target", "TT"], "no column 'TT'"),
        (["solve", "data.csv", "--time", "0"], "not greater than 0"),
        (["solve", "data.csv", "--time", "nan"], "not a finite number"),
        (["solve", "data.csv", "--time", "soon"], "not a number"),
        (["solve", "data.csv", "--steps", "0"], "not between 1"),
        (["solve", "data.csv", "--steps", "2.5"], "not a whole number"),
        (["solve", "data.csv", "--seed", "-1"], "not between 0"),
        (["solve", "data.csv", "--noise", "-0.1"], "less than 0"),
        (["solve", "data.csv", "--inputs", "a,,b"], "empty name"),
        (["solve", "data.csv", "--inputs", "a,a"], "named twice"),
        (["solve", "data.csv", "--inputs", '"a'], "no list of names"),
        (["solve", "data.csv", "--loss", "cubic"], "cubic"),
        (["solve", "data.csv", "--device", "tpu"], "tpu"),
        (["solve", "data.csv", "--delimiter", "ab"], "not one character"),
        (["solve", "data.csv", "--resume"], "--resume needs --out"),
        (["solve", "data.csv", "--units", "u.json", "--units-row"], "give the units once"),
        (["export", "run", "--format", "fortran"], "fortran"),
        (["predict", "run"], "Missing argument 'TABLE'"),
        (["predict", "run", "data.csv", "--row", "0"], "not between 1"),
    ],
)
def test_wrong_usage_is_two_and_says_what_to_do(
    table: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(table.parent)
    assert main(words) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert message in stderr
    assert stderr.startswith("error: ")


def test_exit_codes_of_failures(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "file").touch()
    for words, variables, code in (
        (["solve", "bad.csv", "--json"], {}, 3),
        (["solve", "none.csv", "--json"], {}, 4),
        (["solve", "data.csv", "--json", "--out", "file"], {}, 4),
        (["solve", "data.csv", "--json"], {"FAKE_MODE": "memory"}, 4),
        (["solve", "data.csv", "--json"], {"FAKE_MODE": "bug", "TMPDIR": str(tmp_path)}, 1),
    ):
        done = run(*words, **variables)
        assert (done.returncode, done.stdout) == (code, ""), (words, done.stderr)
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists(), "no empty run folders are left behind"


def test_nothing_found_is_five_and_prints_the_document(run: Run, table: Path) -> None:
    done = run("solve", "data.csv", "--json", FAKE_MODE="none")
    assert done.returncode == 5
    document = json.loads(done.stdout)
    assert (document["status"], document["best"], document["pareto"]) == ("none", None, [])
    done = run("solve", "data.csv", FAKE_MODE="none")
    assert (done.returncode, done.stdout) == (5, "")
    assert "no formula with finite values was found" in done.stderr


def test_a_bug_is_one_line_and_a_file(run: Run, table: Path, tmp_path: Path) -> None:
    done = run("solve", "data.csv", FAKE_MODE="bug", TMPDIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    (report,) = tmp_path.glob("physdiffuser-error-*.txt")
    assert str(report) in done.stderr
    assert "KeyError" in report.read_text()
    done = run("solve", "data.csv", FAKE_MODE="bug", PHYSDIFFUSER_DEBUG="1")
    assert "Traceback" in done.stderr


def test_resume_starts_from_the_formulas_of_the_earlier_run(run: Run, table: Path, tmp_path: Path) -> None:
    done = run("solve", "data.csv", "--out", "run", "--resume")
    assert "nothing to resume" in done.stderr
    formulas = [
        row["expression"] for row in json.loads((tmp_path / "run" / "result.json").read_text())["pareto"]
    ]
    options = recorded(run, tmp_path, "--out", "run", "--resume")
    assert sorted(options["resumed"]) == sorted(formulas)
    (tmp_path / "run" / "result.json").unlink()
    (tmp_path / "run" / "progress.json").write_text('{"front": ["v_m_s"]}')
    assert recorded(run, tmp_path, "--out", "run", "--resume")["resumed"] == ["v_m_s"]
    assert not (tmp_path / "run" / "progress.json").exists()


def test_resuming_with_another_table_is_a_usage_error(run: Run, table: Path, tmp_path: Path) -> None:
    run("solve", "data.csv", "--out", "run")
    before = (tmp_path / "run" / "result.json").read_text()
    (tmp_path / "other.csv").write_text("m,F\n" + "".join(f"{i},{2 * i}\n" for i in range(1, 20)))
    done = run("solve", "other.csv", "--out", "run", "--resume")
    assert done.returncode == 2
    assert "--resume: the run in 'run' was made from another table" in done.stderr
    assert "here 'F'" in done.stderr
    assert (tmp_path / "run" / "result.json").read_text() == before


def test_resuming_from_what_is_no_result_is_refused(run: Run, table: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "result.json").write_text("{")
    assert run("solve", "data.csv", "--out", "run", "--resume").returncode == 3
    (tmp_path / "run" / "result.json").write_text('{"schema": 99}')
    assert run("solve", "data.csv", "--out", "run", "--resume").returncode == 2


def test_an_earlier_result_is_replaced_with_a_note_but_never_by_nothing(
    run: Run, table: Path, tmp_path: Path
) -> None:
    run("solve", "data.csv", "--out", "run")
    before = (tmp_path / "run" / "result.json").read_text()
    assert run("solve", "data.csv", "--out", "run", FAKE_MODE="none").returncode == 5
    assert (tmp_path / "run" / "result.json").read_text() == before
    assert "replacing the earlier result in run" in run("solve", "data.csv", "--out", "run").stderr


def test_the_table_may_come_from_stdin_or_start_with_a_dash(run: Run, table: Path, tmp_path: Path) -> None:
    assert run("solve", "-", "--json", stdin=table.read_text()).returncode == 0
    (tmp_path / "-odd.csv").write_text(table.read_text())
    assert run("solve", "--json", "--", "-odd.csv").returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_four(table: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, str(FAKE), "solve", "data.csv", "--json"],
            cwd=tmp_path,
            env=program_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 4
    assert "No space left on device" in done.stderr


def test_names_that_an_ascii_terminal_cannot_show(run: Run, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("θ,\x9b2J\n1,2.1\n2,3.9\n3,6.2\n", encoding="utf-8")
    done = run("solve", "data.csv", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert "\\x9b2J = 2.036*\\u03b8" in done.stdout
    assert done.stdout.isascii()


@pytest.mark.skipif(os.name != "posix", reason="needs the processor time of children")
def test_help_is_quick_and_lists_the_commands() -> None:
    """Processor time, so that a busy machine does not fail it: alone it takes as long on the clock."""
    import resource

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    times = []
    for _ in range(3):
        before = used()
        done = subprocess.run(
            [sys.executable, "-m", "physdiffuser", "--help"],
            env=program_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(used() - before)
    assert min(times) < 0.5
    for command in ("solve", "predict", "export"):
        assert f"\n  {command} " in done.stdout


def test_the_program_alone_greets() -> None:
    done = subprocess.run([sys.executable, "-m", "physdiffuser"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == ""
    assert "physdiffuser solve data.csv" in done.stdout and "--help" in done.stdout
