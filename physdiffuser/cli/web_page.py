"""`physdiffuser app`: the page in a browser."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path

import click

from physdiffuser.cli.process import messages
from physdiffuser.cli.process.stdout import reserved_stdout
from physdiffuser.cli.shared.options import WholeNumber
from physdiffuser.errors import UsageError


@click.command()
@click.argument("table", required=False, type=click.Path(path_type=Path))
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--port",
    type=WholeNumber(1, 65535),
    metavar="N",
    help="Port of 127.0.0.1; any that is free when not given.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    metavar="DIR",
    show_default=True,
    help="Folder of the run folders.",
)
@click.option("--jobs", type=WholeNumber(1, 64), metavar="N", help="Searches that run at a time.")
@reserved_stdout()
def app(table: Path | None, no_browser: bool, port: int | None, runs: Path, jobs: int | None) -> int:
    """Open a page in the browser, from a table to its law; TABLE is loaded at once.

    The address goes to stdout. Only this machine can open it, and only with the token in it. Ctrl-C ends the
    page and its searches; what they have found is in their run folders.
    """
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"the page needs {' and '.join(missing)}: pip install 'physdiffuser[app]'")
    if table is not None:
        from physdiffuser.data.readers.sources import open_binary

        open_binary(table).close()  # a path that cannot be read is an error here, not in the page
    from physdiffuser.app.server import AppOptions, serve

    def ready(address: str) -> None:
        messages.output(f"{address}\n")
        messages.note("Ctrl-C ends the page and its searches")
        if not no_browser:
            import webbrowser

            threading.Thread(
                target=webbrowser.open, args=(address,), name="physdiffuser-browser", daemon=True
            ).start()

    serve(AppOptions(table, runs, port or 0, jobs), ready)
    return 0
