"""Names of columns and what stands for them inside expressions."""

from __future__ import annotations

import keyword
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from physdiffuser.data import assign_aliases, load_dataset, neutralise, visible
from physdiffuser.data.aliases import FUNCTION_NAMES, needs_alias

GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"),
    *("nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
)
HOSTILE = (
    "__import__('os').system('x')",
    "__debug__",
    "__class__",
    "a;b",
    "a\\b",
    "x\u202ey",
    "\U0001d465",
    "ﬁ",
)


@pytest.mark.parametrize(
    ("name", "alias"),
    [
        ("E", "E"),
        ("θ", "θ"),
        ("beta", "beta"),
        ("match", "match"),
        ("v (m/s)", "v_m_s"),
        ("lambda", "lambda_"),
        ("None", "None_"),
        ("sin", "sin_"),
        ("pi", "pi_"),
        ("2010", "x_2010"),
        ("∆T", "DeltaT"),
        ("x'", "x_prime"),
        ("100 %", "x_100_percent"),
        ("=1+1", "x_1_1"),
        ("()", "x"),
        (unicodedata.normalize("NFD", "é"), "é"),
        ("µ", "μ"),
        ("__debug__", "debug"),
    ],
)
def test_readable(name: str, alias: str) -> None:
    assert assign_aliases([name]) == (alias,)


def test_names_that_are_fine_keep_themselves_whatever_stands_before() -> None:
    assert assign_aliases(["v (m/s)", "v_m_s", "v m s"]) == ("v_m_s_2", "v_m_s", "v_m_s_3")
    assert assign_aliases(["lambda", "lambda_", "lambda_2"]) == ("lambda_3", "lambda_", "lambda_2")


@given(st.lists(st.text(min_size=1, max_size=30), unique=True, max_size=12))
def test_any_names(names: list[str]) -> None:
    aliases = assign_aliases(names)
    assert len(set(aliases)) == len(names)
    assert not any(needs_alias(alias) for alias in aliases)
    assert aliases == assign_aliases(names)
    for name, alias in zip(names, aliases, strict=True):
        assert needs_alias(name) or alias == name


def _all_names() -> list[str]:
    sympy = pytest.importorskip("sympy")
    return list(
        dict.fromkeys(
            [*sympy.__all__, *GREEK, *keyword.kwlist, *keyword.softkwlist, *FUNCTION_NAMES, *HOSTILE]
        )
    )


def test_every_name_survives_as_a_column(tmp_path: Path) -> None:
    names = _all_names()
    assert len(names) > 921
    path = tmp_path / "table.csv"
    for start in range(0, len(names), 90):
        part = names[start : start + 90]
        header = ",".join('"' + name.replace('"', '""') + '"' for name in part)
        rows = [[(i * 37 + j * 11) % 101 + 0.5 for j in range(len(part) + 1)] for i in range(3)]
        path.write_text(
            f"{header},last column\n" + "".join(",".join(map(str, row)) + "\n" for row in rows),
            encoding="utf-8",
        )
        data = load_dataset(path)
        assert [column.name for column in data.columns] == part
        assert all(alias.isidentifier() and not keyword.iskeyword(alias) for alias in data.names)
        assert data.aliases["last_column"] == "last column"
        by_alias = load_dataset(path, target="last_column", inputs=list(data.names))
        assert by_alias.columns == data.columns


def test_every_name_survives_in_an_expression() -> None:
    """Written with aliases, read again, and given to sympy and back."""
    expressions = pytest.importorskip("physdiffuser.expressions")
    names = _all_names()
    aliases = assign_aliases(names)
    for alias in aliases:
        tree = expressions.parse(f"2*{alias} + sqrt({alias})", [alias])
        assert expressions.parse(expressions.to_text(tree, [alias]), [alias]) == tree


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("θ (m/s)", "θ (m/s)"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb", "a\\nb"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
        ("x" * 100, "x" * 59 + "…"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_visible_is_always_printable(text: str) -> None:
    assert visible(text).isprintable()


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+x", "'+x"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\t=1", "'\t=1"),
        ("-1.5e-3", "-1.5e-3"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_neutralise(cell: str, safe: str) -> None:
    assert neutralise(cell) == safe
