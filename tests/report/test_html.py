"""The page of a run: complete, self-contained, harmless whatever the table says, readable for everybody."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from solutions import equation, fitted, solution, trees

from physdiffuser import solve
from physdiffuser.core.solution import ColumnSummary, Solution, sample_fit_points
from physdiffuser.report.html import report_html
from physdiffuser.report.runfolder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
CSS = (ROOT / "physdiffuser" / "report" / "html" / "templates" / "report.css").read_text(encoding="utf-8")
HOSTILE = "<img src=x onerror=alert(1)>\"'&</script><script>alert(2)</script>{{7*7}}\x1b[31m"
_VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Tags, ids, references and text of a page; fails on tags that do not close."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def with_rows(*rows: object, **changes: object) -> Solution:
    """A solution that has its rows, as one that comes from `solve`."""
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 5.0, (40, 2))
    truth = 0.731 * inputs[:, 0] + 0.01 * np.sin(40 * inputs[:, 1])
    points = sample_fit_points(truth, 0.731 * inputs[:, 0], inputs[:, 0] > 4, inputs=inputs)
    summary = ColumnSummary("a", "a", "m", 1.0, 3.0, 5.0, 40, 40)
    made = solution(*rows, fit_points=points, rows=40, **changes)  # type: ignore[arg-type]
    described = (summary, replace(summary, name="v (m/s)", alias="v_m_s"), replace(summary, name=made.target))
    return replace(made, summaries=described)


@pytest.fixture(scope="module")
def pendulum() -> Solution:
    rng = np.random.default_rng(1)
    length, gravity = rng.uniform(0.1, 2.0, 60), rng.uniform(1.0, 20.0, 60)
    table = pd.DataFrame({"l": length, "g": gravity, "colour": rng.uniform(0, 1, 60)})
    table["T"] = 2 * np.pi * np.sqrt(length / gravity)
    return solve(table, steps=30)


def test_a_page_says_all_that_a_run_found(pendulum: Solution) -> None:
    page = Page(report_html(pendulum))
    for section in ("law", "why", "front", "constants", "sensitivity", "limits", "data", "reuse"):
        assert section in page.ids
    assert "T = 2*pi*sqrt(l/g)" in page.text
    assert "columns not needed by the law: colour" in page.text
    assert "Evidence: rms error" in page.text
    assert "test set:" in page.text
    assert "def predict_T(l, g):" in page.text
    assert "double predict_T(double l, double g)" in page.text
    assert r"2 \pi \sqrt{\frac{l}{g}}" in page.text
    assert {"math", "mfrac", "msqrt"} <= set(page.tags)
    for number in range(1, len(pendulum.pareto) + 1):
        assert f"law-{number}" in page.ids
        assert f"chart-{number}-1" not in page.ids
        assert f"chart-{number}-1-t" in page.ids
        assert f"chart-{number}-2-t" in page.ids


def test_numbers_have_the_digits_that_mean_something() -> None:
    flat = equation("54.3", r2=2.2e-16)
    page = Page(report_html(with_rows(flat, fitted(), best=fitted()))).text
    assert "0.7310(6)" in page and "0.7298 to 0.7322" in page
    assert "e-16" not in page and "0.0000" in page


def test_a_target_that_passes_zero_has_no_largest_relative_error() -> None:
    made = with_rows(fitted())
    assert "largest relative error 0.5" in Page(report_html(made)).text
    *others, target = made.summaries
    assert target.name == made.target
    through = replace(made, summaries=(*others, replace(target, low=-1.0)))
    assert "largest relative error" not in Page(report_html(through)).text


def test_headings_labels_and_ids_are_in_order(pendulum: Solution) -> None:
    html = report_html(pendulum)
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for tag, attributes in page.attributes:
        for name in ("aria-labelledby", "aria-controls", "data-copy"):
            assert set((attributes.get(name) or "").split()) <= set(page.ids)
        if tag == "svg" and attributes.get("aria-hidden") != "true":
            assert attributes.get("role") and attributes.get("aria-labelledby")
        if (attributes.get("href") or "").startswith("#"):
            assert (attributes["href"] or "")[1:] in page.ids
    assert '<html lang="en"' in html and 'name="viewport"' in html


def test_nothing_is_loaded_from_anywhere(pendulum: Solution) -> None:
    html = report_html(pendulum)
    assert not re.search(r"https?://|//[a-z]+\.|@import|url\((?!data:)", html)
    for tag, attributes in Page(html).attributes:
        assert "src" not in attributes
        assert tag != "link" or attributes["href"] == "data:,"
        assert not any(name.startswith("on") for name in attributes)
    assert "default-src 'none'" in html


def test_a_hostile_name_is_text_and_nothing_else() -> None:
    columns = (f"a{HOSTILE}", f"v{HOSTILE}")
    honest = report_html(with_rows(target="T", columns=("a", "v (m/s)")))
    made = with_rows(
        fitted(verification=(f"algebra: {HOSTILE}",), derivation=(f"did {HOSTILE}",), generator=HOSTILE),
        target=f"T{HOSTILE}",
        columns=columns,
        aliases={"a": columns[0], "v_m_s": columns[1], "T": f"T{HOSTILE}"},
        warnings=(HOSTILE,),
        notes={HOSTILE: HOSTILE},
        version=HOSTILE,
    )
    summary = made.summaries[0]
    made = replace(
        made, summaries=tuple(replace(summary, name=HOSTILE, alias=HOSTILE, unit=HOSTILE) for _ in range(3))
    )
    html = report_html(made)
    page = Page(html)
    assert page.tags.count("script") == 1
    assert set(page.tags) <= set(Page(honest).tags) | {"ul", "li", "h3", "p", "div", "h2", "ol"}
    assert "img" not in page.tags
    assert not any(name.startswith("on") for _, attributes in page.attributes for name in attributes)
    assert "\x1b" not in html
    assert "{{7*7}}" in page.text and "49" not in page.text.split("{{7*7}}")[0][-20:]


@settings(max_examples=40, deadline=None)
@given(trees)
def test_any_formula_has_a_page(tree: object) -> None:
    row = equation(tree)  # type: ignore[arg-type]
    Page(report_html(with_rows(row)))


def test_any_numbers_have_a_page() -> None:
    for values in ([1e-300, 1e300, 5.0], [-1e308, 1e308, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1e-320]):
        inputs = np.array([values, values[::-1]]).T
        points = sample_fit_points(np.array(values), np.array(values), np.zeros(3, bool), inputs=inputs)
        for row in (equation("a"), equation("1/(a - v_m_s)"), equation("log(a)", rmse=float("nan"))):
            Page(report_html(solution(row, equation("3"), best=row, fit_points=points)))


def test_a_stored_run_has_a_page_without_charts_of_rows() -> None:
    page = Page(report_html(solution(fit_points=None)))
    assert "sensitivity" not in page.ids
    assert "front" in page.ids
    with pytest.raises(ValueError, match="no report"):
        report_html(replace(solution(), best=None))


def test_the_same_answer_gives_the_same_page(pendulum: Solution) -> None:
    assert report_html(pendulum) == report_html(pendulum)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_stands_out(theme: int) -> None:
    """WCAG 2.1: 4.5 to 1 for text, 3 to 1 for marks."""
    block = re.findall(r":root \{(.*?)\}", CSS, re.S)[theme]
    colour = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))

    def contrast(one: str, other: str) -> float:
        low, high = sorted((luminance(colour[one]), luminance(colour[other])))
        return (high + 0.05) / (low + 0.05)

    for text in ("ink", "muted", "accent", "good", "bad", "open"):
        for ground in ("paper", "card"):
            assert contrast(text, ground) >= 4.5, (text, ground)
    assert contrast("ink", "note") >= 4.5
    assert contrast("accent-ink", "accent") >= 4.5
    for mark in ("seen", "test", "law"):
        for ground in ("paper", "outside"):
            assert contrast(mark, ground) >= 3.0, (mark, ground)


def test_it_costs_little_and_loads_nothing_heavy() -> None:
    code = (
        "import sys, time\nsys.path.insert(0, 'tests/report')\nfrom test_html import with_rows\n"
        "heavy = {'matplotlib', 'sympy', 'torch'} & set(sys.modules)\n"
        "from physdiffuser.report.html import report_html\n"
        "assert 'jinja2' not in sys.modules\n"
        "report_html(with_rows())\n"
        "print(*({'matplotlib', 'sympy', 'torch'} & set(sys.modules) - heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    made = with_rows()
    report_html(made)
    begun = time.process_time()
    report_html(made)
    assert time.process_time() - begun < 1.0


def test_the_page_of_an_earlier_result_does_not_stay(tmp_path: Path) -> None:
    from physdiffuser.report.documents.json_document import document

    with RunFolder(tmp_path) as folder:
        assert folder.save_report(with_rows())
        assert folder.save_plot(with_rows())
        folder.save_result(document(solution()))
        assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == [
            ".lock",
            "result.json",
        ]
        assert not folder.save_report(replace(solution(), best=None))


def test_the_law_comes_first_then_its_evidence_and_the_next_steps() -> None:
    found = re.findall(r'<section id="(\w+)"', report_html(with_rows()))
    steps = ("next", "reuse", "found", "sensitivity", "limits", "data")
    order = ("law", "why", "front", "groups", "constants", *steps)
    assert found == [name for name in order if name in found]
    assert found[:3] == ["law", "why", "front"] and "data" in found
