"""What a generator is: a small thing that proposes formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from physdiffuser.search.archive import ParetoArchive
    from physdiffuser.search.candidate import Candidate
    from physdiffuser.search.problem import Budget, Problem


@runtime_checkable
class Generator(Protocol):
    """Proposes candidates for one problem.

    An instance serves one run: the scheduler calls `propose` again and again on it, so it may keep
    state between calls (how far an enumeration has come, a population). It must be deterministic for
    the problem's seed and the steps it was granted, and never look at the clock except through the
    budget.
    """

    name: str

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        """Yield candidates as they are found; return when the budget is spent.

        Returning before the budget is spent means that nothing more will come.
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
    """

    name: str
    build: Callable[..., Generator]
    options: Mapping[str, Any] = field(default_factory=dict)
