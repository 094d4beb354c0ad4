"""What `physdiffuser` without arguments prints: three things to try."""

from __future__ import annotations

EXAMPLE = (
    r"printf 'a,T\n0.3871,0.2409\n0.7233,0.6152\n1,1\n1.524,1.881\n5.203,11.86\n9.537,29.45\n' | "
    "physdiffuser solve -"
)
"""Six planets: distance from the Sun in astronomical units, and period in years."""

_TEXT = """physdiffuser {version} finds the law in a table of measurements.

Three things to try:

  1. Kepler's third law, from six planets:

     {example}

  2. A table of your own; the last column is explained by the others:

     physdiffuser solve data.csv

  3. The same in the browser, from a file or from cells of a spreadsheet{extra}:

     physdiffuser app

'physdiffuser --help' lists all commands.
"""


def greeting() -> str:
    """The text."""
    import importlib.util

    from physdiffuser.version import version

    installed = all(importlib.util.find_spec(name) is not None for name in ("starlette", "uvicorn"))
    extra = "" if installed else " (after pip install 'physdiffuser[app]')"
    return _TEXT.format(version=version(), example=EXAMPLE, extra=extra)
