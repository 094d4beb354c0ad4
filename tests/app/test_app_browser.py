"""The page in a real browser: from a table to a law by mouse and by keyboard, wide and narrow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import PENDULUM, PageServer

sync_api = pytest.importorskip("playwright.sync_api", reason="needs pip install 'physdiffuser[browser]'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs physdiffuser[browser]")
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
# A desktop and a phone, in CSS pixels.
LOOKS = [(1280, "light"), (390, "dark")]
PATIENCE = 120_000.0

WIDER = """() => Array.from(document.querySelectorAll("main *"))
  .filter((node) => node.getBoundingClientRect().right > innerWidth && !node.closest(".scroll"))
  .map((node) => node.outerHTML.slice(0, 80))"""


def faults(page: Any) -> list[str]:
    """What is wrong with the page as it stands, by axe, and whether it scrolls sideways."""
    found = [
        f"{one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one in axe.Axe().run(page).response["violations"]
        for node in one["nodes"]
    ]
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [*found, f"{wide} pixels too wide: {page.evaluate(WIDER)}"] if wide else found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    made = PageServer(tmp_path_factory.mktemp("page") / "runs")
    yield made
    made.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Chromium refuses its sandbox to root, as which containers run; the page is the project's own.
    arguments = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def page(request: pytest.FixtureRequest, browser: Any, server: PageServer) -> Iterator[Any]:
    """The page, opened; fails when a script fails, or anything is loaded from elsewhere."""
    width, scheme = request.param
    context = browser.new_context(
        viewport={"width": width, "height": 844}, color_scheme=scheme, reduced_motion="reduce"
    )
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    seen: list[str] = []
    opened.on("console", lambda message: seen.append(message.text))
    opened.on("pageerror", lambda error: seen.append(str(error)))
    opened.on("request", lambda asked: seen.append(asked.url))
    opened.goto(server.address)
    yield opened
    own = (f"http://127.0.0.1:{server.port}/", "data:")
    assert [text for text in seen if not text.startswith(own)] == []
    context.close()


def test_by_mouse(page: Any, tmp_path: Path) -> None:
    table = tmp_path / "pendulum.csv"
    table.write_text(PENDULUM)
    assert faults(page) == []
    page.set_input_files("#file", table)
    page.wait_for_selector("#read .charts")
    assert page.locator("#read .charts svg").count() == 2, "each column against the target"
    page.locator("tr[data-column=m] .role").select_option("unused")
    page.wait_for_selector("tr[data-column=m][data-role=unused]")
    page.locator("#prior summary").click()
    assert faults(page) == []
    page.fill("#o-time", "20")
    page.click("#go")
    page.wait_for_selector("#result:not([hidden])")
    page.wait_for_selector("#panel .facts")
    assert "sqrt" in page.locator("#law-text").inner_text()
    assert page.locator("#panel .headline mn").first.bounding_box()["height"] > 5, "the law is drawn"
    assert page.frame_locator("#report").locator("h1").first.inner_text() == "The law"
    assert faults(page) == []
    # Another row, the chart's points, a pin, the row taken as the law, and all of it undone.
    page.locator("#pick-1").click()
    page.wait_for_selector("#pick-1[aria-current]")
    page.locator("[data-action=select]").click()
    page.wait_for_selector("text=Back to the chosen law")
    page.locator("[data-action=pin]").click()
    page.wait_for_selector(".pins")
    page.locator("[data-action=undo]").click()
    page.wait_for_selector(".pins", state="detached")
    page.locator("[data-action=undo]").click()
    page.locator("#panel a.spot").last.click()
    # Two laws compared.
    page.locator(".compare").first.check()
    page.locator(".compare").last.check()
    page.wait_for_selector("#comparison .charts")
    assert faults(page) == []
    with page.expect_download() as download:
        page.locator("text=Notebook").click()
    assert "solve(" in Path(download.value.path()).read_text(encoding="utf-8")


def test_by_keyboard(page: Any) -> None:
    def press_until(selector: str, key: str = "Tab") -> None:
        for _ in range(80):
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            page.keyboard.press(key)
        raise AssertionError(f"the keyboard does not reach {selector}")

    page.keyboard.press("Tab")
    assert page.locator(".skip").bounding_box()["x"] >= 0, "the skip link shows when it has the focus"
    press_until("#paste")
    page.keyboard.insert_text(PENDULUM.replace(",", "\t"))
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#read .charts")
    assert page.evaluate("document.activeElement.id") == "setup-h"
    press_until("tr[data-column=m] .role")
    page.keyboard.press("End")
    page.wait_for_selector("tr[data-column=m][data-role=unused]")
    assert page.evaluate("document.activeElement.matches('tr[data-column=m] .role')"), "the focus stays"
    press_until("#o-time")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("20")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result:not([hidden])")
    page.wait_for_selector("#panel .facts")
    press_until("#pick-1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#pick-1[aria-current]")
    assert page.evaluate("document.activeElement.id") == "pick-1"
    press_until("[data-action=edit]", "Shift+Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "guess"
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("A*sqrt(l)")
    page.keyboard.press("Enter")
    page.wait_for_selector("#run:has(.pins) #result:not([hidden])")
    pinned = page.locator(".pins").inner_text()
    assert "A*sqrt(l)" in pinned and "rms error" in pinned
    press_until("#more", "Shift+Tab")


def test_the_search_goes_on_without_its_tab(page: Any, browser: Any, server: PageServer) -> None:
    noisy = "a\ty\n" + "".join(f"{k}\t{(k * 7919 % 101) / 13}\n" for k in range(1, 40))
    page.fill("#paste", noisy)
    page.click("text=Use these cells")
    page.wait_for_selector("#read .charts")
    page.click("#go")
    page.wait_for_selector("#panel .headline")
    page.reload()
    page.wait_for_selector("#panel .headline")
    assert page.locator("#status").inner_text().startswith("Searching")
    page.locator("[data-action=stop]").click()
    page.wait_for_selector("[data-action=continue]:visible")
