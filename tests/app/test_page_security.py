"""Nobody but the page itself is answered, and nothing that it sends reaches a path."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_server import TOKEN, PageServer

LIMIT = 100_000
GETS = ("/", "/static/app.js", "/static/app.css", "/api/runs", "/api/runs/x/report", "/api/runs/x/events")
POSTS = ("/api/tables", "/api/tables/x/setup", "/api/runs", "/api/runs/x/stop", "/api/runs/x/marks")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    made = PageServer(tmp_path_factory.mktemp("page") / "runs", upload_limit=LIMIT)
    yield made
    made.close()


def every(server: PageServer, headers: dict[str, str | None], query: str = "") -> set[int]:
    """The status of every address."""
    answers = [server.send("GET", path + query, headers=headers) for path in GETS]
    answers += [server.send("POST", path + query, b"{}", headers) for path in POSTS]
    return {status for status, _, _ in answers}


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "é"])
def test_without_the_token_nothing_is_answered(server: PageServer, token: str | None) -> None:
    assert every(server, {"x-physdiffuser-token": token}) == {403}


def test_the_page_itself_is_answered(server: PageServer) -> None:
    status, content, _ = server.send("GET", f"/?token={TOKEN}", headers={"x-physdiffuser-token": None})
    assert status == 200 and b"<!doctype html>" in content
    assert every(server, {}) <= {200, 400}


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}"]
)
def test_a_foreign_name_for_this_machine_is_refused(server: PageServer, host: str) -> None:
    """DNS rebinding: the browser sends the name of the site."""
    assert every(server, {"host": host.format(port=server.port)}, f"?token={TOKEN}") == {403}


def test_another_site_is_refused(server: PageServer) -> None:
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": f"http://127.0.0.1:{server.port + 1}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert every(server, dict(headers)) == {403}
    assert server.send("POST", "/api/runs", b"{}", {"origin": "null"})[0] == 403
    own = {"origin": f"http://127.0.0.1:{server.port}", "sec-fetch-site": "same-origin"}
    assert server.send("GET", "/api/runs", headers=own)[0] == 200


def test_a_form_of_another_site_cannot_send_the_header(server: PageServer) -> None:
    """CSRF: a form can carry a token in its address at most, and that is not enough to change anything."""
    for path in POSTS:
        answer = server.send("POST", f"{path}?token={TOKEN}", b"{}", {"x-physdiffuser-token": None})
        assert answer[0] == 403


def test_answers_may_not_be_framed_stored_or_guessed(server: PageServer) -> None:
    for path in ("/", "/api/runs", "/static/app.js", "/nowhere"):
        headers = server.send("GET", path)[2]
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
        assert "set-cookie" not in headers and "access-control-allow-origin" not in headers
    refused = server.send("GET", "/", headers={"x-physdiffuser-token": None})[2]
    assert "content-security-policy" in refused


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../pyproject.toml",
        "/static/..%2f..%2f..%2fetc%2fpasswd",
        "/static/%2e%2e/%2e%2e/etc/passwd",
        "/static//etc/passwd",
        "/api/runs/..%2f..%2fetc/report",
        "/api/runs/%2e%2e/download/folder",
        "/api/runs/tables/report",
        "/api/runs/x/download/..%2f..%2fapp.json",
    ],
)
def test_no_path_leads_out(server: PageServer, path: str) -> None:
    status, content, _ = server.send("GET", path)
    assert status in (400, 404)
    assert b"root:" not in content and b"[project]" not in content


def test_the_name_of_a_table_is_no_path(server: PageServer) -> None:
    folder = server.options.runs
    server.upload("a,b\n1,2\n")
    before = set((folder / "tables").iterdir())
    for name in ("..%2F..%2Fevil.csv", "%2Fetc%2Fpasswd", "..", "a%00b.csv", "C%3A%5Cevil.csv", "x" * 5000):
        server.upload("a,b\n1,2\n", name)
    tables = folder / "tables"
    assert [path.name for path in folder.iterdir()] == ["tables"]
    assert len(set(tables.iterdir()) - before) == 6
    assert not (folder.parent / "evil.csv").exists()


def test_a_table_is_named_by_nothing_but_its_token(server: PageServer, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n2,3\n")
    for name in (str(secret), "../secret.csv", ""):
        status, content, _ = server.send("POST", "/api/runs", {"table": name, "settings": {}})
        assert status == 400 and b"not open" in content


@pytest.mark.parametrize("guess", ["@/etc/passwd", " @x", "l + ", "__import__('os')", "x" * 3000])
def test_a_guess_is_a_formula(server: PageServer, guess: str) -> None:
    table = server.upload("l,T\n1,2\n2,3\n3,5\n4,7\n")
    settings = {"target": "T", "guesses": [guess]}
    status, content, _ = server.send("POST", "/api/runs", {"table": table, "settings": settings})
    assert status == 400 and b"root:" not in content
    assert json.loads(server.send("GET", "/api/runs")[1]) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"time": 0},
        {"time": 1e9},
        {"time": "5"},
        {"out": "/tmp/x"},
        {"seed": -1},
        {"reading": {"delimiter": "||"}},
    ],
)
def test_other_settings_are_refused(server: PageServer, settings: dict[str, Any]) -> None:
    table = server.upload("l,T\n1,2\n2,3\n3,5\n4,7\n")
    assert server.send("POST", "/api/runs", {"table": table, "settings": settings})[0] == 400


def test_a_table_that_is_too_large_is_refused_and_leaves_nothing(server: PageServer) -> None:
    before = sorted((server.options.runs / "tables").glob("*"))
    assert server.send("POST", "/api/tables", b"1,2\n" * LIMIT)[0] == 413
    claimed = server.send("POST", "/api/tables", b"1,2\n", {"content-length": str(10**15)})[0]
    assert claimed == 413
    pieces = (b"1,2\n" * 1000 for _ in range(LIMIT))
    # Without a length the server counts what arrives, and closes the connection when it is too much.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        assert server.send("POST", "/api/tables", pieces, {"transfer-encoding": "chunked"})[0] == 413
    assert sorted((server.options.runs / "tables").glob("*")) == before
    assert server.send("POST", "/api/runs", b" " * 2_000_000)[0] == 413


def test_a_table_with_markup_stays_text(server: PageServer) -> None:
    name = "<img src=x onerror=alert(1)>"
    table = server.upload(f'"{name}",T\n1,2\n2,3\n3,5\n4,7\n', "%3Cb%3E.csv")
    page = server.json("POST", f"/api/tables/{table}/setup", {})["html"]
    assert "<img" not in page and "&lt;img" in page


def test_fifty_connections_do_not_keep_the_page_from_answering(server: PageServer) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(server.send("GET", "/api/runs")[0])) for _ in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for one in idle:
        one.close()
    assert found == [200] * 50
