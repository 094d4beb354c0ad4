"""What a long run on a lent machine needs: packed laws, and a compact state."""

from __future__ import annotations

import importlib
import random
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from small_runs import config, metrics

from physdiffuser.config import load_training_config
from physdiffuser.errors import FileError
from physdiffuser.expressions import Apply, Number
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.laws import Law
from physdiffuser.training.loop import Trainer
from physdiffuser.training.packed_laws import PackedLaws
from physdiffuser.training.stream import LawStream, target_skeleton


@pytest.fixture(autouse=True)
def _no_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of all benchmark laws take seconds."""
    monkeypatch.setattr("physdiffuser.training.loop.benchmark_laws", list)


def _stream() -> LawStream:
    data = load_training_config("broad").data
    return LawStream(data, Vocabulary(), 40, 1, Excluded(()))


def test_packed_laws_come_back_as_they_were(tmp_path: Path) -> None:
    laws = list(islice(_stream().laws(random.Random(4)), 200))
    packed = PackedLaws.of(laws)
    packed.write(tmp_path / "laws.npz")
    read = PackedLaws.read(tmp_path / "laws.npz")
    assert len(read) == len(packed) > 150
    kept = [law for law in laws if len(PackedLaws.of([law]))]
    for number in range(len(read)):
        law, before = read[number], kept[number]
        if not any(isinstance(term, Apply) and term.operator in ("add", "sub") for _, term in before.terms):
            # A sum that is a term of a sum comes back as several terms.
            assert target_skeleton(law) == target_skeleton(before)
            assert sorted(sign for sign, _ in law.terms) == sorted(sign for sign, _ in before.terms)
        assert (law.constants, law.free) == (before.constants, before.free)


def test_a_stream_of_packed_laws_depends_on_the_number_of_the_batch_alone(tmp_path: Path) -> None:
    PackedLaws.of(islice(_stream().laws(random.Random(4)), 50)).write(tmp_path / "laws.npz")
    data = load_training_config("broad").data.model_copy(
        update={"laws": str(tmp_path / "laws.npz"), "rows": (20, 40)}
    )
    stream = LawStream(data, Vocabulary(), 40, 1, Excluded(()))
    first, again, other = stream.batch(3, 16), stream.batch(3, 16), stream.batch(4, 16)
    np.testing.assert_array_equal(first.rows, again.rows)
    assert not np.array_equal(first.tokens, other.tokens)


def test_a_packed_law_without_columns_is_passed_over(tmp_path: Path) -> None:
    # Columns of a drawn law may cancel, and what is packed is the sum of its terms.
    nothing = Law(((1, Number(1)),), (), 0, False)
    PackedLaws.of([nothing, *islice(_stream().laws(random.Random(4)), 3)]).write(tmp_path / "laws.npz")
    data = load_training_config("broad").data.model_copy(
        update={"laws": str(tmp_path / "laws.npz"), "rows": (20, 40)}
    )
    batch = LawStream(data, Vocabulary(), 40, 1, Excluded(())).batch(0, 32)
    assert batch.used.any(axis=1).all()


def test_a_file_that_holds_no_laws_is_named(tmp_path: Path) -> None:
    (tmp_path / "laws.npz").write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"laws\.npz"):
        PackedLaws.read(tmp_path / "laws.npz")


@pytest.fixture(name="compact")
def _compact(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool that packs a run."""
    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "tools")
    return importlib.import_module("compact_state")


def test_a_run_goes_on_from_a_compact_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compact: ModuleType
) -> None:
    monkeypatch.setattr(compact, "LARGEST", 4_000)
    first = Trainer(config(tmp_path / "one", steps=4))
    first.run()
    files = compact.pack(tmp_path / "one", tmp_path / "state")
    assert len(files) > 3
    assert compact.unpack(tmp_path / "state", tmp_path / "two") == 4
    second = Trainer(config(tmp_path / "two", steps=6), resume=True)
    assert second.step == 4
    for name, tensor in second.average.items():
        torch.testing.assert_close(tensor, first.average[name], rtol=1e-3, atol=1e-3)
    second.run()
    assert second.step == 6
    assert np.isfinite(metrics(tmp_path / "two", "train")[-1]["autoregressive"])


def test_a_damaged_compact_state_is_named(tmp_path: Path, compact: ModuleType) -> None:
    Trainer(config(tmp_path / "one", steps=2)).run()
    compact.pack(tmp_path / "one", tmp_path / "state")
    part = tmp_path / "state" / "state-0.safetensors"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(FileError, match=r"state-0\.safetensors"):
        compact.unpack(tmp_path / "state", tmp_path / "two")
