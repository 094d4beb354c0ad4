"""What a table suggests before any formula is tried: frames for its law, and whether noise shows.

Worked out once in a run, for all generators that ask.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from physdiffuser.generation.enumeration.collapse import collapsed
from physdiffuser.generation.enumeration.factors import demanded, hypotheses
from physdiffuser.generation.enumeration.frame import Frame
from physdiffuser.generation.enumeration.groups import reductions
from physdiffuser.generation.enumeration.joins import joined
from physdiffuser.generation.enumeration.plateau import Level, is_noisy, levels
from physdiffuser.generation.enumeration.power_law import power_law_frames
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.problem import Problem

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
        every, rough = hypotheses(problem), power_law_frames(problem)
        told = levels(problem, [*rough, *every])
        known = FirstLook(tuple(every), tuple(rough), tuple(told), is_noisy(problem, told))
        archive.notes[_FIRST] = known
    return known


def later_frames(problem: Problem, archive: ParetoArchive) -> Generator[float, None, tuple[Frame, ...]]:
    """Frames of scale symmetries and of the collapse that are new; yields nominal seconds of work.

    Whoever asks while another waits goes on with the same work.
    """
    known: _Shared | None = archive.notes.get(_LATER)
    if known is None:
        known = archive.notes[_LATER] = _Shared(_suggested(problem, first_look(problem, archive).frames))
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
    """Work that several wait for, done by whoever has a turn."""

    def __init__(self, work: Generator[float, None, tuple[Frame, ...]]) -> None:
        self._work = work
        self._result: tuple[Frame, ...] | None = None

    def rest(self) -> Generator[float, None, tuple[Frame, ...]]:
        """What is left of it, and the result."""
        while self._result is None:
            try:
                seconds = next(self._work)
            except StopIteration as end:
                self._result = end.value
            else:
                yield seconds
        return self._result
