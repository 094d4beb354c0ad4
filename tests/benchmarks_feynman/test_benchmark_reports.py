"""Reports: right rates, everything from outside escaped, one page with nothing beside it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from benchmarks_feynman.report.layout import formula_text
from benchmarks_feynman.report.render import write_report
from benchmarks_feynman.report.summary import as_document, form, rate, recovered
from benchmarks_feynman.results import Result
from benchmarks_feynman.runner import to_result
from benchmarks_feynman.suites import select
from benchmarks_feynman.tasks import Settings, make_tasks
from physdiffuser.errors import DataError

HOSTILE = "<script>alert('x')</script>|`a`*b*"


def results() -> list[Result]:
    """Four laws, two seeds, two systems: what one finds on one seed only counts half."""
    laws = select(["tiers"], [f"feynman_00{number}" for number in range(1, 5)])
    found = []
    for task in make_tasks(laws, ["physdiffuser", "pyoperon"], [0, 1], [0.0, 0.01], Settings()):
        right = task.system == "physdiffuser" and (task.id != "feynman_004" or task.seed == 0)
        message = {
            "status": "exact" if right else "approximate",
            "expression": "m*c**2" if right else HOSTILE,
            "seconds": 0.5 + task.seed,
            "strict": "verified" if right else "different",
            "srbench": "verified" if right else "unknown",
            "exact_numbers": right,
            "recovered": right,
            "r2_test": 1.0 if right else 0.9,
            "complexity": 5,
        }
        found.append(to_result(task, message))
    crashed = {"status": "crashed", "error": f"ended by signal SIGSEGV; {HOSTILE}"}
    (task,) = make_tasks(select(["tiers"], ["feynman_005"]), ["physdiffuser"], [0], [0.0], Settings())
    return [*found, to_result(task, crashed)]


def test_tables_of_one_law_average_and_rates_count_laws() -> None:
    own = [result for result in results() if result["system"] == "physdiffuser" and result["noise"] == 0.01]
    measured = rate(own, recovered)
    assert (measured.hits, measured.laws) == (3.5, 4)
    assert measured.low <= 3.5 / 4 <= measured.high
    assert measured.text.startswith("87.5 % (")
    assert rate(own, form).hits == 3.5  # recovered without a form verdict is of the form
    entry = next(entry for entry in as_document(results()) if entry["system"] == "pyoperon")
    assert entry["recovered"]["hits"] == 0 and entry["tables"] == 8


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]


def test_the_page_is_self_contained_and_runs_nothing(tmp_path: Path) -> None:
    write_report(results(), tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert "script" not in page.tags
    assert page.tags.count("svg") == 2
    assert all(link.startswith("#") for link in page.links), page.links
    assert "&lt;script&gt;alert" in text
    for heading in ("Rates", "Protocol", "Time to solution", "Beside published rates", "Not recovered"):
        assert f">{heading}</h2>" in text
    assert "PhySO (2023)" in text and "1M evaluations" in text  # published rates with their protocol
    assert "ended by signal SIGSEGV" in text


def test_formulas_have_constants_of_five_digits() -> None:
    assert formula_text("0.4*x1 + 17.123456789*exp(-1.5e-11*t)/2.00000000001e-30") == (
        "0.4*x1 + 17.123*exp(-1.5e-11*t)/2e-30"
    )


def test_the_markdown_has_whole_tables(tmp_path: Path) -> None:
    write_report(results(), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            block.append(line)
        elif block:
            cells = {row.replace("\\|", "").count("|") for row in block}
            assert len(cells) == 1, block
            block = []
    for name in ("recovered-by-group.svg", "time-to-solution.svg"):
        assert f"({name})" in text and (tmp_path / name).exists()


def test_reports_are_the_same_for_the_same_results(tmp_path: Path) -> None:
    write_report(results(), tmp_path / "one")
    write_report(results(), tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_nothing_to_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no results to report"):
        write_report([], tmp_path)


def test_the_rates_are_plain_json() -> None:
    assert json.loads(json.dumps(as_document(results()), allow_nan=False))


def test_rows_can_be_filtered_by_suite_and_tier(tmp_path: Path) -> None:
    more = select(["fsred"], ["I.12.1"])
    (task,) = make_tasks(more, ["physdiffuser"], [0], [0.0], Settings())
    other = to_result(task, {"status": "approximate", "expression": "q1 + q2", "recovered": False})
    write_report([*results(), other], tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    boxes = re.findall(r'<input type="checkbox" id="f(\d+)" checked> (\w+)', text)
    assert {suite for _, suite in boxes} == {"fsred", "tiers"}
    for number, _ in boxes:
        assert f'data-group="{number}"' in text and f"#f{number}:not(:checked)" in text
    # A single law has no interval, and is one law.
    assert "0.0 %, 1 law<" in text and "1 laws" not in text
    assert "laws" in text.partition("</header>")[0]
