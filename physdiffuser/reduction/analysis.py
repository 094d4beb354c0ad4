"""What a table shows before any formula is tried: reductions of its law, and whether it has noise.

Each result is computed once in a run, for all generators that ask. An analysis that fails is not repeated:
its failure becomes one warning (`Archive.faults`), and every generator goes on with the columns as they are.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property

from physdiffuser.core.analysis import ReductionAnalysis
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.errors import PhysdiffuserError
from physdiffuser.fitting import Fit
from physdiffuser.functions.standard_fits import fit_standard_forms
from physdiffuser.noise.noise_floor import is_noisy, levels
from physdiffuser.reduction.data_collapse import collapsed
from physdiffuser.reduction.factors import demanded, hypotheses
from physdiffuser.reduction.power_law import power_law_reductions
from physdiffuser.reduction.scale_groups import scale_reductions
from physdiffuser.reduction.single_index import single_index
from physdiffuser.reduction.variable_merging import merged


class SharedAnalysis:
    """The analyses of one problem (`physdiffuser.core.analysis.TableAnalysis`).

    Parameters
    ----------
    faults
        Takes one message for each analysis that fails.
    """

    def __init__(self, problem: Problem, faults: list[str]) -> None:
        self._problem = problem
        self._faults = faults
        self._later: _Shared | None = None
        self._standard: list[Fit] | None = None

    @cached_property
    def first(self) -> ReductionAnalysis:
        """Reductions that are found at once, and whether the table shows noise."""
        try:
            return _reduction_analysis(self._problem)
        except PhysdiffuserError:
            raise
        except Exception as error:
            self._faults.append(_failure("slopes and noise", error))
            unreduced = Reduction.of_columns((), range(self._problem.columns))
            return ReductionAnalysis((unreduced,), (), (), False)

    def later(self) -> Generator[float, None, tuple[Reduction, ...]]:
        """Reductions by scale symmetries and data collapse; yields nominal seconds of work.

        It is computed once; each caller pays for all of it.
        """
        if self._later is None:
            self._later = _Shared(_later_reductions(self._problem, self.first), self._faults)
        return (yield from self._later.paid())

    def standard_fits(self, problem: Problem) -> list[Fit]:
        """The usual laws that a problem allows, fitted by least squares; kept for its own rows."""
        if problem.target is not self._problem.target:
            return fit_standard_forms(problem)
        if self._standard is None:
            self._standard = fit_standard_forms(problem)
        return self._standard


def _reduction_analysis(problem: Problem) -> ReductionAnalysis:
    every, rough = hypotheses(problem), power_law_reductions(problem)
    known_levels = levels(problem, [*rough, *every])
    return ReductionAnalysis(tuple(every), tuple(rough), tuple(known_levels), is_noisy(problem, known_levels))


def _failure(what: str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200]
    return (
        f"the analysis of {what} failed, and the search went on without it ({type(error).__name__}: {reason})"
    )


def _later_reductions(
    problem: Problem, analysis: ReductionAnalysis
) -> Generator[float, None, tuple[Reduction, ...]]:
    first, sums = analysis.reductions, []
    # Where units are known, so are the symmetries.
    pairs: list[Reduction] = []
    groups: list[Reduction] = []
    if demanded(problem) is None:
        pairs = yield from merged(problem, first[-1])
        groups = yield from scale_reductions(problem, [*pairs, *first])
        sums = single_index(problem, analysis.levels)
        yield 0.05
    found = yield from collapsed(problem, first)
    known = {_unordered(reduction) for reduction in first}
    fresh = {_unordered(reduction): reduction for reduction in reversed([*sums, *groups, *pairs, *found])}
    return tuple(reduction for key, reduction in reversed(fresh.items()) if key not in known)


def _unordered(reduction: Reduction) -> tuple[object, frozenset[object]]:
    return reduction.factors, frozenset(reduction.features)


class _Shared:
    """Work whose result several want. It is done once, and each of them pays for it.

    What one pays must not depend on who came first: some of them may work in other processes.

    Parameters
    ----------
    work
        Yields nominal seconds and returns reductions. After an exception it is over, and its result is empty.
    faults
        Takes the message about that exception.
    """

    def __init__(self, work: Generator[float, None, tuple[Reduction, ...]], faults: list[str]) -> None:
        self._work = work
        self._faults = faults
        self._paid: list[float] = []
        self._result: tuple[Reduction, ...] | None = None

    def paid(self) -> Generator[float, None, tuple[Reduction, ...]]:
        """The nominal seconds of all of it, and the result."""
        done = 0
        while self._result is None or done < len(self._paid):
            if done == len(self._paid):
                self._go_on()
            if done < len(self._paid):
                yield self._paid[done]
                done += 1
        return self._result

    def _go_on(self) -> None:
        try:
            self._paid.append(next(self._work))
        except StopIteration as end:
            self._result = end.value
        except Exception as error:
            # A generator that raised is exhausted: to ask it again would return the end of an iterator.
            self._result = ()
            if isinstance(error, PhysdiffuserError):
                raise
            self._faults.append(_failure("symmetries and combined columns", error))
