"""What both learned generators share: rounds of writing, voting, fitting and proposing."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.core.candidate import Candidate
from physdiffuser.device import torch_name
from physdiffuser.models.shipped import find_weights, inference_precision, load_weights

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from physdiffuser.core.archive import Archive
    from physdiffuser.core.problem import Budget, Problem
    from physdiffuser.expressions import Expression
    from physdiffuser.models.features.reading import Reader, Reading
    from physdiffuser.models.network import LawModel
    from physdiffuser.models.tokens.grammar import Grammar

# Skeletons fitted between two looks at the budget.
_FITTED_A_STEP = 4
_MIN_TABLE = 4


class LearnedGenerator(ABC):
    """A generator that reads the table with the encoder and writes formulas with a network.

    Parameters
    ----------
    candidates
        Formulas written a round.
    readings
        Ways of showing the table to the encoder a round (places of columns, choice of rows).
    rounds
        Rounds before it has nothing more to say.
    attention
        Variant of the weights; the default one when None.
    weights
        Folder of weights trained by the user, instead of the shipped ones.
    device
        Where the networks run: "cpu" ("cpu-torch" is the same), "cuda" or "auto".

    Raises
    ------
    UsageError
        If there are no weights, saying what to do.
    """

    name: str
    part: str

    def __init__(
        self,
        *,
        candidates: int = 64,
        readings: int = 4,
        rounds: int = 8,
        attention: str | None = None,
        weights: str | None = None,
        device: str = "auto",
    ) -> None:
        self.candidates, self.readings, self.rounds = candidates, readings, rounds
        self.device = device
        self.folder: Path = find_weights(attention, weights)
        self._work: Iterator[Candidate | None] | None = None

    def model(self) -> LawModel:
        """The networks, loaded on first use."""
        device = self.device
        if device == "auto":
            import torch

            device = "cuda" if torch.cuda.is_available() else "cpu"
        return load_weights(self.folder, self.part, torch_name(device))

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Yield fitted formulas, the best of each round first; see `Generator.propose`."""
        if self._work is None:
            self._work = self._run(problem, archive)
        for item in self._work:
            if item is not None:
                yield item
            elif not budget.spend():
                return

    @abstractmethod
    def write(
        self,
        model: LawModel,
        memory: Float[Tensor, "readings tokens width"],
        mask: Bool[Tensor, "readings tokens"],
        grammar: Grammar,
        rng: np.random.Generator,
    ) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
        """Write formulas for all readings, in parts of bounded work.

        Parameters
        ----------
        memory, mask
            (readings, tokens, width) and (readings, tokens), as the encoder returns them.
        grammar
            With one row for each reading.

        Yields
        ------
        For each formula of the part the number of its reading and its token ids, without specials.
        """

    def skeletons(
        self, problem: Problem, reader: Reader, archive: Archive, number: int
    ) -> Iterator[tuple[Expression, int] | None]:
        """Distinct skeletons of one round with their votes, most votes first; None marks work done.

        Parameters
        ----------
        number
            Of the round, from 0.
        """
        from physdiffuser.models.tokens.grammar import Grammar
        from physdiffuser.models.written import permitted_tokens, read_formula

        model = self.model()
        seed = int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], "big")
        rng = problem.generator(seed, number)
        readings = [reader.read(rng) for _ in range(self.readings)]
        memory, mask = encode_readings(model, readings)
        yield None
        tokens = model.vocabulary.tokens
        permitted = [permitted_tokens(reading, problem.operators, tokens) for reading in readings]
        votes: Counter[Expression] = Counter()
        parts = self.write(model, memory, mask, Grammar(model.vocabulary, permitted), rng)
        while True:
            with inference_precision(memory.device):
                written = next(parts, None)
            if written is None:
                break
            for way, ids in written:
                skeleton = read_formula([tokens[index] for index in ids], readings[way])
                if skeleton is not None:
                    votes[skeleton] += 1
            yield None
        yield from votes.most_common()

    def _run(self, problem: Problem, archive: Archive) -> Iterator[Candidate | None]:
        from physdiffuser.models.features.reading import Reader
        from physdiffuser.models.written import Fitter

        if problem.rows < _MIN_TABLE or problem.columns == 0 or np.ptp(problem.target) == 0.0:
            return
        reader = Reader(problem)
        fitter = Fitter(problem, reader)
        seen: set[Expression] = set()
        for number in range(self.rounds):
            fresh: list[Expression] = []
            for item in self.skeletons(problem, reader, archive, number):
                if item is None:
                    yield None
                elif item[0] not in seen:
                    seen.add(item[0])
                    fresh.append(item[0])
            for start in range(0, len(fresh), _FITTED_A_STEP):
                for found in fitter.best_first(fresh[start : start + _FITTED_A_STEP], refine=1):
                    note = f"written by the {self.name} network for these rows, constants fitted"
                    yield Candidate(found.expression, self.name, (note,))
                yield None


@checked
def encode_readings(
    model: LawModel, readings: Sequence[Reading]
) -> tuple[Float[Tensor, "readings tokens width"], Bool[Tensor, "readings tokens"]]:
    """Memory, (readings, tokens, width), and mask of readings with equally many rows."""
    import torch

    device = model.nothing.device
    with torch.inference_mode(), inference_precision(device):
        rows = torch.from_numpy(np.stack([reading.rows for reading in readings])).to(device)
        used = torch.from_numpy(np.stack([reading.used for reading in readings])).to(device)
        nowhere = torch.zeros(rows.shape[:2], dtype=torch.bool, device=device)
        near = rows[:, : model.config.encoder.rows]
        memory, mask = model.encode(near, nowhere[:, : near.shape[1]], used, rows, nowhere)
    return memory, mask
