"""A sample of what `tools/stress_tables.py` runs, and a check that it counts what it should."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import stress_tables
from table_cases import KINDS

for package in ("openpyxl", "pyarrow"):
    pytest.importorskip(package)


def test_a_sample_of_malformed_tables_of_every_format() -> None:
    outcomes, faults = stress_tables.stress(cases=160, seed=20_000, solved=0.0)
    assert faults == []
    for kind in set(KINDS):
        assert outcomes[f"{kind} accepted"] > 0, kind
        assert outcomes[f"{kind} refused"] > 0, kind


def test_the_whole_program_agrees_with_the_reader() -> None:
    seeds = (20_002, 20_005)
    outcomes = [stress_tables.stress(cases=1, seed=seed, solved=1.0) for seed in seeds]
    assert all(faults == [] for _, faults in outcomes)


def test_changed_numbers_are_counted_as_corruption(monkeypatch: pytest.MonkeyPatch) -> None:
    read = stress_tables.load_dataset

    def wrong(*arguments: object, **options: object) -> object:
        data = read(*arguments, **options)
        return replace(data, target=data.target + 1e-9)

    monkeypatch.setattr(stress_tables, "load_dataset", wrong)
    _, faults = stress_tables.stress(cases=20, seed=20_000, solved=0.0)
    assert {kind for _, kind in faults} == {"silent corruption"}


def test_a_fault_of_the_program_and_a_wrong_exit_code_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress_tables, "solve", lambda case: 1)
    _, faults = stress_tables.stress(cases=1, seed=20_000, solved=1.0)
    assert [kind for _, kind in faults] == ["wrong exit code"]

    def broken(*arguments: object, **options: object) -> object:
        raise KeyError("a bug")

    monkeypatch.setattr(stress_tables, "load_dataset", broken)
    _, faults = stress_tables.stress(cases=1, seed=20_000, solved=0.0)
    assert [kind for _, kind in faults] == ["traceback"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs an alarm signal")
def test_what_takes_too_long_is_interrupted_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*arguments: object, **options: object) -> object:
        while True:
            pass

    monkeypatch.setattr(stress_tables, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(stress_tables, "load_dataset", endless)
    _, faults = stress_tables.stress(cases=1, seed=20_000, solved=0.0)
    assert [kind for _, kind in faults] == ["hang"]
