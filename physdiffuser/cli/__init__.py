"""The command line: one command per file, heavy imports inside the commands."""

from __future__ import annotations

import signal
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; see `physdiffuser.cli.entry.main`."""
    try:
        from physdiffuser.cli.entry import main as run

        return run(arguments)
    except KeyboardInterrupt:
        # Pressed while the program was still being loaded, or already going.
        return 128 + signal.SIGINT
