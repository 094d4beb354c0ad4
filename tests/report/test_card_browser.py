"""The card of a solution in a real browser: drawn, legible in light and dark, and without effect outside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from solutions import equation, fitted
from test_html import with_rows
from test_html_browser import CHROMIUM, browser  # noqa: F401  # the fixture

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
STYLE_OF = "node => { const s = getComputedStyle(node); return [s.color, s.backgroundColor] }"


def brightness(colour: str) -> float:
    return sum(float(part) for part in colour.split("(")[1].rstrip(")").split(",")[:3]) / 3


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Any, tmp_path: Path) -> Any:  # noqa: F811
    rows = (equation("54.3", rmse=2.0), fitted(rmse=0.3), equation("2*pi*sqrt(a**3/G) - a + v_m_s*exp(-a)"))
    made = with_rows(*rows, best=rows[1], warnings=("columns not needed by the law: v (m/s)",))
    path = tmp_path / "notebook.html"
    outside = "<table><tr><td id='outside'>a cell of the notebook</td></tr></table>"
    path.write_text(f"<!doctype html><meta charset='utf-8'>{outside}{made._repr_html_()}", encoding="utf-8")
    context = browser.new_context(viewport={"width": 1000, "height": 800}, color_scheme=request.param)
    opened = context.new_page()
    opened.goto(path.as_uri())
    opened.scheme = request.param
    yield opened
    context.close()


def test_the_card_is_drawn_and_legible(page: Any) -> None:
    card = page.locator(".physdiffuser")
    for part in (".formula mn", ".front-table", ".sparkline", ".chart svg", ".warnings", ".facts"):
        assert card.locator(part).first.bounding_box()["height"] > 5
    background = card.evaluate(STYLE_OF)[1]
    assert (brightness(background) > 128) == (page.scheme == "light")
    for part in ("td", "th", "code", "dd", ".warnings li", ".formula"):
        colour = card.locator(part).first.evaluate(STYLE_OF)[0]
        assert abs(brightness(colour) - brightness(background)) > 80, part
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0


def test_nothing_outside_of_it_changes(page: Any) -> None:
    colour, background = page.locator("#outside").evaluate(STYLE_OF)
    assert brightness(colour) == 0 and background == "rgba(0, 0, 0, 0)"
    padding = page.locator("#outside").evaluate("node => getComputedStyle(node).paddingLeft")
    assert padding == "1px", "what the browser gives a cell"
