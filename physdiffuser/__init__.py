"""physdiffuser: find the law in a table of measurements.

`PhysDiffuserRegressor` is the scikit-learn estimator, `solve` the same search for a file, a data frame
or arrays, `start` the same in the background. They are imported when first used: importing the package
costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing it from typing would cost the most here
if TYPE_CHECKING:
    from typing import Any

    from physdiffuser.dynamics.estimator import PhysDiffuserDynamics
    from physdiffuser.dynamics.solve import solve_dynamics
    from physdiffuser.estimator import PhysDiffuserRegressor
    from physdiffuser.pipeline import solve
    from physdiffuser.running import start
    from physdiffuser.targets.solving import solve_targets

    __version__: str

__all__ = [
    "PhysDiffuserDynamics",
    "PhysDiffuserRegressor",
    "__version__",
    "solve",
    "solve_dynamics",
    "solve_targets",
    "start",
]

_HOME = {
    "PhysDiffuserDynamics": "physdiffuser.dynamics.estimator",
    "PhysDiffuserRegressor": "physdiffuser.estimator",
    "solve": "physdiffuser.pipeline",
    "solve_dynamics": "physdiffuser.dynamics.solve",
    "solve_targets": "physdiffuser.targets.solving",
    "start": "physdiffuser.running",
}


def __getattr__(name: str) -> Any:
    value: Any
    if name == "__version__":
        from physdiffuser.version import version

        value = version()
    elif name in _HOME:
        import importlib

        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
