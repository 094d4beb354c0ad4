"""The command line: one command per file, heavy imports inside the commands."""

from physdiffuser.cli.entry import main

__all__ = ["main"]
