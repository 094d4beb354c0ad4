"""The options of a search, with one set of defaults for `solve`, the estimator and the command line."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from physdiffuser.errors import UsageError

if TYPE_CHECKING:
    from physdiffuser.core.problem import NoiseModelName
    from physdiffuser.data.dataset import Dataset
    from physdiffuser.data.statements.input_errors import InputErrors
    from physdiffuser.data.statements.unit_files import UnitSource

DEFAULT_SECONDS = 60.0
LossChoice: TypeAlias = Any
"""A name, a function of target and prediction, or a `Likelihood`."""
OperatorChoice: TypeAlias = Sequence[str] | Mapping[str, str] | None
SAVE_INTERVAL = 5.0
"""Seconds between two saves of what the search has so far: as much as a killed run loses."""
# Measurements that can be suggested at most.
MAX_NEXT = 100


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """What a search may use, and when it ends.

    Attributes
    ----------
    time
        Time limit in seconds, reading and finalization included. The search gets two seconds (a fifth of a
        shorter limit) even if reading has used them up, and a warning says so. None: 60 seconds, or no limit
        if `steps` is given.
    steps
        Maximum number of steps of the search; equal steps give equal results on one machine.
    seed
        Random seed.
    generators
        Names of the generators; None for the default ones and those of plugins.
    attention
        Attention variant of the learned generators.
    device
        Compute device: "cuda", or "cpu"; "auto" uses a GPU for the networks alone. "cpu-torch" runs on the
        CPU what "cuda" runs on the GPU, for checks.
    units, units_row
        Units of the columns, given, or read with the table.
    noise
        Relative standard deviation of the target, if known.
    operators
        Names of the operators that may occur; None for all. Definitions of further ones, each one node in
        formulas: `{"sinc": "sin(x)/x"}` beside all others, or `"sinc(x)=sin(x)/x"` among the names.
    max_complexity
        Larger formulas are not considered.
    complexity
        Complexity of operators, of columns and of numbers (`constant`), `{"exp": 3, "x": 2}` or
        `"exp=3,x=2"`; it counts wherever complexity does.
    auto_origin
        Whether columns far from zero, such as years, are also counted from a number near their least value;
        the law states the shift.
    forbid
        Forbidden nestings: `"exp(log)"` says that no logarithm stands anywhere inside an exponential.
    constants
        Known constants that may occur, `{"G": 6.674e-11}`; a name with the value None is looked up among
        the physical constants. The word `auto`, by itself or among names: fitted constants that agree with
        physical constants become them.
    loss
        "squared", or "robust" for errors with heavy tails; "auto" chooses. "huber", "absolute",
        "quantile=0.5", "logistic", a function of target and prediction, both of shape (rows,), that returns
        the loss of each row, or a `physdiffuser.losses.likelihoods.Likelihood`: that is minimised.
    noise_model
        How the errors of the target depend on its value: "constant"; "relative", in proportion to it (rows
        are weighted by 1/value**2); "poisson", to its square root, as those of counts; "mixed", a constant
        and a relative part; "robust", constant errors with heavy tails (Student's t). "auto" chooses it
        together with the law. Of these only "robust" has an effect on a table with weights.
    suggest_next
        How many next measurements to suggest, those that would best tell the surviving laws apart.
    suggest_range
        Ranges of input columns within which they are sought, `{"x": (0, 10)}` or `"x=0:10"`; others have
        those of the table.
    input_errors
        Standard deviations of inputs, `{"x": 0.01, "y": "dy", "z": "1%"}` or `"x=0.01,y=dy,z=1%"`: a number,
        a percentage of the value, or the name of a column of the table.
    jobs
        Processes that work at the same time; None for all cores that this process may use, or one inside of
        other parallel work. With `steps` the answer is the same for any number.
    scheduler
        A dask cluster whose workers are used instead: `tcp://HOST:PORT`, or `local:N`.
    plugins
        Whether to load generators and operators of other packages.
    initial
        Formulas to start from, in the table's aliases; names that are neither columns nor known constants are
        constants to be fitted. With a template they are for its functions, `"f = A*exp(-b*t)"`. The solution
        says what became of each.
    template
        A formula with unknown functions of columns, `"exp(-x/L)*f(t, x) + g(y)"`; other names are constants.
    known
        A known part of the law, to which an unknown function of all columns is added; with a leading `*` a
        known factor.
    proposed
        Formulas built from the laws of other targets, in the table's aliases; see `solve_targets`.
    constraints
        What the law must satisfy: a list such as `[{"increasing": "x"}, {"positive": True}]`, or a YAML file.
    resumed
        Formulas of an earlier run, in the table's aliases, or a function of the dataset that returns them.
    """

    time: float | None = None
    steps: int | None = None
    seed: int = 0
    generators: Sequence[str] | None = None
    attention: str | None = None
    device: str = "auto"
    units: UnitSource | None = None
    units_row: bool = False
    noise: float | None = None
    operators: OperatorChoice = None
    max_complexity: int = 60
    complexity: str | Mapping[str, int] | None = None
    forbid: Sequence[str] = ()
    auto_origin: bool = False
    constants: str | Mapping[str, float | str | None] | None = None
    loss: LossChoice = "auto"
    noise_model: NoiseModelName = "auto"
    suggest_next: int = 0
    suggest_range: str | Mapping[str, tuple[float, float]] | None = None
    input_errors: InputErrors | None = None
    jobs: int | None = None
    scheduler: str | None = None
    plugins: bool = True
    initial: Sequence[str] = ()
    template: str | None = None
    known: str | None = None
    constraints: str | Path | Sequence[Mapping[str, object]] | Mapping[str, object] | None = None
    resumed: Sequence[str] | Callable[[Dataset], Sequence[str]] = ()
    proposed: Sequence[str] = ()

    @property
    def time_limit(self) -> float | None:
        """Seconds; None if the number of steps is the only limit."""
        return DEFAULT_SECONDS if self.time is None and self.steps is None else self.time

    def shares(self, share: float) -> dict[str, Any]:
        """Changes that leave a share of the time and of the steps."""
        steps = None if self.steps is None else max(1, int(self.steps * share))
        return {"steps": steps, "time": None if self.time_limit is None else self.time_limit * share}

    def formulas(self, dataset: Dataset) -> Sequence[str]:
        """The formulas of an earlier run; those for functions of a template, `f = ...`, with one only."""
        found = self.resumed(dataset) if callable(self.resumed) else self.resumed
        has_template = self.template is not None or self.known is not None
        return [text for text in found if has_template or "=" not in text]

    def changed(self, **changes: Any) -> SolveOptions:
        """The same options with some of them changed.

        Raises
        ------
        UsageError
            If there is no option of that name.
        """
        if "scatter" in changes:
            warnings.warn("scatter is now called noise_model", FutureWarning, stacklevel=2)
            changes["noise_model"] = changes.pop("scatter")
        known = [field.name for field in fields(self)]
        for name in changes:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}"
                raise UsageError(f"there is no option {name!r}: {hint}")
        return replace(self, **changes)


DEFAULTS = SolveOptions()
