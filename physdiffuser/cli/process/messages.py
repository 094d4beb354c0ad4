"""Messages to the user, all on stderr, one line each, nothing in them interpreted by the terminal."""

from __future__ import annotations

import click

from physdiffuser.cli.process import stdout
from physdiffuser.io.display import visible

_LIMIT = 4_000


def output(text: str) -> None:
    """Write data to stdout: what the program was asked for, and nothing else."""
    # Not click.echo: it takes an ASCII terminal for a misconfigured one and writes UTF-8 to it.
    file = stdout.stream()
    file.write(text)
    file.flush()


def one_line(text: str) -> str:
    """Text from outside as one harmless line."""
    return visible(text, _LIMIT)


def message(kind: str, text: str) -> None:
    """Write `kind: text`; line ends inside the text are kept, other control characters escaped."""
    lines = [visible(line, _LIMIT) for line in str(text).splitlines()] or [""]
    click.echo(f"{kind}: " + "\n  ".join(lines), err=True)


def note(text: str) -> None:
    """Something that was assumed or done."""
    message("note", text)


def warning(text: str) -> None:
    """Something the user should know before trusting the result."""
    message("warning", text)


def error(text: str) -> None:
    """Why there is no result."""
    message("error", text)
