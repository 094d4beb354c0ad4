"""The server of the page: a port of the loopback interface, a token, and an end without orphans."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from physdiffuser.app.jobs import Jobs
from physdiffuser.app.routes import Routes
from physdiffuser.app.security import Guard
from physdiffuser.app.tables import Tables
from physdiffuser.data.limits import MAX_PIPED
from physdiffuser.errors import FileError

ADDRESS = "127.0.0.1"
_MOST_CONNECTIONS = 256
_TABLES = "tables"


@dataclass(frozen=True)
class AppOptions:
    """How the page is served.

    Attributes
    ----------
    table
        The table to begin with.
    runs
        The folder of the run folders.
    port
        0 for any that is free.
    most_running
        Searches at a time; half of the processors, at most four, when None.
    upload_limit
        Most bytes of a table from the browser.
    """

    table: Path | None = None
    runs: Path = Path("runs")
    port: int = 0
    most_running: int | None = None
    upload_limit: int = MAX_PIPED


def listening_socket(port: int) -> socket.socket:
    """A socket that listens on the loopback interface.

    Raises
    ------
    FileError
        If the port is taken.
    """
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        opened.bind((ADDRESS, port))
    except OSError as error:
        opened.close()
        raise FileError(f"cannot listen on port {port}: {error.strerror}. Leave out --port.") from error
    opened.listen(128)
    return opened


def build(options: AppOptions, token: str, port: int, closing: threading.Event) -> Guard:
    """The page as an ASGI application; `closing` is set when streams are to end."""
    tables = Tables(options.runs / _TABLES, options.upload_limit)
    opened = "" if options.table is None else tables.add(options.table.resolve())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        jobs = Jobs(options.runs, options.most_running)
        jobs.load()
        app.router.routes.extend(Routes(token, tables, jobs, opened, closing.is_set).routes())
        try:
            yield
        finally:
            await jobs.close()

    return Guard(Starlette(lifespan=lifespan), token, [f"{ADDRESS}:{port}", f"localhost:{port}"])


class _Server(uvicorn.Server):
    """Ends streams before it waits for their connections to close."""

    def __init__(self, config: uvicorn.Config, closing: threading.Event) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._closing.set()
        await super().shutdown(sockets)


def serve(options: AppOptions, ready: Callable[[str], None]) -> None:
    """Serve the page until the process is interrupted.

    Parameters
    ----------
    ready
        Called with the address once connections are accepted.

    Raises
    ------
    FileError
        If the port is taken.
    KeyboardInterrupt
        When the process has been interrupted and the server has ended.
    """
    opened = listening_socket(options.port)
    port = int(opened.getsockname()[1])
    token = secrets.token_urlsafe(24)
    closing = threading.Event()
    config = uvicorn.Config(
        build(options, token, port, closing),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )
    ready(f"http://{ADDRESS}:{port}/?token={token}")
    server = _Server(config, closing)
    server.run(sockets=[opened])
    if server.should_exit:
        # uvicorn raises the signal again, but an event loop that is closing may swallow it.
        raise KeyboardInterrupt
