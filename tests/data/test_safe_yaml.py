"""YAML from outside, without its traps."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from physdiffuser.errors import UsageError
from physdiffuser.io.safe_yaml import load_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e-4", 5e-4),
        ("no", "no"),
        ("on", "on"),
        ("012", 12),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("2020-01-01", "2020-01-01"),
        ("12:30:45", "12:30:45"),
        ("true", True),
        ("~", None),
        ("", None),
        (".inf", float("inf")),
        ("-1.5e3", -1500.0),
        ("nothing", "nothing"),
        ('"5"', "5"),
        ("[1, 2.5, x]", [1, 2.5, "x"]),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    assert load_yaml(f"key: {text}", "test") == {"key": value}
    assert type(load_yaml(f"key: {text}", "test")["key"]) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a: &x 1\nb: *x",
        "a: !!python/object/apply:os.system ['true']",
        "a: !!python/name:os.system",
        "a: !!binary aGVsbG8=",
        "a: !!set {x}",
        "? [1]\n: 2",
        "a: \x00",
        "- 1\n---\n- 2",
        "[" * 100,
        "x" * 1_000_001,
    ],
)
def test_what_is_ambiguous_or_hostile_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^test") as error:
        load_yaml(text, "test")
    assert "\n" not in str(error.value)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    # UsageError is the only way out: anything else would be a traceback for the user.
    with contextlib.suppress(UsageError):
        load_yaml(text, "test")
