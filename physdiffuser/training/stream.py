"""The stream of training tables: each batch is a function of the seed and its number, nothing else.

Resuming needs no more state than the number of the next batch, and workers need no order among them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import count

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from physdiffuser.arrays import BoolArray, IntArray
from physdiffuser.config import DataConfig
from physdiffuser.expressions import Expression, Parameter, to_prefix
from physdiffuser.expressions.tree import substitute, walk
from physdiffuser.models.features.encoding import choose_scaling, to_half
from physdiffuser.models.tokens.arrangement import total
from physdiffuser.models.tokens.derivation import derivation
from physdiffuser.models.tokens.skeleton import without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import EOS, MAX_VARIABLES, Vocabulary
from physdiffuser.training.decontamination import SHORT, Excluded
from physdiffuser.training.handbook import HandbookSampler
from physdiffuser.training.laboratory import LaboratorySampler
from physdiffuser.training.laws import Law, LawSampler
from physdiffuser.training.numbers import draw_table
from physdiffuser.training.packed_laws import PackedLaws

# Shorter formulas cannot be excluded laws (the check costs more than drawing them).
CHECK_FROM = 7


@dataclass(frozen=True)
class Batch:
    """Tables and their laws, the shortest laws first.

    Attributes
    ----------
    rows
        (batch, rows, 10) float16: nine places and the target.
    used
        (batch, 9) bool.
    tokens
        (batch, length) ids, filled up with end-of-sequence.
    lengths
        (batch,) tokens of each law.
    """

    rows: npt.NDArray[np.float16]
    used: BoolArray
    tokens: IntArray
    lengths: IntArray


def target_skeleton(law: Law) -> Expression:
    """What the network is to write: the law without linear coefficients, parameters renumbered."""
    skeleton = without_linear_coefficients(total(law.terms))
    found = [node for node in walk(skeleton) if isinstance(node, Parameter)]
    if not found:
        return skeleton
    order = {node: Parameter(index) for index, node in enumerate(dict.fromkeys(found))}
    return substitute(skeleton, lambda node: order[node] if isinstance(node, Parameter) else None)


class LawStream:
    """Makes batches by number.

    Parameters
    ----------
    config
        Rows, noise, dummy columns.
    vocabulary
        Tokens of the targets.
    length
        Longest law in tokens; longer ones are drawn again.
    excluded
        Laws to keep out.
    """

    def __init__(
        self, config: DataConfig, vocabulary: Vocabulary, length: int, seed: int, excluded: Excluded
    ) -> None:
        self.config, self.vocabulary, self.length = config, vocabulary, length
        self.seed, self.excluded = seed, excluded
        self.packed = None if config.laws is None else PackedLaws.read(config.laws)

    def batch(self, number: int, size: int, part: int = 0) -> Batch:
        """Batch of that number; `part` tells processes and purposes (training, validation) apart."""
        config = self.config
        rng = np.random.default_rng([self.seed, part, number])
        source = random.Random(int(rng.integers(2**62)))
        drawn = self._drawn(source)
        packed = drawn if self.packed is None else self._unpacked(self.packed, source)
        # Even in the logarithm: twenty rows and forty differ more than 480 and 500 do.
        height = round(float(np.exp(rng.uniform(*np.log(config.rows)))))
        rows = np.zeros((size, height, MAX_VARIABLES + 1), dtype=np.float16)
        used = np.zeros((size, MAX_VARIABLES), dtype=np.bool_)
        tokens = np.full((size, self.length), self.vocabulary.ids[EOS], dtype=np.int64)
        lengths = np.zeros(size, dtype=np.int64)
        done = 0
        while done < size:
            fresh = config.fresh_laws > 0.0 and source.random() < config.fresh_laws
            law, words = next(drawn if fresh else packed)
            for _ in range(min(config.tables, size - done)):
                table = draw_table(
                    rng,
                    law,
                    height,
                    config.noisy,
                    config.dummies,
                    config.noise,
                    broad=config.broad,
                    kinds=config.noise_models,
                )
                if table is None:
                    break
                columns = np.array(table.columns, dtype=np.intp)
                inputs = table.inputs[:, columns]
                scaled = choose_scaling(inputs, table.target).apply(inputs, table.target)
                rows[done] = to_half(*scaled, columns)
                used[done, columns] = True
                tokens[done, : len(words)] = self.vocabulary.encode(words)
                lengths[done] = len(words)
                done += 1
        # Here, in a worker: to put rows in order takes the process that trains longer than to start a step.
        order = np.argsort(lengths, kind="stable")
        return Batch(rows[order], used[order], tokens[order], lengths[order])

    def laws(self, source: random.Random) -> Iterator[Law]:
        """Endless laws to train on, those of the benchmarks left out and short ones thinned."""
        return (law for law, _ in self._drawn(source))

    def _drawn(self, source: random.Random) -> Iterator[tuple[Law, list[str]]]:
        config = self.config
        samplers: list[HandbookSampler | LaboratorySampler | LawSampler] = [
            HandbookSampler(source),
            LaboratorySampler(source),
            LawSampler(source),
        ]
        shares = (config.handbook, config.laboratory, 1.0 - config.handbook - config.laboratory)
        while True:
            law = source.choices(samplers, shares)[0].sample()
            words = None if law is None else self._words(law, source.random() < config.chains)
            if law is None or words is None:
                continue
            if len(words) > SHORT or config.short_kept >= 1.0 or source.random() < config.short_kept:
                yield law, words

    def _unpacked(self, packed: PackedLaws, source: random.Random) -> Iterator[tuple[Law, list[str]]]:
        """Laws that were checked when they were packed."""
        while True:
            law = packed[source.randrange(len(packed))]
            skeleton = to_prefix(target_skeleton(law))
            words = derivation(skeleton) if source.random() < self.config.chains else skeleton
            if law.places and len(words) < self.length and all(word in self.vocabulary.ids for word in words):
                yield law, words

    def _words(self, law: Law, chained: bool) -> list[str] | None:
        """What is to be written, or None if it is too long or must not be trained on."""
        skeleton = target_skeleton(law)
        words = derivation(to_prefix(skeleton)) if chained else to_prefix(skeleton)
        # One place is left for the end of the sequence; collected exponents may exceed the vocabulary.
        if len(words) >= self.length or not all(word in self.vocabulary.ids for word in words):
            return None
        if len(words) >= CHECK_FROM and self.excluded.contains(skeleton):
            return None
        return words

    def batches(self, first: int, size: int, part: int = 0) -> Iterator[Batch]:
        """Batches from number `first` on, in order, made ahead by worker processes if configured."""
        if self.config.workers == 0:
            for number in count(first):
                yield self.batch(number, size, part)
        # Batches come through shared memory: what fifteen workers of a process pool sent through its pipe
        # reached a GPU at a quarter of the rate.
        loader: DataLoader[tuple[Tensor, ...]] = DataLoader(
            _Numbered(self, size, part),
            batch_size=None,
            sampler=count(first),
            num_workers=self.config.workers,
            pin_memory=torch.cuda.is_available(),
        )
        for tensors in loader:
            yield Batch(*(tensor.numpy() for tensor in tensors))


class _Numbered(Dataset[tuple[Tensor, ...]]):
    """The batches of a stream by number, as tensors."""

    def __init__(self, stream: LawStream, size: int, part: int) -> None:
        self.stream, self.size, self.part = stream, size, part

    def __getitem__(self, number: int) -> tuple[Tensor, ...]:
        batch = self.stream.batch(number, self.size, self.part)
        return tuple(torch.from_numpy(getattr(batch, field.name)) for field in fields(batch))


def benchmark_laws() -> list[Expression]:
    """Every law of the suites whose tables are drawn from laws, for exclusion.

    The laws of measured tables have no constants of their own: their numbers are where a fit starts.
    """
    from benchmarks_feynman.suites import SAMPLED, load_suite

    return [law.expression for suite in SAMPLED for law in load_suite(suite)]
