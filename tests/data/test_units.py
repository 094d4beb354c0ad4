"""Units: their text, their files, and what is said of files that cannot be right."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from physdiffuser.data.arrays import dataset_from_arrays
from physdiffuser.data.statements.constants import PHYSICAL_CONSTANTS, parse_constants
from physdiffuser.data.statements.unit_files import load_units, units_from_row
from physdiffuser.errors import FileError, UsageError
from physdiffuser.units.unit import DIMENSIONLESS, FEYNMAN_BASE, Unit, parse_unit

exponents = st.fractions(min_value=-6, max_value=6, max_denominator=4)
units = st.dictionaries(st.sampled_from(["m", "kg", "s", "A", "K", "mol", "cd", "usd"]), exponents).map(
    Unit.of
)


@given(units)
def test_text_reads_back(unit: Unit) -> None:
    assert Unit.parse(str(unit)) == unit


@given(units, units, exponents)
def test_units_form_a_group(first: Unit, second: Unit, exponent: Fraction) -> None:
    assert first * second == second * first
    assert first * second / second == first
    assert (first * second) ** exponent == first**exponent * second**exponent
    assert hash(first * second) == hash(second * first)
    assert first / first == DIMENSIONLESS


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("kg*m**2/s^2", "J"),
        ("kg m2 s-2", "J"),
        ("kg·m²·s⁻²", "J"),
        ("J/(kg*K)", "m**2/(s**2*K)"),
        ("J / kg / K", "m**2/(s**2*K)"),
        ("m**(1/2)", "m^0.5"),
        ("1/s", "Hz"),
        ("", "1"),
        ("rad", "dimensionless"),
        ("Wb", "V*s"),
        ("T", "Wb/m**2"),
        ("ohm", "V/A"),
    ],
)
def test_notations_of_one_unit(text: str, same: str) -> None:
    assert Unit.parse(text) == Unit.parse(same)


@pytest.mark.parametrize(
    ("text", "unit", "factor"),
    [("km/h", "m/s", 1 / 3.6), ("eV", "J", 1.602176634e-19), ("%", "1", 0.01), ("Å", "m", 1e-10)],
)
def test_names_that_pint_knows(text: str, unit: str, factor: float) -> None:
    pytest.importorskip("pint")
    parsed = parse_unit(text)
    assert parsed.unit == Unit.parse(unit)
    assert parsed.factor == pytest.approx(factor, rel=1e-12)
    assert not parsed.offset


@pytest.mark.parametrize(
    "text",
    [
        "2*m",
        "m^",
        "m/s kg",
        "(m",
        "m)",
        "m**1000",
        "m**(1/0)",
        "furlong_per",
        "__import__('os')",
        "m" * 300,
        "(" * 90,
        "[]",
    ],
)
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_unit(text)


def test_exponents_over_the_feynman_base() -> None:
    assert Unit.from_vector((2, -2, 1, 0, -1), FEYNMAN_BASE) == Unit.parse("C")
    assert Unit.from_vector((2, 1, -2, 0, 0, 0, 0)) == Unit.parse("J")
    with pytest.raises(UsageError, match="4 exponents for 5"):
        Unit.from_vector((1, 2, 3, 4), FEYNMAN_BASE)


def table(names: tuple[str, ...] = ("x", "v (m/s)"), target: str = "E"):
    rows = np.arange(1.0, 9.0).reshape(4, 2)
    return dataset_from_arrays(rows, rows[:, 0], names=names, target_name=target)


@pytest.mark.parametrize(
    "text",
    [
        "x: kg\nv (m/s): m/s\nE: J",
        '{"x": "kg", "v_m_s": [1, 0, -1, 0, 0, 0, 0], "E": {"kg": 1, "m": 2, "s": -2}}',
        "x: [0, 0, 1, 0, 0]\nv (m/s): {m: 1, s: -1}\nE: kg*m^2/s^2\n",
    ],
)
def test_a_file_of_units(text: str, tmp_path: Path) -> None:
    path = tmp_path / "units.yaml"
    path.write_text(text)
    loaded = load_units(path, table())
    assert loaded.units == (Unit.parse("kg"), Unit.parse("m/s"))
    assert loaded.target == Unit.parse("J")
    assert loaded.warnings == ()
    assert loaded.si
    attached = loaded.attach(table())
    assert [column.unit for column in attached.columns] == list(loaded.units)
    assert attached.target_column.unit == loaded.target


def test_incomplete_units_are_ignored_with_a_warning() -> None:
    loaded = load_units({"x": "kg", "E": ""}, table())
    assert loaded.units is None
    assert loaded.target is None
    (warning,) = loaded.warnings
    assert "'v (m/s)', 'E' have none" in warning
    assert loaded.attach(table()).warnings == (warning,)


def test_unknown_column_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no column 'v \(m/z\)'; did you mean 'v \(m/s\)'\?"):
        load_units({"v (m/z)": "m/s"}, table())
    with_more = replace(table(), unused=("dropped",))
    assert load_units({"dropped": "m", "x": "1", "v (m/s)": "1", "E": "1"}, with_more).units
    assert load_units({"G": "N"}, table(), constants=["G"]).named == {"G": Unit.parse("N")}


def test_columns_of_different_size_are_pointed_out() -> None:
    pytest.importorskip("pint")
    consistent = load_units({"x": "km", "v (m/s)": "hour", "E": "km/hour"}, table())
    assert consistent.warnings == ()
    assert not consistent.si
    (mixed,) = load_units({"x": "km", "v (m/s)": "m", "E": "1"}, table()).warnings
    assert "'x' is 1000 SI units" in mixed
    (shifted,) = load_units({"x": "degC", "v (m/s)": "K", "E": "K"}, table()).warnings
    assert "zero of this unit is not zero" in shifted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x: m\nx: kg", "line 2, column 1: the key 'x' stands in line 1 already"),
        ("a: &a [1]\nx: *a", "aliases"),
        ("x: m\n  v: [", "line 2"),
        ("- m\n- s", "must map column names"),
        ("", "must map column names"),
        ("x: [1, 2, 3]", "3 exponents; give 7"),
        ("x: {m: one}", "'one' is no number"),
        ("x: {m: 5e9}", "out of range"),
        ("x: !!python/object/apply:os.system [ls]", "constructor"),
        ("[" * 5000, "nested"),
    ],
)
def test_bad_files_are_refused_with_the_reason(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "units.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_units(path, table())
    assert message in str(error.value)
    assert "units.yaml" in str(error.value)


def test_names_that_yaml_would_change_stay_names(tmp_path: Path) -> None:
    path = tmp_path / "units.yml"
    path.write_text("no: m\n012: s\ny: 1\n")
    loaded = load_units(path, table(("no", "012"), "y"))
    assert loaded.units == (Unit.parse("m"), Unit.parse("s"))
    assert loaded.target == DIMENSIONLESS


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        load_units(tmp_path / "none.json", table())
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="byte 0 is not UTF-8"):
        load_units(tmp_path / "b.json", table())


def test_a_row_of_the_table_gives_units() -> None:
    loaded = units_from_row({"x": "kg", "v (m/s)": "m/s", "E": "J", "dropped": "anything"}, table())
    assert loaded.units == (Unit.parse("kg"), Unit.parse("m/s"))
    bracketed = units_from_row({"x": "[kg]", "v (m/s)": "(m/s)", "E": "[kg m^2 s^-2]"}, table())
    assert (bracketed.units, bracketed.target) == (loaded.units, loaded.target)
    own = units_from_row({"x": "[sheep]", "v (m/s)": "m/s", "E": "J"}, table())
    assert own.units is not None and str(own.units[0]) == "[sheep]"


def test_names_of_columns_are_compared_and_shown_composed() -> None:
    loaded = load_units({" e\u0301 ": "kg", "v": "m", "E": "J"}, table(("\u00e9", "v")))
    assert loaded.units == (Unit.parse("kg"), Unit.parse("m"))
    with pytest.raises(UsageError, match=r"no column 'φ'\. Its columns are 'θ', 'v', 'E'"):
        load_units({"φ": "kg"}, table(("θ", "v")))


def test_physical_constants_agree_with_each_other() -> None:
    value = {symbol: constant.value for symbol, constant in PHYSICAL_CONSTANTS.items()}
    unit = {symbol: constant.unit for symbol, constant in PHYSICAL_CONSTANTS.items()}
    # Relations between them, as CODATA states them; they catch a wrong digit or unit anywhere.
    pi = np.pi
    relations = {
        "alpha": value["e"] ** 2 / (2 * value["epsilon_0"] * value["h"] * value["c"]),
        "a_0": value["hbar"] / (value["m_e"] * value["c"] * value["alpha"]),
        "R_inf": value["alpha"] ** 2 * value["m_e"] * value["c"] / (2 * value["h"]),
        "mu_B": value["e"] * value["hbar"] / (2 * value["m_e"]),
        "mu_0": 1 / (value["epsilon_0"] * value["c"] ** 2),
        "Z_0": value["mu_0"] * value["c"],
        "sigma_SB": 2 * pi**5 * value["k_B"] ** 4 / (15 * value["h"] ** 3 * value["c"] ** 2),
        "b_W": value["h"] * value["c"] / (value["k_B"] * 4.965114231744276),
    }
    for symbol, expected in relations.items():
        assert value[symbol] == pytest.approx(expected, rel=2e-9), symbol
    assert unit["e"] ** 2 / (unit["epsilon_0"] * unit["h"] * unit["c"]) == DIMENSIONLESS
    assert unit["R_inf"] == unit["m_e"] * unit["c"] / unit["h"]


def test_known_constants_are_read() -> None:
    given_, looked_up, with_unit = parse_constants("G=6.674e-11, c, k=9e9 N*m**2/C**2")
    assert (given_.symbol.name, given_.symbol.value, given_.unit) == ("G", 6.674e-11, None)
    assert looked_up.symbol.value == 299792458.0
    assert looked_up.unit == Unit.parse("m/s")
    assert with_unit.unit == Unit.parse("N*m**2/C**2")
    assert parse_constants({"a": 2.5, "h": None})[1].symbol.value == 6.62607015e-34
    assert parse_constants(None) == parse_constants("") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("G=", "no finite number"),
        ("G=nan", "no finite number"),
        ("G=1_0", "no finite number"),
        ("G=__import__('os')", "no finite number"),
        ("hbat", "did you mean hbar?"),
        ("x=1", "column of that name"),
        ("pi=3", "know that name"),
        ("exp=3", "know that name"),
        ("lambda=3", "identifier"),
        ("2a=3", "identifier"),
        ("G=1,G=2", "twice"),
        ("G=1 parsec_per", "unknown unit"),
    ],
)
def test_bad_constants_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_constants(text, taken=["x"])
    assert message in str(error.value)


def test_json_with_duplicate_keys_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "units.json"
    path.write_text('{"x": "m", "x": "kg"}')
    assert json.loads(path.read_text()) == {"x": "kg"}  # what a plain reader would make of it
    with pytest.raises(UsageError, match="stands in line 1 already"):
        load_units(path, table())
