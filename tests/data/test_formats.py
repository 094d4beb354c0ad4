"""Formats besides plain text, and what one may say about a text table."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pytest

from physdiffuser.data import load_dataset, read_table
from physdiffuser.data.readers.encoding import ENCODINGS_TO_TRY
from physdiffuser.errors import DataError, FileError, UsageError

TEXT = "a,b,y\n1,2.5,3\n4,5.25,7\n6,1.5,9\n2,8,1\n"
VALUES = np.array([[1, 2.5, 3], [4, 5.25, 7], [6, 1.5, 9], [2, 8, 1]])


def _same(path: object, **options: object) -> None:
    data = load_dataset(path, **options)
    np.testing.assert_array_equal(np.column_stack([data.inputs, data.target]), VALUES)
    assert data.warnings == ()
    assert [column.name for column in data.columns] == ["a", "b"]


def _write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (TEXT, "comma"),
        (TEXT.replace(",", ", "), "comma"),
        (TEXT.replace(",", "\t"), "tab"),
        (TEXT.replace(",", ";"), "semicolon"),
        (TEXT.replace(",", ";").replace(".", ","), "semicolon with decimal comma"),
        (TEXT.replace(",", "\t").replace(".", ","), "tab with decimal comma"),
        (TEXT.replace(",", "|"), "vertical bar"),
        (TEXT.replace(",", "  "), "whitespace"),
        (TEXT.replace(",", "  ").replace(".", ","), "whitespace with decimal comma"),
        (TEXT.replace(",", " ").replace("a b y", '"a"  "b" "y"'), "whitespace"),
    ],
)
def test_dialects(tmp_path: Path, text: str, dialect: str) -> None:
    path = _write(tmp_path, text)
    _same(path)
    assert load_dataset(path).notes["dialect"] == dialect


def test_decimal_commas_beside_points_in_thousands(tmp_path: Path) -> None:
    path = _write(tmp_path, "x;y\n" + "".join(f"{i},5;{i}.{100 + i},25\n" for i in range(1, 9)))
    with pytest.raises(DataError, match=r"line 2, column 2 'y': '1.101,25'.*--thousands"):
        load_dataset(path)
    data = load_dataset(path, thousands=".")
    assert data.inputs[0, 0] == 1.5 and data.target[0] == 1101.25


def test_unusual_delimiter_has_to_be_named(tmp_path: Path) -> None:
    path = _write(tmp_path, TEXT.replace(",", ":"))
    with pytest.raises(DataError, match="--delimiter"):
        load_dataset(path)
    _same(path, delimiter=":")


def test_decimal_comma_in_the_first_fraction_far_down(tmp_path: Path) -> None:
    rows = [f"{i};{i + 1};{3 * i}" for i in range(400)] + ["7,5;1;2"]
    data = load_dataset(_write(tmp_path, "a;b;y\n" + "\n".join(rows)))
    assert data.inputs[-1, 0] == 7.5


def test_point_and_comma_in_one_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2.*decimal comma"):
        load_dataset(_write(tmp_path, "a;y\n1,5;2\n1.5;3\n2,5;4\n"))
    with pytest.raises(DataError, match="thousands"):
        load_dataset(_write(tmp_path, "a;y\n1.5;2\n1,500;3\n2.5;4\n"))


def test_thousands(tmp_path: Path) -> None:
    data = load_dataset(_write(tmp_path, "a;y\n1.234,5;2\n2.000.000;3\n5;4\n"), thousands=".")
    np.testing.assert_array_equal(data.inputs[:, 0], [1234.5, 2e6, 5])
    with pytest.raises(DataError, match="12,34"):
        load_dataset(_write(tmp_path, 'a,y\n"12,34",2\n3,4\n'), thousands=",")


def test_header_can_be_said(tmp_path: Path) -> None:
    path = _write(tmp_path, "400,500,600\n1,2,3\n2,1,5\n")
    assert load_dataset(path).rows == 3
    assert [column.name for column in load_dataset(path, header=True).columns] == ["400", "500"]
    path = _write(tmp_path, "1,2,x\n1,2,y\n3,4,z\n")
    with pytest.raises(DataError, match="--no-header"):
        load_dataset(path)
    assert load_dataset(path, header=False).rows == 3


def test_names_in_a_comment(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    np.savetxt(path, VALUES, header="a b y")
    data = load_dataset(path)
    assert [column.name for column in data.columns] == ["a", "b"]
    assert len(data.warnings) == 1


def test_units_row(tmp_path: Path) -> None:
    path = _write(tmp_path, TEXT.replace("\n", "\nm,m/s,kg\n", 1))
    data = load_dataset(path, units_row=True)
    assert data.unit_strings == {"a": "m", "b": "m/s", "y": "kg"}
    assert read_table(path, units_row=True).unit_strings == data.unit_strings
    assert data.columns[0].unit is None
    np.testing.assert_array_equal(data.target, VALUES[:, 2])


def test_quoted_line_break_in_a_label(tmp_path: Path) -> None:
    text = 'a,remark,y\n1,"two\nlines",3\n4,x,7\n6,y,9\n'
    data = load_dataset(_write(tmp_path, text))
    np.testing.assert_array_equal(data.target, [3, 7, 9])


def test_stray_quote_does_not_swallow_a_row(tmp_path: Path) -> None:
    text = 'a,remark,y\n1,"two,3\n4,x",7\n6,y,9\n8,z,3\n'
    with pytest.raises(DataError, match="line 2: a quote"):
        load_dataset(_write(tmp_path, text))


def test_gzip_and_encodings(tmp_path: Path) -> None:
    _same(_write(tmp_path, gzip.compress(TEXT.encode("utf-16")), "t.gz"))
    _same(_write(tmp_path, TEXT.encode("utf-16-le")), encoding="utf-16-le")
    _same(_write(tmp_path, TEXT.encode("cp1252")), encoding="windows-1252")
    with pytest.raises(DataError, match="utf-16-le"):
        load_dataset(_write(tmp_path, TEXT.encode("utf-16-le")))
    for name in ("no-such", "base64", "rot13"):
        with pytest.raises(UsageError, match="--encoding"):
            load_dataset(_write(tmp_path, TEXT), encoding=name)
    for content in (gzip.compress(gzip.compress(TEXT.encode())), gzip.compress(b"\x80\x04\x95abc")):
        with pytest.raises(DataError):
            load_dataset(_write(tmp_path, content, "t.csv.gz"))


@pytest.mark.parametrize(
    "head",
    [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"BZh91", b"\xfd7zXZ\x00", b"\x93NUMPY", b"ARROW1", b"%PDF-1.4",
     b"SQLite format 3\x00", b"\x89PNG", b'{"a": 1}', b"[[1, 2], [3, 4]]"],
)  # fmt: skip
def test_other_files_are_named(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(DataError, match="this is"):
        load_dataset(_write(tmp_path, head + b"\n1,2\n3,4\n"))


def test_no_format_can_be_reached_by_a_wrong_name(tmp_path: Path) -> None:
    for name in ("t.xlsx", "t.parquet"):
        with pytest.raises(DataError, match="damaged"):
            load_dataset(_write(tmp_path, "not a container", name))


@pytest.mark.parametrize(
    "source", ["", "\0", "a\0b.csv", "x" * 5000, "http://example.org/t.csv", "no/such/t.csv"]
)
def test_paths(source: str) -> None:
    with pytest.raises(FileError) as caught:
        load_dataset(source)
    assert str(caught.value).isprintable()


def test_standard_input_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(TEXT.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    _same("-")
    assert not stdin.closed


def test_excel(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    for row in ([], [None, "a", "b", "y"], *([None, *row] for row in VALUES.tolist()), [None, None]):
        sheet.append(row)
    book.create_sheet("more")
    path = tmp_path / "t.xlsx"
    book.save(path)
    _same(path)
    assert load_dataset(path).notes["sheet"] == "Sheet"
    sheet["C4"] = "five"
    book.save(path)
    with pytest.raises(DataError, match="line 4, column 2 'b': 'five'"):
        load_dataset(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="damaged"):
        load_dataset(path)


def test_excel_dates_and_empty_sheets(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    import datetime

    path = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    book.save(path)
    with pytest.raises(DataError, match="empty"):
        load_dataset(path)
    for row in (["t", "y"], [datetime.date(2024, 1, 1), 1], [datetime.date(2024, 1, 2), 2]):
        book.active.append(row)
    book.save(path)
    with pytest.raises(DataError, match="date"):
        load_dataset(path)


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    table = pyarrow.table({"a": [1, 4, 6, 2], "b": VALUES[:, 1], "y": VALUES[:, 2].astype("float32")})
    parquet.write_table(table, path)
    _same(path)
    mixed = pyarrow.table(
        {
            "label": ["p", "q", None, "s"],
            "flag": [True, False, None, True],
            "a": [1.0, None, 6.0, 2.0],
            "y": pyarrow.array([1, 2, 3, 4]).dictionary_encode(),
        }
    )
    parquet.write_table(mixed, path)
    data = load_dataset(path)
    np.testing.assert_array_equal(data.target, [1, 4])
    assert len(data.warnings) == 4  # text left out, truth values, gaps, and then a constant
    for bad, says in (
        ([[1], [2]], "no type for numbers"),
        (pyarrow.array([0, 1], pyarrow.timestamp("s")), "date"),
        ([float("inf"), 1.0], "infinite"),
    ):
        parquet.write_table(pyarrow.table({"a": bad, "y": [1, 2]}), path)
        with pytest.raises(DataError, match=says):
            load_dataset(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="damaged"):
        load_dataset(path)


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(VALUES, columns=["a", "b", "y"])
    _same(frame)
    _same(frame.astype(str))
    _same(frame.convert_dtypes())
    _same(frame.astype(object))
    wide = pandas.DataFrame({"a": [1, 2, 3], "k": ["p", "q", "r"], "y": [2.0, None, 6.0], 5: [1, 4, 9]})
    data = load_dataset(wide, target="y")
    assert [column.name for column in data.columns] == ["a", "5"]
    assert data.names == ("a", "x_5")
    np.testing.assert_array_equal(data.inputs, [[1, 1], [3, 9]])
    for bad, says in (
        ([1 + 2j, 1, 2], "complex"),
        (pandas.to_datetime(["2024-01-01"] * 3), "date"),
        ([1.0, float("inf"), 2.0], "row 2"),
        ([1.0, "x", 2.0], "'x'"),
    ):
        with pytest.raises(DataError, match=says):
            load_dataset(pandas.DataFrame({"a": bad, "y": [1, 2, 3]}))
    with pytest.raises(DataError, match="called 'a'"):
        load_dataset(pandas.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(DataError, match="levels"):
        load_dataset(pandas.DataFrame([[1, 2]], columns=pandas.MultiIndex.from_tuples([("a", 1), ("a", 2)])))
    with pytest.raises(UsageError, match=r"solve\(X, y\)"):
        load_dataset(VALUES)
    for empty in (pandas.DataFrame(), pandas.DataFrame({"a": [], "y": []})):
        with pytest.raises(DataError):
            load_dataset(empty)


def test_a_title_above_the_names_is_pointed_out(tmp_path: Path) -> None:
    rows = "".join(f"{i}.5,{2 * i + 1}\n" for i in range(1, 9))
    with pytest.raises(DataError, match=r"line 2 has 2 fields.*remove what stands above it"):
        load_dataset(_write(tmp_path, "ACME export\nSerial,12345\n\nx,y\n" + rows))
    with pytest.raises(DataError, match=r"line 2.*'x' stands above numbers.*remove what stands above them"):
        load_dataset(_write(tmp_path, "ACME,export\nx,y\n" + rows))


@pytest.mark.parametrize(
    "name",
    [
        *("punycode", "idna", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"),
        *("hex", "rot13", "base64", "uu", "zlib", "quopri", "no-such", "", "\0"),
    ],
)
def test_encodings_in_which_no_table_is_written_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--encoding: .* is no encoding of text tables\. Try utf-8, "):
        load_dataset(_write(tmp_path, TEXT), encoding=name)


@pytest.mark.parametrize(
    "name",
    [
        *("ascii", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "iso8859-15"),
        *("mac-roman", "koi8-r", "shift_jis", "shift_jis_2004", "iso2022_jp", "gb18030", "euc_kr", "cp500"),
    ],
)
def test_encodings_of_tables_are_read(name: str, tmp_path: Path) -> None:
    _same(_write(tmp_path, TEXT.encode(name)), encoding=name)


def test_every_encoding_that_the_message_lists_is_read(tmp_path: Path) -> None:
    for name in ENCODINGS_TO_TRY.replace(" or ", ", ").split(", "):
        _same(_write(tmp_path, TEXT.encode(name)), encoding=name)
