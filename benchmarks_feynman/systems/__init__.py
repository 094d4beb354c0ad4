"""What answers a benchmark problem: physdiffuser itself, and peers, one module each.

A system is a module with two functions and, for a peer, the name of its package as `PACKAGE`.
`prepare(settings)` imports what it needs, so that a warm worker does not count that; it raises
`PluginError` when the peer is not installed. `solve(table, task, units)` returns an `Answer`. A module that
counts its time by the processor (`clock`) says with `PATIENCE` how many times that it may take by the
wall before it is killed. Adding a peer is adding a module and its name here.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from benchmarks_feynman.tasks import KNOWN_SYSTEM
from physdiffuser.errors import PluginError, UsageError

PEERS = {
    "pyoperon": "benchmarks_feynman.systems.operon",
    "gplearn": "benchmarks_feynman.systems.gp_learn",
    "pyeggp": "benchmarks_feynman.systems.eggp",
}
OWN_MODULE = "module:"
_SYSTEMS = {KNOWN_SYSTEM: "benchmarks_feynman.systems.own", **PEERS}


def load_system(name: str) -> ModuleType:
    """The module of a system by its name, or `module:PATH` for one of one's own.

    Raises
    ------
    UsageError
        If there is no such system; the message names those there are.
    PluginError
        If a module of one's own cannot be imported.
    """
    path = name.removeprefix(OWN_MODULE) if name.startswith(OWN_MODULE) else _SYSTEMS.get(name)
    if path is None:
        raise UsageError(
            f"unknown peer {name!a}; choose from {', '.join(PEERS)}, or module:PATH for one of your own"
        )
    if not name.startswith(OWN_MODULE):
        return importlib.import_module(path)
    return require(path, name)


def check_system(name: str) -> None:
    """Make sure that a system can be used, without importing a peer's package.

    Raises
    ------
    UsageError, PluginError
        As `load_system`, and if the package named by the module's `PACKAGE` is missing.
    """
    package = getattr(load_system(name), "PACKAGE", None)
    if package is not None and importlib.util.find_spec(package) is None:
        raise _missing(name, f"no module named {package!r}")


def require(package: str, name: str) -> ModuleType:
    """Import a peer's package.

    Raises
    ------
    PluginError
        If it is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise _missing(name, str(error)) from error


def _missing(name: str, reason: str) -> PluginError:
    return PluginError(
        f"the peer {name} cannot be imported ({reason}); those that are known come with "
        "pip install 'physdiffuser[peers]'"
    )
