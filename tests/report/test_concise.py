"""The concise notation of a value and its standard error."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from physdiffuser.report.text.digits import concise


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.7304, 0.0041, "1.730(4)"),
        (4.00071, 0.0011, "4.0007(11)"),
        (-0.0123456, 0.00021, "-0.0123(2)"),
        (6.6743e-11, 2e-14, "6.674(2)e-11"),
        (299792458.0, 1200.0, "2.997925(12)e+08"),
        (1481.2, 210.0, "1500(200)"),
        (12.34, 1.2, "12.3(1.2)"),
        (0.03, 0.74, "0.0(7)"),
        (5.0, 0.0996, "5.00(10)"),
        (1e300, 1e298, "1.000(10)e+300"),
        (0.7310412, None, "0.731041"),
        (0.7310412, float("inf"), "0.731041"),
        (2.0, 1e-17, "2"),
    ],
)
def test_the_last_digits_have_their_error_in_brackets(value: float, error: float | None, text: str) -> None:
    assert concise(value, error) == text


sizes = st.floats(1e-290, 1e290)


@given(value=sizes, share=st.floats(1e-12, 1e3))
def test_both_numbers_can_be_read_back(value: float, share: float) -> None:
    """The error to one or two digits, the value to a tenth of it or half a unit of its last digit."""
    error = value * share
    text = concise(value, error)
    found = re.fullmatch(r"(-?[\d.]+)\(([\d.]+)\)(?:e([+-]\d+))?", text)
    assert found, text
    mantissa, bracket, power = found.groups()
    places = len(mantissa.partition(".")[2])
    shown = float(bracket) if "." in bracket or not places else float(bracket) / 10**places
    scale = 10.0 ** int(power or 0)
    assert math.isclose(shown * scale, error, rel_tol=0.35), text
    assert abs(float(mantissa) * scale - value) <= 0.55 * error + 1e-9 * value, text
