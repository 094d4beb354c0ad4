"""The options of `dynamics`, with one set of defaults for the command and the function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from physdiffuser.errors import UsageError
from physdiffuser.options import SolveOptions

if TYPE_CHECKING:
    from physdiffuser.data.statements.unit_files import UnitSource

Order = Literal[1, 2, "auto"]
NoiseModel = Literal["auto", "constant", "relative"]

DEFAULT_SECONDS = 60.0
DEFAULT_STEPS = 8
"""Steps of the search for each equation: most laws of motion are short, and are found in the first ones."""


@dataclass(frozen=True, kw_only=True)
class DynamicsOptions:
    """What the search for equations may use, and when it ends.

    Attributes
    ----------
    time
        Time limit in seconds; None: 60, or no limit if `steps` is given.
    steps
        Maximum number of steps of the search for each equation; equal steps give equal results on one
        machine.
    seed
        Random seed.
    generators, operators, constants, max_complexity, plugins
        As in `SolveOptions`.
    order
        1 for `dx/dt = f(x, t)`, 2 for `d2x/dt2 = f(x, dx/dt, t)` where only positions were measured;
        "auto" decides from the data.
    units
        Units of the time, the states and the inputs, as in `SolveOptions`: equations must balance.
    jobs
        Processes that search the equations of several states; by default one for each core. With `steps`, any
        number gives the same answer.
    noise_model
        Whether the errors of the measured states are constant or relative to the value; "auto" finds out.
    """

    time: float | None = None
    steps: int | None = None
    seed: int = 0
    generators: Sequence[str] | None = None
    operators: Sequence[str] | None = None
    constants: str | Mapping[str, float | str | None] | None = None
    max_complexity: int = 40
    order: Order = "auto"
    noise_model: NoiseModel = "auto"
    units: UnitSource | None = None
    plugins: bool = True
    jobs: int | None = None

    def __post_init__(self) -> None:
        if self.noise_model not in ("auto", "constant", "relative"):
            raise UsageError(f"noise_model={self.noise_model!r}: choose auto, constant or relative")
        if self.order not in (1, 2, "auto"):
            raise UsageError(f"order={self.order!r}: choose 1, 2 or auto")
        for name, least in (("time", 0.0), ("steps", 1), ("jobs", 1)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise UsageError(f"{name}={value!r}: give a number of at least {least:g}")

    @property
    def time_limit(self) -> float | None:
        """Seconds; None if the number of steps is the only limit."""
        return DEFAULT_SECONDS if self.time is None and self.steps is None else self.time

    def search(self) -> SolveOptions:
        """Options of the search for one equation, without a time limit."""
        return SolveOptions(
            time=None,
            steps=DEFAULT_STEPS if self.steps is None else self.steps,
            seed=self.seed,
            generators=self.generators,
            operators=self.operators,
            constants=self.constants,
            max_complexity=self.max_complexity,
            plugins=self.plugins,
        )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> DynamicsOptions:
        """Options by name.

        Raises
        ------
        UsageError
            If there is no option of a name.
        """
        known = [one.name for one in fields(cls)]
        for name in given:
            if name not in known:
                raise UsageError(f"there is no option {name!r}: the options are {', '.join(known)}")
        return cls(**given)
