"""Results show themselves: `print`, the prompt, a notebook, LaTeX; and old pickles load."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from solutions import equation, fitted, solution

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.report.html.card import solution_card, sparkline
from physdiffuser.report.html.frame import Page
from physdiffuser.report.html.page import table_row
from physdiffuser.report.text.terminal import render

HOSTILE = "</style><script>alert(1)</script>"


def test_print_shows_the_report_of_the_terminal() -> None:
    made = solution()
    assert str(made) + "\n" == render(made)
    assert str(fitted(names=("a", "v_m_s"))) == "0.731*a"
    assert str(fitted()) == "0.731041*a", "without names, the text as stored"


def test_the_prompt_shows_a_few_lines() -> None:
    law = fitted(names=("a", "v_m_s"), probability=0.87)
    made = solution(law, none_of_these=0.1)
    assert repr(law) == "Equation('0.731*a', complexity=3, rmse=0.25)"
    assert repr(made).splitlines() == [
        "Solution(300 rows, 1 formula)",
        "  T = 0.731*a",
        "  approximate, not verified, R2 0.8750, probability 87 %",
    ]
    nothing = solution(equation("1"), status="none")
    nothing = Solution(**{**vars(nothing), "best": None, "pareto": ()})
    assert repr(nothing) == "Solution(no law of T found; 300 rows, 0 formulas)"
    assert nothing._repr_html_() is None and nothing._repr_latex_() is None


def test_latex_has_the_digits_of_the_report() -> None:
    law = fitted(names=("a", "v_m_s"))
    assert law._repr_latex_() == r"$\displaystyle 0.731 a$"
    assert solution(law)._repr_latex_() == r"$\displaystyle T = 0.731 a$"


class Elements(HTMLParser):
    """Counts the elements of a page, and keeps what refers to elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.references: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.references += [str(value) for name, value in attributes if name in ("src", "href")]


def test_a_notebook_shows_law_table_warnings_and_verdict() -> None:
    rows = (equation("54.3", rmse=2.0), fitted(rmse=0.3, probability=0.9), equation("2*pi*sqrt(a**3/G)"))
    made = solution(*rows, best=rows[1], warnings=("few rows",), none_of_these=0.05)
    html = made._repr_html_()
    assert html is not None
    found = Elements(html)
    assert found.counts["tr"] == 1 + len(rows)
    assert found.counts["circle"] == len(rows), "the sparkline has one dot a row"
    for text in ("not verified", "90 %", "few rows", "<math>", "0.731*a"):
        assert text in html
    assert "script" not in found.counts and found.references == [], "it runs nothing and loads nothing"


def test_what_comes_from_the_table_is_escaped() -> None:
    html = solution_card(solution(target=HOSTILE, warnings=(HOSTILE,)))
    assert "script" not in Elements(html).counts
    assert html.count("&lt;script&gt;") >= 2


def test_the_style_stays_inside_the_card() -> None:
    html = solution_card(solution())
    style = html.split("<style>")[1].split("</style>")[0].strip()
    assert style.startswith(".physdiffuser {") and ":root" not in style
    depth = 0
    for number, sign in enumerate(style):
        depth += (sign == "{") - (sign == "}")
        assert depth > 0 or number < len(".physdiffuser ") or number == len(style) - 1, "one block holds all"
    identifiers = re.findall(r' id="([^"]+)"', html)
    assert identifiers and all(name.startswith(identifiers[0]) for name in identifiers)


def test_one_formula_has_a_card_of_its_own() -> None:
    html = fitted(names=("a", "v_m_s"))._repr_html_()
    assert html is not None and "<math>" in html and "0.731*a" in html
    assert fitted()._repr_html_() is None, "without names there is nothing to write"


def test_the_sparkline_falls_with_the_error() -> None:
    made = solution(equation("1", rmse=10.0), equation("a", rmse=1.0), equation("a*v_m_s", rmse=0.0))
    heights = [y for _, y, _ in sparkline([table_row(made, one, 1) for one in made.pareto]).dots]
    assert heights == sorted(heights) and len(set(heights)) == 3, "pixels grow downwards"


def test_a_field_that_an_old_pickle_lacks_gets_its_default() -> None:
    law = fitted()
    state = {name: value for name, value in vars(law).items() if name not in ("names", "probability")}
    again = Equation.__new__(Equation)
    again.__setstate__(state)
    assert again == law and again.names == () and again.probability is None


def test_the_page_in_a_frame_is_confined() -> None:
    shown = Page('<p class="x">')._repr_html_()
    assert 'sandbox="allow-scripts"' in shown and "&lt;p class=&quot;x&quot;&gt;" in shown


@pytest.mark.parametrize("kind", ["fit", "residuals", "pareto", "partial"])
def test_every_plot_returns_axes(kind: str) -> None:
    import matplotlib as mpl
    import numpy as np
    from matplotlib.axes import Axes
    from test_html import with_rows

    mpl.use("Agg")
    made = with_rows(equation("54.3", rmse=2.0), equation("a*v_m_s"))
    drawn = np.atleast_1d(made.plot(kind, row=2))
    assert len(drawn) == (2 if kind == "partial" else 1)
    assert all(isinstance(one, Axes) and one.get_xlabel() for one in drawn)
    assert np.atleast_1d(made.plot(kind, row=2, axes=drawn if kind == "partial" else drawn[0]))[0] is drawn[0]
