"""The page of an inspection in a real browser: it fits a phone, needs no pointer, and asks nobody."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from physdiffuser.inspection.drawing.figures import Origin, Picture, heat, new_figure, png_of
from physdiffuser.inspection.page import Report, Table, html

sync_api = pytest.importorskip("playwright.sync_api", reason="needs pip install 'physdiffuser[browser]'")
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


@pytest.fixture(scope="module", name="address")
def _address(tmp_path_factory: pytest.TempPathFactory) -> str:
    figure = new_figure(9.0, 3.0, "A $title", Origin("weights", "table <b>", True, 60))
    heat(figure.subplots(), np.eye(8))
    png = png_of(figure, 60)
    pictures = [Picture(f"p{k}", f"Picture {k}", "Caption.", "In words.", png, f"Part {k}") for k in (1, 2)]
    rows = (("m*x**2*(omega_0 + omega)*exp(-a_rather_long_name/another_long_name)", "0.1"),) * 3
    tables = {"Part 1": [Table("Formulas", ("formula", "variance left"), rows)]}
    facts = {"Table": "<script>alert(1)</script>" * 5, "Made by": "physdiffuser inspect " + "x" * 300}
    path = tmp_path_factory.mktemp("page") / "inspection.html"
    path.write_text(html(Report("Inside", facts, pictures, tables, warnings=("Careful.",))), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(params=[390, 1280], name="page")
def _page(request: pytest.FixtureRequest, address: str) -> Iterator[Any]:
    # Chromium refuses its sandbox to root, as which containers run; the page is the project's own.
    arguments = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        page = browser.new_page(viewport={"width": request.param, "height": 800}, reduced_motion="reduce")
        seen: list[str] = []
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("dialog", lambda dialog: seen.append(dialog.message))
        page.on("request", lambda asked: seen.append(asked.url))
        page.goto(address)
        yield page
        assert [text for text in seen if not text.startswith((address, "data:"))] == []
        browser.close()


def test_it_fits_and_can_be_used_without_a_pointer(page: Any) -> None:
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 100)")
    names = []
    for _ in range(40):
        page.keyboard.press("Tab")
        names.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.text")
        )
        if page.evaluate("document.activeElement === document.body"):
            break
    assert names[0] == "Skip to the pictures" and names[1:3] == ["Part 1", "Part 2"]
    assert any(name and name.startswith("Picture 2") for name in names) and "Formulas" in names
    box = page.locator("figure .wide").first
    box.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    moved = box.evaluate("box => box.scrollLeft")
    assert (moved > 0) == (width < 700)
    page.locator("nav a").last.press("Enter")
    assert page.locator("#part-2").evaluate("heading => heading.getBoundingClientRect().top") < 800
    page.locator("summary").first.press("Enter")
    assert page.locator("details p").first.is_visible()
