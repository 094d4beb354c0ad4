"""User-facing errors. Each carries the exit code that the command line returns for it.

A message says what is wrong, where (file, line, column) and how to fix it, in that order.
"""

from __future__ import annotations


class PhysdiffuserError(Exception):
    """Base of every error that is reported as one message instead of a traceback."""

    exit_code = 1


class UsageError(PhysdiffuserError, ValueError):
    """An option, argument or configuration value that cannot be used (exit code 2)."""

    exit_code = 2


class DataError(PhysdiffuserError, ValueError):
    """A table whose content cannot be used as it is (exit code 3)."""

    exit_code = 3


class FileError(PhysdiffuserError, OSError):
    """A file that is missing, unreadable or cannot be written (exit code 4)."""

    exit_code = 4


class NothingFoundError(PhysdiffuserError):
    """The search ended without one finite candidate (exit code 5)."""

    exit_code = 5


class PluginError(PhysdiffuserError):
    """A plugin that was asked for by name failed or is missing (exit code 6)."""

    exit_code = 6
