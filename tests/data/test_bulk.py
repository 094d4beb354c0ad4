"""The shortcut for large tables gives what the careful reader gives, or nothing."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from physdiffuser.data import load_dataset
from physdiffuser.data.readers import delimited
from physdiffuser.data.readers import formats as readers
from physdiffuser.data.readers.body import parse_plain_block
from physdiffuser.data.readers.cells import NumberFormat
from physdiffuser.data.readers.encoding import BLOCK, FIRST_BLOCK
from physdiffuser.errors import DataError


@pytest.mark.parametrize("decimal", [".", ","])
def test_any_string_of_number_characters(decimal: str) -> None:
    rng = random.Random(7)
    careful = NumberFormat(decimal)
    agreed = 0
    for _ in range(4000):
        cell = "".join(rng.choice("0123456789+-eE" + 3 * decimal) for _ in range(rng.randint(1, 6)))
        found = parse_plain_block(f"1;{cell}\n".encode(), ";", decimal, 2)
        expected = careful.number(cell)
        if found is not None:
            assert expected is not None, cell
            assert found[0, 1] == expected, cell
            agreed += 1
        else:
            assert expected is None or abs(expected) >= 2.0**63, cell
    assert agreed > 1000


def test_conversion_is_exact() -> None:
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 2**64, 40_000, dtype=np.uint64)
    values = bits.view(np.float64)
    values = values[np.isfinite(values) & (np.abs(values) < 2.0**63)][: 2 * 8000].reshape(-1, 2)
    text = "".join(f"{a!r},{b:.20e}\n" for a, b in values.tolist())
    found = parse_plain_block(text.encode(), ",", ".", 2)
    assert found is not None
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize(
    "block",
    [
        b"1,2\n3\n",
        b"1,2\n3,4,5\n",
        b"1,2,3\n4\n",
        b"1,\n3,4\n",
        b"1,2\n\n3,4\n",
        b"1,2\n3,nan\n",
        b'1,2\n"3",4\n',
        b"1,2\n#3,4\n",
        b"1, 2\n",
        b"1,1e400\n",
        b"1,9223372036854775808\n",
        b"1,2\n,3\n4,5\n",
        b",1\n2,3\n",
        b"1,2\r\n",
    ],
)
def test_anything_unusual_is_left_to_the_careful_reader(block: bytes) -> None:
    assert parse_plain_block(block, ",", ".", 2) is None


def _write(path: Path, rows: int, change: dict[int, str]) -> np.ndarray:
    values = np.random.default_rng(rows).normal(size=(rows, 3))
    with path.open("w") as file:
        file.write("a,b,y\n")
        for index, row in enumerate(values.tolist()):
            file.write(change.get(index) or ",".join(map(repr, row)) + "\n")
    return values


@pytest.fixture
def from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    careful = delimited.read_delimited
    monkeypatch.setattr(readers, "read_delimited", lambda *args, **more: careful(*args, **more, bulk_bytes=0))


@pytest.mark.usefixtures("from_the_start")
def test_blocks_of_both_kinds_mix(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = (FIRST_BLOCK + 3 * BLOCK) // 60
    change = {rows // 2: '"7.5",8,9\n', rows // 2 + 1: "# remark\n\n1,,2\n"}
    values = _write(path, rows, change)
    data = load_dataset(path)
    values[rows // 2] = 7.5, 8, 9
    expected = np.delete(values, rows // 2 + 1, axis=0)
    np.testing.assert_array_equal(data.inputs, expected[:, :2])
    np.testing.assert_array_equal(data.target, expected[:, 2])
    assert data.warnings == (f"1 row of {rows:,} left out because of missing values (most in column 'b')",)


@pytest.mark.usefixtures("from_the_start")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1,2\n", "2 fields"),
        ("1,2,3,4\n", "4 fields"),
        ("1,inf,3\n", "infinite"),
        ("1,abc,3\n", "'abc'"),
        ("1,1_0,3\n", "underscores"),
        ("1,1e400,3\n", "1e400"),
        ('1,"2,3\n', "quote"),
    ],
)
def test_the_line_is_named_far_down(tmp_path: Path, line: str, says: str) -> None:
    path = tmp_path / "t.csv"
    rows = (FIRST_BLOCK + 2 * BLOCK) // 60
    _write(path, rows, {rows - 300: line})
    with pytest.raises(DataError, match=f"line {rows - 300 + 2}[,: ]") as caught:
        load_dataset(path)
    assert says in str(caught.value)
