"""`physdiffuser evaluate` as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import benchmark_fakes as fakes
import pytest

from benchmarks_feynman.systems.formulas import read_formula
from physdiffuser.cli import main
from physdiffuser.errors import DataError
from physdiffuser.expressions import parse


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite", "feynman"], "choose one of fsred, tiers, ood, dev"),
        (["--only", "I.10.8"], "I.10.7"),
        (["--suite", "ood", "--only", "zzz"], "ood_001"),
        (["--peers", "pysr"], "pyoperon, gplearn, pyeggp"),
        (["--peers", "module:benchmark_fakes,"], None),
        (["--scheduler", "slurm"], "local:WORKERS"),
        (["--scheduler", "local:0"], "tcp://HOST:PORT"),
        (["--scheduler", "tcp://127.0.0.1"], "tcp://HOST:PORT"),
        (["--noise", "a"], "numbers separated by commas"),
        (["--noise", "-1"], "numbers from 0"),
        (["--seed", "-1"], "not negative"),
        (["--time", "0"], "--time"),
        (["--every", "0"], "--every"),
        (["--resume"], "--results"),
        (["--no-run"], "--results"),
        (["--peers-only"], "--peers"),
        (["--protocol", "loose"], "srbench"),
        (["--suite", "measured", "--noise", "0.1"], "leave out --noise"),
        (["--suite", "measured,ood", "--rows", "20"], "leave out --noise, --rows"),
        (["--export", "x", "--noise", "0,0.1"], "one --seed and one --noise"),
    ],
)
def test_bad_input_names_what_is_valid(
    arguments: list[str], message: str | None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if message is None:
        arguments = [*arguments, "--export", str(tmp_path)]  # a trailing comma is no mistake
    assert main(["evaluate", *arguments]) == (0 if message is None else 2)
    assert (message or "") in capsys.readouterr().err


def test_export_writes_the_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--suite", "ood", "--export", str(tmp_path), "--rows", "20", "--units"]) == 0
    assert "20 tables" in capsys.readouterr().out
    assert len(list((tmp_path / "ood").glob("*.csv"))) == 20
    assert len(list((tmp_path / "ood").glob("*.units.json"))) == 20


def test_no_results_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--no-run", "--results", str(tmp_path / "missing.jsonl")]) == 4
    assert "cannot read the results" in capsys.readouterr().err


def test_a_whole_run_with_report_and_guard(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    results, report = tmp_path / "results.jsonl", tmp_path / "report"
    command = [sys.executable, "-m", "physdiffuser", "evaluate", "--peers", fakes.NAME, "--peers-only"]
    command += ["--suite", "fsred,tiers", "--only", "I.6.2,I.25.13,feynman_001", "--noise", "0,0.01"]
    command += ["--results", str(results), "--report", str(report), "--json", "--jobs", "1"]
    run = subprocess.run([*command, "--at-least", "2"], env=environment, capture_output=True, timeout=120)
    assert run.returncode == 0, run.stderr
    rates = json.loads(run.stdout)["rates"]
    assert [(entry["suite"], entry["noise"], entry["recovered"]["hits"]) for entry in rates] == [
        ("fsred", 0.0, 1.0),
        ("fsred", 0.01, 1.0),
        ("tiers", 0.0, 1.0),
        ("tiers", 0.01, 1.0),
    ]
    assert len(results.read_text().splitlines()) == 6
    assert (report / "report.html").exists() and (report / "report.md").exists()
    # everything is there: nothing runs, and a guard that asks for more says so
    guard = [*command, "--resume", "--at-least", "3"]
    run = subprocess.run(guard, env=environment, capture_output=True, timeout=120)
    assert run.returncode == 5
    assert b"6 of 6 problems have results" in run.stderr and b"fewer than the 3 asked for" in run.stderr


def test_own_answers_are_recovered_warm_and_cold(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "physdiffuser", "evaluate", "--only", "I.12.1", "--time", "20"]
    command += ["--rows", "100", "--jobs", "1", "--results", str(results), "--resume"]
    for option in ([], ["--cold"]):
        subprocess.run([*command, *option], check=True, timeout=180, capture_output=True)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(line["cold"], line["status"], line["recovered"]) for line in lines] == [
        (False, "exact", True),
        (True, "exact", True),
    ]


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("((0.5 * x1) + (x2 ^ 2))", "0.5*x1 + x2**2"),
        ("Exp((0.1 + (Recip((2.0 * x1)) + Log(x2))))", "exp(0.1 + (1/(2*x1) + log(x2)))"),
        ("x1 ^ Recip(x2)", "x1**(1/x2)"),
        ("(-1.0e-05 * square(sin(x1)))", "-1.0e-05*(sin(x1))**2"),
    ],
)
def test_formulas_of_peers_are_read(text: str, means: str) -> None:
    names = ["x1", "x2"]
    assert read_formula(text, names) == parse(means, names)


@pytest.mark.parametrize("text", ["f(x1", "x1 + nope(2)", "__import__('os')", ""])
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        read_formula(text, ["x1", "x2"])


@pytest.mark.parametrize("peer", ["pyoperon", "gplearn"])
def test_a_peer_finds_a_product(peer: str, tmp_path: Path) -> None:
    pytest.importorskip(peer)
    results = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "physdiffuser", "evaluate", "--only", "I.12.1", "--time", "1"]
    command += ["--peers", peer, "--peers-only", "--snap-peers", "--rows", "200", "--results", str(results)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    (line,) = [json.loads(line) for line in results.read_text().splitlines()]
    assert line["recovered"], line
    assert line["details"]["before_snapping"]
