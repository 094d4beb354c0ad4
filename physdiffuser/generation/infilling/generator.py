"""Parts of the shortest descriptions so far, written anew by the denoiser and fitted. A learned mutation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.core.archive import Archive, entries_to_vary
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.generation.diffusion.generator import DiffusionGenerator

if TYPE_CHECKING:
    from physdiffuser.expressions import Expression
    from physdiffuser.generation.diffusion.infilling import Infiller
    from physdiffuser.models.written import Fitter

# Entries that are looked at in one call, and how many nats more than the shortest they may take.
ENTRIES, WITHIN = 3, 150.0
# Skeletons fitted for a step of the budget, a tenth of a second or so.
FITTED_A_STEP = 4
# A hole is filled in at most so many steps; most places are revealed at once.
SAMPLING = {"steps": 8, "confidence": 0.95}
_RANDOM = 29


class InfillingGenerator:
    """Masks a subtree of a formula and lets the denoiser write it again, given the rest and the table.

    Parameters
    ----------
    candidates
        How many formulas are written for an entry.
    holes
        Subtrees that are masked in an entry.
    options
        Those of `physdiffuser.generation.diffusion.DiffusionGenerator`.
    """

    name = "infilling"

    def __init__(self, *, candidates: int = 64, holes: int = 8, **options: Any) -> None:
        self.candidates, self.holes = candidates, holes
        self._inner = DiffusionGenerator(sampling=SAMPLING, **options)
        self._read: tuple[Problem, Infiller, Fitter] | None = None
        self._seen: set[Expression] = set()
        self._tried: set[Expression] = set()
        self._calls = 0

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Rewritten entries that were not looked at before, fitted; returns when there are none left."""
        entries = entries_to_vary(archive, self._seen, WITHIN, ENTRIES)
        if not entries or problem.rows < 4 or problem.columns == 0 or np.ptp(problem.target) == 0.0:
            return
        infiller, fitter = self._reader(problem)
        for entry in entries:
            if budget.exhausted:
                return
            formula = entry.candidate.expression
            self._seen.add(formula)
            self._calls += 1
            rng = problem.generator(_RANDOM, self._calls)
            written = infiller.rewritten(formula, self.holes, self.candidates, rng)
            if not budget.spend(3):
                return
            fresh = [skeleton for skeleton in written if skeleton not in self._tried]
            self._tried.update(fresh)
            note = "wrote a part of it anew with the diffusion network, constants fitted"
            for start in range(0, len(fresh), FITTED_A_STEP):
                for found in fitter.best_first(fresh[start : start + FITTED_A_STEP], refine=1):
                    yield Candidate(found.expression, self.name, (*entry.candidate.derivation, note))
                if not budget.spend():
                    return

    def _reader(self, problem: Problem) -> tuple[Infiller, Fitter]:
        from physdiffuser.generation.diffusion.infilling import Infiller
        from physdiffuser.models.features.reading import Reader
        from physdiffuser.models.written import Fitter

        if self._read is None or self._read[0] is not problem:
            reader = Reader(problem)
            self._read = problem, Infiller(self._inner, problem, reader), Fitter(problem, reader)
        return self._read[1], self._read[2]
