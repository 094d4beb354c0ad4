"""The version of the installed package."""

from __future__ import annotations

import functools


@functools.cache
def version() -> str:
    """As its metadata say; `0+source` when run from a checkout that is not installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("physdiffuser")
    except PackageNotFoundError:
        return "0+source"
