"""Settings of a search besides its problem and its generators."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from physdiffuser.core.archive import Entry
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.parallel.ahead import Workers
from physdiffuser.search.timing import TimeLimit


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """Settings of a search besides its problem and its generators.

    Attributes
    ----------
    deferred
        Names of generators that wait until the others have found a formula that leaves only noise, or too
        little.
    refiners
        Names of generators that vary what others have found: asked whenever a formula would be accepted.
    specs
        What the generators declare.
    tolerance
        Relative rounding of the target's numbers.
    limit
        When the search has to end, measured while it runs; the deadline given to `run` counts as well.
    on_better
        Called with the archive's best entry whenever it changes.
    workers
        Processes in which generators may work ahead of the search; None: everything is done in this one.
    earlier_steps
        Steps of earlier searches of the table, with other weights, that found the formulas to start from.
        Deferred generators that were asked there are not asked again.
    """

    deferred: Collection[str] = ()
    refiners: Collection[str] = ()
    specs: Sequence[GeneratorSpec] = ()
    tolerance: float = 1e-10
    limit: TimeLimit | None = None
    cancelled: Callable[[], bool] = lambda: False
    on_better: Callable[[ParetoArchive, Entry], None] | None = None
    workers: Workers | None = None
    clock: Callable[[], float] = time.monotonic
    earlier_steps: int = 0


DEFAULT_SETTINGS = SearchSettings()
