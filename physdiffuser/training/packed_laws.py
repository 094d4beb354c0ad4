"""Laws that were drawn and checked beforehand, in one file.

To draw a law, and to check that it is none of the benchmarks', takes most of the time that a table takes. A
packed law is its signed prefix tokens, a byte each; ranges, constants, rows and noise are drawn when a batch
is made, so one law gives another table each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import BoolArray, IntArray
from physdiffuser.errors import FileError
from physdiffuser.expressions import Apply, Expression, Parameter, from_prefix, to_prefix
from physdiffuser.expressions.tree import variables, walk
from physdiffuser.models.tokens.arrangement import Term, total
from physdiffuser.models.tokens.vocabulary import EOS, Vocabulary
from physdiffuser.training.laws import Law

_VOCABULARY = Vocabulary()
_END = _VOCABULARY.ids[EOS]


@dataclass(frozen=True)
class PackedLaws:
    """Laws by number.

    Attributes
    ----------
    tokens
        Ids of all laws, one after the other, each with its end.
    starts
        (laws + 1,) where each begins.
    free
        (laws,) whether a law is of its kind in any unit (`Law.free`).
    """

    tokens: npt.NDArray[np.uint8]
    starts: IntArray
    free: BoolArray

    @classmethod
    def of(cls, laws: Iterable[Law]) -> PackedLaws:
        """Laws packed; those with numbers that the vocabulary lacks are left out."""
        parts: list[list[int]] = []
        free: list[bool] = []
        for law in laws:
            words = to_prefix(total(law.terms))
            if all(word in _VOCABULARY.ids for word in words):
                parts.append([*_VOCABULARY.encode(words), _END])
                free.append(law.free)
        tokens = np.array([token for part in parts for token in part], dtype=np.uint8)
        return cls(tokens, _starts(tokens), np.array(free, dtype=np.bool_))

    @classmethod
    def read(cls, path: str | Path) -> PackedLaws:
        """Laws from a file.

        Raises
        ------
        FileError
            If it cannot be read, or holds something else.
        """
        try:
            with np.load(path, allow_pickle=False) as found:
                tokens = np.asarray(found["tokens"], dtype=np.uint8)
                free = np.unpackbits(np.asarray(found["free"], dtype=np.uint8)).astype(np.bool_)
        except (OSError, KeyError, ValueError) as error:
            raise FileError(f"cannot read the packed laws '{path}': {error}; make them anew") from error
        starts = _starts(tokens)
        if len(starts) < 2 or len(free) < len(starts) - 1 or int(tokens.max()) >= len(_VOCABULARY):
            raise FileError(f"'{path}' does not hold packed laws; make them with tools/pack_laws.py")
        return cls(tokens, starts, free[: len(starts) - 1])

    def write(self, path: str | Path) -> None:
        """Write them, compressed."""
        with Path(path).open("wb") as stream:
            np.savez_compressed(stream, tokens=self.tokens, free=np.packbits(self.free))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> Law:
        begin, end = self.starts[number], self.starts[number + 1] - 1
        law = from_prefix(_VOCABULARY.decode(self.tokens[begin:end].tolist()))
        exponents = {
            node.arguments[1].index
            for node in walk(law)
            if isinstance(node, Apply) and node.operator == "pow" and isinstance(node.arguments[1], Parameter)
        }
        constants = sum(isinstance(node, Parameter) for node in walk(law))
        free = bool(self.free[number])
        terms = tuple(_terms(law))
        places = tuple(sorted(variables(law)))
        return Law(terms, places, constants, free, frozenset() if free else frozenset(exponents))


def _starts(tokens: npt.NDArray[np.uint8]) -> IntArray:
    return np.concatenate(([0], np.flatnonzero(tokens == _END) + 1)).astype(np.int64)


def _terms(law: Expression, sign: int = 1) -> list[Term]:
    """Terms of the outermost sum with their signs."""
    if isinstance(law, Apply) and law.operator in ("add", "sub"):
        first, second = law.arguments
        return [*_terms(first, sign), *_terms(second, sign if law.operator == "add" else -sign)]
    if isinstance(law, Apply) and law.operator == "neg":
        return _terms(law.arguments[0], -sign)
    return [(sign, law)]
