"""From nothing to a law with its plot, as a new user gets there: install, notebook, page in the browser.

    python tools/time_first_law.py FOLDER [--browser chromium]

FOLDER must not exist. It gets an environment of its own, a spreadsheet, a notebook and their results, and no
cache of an earlier installation is used. The notebook runs as Jupyter runs it; in the page the spreadsheet is
chosen, the search begun, and the result waited for, by a browser. Prints the seconds of each step.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LEFT_OUT = ("PYTHONPATH", "VIRTUAL_ENV")
SPREADSHEET = """
import math, openpyxl, random
noise = random.Random(0)
book = openpyxl.Workbook()
book.active.append(["length (m)", "mass (kg)", "period (s)"])
for number in range(1, 25):
    length, mass = 0.12 * number, 0.1 + 0.05 * (number % 5)
    period = 2 * math.pi * math.sqrt(length / 9.81) * (1 + noise.gauss(0, 0.003))
    book.active.append([round(length, 2), mass, round(period, 3)])
book.save("pendulum.xlsx")
"""
NOTEBOOK = """
import nbformat, nbclient, sys
cells = ['from physdiffuser import solve', 'solution = solve("pendulum.xlsx")\\nsolution', 'solution.plot();']
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
nbclient.NotebookClient(book, timeout=120).execute()
kinds = [set(output.data) for cell in book.cells for output in cell.outputs if "data" in output]
assert any("text/html" in kind for kind in kinds) and any("image/png" in kind for kind in kinds), kinds
nbformat.write(book, "pendulum.ipynb")
"""
PAGE = """
import shutil, sys, time
from playwright.sync_api import sync_playwright
address, browser = sys.argv[1:]
with sync_playwright() as playwright:
    page = playwright.chromium.launch(executable_path=shutil.which(browser), args=["--no-sandbox"]).new_page()
    page.goto(address)
    begun = time.monotonic()
    page.set_input_files("#file", "pendulum.xlsx")
    page.wait_for_selector("#read .charts")
    print(f"table read {time.monotonic() - begun:.1f}")
    page.click("#go")
    page.wait_for_selector("#panel .headline", timeout=120_000)
    print(f"first law {time.monotonic() - begun:.1f}")
    page.wait_for_selector("#panel .facts", timeout=120_000)
    page.wait_for_selector("#panel .charts svg")
    page.frame_locator("#report").locator("h1").first.wait_for()
    print(f"result {time.monotonic() - begun:.1f}")
    print(page.locator("#law-text").inner_text())
    page.screenshot(path="page.png", full_page=True)
"""


class Trial:
    """A folder with an environment of its own, and the seconds that each step took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        places = {"MPLCONFIGDIR": "matplotlib", "IPYTHONDIR": "ipython", "HOME": "home"}
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in _LEFT_OUT},
            **{name: str(folder / place) for name, place in places.items()},
            "PIP_NO_CACHE_DIR": "1",
        }
        (folder / "home").mkdir()
        self.python = str(folder / "environment" / "bin" / "python")

    def step(self, what: str, *words: str) -> str:
        """Run a command in the folder; returns what it has printed."""
        begun = time.monotonic()
        done = subprocess.run(words, cwd=self.folder, env=self.environment, text=True, stdout=subprocess.PIPE)
        print(f"{what:38} {time.monotonic() - begun:6.1f} s", flush=True)
        if done.returncode:
            raise SystemExit(f"{what}: exit code {done.returncode}")
        return done.stdout

    def page(self, browser: str) -> None:
        """The page of `physdiffuser app`, from its start to the result."""
        words = [str(Path(self.python).parent / "physdiffuser"), "app", "--no-browser"]
        begun = time.monotonic()
        program = subprocess.Popen(
            words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        try:
            assert program.stdout is not None
            address = program.stdout.readline().strip()
            print(f"{'page: physdiffuser app':38} {time.monotonic() - begun:6.1f} s")
            print(self.step("page: all of it", self.python, "-c", PAGE, address, browser))
        finally:
            program.terminate()
            program.wait(30)


def main() -> None:
    """Install, then notebook and page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--browser", default="chromium")
    given = parser.parse_args()
    if given.folder.exists():
        parser.error(f"{given.folder} exists: name a folder that does not")
    trial = Trial(given.folder.resolve())
    print(f"{os.cpu_count()} processors, of which {os.getloadavg()[0]:.1f} are busy with other work")
    torch = re.search(r'"(torch[^"]*)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert torch is not None  # the project needs it
    trial.step("python -m venv", sys.executable, "-m", "venv", "environment")
    pip = (trial.python, "-m", "pip", "install", "--quiet")
    trial.step("pip install torch", *pip, torch[1])
    trial.step("pip install '.[app,excel]'", *pip, f"{ROOT}[app,excel]")
    trial.step("pip install a notebook and a browser", *pip, "nbclient", "ipykernel", "playwright")
    trial.step("the spreadsheet", trial.python, "-c", SPREADSHEET)
    trial.step("notebook: import, law, plot", trial.python, "-c", NOTEBOOK)
    outputs = json.loads((trial.folder / "pendulum.ipynb").read_text(encoding="utf-8"))["cells"][1]["outputs"]
    print("".join(outputs[-1]["data"]["text/plain"]))
    if shutil.which(given.browser) is None:
        raise SystemExit(f"there is no {given.browser} on this machine: the page was not tried")
    trial.page(given.browser)


if __name__ == "__main__":
    main()
