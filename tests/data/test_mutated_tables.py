"""Damaged tables: either one clear error, or exactly the values that stand in the file.

By default 300 files. `PHYSDIFFUSER_FUZZ=10000 pytest -n 0 tests/data/test_mutated_tables.py` tries more.
"""

from __future__ import annotations

import os
import random
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from mutations import make_sample, reference

from physdiffuser.data import Dataset, load_dataset
from physdiffuser.data.readers import formats as readers
from physdiffuser.errors import PhysdiffuserError

FILES = int(os.environ.get("PHYSDIFFUSER_FUZZ", "300"))
BATCHES = 4
LONGEST_SECONDS = 10.0


def _outcome(path: Path) -> Dataset | str:
    try:
        return load_dataset(str(path))
    except PhysdiffuserError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_error_or_exact_values(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    careful = readers.read_delimited
    accepted = 0
    for seed in range(batch, FILES, BATCHES):
        sample = make_sample(random.Random(seed))
        path = tmp_path / f"{seed}{sample.suffix}"
        path.write_bytes(sample.content)
        start = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = _outcome(path)
            monkeypatch.setattr(
                readers, "read_delimited", lambda *args, **more: careful(*args, **more, bulk_bytes=0)
            )
            shortcut = _outcome(path)
            monkeypatch.undo()
        assert time.monotonic() - start < LONGEST_SECONDS, seed
        if isinstance(result, str):
            assert result.isprintable(), seed
            assert shortcut == result, seed
        else:
            accepted += 1
            found = np.column_stack([result.inputs, result.target])
            assert np.isfinite(found).all(), seed
            expected = reference(sample, result)
            assert np.array_equal(found, expected), seed
            assert isinstance(shortcut, Dataset), (seed, shortcut)
            assert np.array_equal(np.column_stack([shortcut.inputs, shortcut.target]), found), seed
            assert shortcut.warnings == result.warnings, seed
        path.unlink()
    assert accepted > FILES / BATCHES / 10
    assert capfd.readouterr() == ("", "")
