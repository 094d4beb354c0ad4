"""Which tokens may follow, so that what is written is a formula.

A prefix sequence is a formula when the number of arguments still to be written, one at the start, falls to
zero at its last token. That number is all a decoder has to carry along.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, IntArray, checked
from physdiffuser.models.tokens.vocabulary import EOS, Vocabulary

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float64, Int


class Grammar:
    """Arity and length rules for one vocabulary.

    Parameters
    ----------
    allowed
        Names of the tokens that may occur in a formula (variables that exist, permitted operators);
        all when None. One set, or one for each row of a batch.
    """

    def __init__(
        self, vocabulary: Vocabulary, allowed: Collection[str] | Sequence[Collection[str]] | None = None
    ) -> None:
        self.vocabulary = vocabulary
        self.end = vocabulary.ids[EOS]
        self.growth: IntArray = np.array(vocabulary.growth(), dtype=np.int64)
        every: BoolArray = np.array(vocabulary.symbols(), dtype=np.bool_)
        sets: list[Collection[str]]
        if allowed is None:
            sets = [vocabulary.tokens]
        elif isinstance(allowed, Sequence) and not all(isinstance(name, str) for name in allowed):
            sets = [set(names) for names in allowed]
        else:
            sets = [{str(name) for name in allowed}]
        # (rows or 1, vocabulary)
        self.symbols: BoolArray = np.stack(
            [every & np.array([token in names for token in vocabulary.tokens]) for names in sets]
        )
        if not (self.symbols & (self.growth < 0)).any(axis=1).all():
            raise ValueError("the grammar allows no leaf, so no formula can end")

    def row(self, index: int) -> Grammar:
        """The grammar of one row of the batch."""
        single = object.__new__(Grammar)
        single.vocabulary, single.end, single.growth = self.vocabulary, self.end, self.growth
        single.symbols = self.symbols[[index if len(self.symbols) > 1 else 0]]
        return single

    def repeated(self, rows: Sequence[int] | IntArray) -> Grammar:
        """A grammar for a batch whose entries stand in the given rows of this one."""
        batch = self.row(0)
        batch.symbols = self.symbols[np.asarray(rows)]
        return batch

    @checked
    def permitted(
        self, open_arguments: Int[np.ndarray, " batch"], places: int
    ) -> Bool[np.ndarray, "batch vocabulary"]:
        """Tokens that may come next, (batch, vocabulary).

        Parameters
        ----------
        open_arguments
            (batch,) arguments still to be written.
        places
            Places left, this one included, not counting the end of the sequence.
        """
        after = open_arguments[:, None] + self.growth[None, :]
        permitted = self.symbols & (open_arguments[:, None] > 0) & (after <= places - 1)
        permitted[:, self.end] = open_arguments == 0
        return permitted

    @checked
    def advance(
        self, open_arguments: Int[np.ndarray, " batch"], tokens: Int[np.ndarray, " batch"]
    ) -> Int[np.ndarray, " batch"]:
        """Arguments still to be written after the given tokens, both (batch,)."""
        return np.where(open_arguments > 0, open_arguments + self.growth[tokens], open_arguments)

    @checked
    def project(self, scores: Float64[np.ndarray, "places vocabulary"]) -> Int[np.ndarray, " places"] | None:
        """The formula with the largest sum of scores, one score for each place and token (one row only).

        Dynamic programming over the number of open arguments: of the tokens that change it by the same
        amount only the best at a place matters.

        Parameters
        ----------
        scores
            (places, vocabulary), for example log-probabilities; after the formula comes
            end-of-sequence at every place left.

        Returns
        -------
        (places,) ids, or None when no formula has a finite score.
        """
        places = scores.shape[0]
        most = places + 1
        best_token = np.zeros((places, 3), dtype=np.int64)
        best_score = np.full((places, 3), -np.inf)
        for column, change in enumerate((-1, 0, 1)):
            chosen = np.flatnonzero(self.symbols[0] & (self.growth == change))
            if chosen.size:
                best = scores[:, chosen].argmax(axis=1)
                best_token[:, column] = chosen[best]
                best_score[:, column] = scores[np.arange(places), chosen[best]]
        # value[p, k]: best sum of the places from p on, with k arguments open before place p.
        value = np.full((places + 1, most + 1), -np.inf)
        choice = np.zeros((places, most + 1), dtype=np.int64)
        value[places, 0] = 0.0
        for place in range(places - 1, -1, -1):
            options = np.full((3, most + 1), -np.inf)
            options[0, 1:] = best_score[place, 0] + value[place + 1, :-1]
            options[1, 1:] = best_score[place, 1] + value[place + 1, 1:]
            options[2, 1:-1] = best_score[place, 2] + value[place + 1, 2:]
            choice[place] = options.argmax(axis=0)
            value[place] = options.max(axis=0)
            value[place, 0] = scores[place, self.end] + value[place + 1, 0]
        if not np.isfinite(value[0, 1]):
            return None
        tokens = np.full(places, self.end, dtype=np.int64)
        open_arguments = 1
        for place in range(places):
            if open_arguments == 0:
                break
            change = int(choice[place, open_arguments])
            tokens[place] = best_token[place, change]
            open_arguments += change - 1
        return tokens
