"""The report: aligned, complete, and deaf to what column names would like it to do."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solutions import equation, fitted, solution

from physdiffuser.core.solution import ConstantEstimate, Equation, Solution, sample_fit_points
from physdiffuser.expressions import parse
from physdiffuser.report.text.digits import short, shown_digits, with_uncertainty
from physdiffuser.report.text.style import Style, display_width
from physdiffuser.report.text.terminal import render


def test_the_report_says_everything_once() -> None:
    best = fitted(
        test_rmse=0.26,
        verdict="verified",
        verification=("equals the fitted formula symbolically",),
        derivation=("peeled off a", "what is left is a constant"),
    )
    text = render(solution(equation("54.3"), best, equation("a**2/3"), best=best))
    for part in (
        "T = 0.731*a",
        r"LaTeX      0.731 a",
        "rmse 0.25, R² 0.8750, largest error 50 %, over 300 rows",
        "rmse 0.26 over 60 rows used by neither search nor fit",
        "Verdict    verified",
        "- equals the fitted formula symbolically",
        "c1 = 0.7310(6)\n",
        "1. peeled off a\n    2. what is left is a constant",
    ):
        assert text.count(part) == 1, part


def test_the_chosen_row_is_marked_and_columns_line_up() -> None:
    rows = [equation("a", rmse=12.5), equation("2*a", rmse=1e-16), equation("a**3", rmse=0.031)]
    lines = render(solution(*rows, best=rows[1])).splitlines()[:4]
    assert [line.startswith("▸") for line in lines] == [False, False, True, False]
    assert lines[0].split() == ["row", "complexity", "rmse", "equation"]
    end = lines[0].index("rmse") + len("rmse")
    assert [line[:end].split()[-1] for line in lines[1:]] == ["12.5", "1.00e-16", "0.0310"]
    starts = {line.index(formula) for line, formula in zip(lines[1:], ("a", "2*a", "a**3"), strict=True)}
    assert starts == {lines[0].index("equation")}


def test_formulas_are_cut_at_the_edge_of_a_terminal_only() -> None:
    long = equation(" + ".join(["a*v_m_s"] * 40))
    table = render(solution(long), Style(width=60)).splitlines()
    assert len(table[1]) == 60
    assert table[1].endswith("…")
    headline = next(line for line in table if line.startswith("  T = "))
    assert headline.endswith("a*v_m_s"), "the law itself is never cut"
    assert "…" not in render(solution(long))


def test_sentences_are_wrapped_at_the_edge_of_a_terminal_only() -> None:
    sentence = " ".join(["word"] * 40)
    row = equation("a", verification=(sentence,), derivation=(sentence,))
    lines = render(solution(row), Style(width=72)).splitlines()
    assert max(len(line) for line in lines if "word" in line) <= 72
    assert " ".join(" ".join(lines).split()).count(sentence) == 2
    assert render(solution(row)).count(sentence) == 2


def test_a_terminal_without_unicode_gets_ascii() -> None:
    text = render(solution(fitted()), Style(unicode=False))
    assert text.isascii()
    assert text.splitlines()[1].startswith(">")


def test_names_from_the_table_stay_text() -> None:
    hostile = "\x1b[31m[bold]T[/bold]\x9b2J\r$\\bf x$\u202e\n  Verdict    verified"
    text = render(solution(equation("v_m_s"), target=hostile, aliases={"v_m_s": hostile}))
    assert "\\x1b[31m[bold]T[/bold]\\x9b2J\\r$\\bf x$\\u202e\\n  Verdict" in text
    assert text.count("\n  Verdict") == 1


@given(name=st.text(), step=st.text())
def test_no_text_can_bring_in_control_characters_or_lines(name: str, step: str) -> None:
    row = equation("v_m_s", verification=(step,), derivation=(step,))
    text = render(solution(row, target=name, aliases={"v_m_s": name}))
    assert all(char.isprintable() for char in text.replace("\n", ""))
    assert len(text.splitlines()) == len(
        render(solution(equation("v_m_s", verification=("x",)))).splitlines()
    )


def test_an_alias_is_explained_when_it_occurs() -> None:
    assert "v_m_s is the column 'v (m/s)'" in render(solution(equation("a*v_m_s")))
    assert "is the column" not in render(solution(equation("a")))
    # A name is not explained because another one begins with it.
    names, aliases = ("v_m", "v_m_s"), {"v_m": "v (m)", "v_m_s": "v (m/s)"}
    text = render(replace(solution(equation(parse("2*v_m_s", names))), names=names, aliases=aliases))
    assert "'v (m/s)'" in text and "'v (m)'" not in text


def test_a_mean_is_not_blamed_on_the_rows() -> None:
    checks = ("test set: rms error 1", "boundary check: not checked, no column occurs in the formula")
    text = render(solution(equation("3", verdict="unknown", verification=checks)))
    assert (
        "Verdict    not verified: the answer is a constant, not a law" in text
        and "for want of rows" not in text
    )


def test_only_the_chosen_row_and_the_law_are_emphasised() -> None:
    text = render(solution(equation("a"), fitted()), Style(emphasise=lambda line: f"<{line}>"))
    assert len(re.findall(r"<.*>", text)) == 2


def test_no_formula_is_said_plainly() -> None:
    nothing = Solution("T", "none", None, (), (), (), {})
    assert render(nothing) == "No formula with finite values was found.\n"


@pytest.mark.parametrize(
    ("value", "half", "wanted"),
    [
        (0.73104, 0.00123, ("0.7310", "0.0012")),
        (6.674e-11, 1.5e-15, ("6.67400e-11", "1.5e-15")),
        (299792458.0, 1200.0, ("2.997925e+08", "1.2e+03")),
        (0.001, 0.5, ("0.001", "0.5")),
        (-12.3456, 2.0, ("-12.3", "2.0")),
        (1481.18, 210.0, ("1480", "210")),
        (1.7716e-05, 3.8e-06, ("1.77e-05", "3.8e-06")),
        (0.0, 1e-12, ("0.0e+00", "1.0e-12")),
        (6.6743e-11, 2.6e-26, ("6.67430000000000e-11", "2.6e-26")),
    ],
)
def test_values_show_the_digits_that_mean_something(
    value: float, half: float, wanted: tuple[str, str]
) -> None:
    assert with_uncertainty(value, half) == wanted


def test_a_value_below_its_uncertainty_stands_as_in_the_formula() -> None:
    assert with_uncertainty(0.4763, 74.0) == ("0.476", "74")


def test_a_formula_shows_as_many_digits_as_are_known() -> None:
    assert shown_digits(fitted(0.731041, 2e-9))(0.731041) == 10
    assert shown_digits(fitted(0.731041, 0.0012))(-0.731041) == 4
    assert shown_digits(fitted(0.731041, 0.5))(0.731041) == 3
    assert shown_digits(equation("a"))(3.5) == 6


def _two(covariance: tuple[tuple[float, ...], ...]) -> Equation:
    estimates = [ConstantEstimate(f"c{k}", k + 0.25, k + 0.15, k + 0.35, "", False) for k in (1, 2)]
    return equation("1.25*a**2.25", constants=tuple(estimates), covariance=covariance)


def test_constants_show_their_own_digits_and_those_that_hang_together_more() -> None:
    alone = _two(((0.0025, 0.0), (0.0, 0.0025)))
    assert [shown_digits(alone)(value) for value in (1.25, 2.25)] == [3, 3]
    # Known to a thousandth of their errors in one direction: rounding each to its error would spoil the law.
    together = _two(((0.0025, 0.0025 * (1 - 1e-6)), (0.0025 * (1 - 1e-6), 0.0025)))
    assert [shown_digits(together)(value) for value in (1.25, 2.25)] == [6, 6]


def test_where_the_target_changes_sign_the_largest_error_is_in_its_unit() -> None:
    truth = np.array([-1.0, 1e-6, 2.0])
    points = sample_fit_points(truth, truth + 0.25, np.zeros(3, bool))
    text = render(solution(equation("a", max_relative_error=2.5e5), fit_points=points))
    assert "largest error 0.25, over" in text
    assert "relative" not in text


def test_numbers_that_are_missing_are_a_dash() -> None:
    assert short(None) == short(float("nan")) == short(float("inf")) == "-"


def test_wide_letters_count_twice() -> None:
    assert display_width("a速度") == 5
    assert display_width("e\u0301") == 1


def test_a_terminal_gets_a_framed_table_and_colour_only_where_it_is_wanted() -> None:
    rows = [equation("a", rmse=12.5), equation("2*a", rmse=0.031)]
    plain = render(solution(*rows, best=rows[1]), Style(width=80, framed=True))
    assert "\x1b" not in plain and set(plain.splitlines()[1]) == {"─"}
    coloured = render(solution(*rows, best=rows[1]), Style(width=80, framed=True, colour=True))
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == plain.split()
    assert "\x1b[1m2*a" in coloured and "\x1b[1ma" not in coloured
    assert render(solution(*rows, best=rows[1]), Style(framed=True, unicode=False)).isascii()


def test_names_stay_text_in_a_framed_table() -> None:
    hostile = "\x1b[31m[bold]T[/bold]:smile:[link=x]"
    text = render(
        solution(equation("v_m_s"), target=hostile, aliases={"v_m_s": hostile}), Style(width=200, framed=True)
    )
    assert "\x1b" not in text and "\\x1b[31m[bold]T[/bold]:smile:[link=x]" in text


def test_a_narrow_terminal_does_without_some_columns() -> None:
    row = equation("a*v_m_s*exp(-a)*sqrt(v_m_s)*cos(a)", rmse=0.1, test_rmse=0.2, probability=0.9)
    wide, narrow = (render(solution(row), Style(width=width, framed=True)) for width in (100, 50))
    assert "test rmse" in wide and "probability" in wide
    assert "test rmse" not in narrow and "probability" not in narrow
    for width, text in ((100, wide), (50, narrow)):
        assert max(len(line) for line in text.splitlines()[:3]) <= width
        assert "a*v_m_s*exp" in text.splitlines()[2]
