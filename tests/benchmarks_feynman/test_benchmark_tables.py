"""Sampled tables: the same to the bit, noise as defined, exports that read back equal."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks_feynman.export import export, table_csv
from benchmarks_feynman.judge import widened
from benchmarks_feynman.sampling import DUMMY_RANGE, sample
from benchmarks_feynman.suites import LawVariable, load_suite, select
from benchmarks_feynman.tasks import Settings
from physdiffuser.errors import FileError

(KINETIC,) = select(["tiers"], ["feynman_007"])


def test_a_table_is_pinned_to_the_bit() -> None:
    # Only + - * / in this law, which IEEE arithmetic rounds alike everywhere.
    table = sample(KINETIC, rows=100, seed=7)
    content = table.inputs.tobytes() + table.target.tobytes()
    digest = "cbdcef7fcaffdfed839d717b2e5787a85edb35c504692efbe8d5659b668642c7"
    assert hashlib.sha256(content).hexdigest() == digest


@settings(max_examples=30, deadline=None)
@given(
    law=st.sampled_from([law for suite in ("fsred", "tiers", "ood", "dev") for law in load_suite(suite)]),
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 60),
    dummy=st.integers(0, 3),
)
def test_tables_repeat_stay_in_range_and_grow_by_appending(law, seed, rows, dummy) -> None:  # type: ignore[no-untyped-def]
    table = sample(law, rows=rows, seed=seed, noise=0.1, dummy=dummy)
    again = sample(law, rows=rows, seed=seed, noise=0.1, dummy=dummy)
    assert table.inputs.tobytes() == again.inputs.tobytes()
    assert table.target.tobytes() == again.target.tobytes()
    longer = sample(law, rows=2 * rows, seed=seed, dummy=dummy)
    assert np.array_equal(longer.inputs[:rows], table.inputs)
    low = [variable.low for variable in law.variables] + [DUMMY_RANGE[0]] * dummy
    high = [variable.high for variable in law.variables] + [DUMMY_RANGE[1]] * dummy
    slack = 1 + 1e-12  # a logarithmic range may round outwards
    assert (table.inputs >= np.minimum(np.multiply(low, slack), np.divide(low, slack))).all()
    assert (table.inputs <= np.maximum(np.multiply(high, slack), np.divide(high, slack))).all()
    assert len(set(table.names)) == len(law.names) + dummy


def test_seeds_laws_and_streams_differ() -> None:
    first = sample(KINETIC, rows=10, seed=0).inputs
    (momentum,) = select(["tiers"], ["feynman_006"])
    others = [
        sample(KINETIC, rows=10, seed=1).inputs,
        sample(KINETIC, rows=10, seed=0, stream="test").inputs,
        sample(momentum, rows=10, seed=0).inputs,
    ]
    assert not any(np.isin(first, other).any() for other in others)


def test_noise_is_relative_to_the_root_mean_square_and_only_on_training_targets() -> None:
    table = sample(KINETIC, rows=20_000, noise=0.1)
    error = table.target - table.clean
    assert np.std(error) == pytest.approx(0.1 * np.sqrt(np.mean(table.clean**2)), rel=0.03)
    test = sample(KINETIC, rows=100, noise=0.1, stream="test")
    assert np.array_equal(test.target, test.clean)
    # the same rows whatever the noise
    assert np.array_equal(table.inputs, sample(KINETIC, rows=20_000).inputs)


def test_outliers_and_scatter_disturb_as_many_rows_as_they_say() -> None:
    table = sample(replace(KINETIC, outliers=0.05), rows=1000)
    assert np.sum(table.target != table.clean) == 50
    table = sample(replace(KINETIC, relative_noise=0.02), rows=20_000)
    assert np.std(table.target / table.clean - 1) == pytest.approx(0.02, rel=0.03)


def test_an_export_reads_back_to_the_same_bits(tmp_path: Path) -> None:
    laws = select(["tiers", "dev"], ["feynman_007", "dev_096"])
    assert export(laws, tmp_path, Settings(rows=20, dummy=1, units=True), seed=3, noise=0.01) == 2
    with (tmp_path / "laws.csv").open(encoding="utf-8") as stream:
        index = list(csv.DictReader(stream))
    assert [row["id"] for row in index] == [law.id for law in laws]
    for law, row in zip(laws, index, strict=True):
        content = (tmp_path / row["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"]
        lines = list(csv.reader(content.decode().splitlines()))
        table = sample(law, rows=20, seed=3, noise=0.01, dummy=1)
        assert lines[0] == [*table.names, table.output]
        read = np.array(lines[1:], dtype=np.float64)
        assert np.array_equal(read, np.column_stack([table.inputs, table.target]))
    units = json.loads((tmp_path / "tiers" / "feynman_007.units.json").read_text())
    assert units == {"m": "kg", "v": "m/s", "extra1": "1", "K": "J"}
    assert not (tmp_path / "dev" / "dev_096.units.json").exists()


def test_an_exported_table_is_read_by_the_program(tmp_path: Path) -> None:
    from physdiffuser.data import load_dataset

    for law in load_suite("fsred")[::10]:
        table = sample(law, rows=30)
        path = tmp_path / f"{law.id}.csv"
        path.write_text(table_csv(table))
        dataset = load_dataset(str(path), target=law.output)
        assert dataset.names == law.names
        assert np.array_equal(dataset.inputs, table.inputs)
        assert np.array_equal(dataset.target, table.target)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot create the folder"):
        export([KINETIC], tmp_path / "file" / "below", Settings(), seed=0, noise=0.0)


def test_extrapolation_ranges_are_wider_and_keep_the_sign() -> None:
    assert widened(LawVariable("x", 1, 5)) == LawVariable("x", 0.5, 7)
    assert widened(LawVariable("x", -1, 1)) == LawVariable("x", -2, 2)
    assert widened(LawVariable("x", 4, 5)) == LawVariable("x", 3.5, 5.5)
    assert widened(LawVariable("x", 1, 100, "log")) == LawVariable("x", 0.1, 1000, "log")
