"""Who works next: a bandit over generators, paid in description length per step.

Decisions depend on steps and finds alone, never on the clock, so that equal step budgets give equal
runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from physdiffuser.core.generator import GeneratorSpec

# Steps of one turn.
TURN = 5
# The first turn of a generator that had to wait, enough for a round of a learned one.
DEFERRED_TURN = 30
# How fast old finds are forgotten, per turn.
MEMORY = 0.7


@dataclass
class _Arm:
    steps: int = 0
    turns: int = 0
    rate: float = 0.0
    finished: bool = False


class Scheduler:
    """Chooses the next generator.

    Parameters
    ----------
    names
        In order of preference: each gets a turn in this order, after those of `OPENING`.
    late
        Those among them that wait until `admit` is called.
    specs
        What the generators declare; those that are not among the names do not count.
    """

    def __init__(
        self, names: list[str], deferred: Collection[str] = (), specs: Sequence[GeneratorSpec] = ()
    ) -> None:
        self._arms = {name: _Arm() for name in names}
        self._waiting = [name for name in names if name in deferred]
        self._asked: list[str] = []
        self._shares = {spec.name: spec.share for spec in specs}
        rounds = zip_longest(*(spec.opening for spec in specs if spec.name in self._arms))
        taking_part = [spec.name for spec in specs if spec.name in self._arms]
        self._opening = [
            (name, steps) for turns in rounds for name, steps in zip(taking_part, turns, strict=True) if steps
        ]

    def next(self) -> tuple[str, int] | None:
        """Name and steps of the next turn; None when all have finished."""
        open_arms = {
            name: arm for name, arm in self._arms.items() if not arm.finished and name not in self._waiting
        }
        if not open_arms:
            return None
        while self._asked:
            name = self._asked.pop(0)
            if name in open_arms:
                return name, DEFERRED_TURN
        while self._opening:
            name, steps = self._opening.pop(0)
            if name in open_arms:
                return name, steps
        for name, arm in open_arms.items():
            if arm.turns == 0:
                return name, TURN
        spent = sum(arm.steps for arm in open_arms.values())
        for name, arm in open_arms.items():
            if arm.steps < self._shares.get(name, 0.0) * spent:
                return name, TURN
        best_rate = max(arm.rate for arm in open_arms.values()) or 1.0
        total = sum(arm.turns for arm in open_arms.values())

        def value(name: str) -> float:
            arm = open_arms[name]
            return float(arm.rate / best_rate + np.sqrt(2 * np.log(total) / arm.turns))

        return max(open_arms, key=value), TURN

    def admit(self) -> bool:
        """Let those that wait have the next turns; False if there are none."""
        self._asked += self._waiting
        self._waiting = []
        return bool(self._asked)

    def record(self, name: str, steps: int, gain: float) -> None:
        """Note what a turn cost, and by how many nats it shortened the best description."""
        arm = self._arms[name]
        arm.turns += 1
        arm.steps += steps
        # A logarithm: the first find gains thousands of nats, the decisive one perhaps a dozen.
        arm.rate = MEMORY * arm.rate + (1 - MEMORY) * float(np.log1p(max(gain, 0.0))) / max(steps, 1)

    def finish(self, name: str) -> None:
        """The generator has nothing more to propose, or misbehaved."""
        self._arms[name].finished = True

    @property
    def steps(self) -> dict[str, int]:
        """Steps spent by each generator."""
        return {name: arm.steps for name, arm in self._arms.items()}
