"""What a generator is: a small thing that proposes formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from physdiffuser.arrays import FloatArray

if TYPE_CHECKING:
    from physdiffuser.core.archive import Archive
    from physdiffuser.core.candidate import Candidate
    from physdiffuser.core.problem import Budget, Problem
    from physdiffuser.expressions import Expression

Role = Literal["primary", "deferred", "refiner"]


@runtime_checkable
class Generator(Protocol):
    """Proposes candidates for one problem.

    An instance serves one run: the scheduler calls `propose` again and again on it, so it may keep
    state between calls (how far an enumeration has come, a population). It must be deterministic for
    the problem's seed and the steps it was granted, and never look at the clock except through the
    budget.
    """

    name: str

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Yield candidates as they are found; return when the budget is spent.

        Returning before the budget is spent means that nothing more will come.
        """
        ...


@runtime_checkable
class FormPrior(Protocol):
    """A generator that also knows how usual a formula's form is for a table."""

    def form_nats(self, problem: Problem, formulas: Sequence[Expression]) -> FloatArray:
        """Nats to write down the form of each formula, shape (formulas,).

        Parameters
        ----------
        problem
            The table; the formulas are over its columns.
        formulas
            With numbers as fitted. What factors and other constants are costs nothing.

        Returns
        -------
        Minus the logarithm of a probability, which sums to at most 1 over all forms; inf for a form that
        cannot be written, nan for one that nothing is said of.
        """
        ...


@dataclass(frozen=True)
class GeneratorSpec:
    """A generator as a plugin registers it.

    Attributes
    ----------
    name
        What `--generators` calls it.
    build
        Makes an instance from the options; called once a run.
    options
        Default options, by name.
    role
        "primary" generators take turns from the start. A "deferred" one, which is slow to start, waits until
        only noise is left, or for 60 steps. A "refiner" varies what the others found, before a formula is
        accepted as the answer.
    share
        Share of all steps that the generator gets while it has work left, whatever the others find.
    opening
        Steps of its first turns. The first turns of all generators come first, then the second ones. A
        generator without any has one turn after them.
    default
        Whether it takes part in a run that names no generators.
    after_deferred
        Of a refiner: whether it waits as deferred generators do, because it is as slow to start.
    ahead
        Steps that it may work ahead of the search, in another process where there are cores for it. It then
        sees the archive as it was when it was granted these steps. 0: it works when it has its turn, and sees
        the archive as it is.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    name: str
    build: Callable[..., Generator]
    options: Mapping[str, Any] = field(default_factory=dict)
    role: Role = "primary"
    share: float = 0.0
    opening: tuple[int, ...] = ()
    default: bool = True
    ahead: int = 0
    after_deferred: bool = False

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            raise ValueError(f"role is {self.role!r}; it must be one of {', '.join(get_args(Role))}")
        if self.after_deferred and self.role != "refiner":
            raise ValueError(f"after_deferred is for refiners; role is {self.role!r}")
        if not 0.0 <= self.share < 1.0:
            raise ValueError(f"share is {self.share!r}; it must be at least 0 and below 1")
        if not isinstance(self.ahead, int) or self.ahead < 0:
            raise ValueError(f"ahead is {self.ahead!r}; it must be a whole number of steps")
        if any(not isinstance(steps, int) or steps < 1 for steps in self.opening):
            raise ValueError(f"opening is {self.opening!r}; it must hold whole numbers of steps above 0")
