"""From a table to a result through the server, as the page does it."""

from __future__ import annotations

import asyncio
import io
import json
import shlex
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from page_server import PENDULUM, PageServer

from physdiffuser.app.jobs import Jobs


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    made = PageServer(tmp_path_factory.mktemp("page") / "runs", most_running=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def run(server: PageServer) -> str:
    """A run that has ended."""
    table = server.upload(PENDULUM, "pendulum.csv")
    made = server.json("POST", "/api/runs", {"table": table, "settings": {"target": "T", "time": 20.0}})
    ended = server.solved(made["id"])
    assert ended["state"] == "done" and ended["has_result"], ended
    return str(made["id"])


def page_of(server: PageServer, run: str, rest: str = "") -> str:
    status, content, _ = server.send("GET", f"/api/runs/{run}/panel{rest}")
    assert status == 200
    return content.decode()


def test_the_table_is_shown_as_it_was_read(server: PageServer) -> None:
    table = server.upload("name,x,w,y\na,1,1,2\nb,2,1,3\nc,,2,5\nd,4,2,6\n", "t.csv")
    settings = {"target": "y", "weights": "w", "units": {"x": "m"}}
    page = server.json("POST", f"/api/tables/{table}/setup", settings)["html"]
    assert 'data-column="name" data-role="unused"' in page
    assert 'data-column="y" data-role="target"' in page and 'data-column="w" data-role="weights"' in page
    assert 'value="m"' in page and "(1 missing)" in page and "1 row" in page
    assert page.count("<svg") == 1, "the one input against the target"
    wrong = server.json("POST", f"/api/tables/{table}/setup", {"target": "z"})
    assert "'z'" in wrong["error"] and "'z'" in wrong["html"].replace("&#39;", "'")


def test_the_law_its_report_and_its_files(server: PageServer, run: str) -> None:
    page = page_of(server, run)
    assert "The law" in page and "2.006" in page and "sqrt(l)" in page
    status, report, headers = server.send("GET", f"/api/runs/{run}/report")
    assert status == 200 and b"Why this law" in report
    assert headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    for kind, part in (("python", b"def predict_T"), ("c", b"#include <math.h>"), ("latex", rb"\sqrt")):
        status, content, headers = server.send("GET", f"/api/runs/{run}/download/{kind}")
        assert status == 200 and part in content and "attachment" in headers["content-disposition"]
    archive = zipfile.ZipFile(io.BytesIO(server.send("GET", f"/api/runs/{run}/download/folder")[1]))
    names = {Path(name).name for name in archive.namelist()}
    assert {
        "result.json",
        "report.html",
        "pareto.csv",
        "pendulum.csv",
        "repeat.ipynb",
        "command.txt",
    } <= names


def test_the_command_and_the_notebook_repeat_the_run(server: PageServer, run: str, tmp_path: Path) -> None:
    words = shlex.split(server.json("GET", f"/api/runs/{run}")["command"])
    assert words[0] == "physdiffuser" and words[1] == "solve"
    done = subprocess.run(
        [sys.executable, "-m", *words, "--json", "--steps", "5"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["target"] == "T"
    notebook = json.loads(server.send("GET", f"/api/runs/{run}/download/notebook")[1])
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = "\n".join(code[:2]) + "\nprint(solution.best.text)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "sqrt(l)" in done.stdout
    assert (tmp_path / "pendulum.csv").read_text() == PENDULUM


def test_rows_are_compared(server: PageServer, run: str) -> None:
    rows = page_of(server, run).count('class="compare"')
    assert rows >= 2
    status, content, _ = server.send("GET", f"/api/runs/{run}/compare?a=1&b={rows}")
    page = content.decode()
    assert status == 200 and "Both laws along l" in page and "Where they differ along l" in page
    assert page.count("Residuals of row") >= 2 and f"row {rows} − row 1" in page
    assert "Measure next" in page
    for other in (rows + 1, 0, "pin-1", "x"):
        assert server.send("GET", f"/api/runs/{run}/compare?a=1&b={other}")[0] == 400


def test_pinned_formulas_have_figures_and_are_compared(server: PageServer, run: str) -> None:
    marks = f"/api/runs/{run}/marks"
    for formula in ("A*l**b", "sqrt(-l)*A"):
        server.json("POST", marks, {"pin": formula})
    page = page_of(server, run)
    assert "fitted: <code>2.006*" in page and "no values of its constants" in page
    content = server.send("GET", f"/api/runs/{run}/compare?a=1&b=pin-1")[1].decode()
    assert "Both laws along l" in content and "Residuals of pin 1" in content and "pin 1 − row 1" in content
    assert server.send("GET", f"/api/runs/{run}/compare?a=1&b=pin-2")[0] == 400
    for _ in range(2):
        server.json("POST", marks, {"undo": True})


def test_a_search_of_groups_is_shown_while_it_goes_on(server: PageServer) -> None:
    rng = np.random.default_rng(0)
    laws = {"a": (2.0, 0.5), "b": (3.0, 0.9)}
    x = np.linspace(0.2, 4, 10)
    lines = [
        f"{name},{at:.4f},{scale * np.exp(-rate * at) + 0.3 * np.sin(2 * at) + 0.02 * rng.normal():.5f}"
        for name, (scale, rate) in laws.items()
        for at in x
    ]
    table = server.upload("g,x,y\n" + "\n".join(lines) + "\n", "grouped.csv")
    settings = {"target": "y", "groups": ["g"], "time": 60.0}
    made = server.json("POST", "/api/runs", {"table": table, "settings": settings})["id"]
    until = time.monotonic() + 60
    while "The best law so far" not in (page := page_of(server, made)) and time.monotonic() < until:
        time.sleep(0.1)
    assert "Constants of the groups" in page and "Prediction of row" in page
    server.json("POST", f"/api/runs/{made}/marks", {"pin": "A*exp(-b*x)"})
    assert "fitted: <code>p1*exp(" in page_of(server, made)
    server.json("POST", f"/api/runs/{made}/stop", {})
    ended = server.solved(made)
    assert ended["state"] == "done", ended
    page = page_of(server, made)
    assert "Constants of the groups, with 95 % confidence" in page and "Residuals of row" in page
    content = server.send("GET", f"/api/runs/{made}/compare?a=1&b=pin-1")[1].decode()
    assert "Where they differ along x" in content and "In a table with groups no measurement" in content


def test_marks_are_kept_and_undone(server: PageServer, run: str) -> None:
    marks = f"/api/runs/{run}/marks"
    assert server.json("POST", marks, {"pin": "2*sqrt(l)"})["pins"] == ["2*sqrt(l)"]
    assert server.json("POST", marks, {"select": 1})["selected"] == 1
    assert "Back to the chosen law" in page_of(server, run)
    selected = server.send("GET", f"/api/runs/{run}/download/python")[1]
    assert b"sqrt(l)" not in selected, "the file has the row that was taken"
    assert server.json("POST", marks, {"undo": True})["selected"] is None
    assert server.json("POST", marks, {"undo": True})["pins"] == []
    assert server.send("POST", marks, {"pin": "2*sqrt("})[0] == 400
    assert not server.json("GET", f"/api/runs/{run}")["can_undo"]


def test_a_run_is_continued_with_a_formula(server: PageServer, run: str) -> None:
    made = server.json("POST", f"/api/runs/{run}/continue", {"time": 5.0, "guess": "A*l**b"})
    assert made["earlier"] == run and made["pins"] == ["A*l**b"]
    ended = server.solved(made["id"])
    assert ended["state"] == "done", ended
    folder = server.options.runs / made["id"]
    document = json.loads((folder / "result.json").read_text())
    assert [guess["text"] for guess in document["guesses"]] == ["A*l**b"]
    assert server.json("GET", f"/api/runs/{run}")["has_result"], "the earlier run stays as it was"


def test_searches_wait_for_their_turn_and_can_be_stopped(server: PageServer) -> None:
    noisy = "a,y\n" + "".join(f"{k},{(k * 7919 % 101) / 13}\n" for k in range(1, 60))
    table = server.upload(noisy, "noise.csv")
    content = {"table": table, "settings": {"target": "y", "time": 60.0}}
    first, second = (server.json("POST", "/api/runs", content)["id"] for _ in range(2))
    while server.json("GET", f"/api/runs/{first}")["state"] == "waiting":
        pass
    assert server.json("GET", f"/api/runs/{second}")["state"] == "waiting"
    assert server.json("POST", f"/api/runs/{second}/stop", {})["state"] == "unfinished"
    while "No formula yet" in page_of(server, first):
        pass
    assert server.json("POST", f"/api/runs/{first}/stop", {})["state"] == "stopping"
    ended = server.solved(first, 20.0)
    assert ended["state"] in ("done", "unfinished") and "headline" in page_of(server, first)


def test_the_stream_tells_of_the_end(server: PageServer, run: str) -> None:
    status, content, headers = server.send("GET", f"/api/runs/{run}/events")
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    assert json.loads(content.decode().removeprefix("data: "))["state"] == "done"


def test_a_later_server_finds_the_runs(server: PageServer, run: str) -> None:
    async def found() -> str:
        jobs = Jobs(server.options.runs)
        jobs.load()
        return jobs.get(run).state

    assert asyncio.run(found()) == "done"


def test_what_cannot_be_read_is_said(server: PageServer) -> None:
    table = server.upload("only one line", "bad.csv")
    status, content, _ = server.send("POST", f"/api/tables/{table}/setup", {})
    assert status == 400 and json.loads(content)["error"]


def test_templates_and_constraints_are_passed_on(server: PageServer) -> None:
    table = server.upload(PENDULUM, "pendulum.csv")
    settings = {"target": "T", "time": 5.0, "constraints": "- increasing: l\n- positive: true"}
    made = server.json("POST", "/api/runs", {"table": table, "settings": settings})
    words = shlex.split(server.json("GET", f"/api/runs/{made['id']}")["command"])
    file = Path(words[words.index("--constraints") + 1])
    assert file.read_text() == "- increasing: l\n- positive: true\n"
    ended = server.solved(made["id"])
    assert ended["state"] == "done", ended
    document = json.loads((server.options.runs / made["id"] / "result.json").read_text())
    assert document["constraints"][0]["constraint"] == "increasing: l"
    for wrong in ({"constraints": "- rising: l"}, {"template": "f(l"}, {"constraints": "a: b: c"}):
        content = {"table": table, "settings": settings | wrong}
        assert server.send("POST", "/api/runs", content)[0] == 400
