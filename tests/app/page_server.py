"""A server of the page in a thread, and requests to it."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

# The page is an extra: the tests that import this module are skipped without what it needs.
pytest.importorskip("starlette", reason="needs pip install 'physdiffuser[app]'")
uvicorn = pytest.importorskip("uvicorn", reason="needs pip install 'physdiffuser[app]'")

from physdiffuser.app.jobs import ACTIVE  # noqa: E402
from physdiffuser.app.server import ADDRESS, AppOptions, build, listening_socket  # noqa: E402

TOKEN = "the-token-of-the-tests"
PENDULUM = "l,m,T\n" + "".join(
    f"{length},{mass},{2 * 3.141592653589793 * (length / 9.81) ** 0.5!r}\n"
    for length, mass in zip(
        (0.1, 0.25, 0.4, 0.55, 0.7, 0.9, 1.2, 1.6, 2.1, 3.0), (1, 3, 2, 5, 4, 1, 3, 2, 5, 4), strict=True
    )
)


class PageServer:
    """The page on a port of its own."""

    def __init__(self, runs: Path, **options: Any) -> None:
        self.options = AppOptions(runs=runs, **options)
        self._socket = listening_socket(0)
        self.port = int(self._socket.getsockname()[1])
        self.closing = threading.Event()
        app = build(self.options, TOKEN, self.port, self.closing)
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.port}/?token={TOKEN}"

    def close(self) -> None:
        self.closing.set()
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str | None] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, content and headers; by default a request as the page makes it."""
        given: dict[str, str | None] = {"x-physdiffuser-token": TOKEN, **(headers or {})}
        connection = http.client.HTTPConnection(ADDRESS, self.port, timeout=60)
        content = json.dumps(body).encode() if isinstance(body, dict) else body
        sent = {name: value for name, value in given.items() if value is not None}
        try:
            connection.request(method, path, content, sent, encode_chunked=hasattr(content, "__next__"))
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The answer to a request that must succeed."""
        status, content, _ = self.send(method, path, body)
        assert status < 300, content
        answer: dict[str, Any] = json.loads(content)
        return answer

    def upload(self, text: str, name: str = "table.csv") -> str:
        """The name of a table that was sent."""
        status, content, _ = self.send("POST", "/api/tables", text.encode(), {"x-table-name": name})
        assert status == 200, content
        return str(json.loads(content)["table"])

    def solved(self, run: str, seconds: float = 120.0) -> dict[str, Any]:
        """A run once it has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            snapshot = self.json("GET", f"/api/runs/{run}")
            if snapshot["state"] not in ACTIVE:
                return snapshot
            time.sleep(0.2)
        raise AssertionError(f"the run has not ended: {snapshot}")
