"""The page in a real browser: it loads, every control works, and it talks to nobody."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from solutions import equation, fitted
from test_html import HOSTILE, with_rows

from physdiffuser.report.html import report_html

sync_api = pytest.importorskip("playwright.sync_api", reason="needs pip install 'physdiffuser[browser]'")
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
LONG = "2*pi*sqrt(a**3/G) - a + v_m_s*exp(-a)*(2.5029*cos(4.0012*a + v_m_s) + 0.0019542*sin(4.0012*a))"
# A desktop and a phone, in CSS pixels.
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Chromium refuses its sandbox to root, as which containers run; the page is the project's own.
    arguments = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = (equation("54.3", rmse=2.0), fitted(rmse=0.3), equation(LONG))
    made = with_rows(*rows, best=rows[1], warnings=("columns not needed by the law: v (m/s)",))
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(report_html(made), encoding="utf-8")
    return path


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: Any, page_file: Path) -> Iterator[Any]:
    """The page, opened; fails when anything is loaded, logged or thrown while a test uses it."""
    viewport = {"width": WIDTHS[request.param], "height": 800}
    context = browser.new_context(viewport=viewport, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    seen: list[str] = []
    opened.on("console", lambda message: seen.append(message.text))
    opened.on("pageerror", lambda error: seen.append(str(error)))
    opened.on("dialog", lambda dialog: seen.append(dialog.message))
    opened.on("request", lambda request: seen.append(request.url))
    opened.goto(page_file.as_uri())
    yield opened
    assert [text for text in seen if not text.startswith((page_file.as_uri(), "data:"))] == []
    context.close()


def visible_rows(page: Any) -> list[str]:
    return [panel.get_attribute("data-row") for panel in page.locator("article.panel:visible").all()]


def test_it_fits_the_screen_and_shows_the_chosen_law(page: Any) -> None:
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) == 0, "the page must not scroll sideways"
    assert visible_rows(page) == ["2"]
    for caption in page.locator("caption:visible").all():
        box = caption.bounding_box()
        assert box["x"] + box["width"] <= page.viewport_size["width"], "captions are read without scrolling"
    for text in page.locator(".front-table td.text").all():
        box = text.bounding_box()
        assert box["x"] + box["width"] <= page.viewport_size["width"], "and so are the formulas"
    cut = "nodes => nodes.filter(node => node.scrollHeight > node.clientHeight).length"
    assert page.locator(".formula:visible").evaluate_all(cut) == 0, "no formula is cut below"
    page.locator("a.pick[data-row='3']").click()
    wide = "nodes => nodes.filter(node => node.scrollWidth > node.clientWidth).length"
    assert page.locator(".formula:visible").evaluate_all(wide) == 0, "no formula extends out of view"
    page.locator("a.pick[data-row='2']").click()
    for element in page.locator("main section, #law .headline math, .chart svg:visible").all():
        box = element.bounding_box()
        assert box and box["height"] > 5
    assert page.locator("#law .headline mn").first.bounding_box()["height"] > 8, "MathML is drawn"
    assert float(page.locator("body").evaluate("node => parseFloat(getComputedStyle(node).fontSize)")) >= 16


def test_rows_and_points_are_chosen_by_mouse(page: Any) -> None:
    for number in ("1", "3", "2"):
        page.locator(f".front-table tr[data-row='{number}'] td.number").first.click()
        assert visible_rows(page) == [number]
        assert page.locator("a.pick[aria-current]").inner_text() == number
    for number in ("3", "1"):
        page.locator(f".spot[data-row='{number}'] .reach").click()
        assert visible_rows(page) == [number]
        assert f"Row {number}:" in page.locator("#announcement").inner_text()
    page.locator(".spot[data-row='3']").hover()
    assert page.locator("#preview").inner_text().startswith("Row 3: 2*pi*sqrt")
    assert page.locator(".front-table tr.hovered").get_attribute("data-row") == "3"
    assert visible_rows(page) == ["1"], "pointing at a row does not choose it"
    page.locator("h1").hover()
    assert page.locator("#preview").inner_text().startswith("Row 1:")


@pytest.mark.parametrize("kind", ["a.pick", ".spot"])
def test_rows_are_chosen_by_keyboard(page: Any, kind: str) -> None:
    page.locator(f"{kind}[data-row='1']").focus()
    page.keyboard.press("Enter")
    assert visible_rows(page) == ["1"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert visible_rows(page) == ["3"]
    assert page.evaluate("document.activeElement.dataset.row") == "3"
    page.keyboard.press("ArrowUp")
    assert visible_rows(page) == ["2"]


def test_everything_can_be_reached_by_keyboard(page: Any) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator(".skip").bounding_box()["x"] >= 0, "the skip link shows when it has the focus"
    selector = "a, button, summary, [tabindex='0']"
    visible = page.locator(selector).evaluate_all(
        "nodes => nodes.map((node, place) => { node.dataset.place = place; return node.checkVisibility(); })"
    )
    wanted = [str(place) for place, shown in enumerate(visible) if shown]
    reached = ["0"]
    for _ in wanted[1:]:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.dataset.place"))
    assert len(wanted) > 20
    assert reached == wanted, "in the order in which they stand on the page"


def test_every_copy_button_copies(page: Any) -> None:
    for summary in page.locator("summary").all()[1:]:
        summary.click()
    buttons = page.locator("button.copy:visible").all()
    assert len(buttons) == 1 + 2 + 5
    for button in buttons:
        button.click()
        wanted = page.locator("#" + button.get_attribute("data-copy")).text_content()
        page.wait_for_function(
            "wanted => navigator.clipboard.readText().then(text => text === wanted)", arg=wanted
        )
    assert page.locator("#copied").inner_text() == "Copied"


def test_links_lead_to_their_sections(page: Any) -> None:
    for link in page.locator("nav a").all():
        link.click()
        target = page.locator(link.get_attribute("href"))
        page.wait_for_function(
            "node => { const top = node.getBoundingClientRect().top; return top > -5 && top < innerHeight; }",
            arg=target.element_handle(),
        )


def test_copying_works_where_the_clipboard_is_closed(browser: Any, page_file: Path) -> None:
    page = browser.new_page()
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined});")
    page.goto(page_file.as_uri())
    page.locator("button.copy").first.click()
    page.wait_for_function("document.getElementById('copied').textContent !== ''")
    page.close()


def test_without_scripts_every_row_is_shown(browser: Any, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("article.panel:visible").count() == 3
    assert page.locator("button.copy:visible").count() == 0
    context.close()


def test_it_follows_the_colours_of_the_system(browser: Any, page_file: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(page_file.as_uri())
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert colours[0] != colours[1]


def test_formulas_have_their_own_font_and_the_page_prints_short(browser: Any, page_file: Path) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    states = "document.fonts.ready.then(() => Array.from(document.fonts, (font) => font.status))"
    assert page.evaluate(states) == ["loaded"]
    # An exponent stands above its base, an index below the line.
    law = page.locator("article[data-row='3']")
    page.locator("a.pick[data-row='3']").click()
    base, exponent = (law.locator(f"msup > :nth-child({place})").first.bounding_box() for place in (1, 2))
    assert exponent["y"] < base["y"] and exponent["height"] < base["height"]
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) <= 3
    page.close()


def test_a_hostile_name_runs_nothing(browser: Any, tmp_path: Path) -> None:
    columns = (f"a{HOSTILE}", f"v{HOSTILE}")
    made = with_rows(target=HOSTILE, columns=columns, warnings=(HOSTILE,), notes={HOSTILE: HOSTILE})
    path = tmp_path / "hostile.html"
    path.write_text(report_html(replace(made, version=HOSTILE)), encoding="utf-8")
    page = browser.new_page()
    seen: list[str] = []
    page.on("dialog", lambda dialog: seen.append(dialog.message))
    page.on("console", lambda message: seen.append(message.text))
    page.goto(path.as_uri())
    assert page.locator("img").count() == 0
    # Even a script that got in would not run: the page's policy names the one that may.
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=\"x.png\" onerror=\"alert(1)\">')")
    page.wait_for_timeout(100)
    assert len(seen) == 2 and all("Content Security Policy" in text for text in seen)
    page.close()
