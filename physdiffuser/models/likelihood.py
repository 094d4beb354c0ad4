"""How likely the autoregressive network finds a formula, given the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import Expression, to_prefix
from physdiffuser.expressions.tree import variables, with_columns
from physdiffuser.models.features.reading import Reader, Reading
from physdiffuser.models.proposing import encode_readings
from physdiffuser.models.shipped import inference_precision
from physdiffuser.models.tokens.canonical_skeleton import canonical_skeleton
from physdiffuser.models.tokens.vocabulary import BOS, EOS

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

if TYPE_CHECKING:
    from physdiffuser.core.problem import Problem
    from physdiffuser.models.network import LawModel


# Sequences scored at once.
_BATCH = 128


class FormLikelihood:
    """Nats that the network takes to write forms for one table.

    Parameters
    ----------
    model
        With its autoregressive decoder.
    readings
        Ways of showing it to the encoder; probabilities are averaged over them.
    rng
        Chooses these ways.
    """

    def __init__(self, model: LawModel, problem: Problem, *, readings: int, rng: np.random.Generator) -> None:
        if model.decoder is None:
            raise ValueError("the model was loaded without its autoregressive decoder")
        self.model, self.decoder = model, model.decoder
        self.reader = Reader(problem)
        self.readings = [self.reader.read(rng) for _ in range(readings)]
        self.memory, self.mask = encode_readings(model, self.readings)

    @checked
    def nats(self, formulas: Sequence[Expression]) -> Float64[np.ndarray, " formulas"]:
        """For each formula, shape (formulas,), the nats of its form; inf where the network cannot write it.

        Parameters
        ----------
        formulas
            Over the problem's columns. What linear least squares restores costs nothing, and neither
            do the values of constants.
        """
        ids: list[list[int]] = []
        ways: list[int] = []
        owners: list[int] = []
        for owner, formula in enumerate(formulas):
            for way, reading in enumerate(self.readings):
                written = self._written(formula, reading)
                if written is None:
                    break
                ids.append(written)
                ways.append(way)
                owners.append(owner)
        scores = np.concatenate(
            [
                self._scores(ids[start : start + _BATCH], ways[start : start + _BATCH])
                for start in range(0, len(ids), _BATCH)
            ]
            or [np.zeros(0)]
        )
        total = np.full(len(formulas), -np.inf)
        np.logaddexp.at(total, np.array(owners, dtype=np.intp), scores)
        result: FloatArray = np.log(len(self.readings)) - total
        return result

    def _written(self, formula: Expression, reading: Reading) -> list[int] | None:
        """Token ids of the formula in one way of showing the table."""
        chosen = self.reader.chosen
        place = {chosen[column]: place for place, column in enumerate(reading.columns) if column >= 0}
        if variables(formula) - set(place):
            return None
        tokens = to_prefix(canonical_skeleton(with_columns(formula, place)))
        known = self.model.vocabulary.ids
        if len(tokens) >= self.model.config.length or not all(token in known for token in tokens):
            return None
        return self.model.vocabulary.encode(tokens)

    def _scores(self, ids: list[list[int]], ways: list[int]) -> FloatArray:
        """Log-probabilities of sequences, shape (sequences,), their ends included."""
        import torch

        specials = self.model.vocabulary.ids
        longest = max(map(len, ids)) + 1
        device = self.memory.device
        tokens = torch.tensor([[*row, *[specials[EOS]] * (longest - len(row))] for row in ids], device=device)
        before = torch.cat((torch.full_like(tokens[:, :1], specials[BOS]), tokens[:, :-1]), dim=1)
        way = torch.tensor(ways, device=device)
        with torch.inference_mode(), inference_precision(device):
            logits = self.decoder(before, self.memory[way], self.mask[way])
        each = torch.log_softmax(logits.double(), dim=-1).gather(2, tokens[..., None])[..., 0]
        ends = torch.tensor([len(row) for row in ids], device=device)
        counts = torch.arange(longest, device=device) <= ends[:, None]
        scores: FloatArray = (each * counts).sum(dim=1).cpu().numpy()
        return scores
