"""What a table suggests before any formula is tried: frames for its law, and whether noise shows.

Worked out once in a run, for all generators that ask. An analysis that fails is not repeated: its failure
becomes one warning (`ParetoArchive.faults`), and every generator goes on with the columns as they are.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from physdiffuser.core.problem import Problem
from physdiffuser.errors import PhysdiffuserError
from physdiffuser.noise.noise_floor import Level, is_noisy, levels
from physdiffuser.reduction.data_collapse import collapsed
from physdiffuser.reduction.factors import demanded, hypotheses
from physdiffuser.reduction.power_law import power_law_frames
from physdiffuser.reduction.reduction import Frame
from physdiffuser.reduction.scale_groups import reductions
from physdiffuser.reduction.variable_merging import joined
from physdiffuser.search.archive import ParetoArchive

_FIRST, _LATER = f"{__name__}.first", f"{__name__}.later"


@dataclass(frozen=True)
class FirstLook:
    """What costs little to know.

    Attributes
    ----------
    frames
        What units demand and slopes suggest, the boldest first, the bare columns last.
    rough
        Of a power law fitted to the target itself; most of them wrong.
    levels
        How well polynomials in the features of both predict rows.
    noisy
        Whether noise shows in the most telling of them.
    """

    frames: tuple[Frame, ...]
    rough: tuple[Frame, ...]
    levels: tuple[Level, ...]
    noisy: bool


def first_look(problem: Problem, archive: ParetoArchive) -> FirstLook:
    """Frames that come at once, and what they tell of the noise."""
    known: FirstLook | None = archive.notes.get(_FIRST)
    if known is None:
        try:
            known = _first_look(problem)
        except PhysdiffuserError:
            raise
        except Exception as error:
            archive.faults.append(_failure("slopes and noise", error))
            known = FirstLook((Frame.of_columns((), range(problem.columns)),), (), (), False)
        archive.notes[_FIRST] = known
    return known


def _first_look(problem: Problem) -> FirstLook:
    every, rough = hypotheses(problem), power_law_frames(problem)
    told = levels(problem, [*rough, *every])
    return FirstLook(tuple(every), tuple(rough), tuple(told), is_noisy(problem, told))


def _failure(what: str, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200]
    return (
        f"the analysis of {what} failed, and the search went on without it ({type(error).__name__}: {reason})"
    )


def later_frames(problem: Problem, archive: ParetoArchive) -> Generator[float, None, tuple[Frame, ...]]:
    """Frames of scale symmetries and of the collapse that are new; yields nominal seconds of work.

    Whoever asks while another waits goes on with the same work.
    """
    known: _Shared | None = archive.notes.get(_LATER)
    if known is None:
        known = archive.notes[_LATER] = _Shared(
            _suggested(problem, first_look(problem, archive).frames), archive.faults
        )
    return (yield from known.rest())


def _suggested(problem: Problem, first: tuple[Frame, ...]) -> Generator[float, None, tuple[Frame, ...]]:
    # Where units are known, so are the symmetries.
    pairs: list[Frame] = []
    groups: list[Frame] = []
    if demanded(problem) is None:
        pairs = yield from joined(problem, first[-1])
        groups = yield from reductions(problem, [*pairs, *first])
    found = yield from collapsed(problem, first)
    known = {_whatever_order(frame) for frame in first}
    fresh = {_whatever_order(frame): frame for frame in reversed([*groups, *pairs, *found])}
    return tuple(frame for key, frame in reversed(fresh.items()) if key not in known)


def _whatever_order(frame: Frame) -> tuple[object, frozenset[object]]:
    return frame.factors, frozenset(frame.features)


class _Shared:
    """Work that several wait for, done by whoever has a turn.

    Parameters
    ----------
    work
        Yields nominal seconds and returns frames. After an exception it is over, and its result is empty.
    faults
        Takes the message about that exception.
    """

    def __init__(self, work: Generator[float, None, tuple[Frame, ...]], faults: list[str]) -> None:
        self._work = work
        self._faults = faults
        self._result: tuple[Frame, ...] | None = None

    def rest(self) -> Generator[float, None, tuple[Frame, ...]]:
        """What is left of it, and the result."""
        while self._result is None:
            try:
                seconds = next(self._work)
            except StopIteration as end:
                self._result = end.value
            except Exception as error:
                # A generator that raised is exhausted: to ask it again would return the end of an iterator.
                self._result = ()
                if isinstance(error, PhysdiffuserError):
                    raise
                self._faults.append(_failure("symmetries and combined columns", error))
            else:
                yield seconds
        return self._result
