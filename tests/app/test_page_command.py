"""`physdiffuser app` as a program: its address, its end, and its searches'."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="needs pip install 'physdiffuser[app]'")

ADDRESS = re.compile(r"^http://127\.0\.0\.1:(\d+)/\?token=([\w-]{20,})$")


def posted(address: str, path: str, content: bytes) -> dict[str, object]:
    port, token = ADDRESS.match(address).groups()  # type: ignore[union-attr]
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", content, {"x-physdiffuser-token": token}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        made: dict[str, object] = json.loads(answer.read())
    return made


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_with_its_searches(tmp_path: Path, number: int) -> None:
    noisy = "a,y\n" + "".join(f"{k},{(k * 7919 % 101) / 13}\n" for k in range(1, 60))
    words = [sys.executable, "-m", "physdiffuser", "app", "--no-browser"]
    program = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert program.stdout is not None
    address = program.stdout.readline().strip()
    assert ADDRESS.match(address), address
    table = posted(address, "/api/tables", noisy.encode())["table"]
    asked = {"table": table, "settings": {"target": "y", "time": 300.0}}
    run = posted(address, "/api/runs", json.dumps(asked).encode())["id"]
    folder = tmp_path / "runs" / str(run)
    until = time.monotonic() + 60
    while not (folder / "progress.json").is_file() and time.monotonic() < until:
        time.sleep(0.1)
    worker = int((folder / ".lock").read_text().split()[0])
    program.send_signal(number)
    program.wait(20)
    assert program.returncode in (128 + number, -number)
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert (folder / "result.json").is_file() or (folder / "progress.json").is_file()
    assert program.stdout.read() == "", "nothing but the address is on stdout"


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_search_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "physdiffuser", "app", "--no-browser"]
    folder = None
    for attempt in range(2):
        program = subprocess.Popen(
            words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert program.stdout is not None
        address = program.stdout.readline().strip()
        if attempt == 0:
            noisy = "a,y\n" + "".join(f"{k},{(k * 7919 % 101) / 13}\n" for k in range(1, 60))
            table = posted(address, "/api/tables", noisy.encode())["table"]
            asked = {"table": table, "settings": {"target": "y", "time": 6.0}}
            folder = tmp_path / "runs" / str(posted(address, "/api/runs", json.dumps(asked).encode())["id"])
            until = time.monotonic() + 60
            while not (folder / ".lock").is_file() and time.monotonic() < until:
                time.sleep(0.05)
            program.kill()
            program.wait(20)
            while (folder / ".lock").exists() and time.monotonic() < until:
                time.sleep(0.1)
            assert (folder / "result.json").is_file(), "it went on to its time limit"
            continue
        assert folder is not None
        found = posted(address, f"/api/runs/{folder.name}/stop", b"{}")
        program.kill()
        program.wait(20)
        assert found["state"] == "done" and found["has_result"]


def test_a_table_that_is_missing_is_an_error_before_the_page_opens(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "physdiffuser", "app", "--no-browser", "nothing.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 4 and "nothing.csv" in done.stderr and done.stdout == ""


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "physdiffuser", "app", "--no-browser", "--port", str(port)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 4 and f"port {port}" in done.stderr
