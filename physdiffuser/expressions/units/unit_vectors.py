"""Units of a whole library at once, as rows of small whole numbers.

Exponents are multiplied by one number that makes them whole and leaves room for roots, so that a
product of two libraries is a sum of two arrays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Expression
from physdiffuser.expressions.units.dimensions import UnitChecker
from physdiffuser.units.unit import Unit

Vectors = npt.NDArray[np.int16]
Mask = npt.NDArray[np.bool_]

ROOTS = 12
"""Roots that stay whole: of order 2, 3, 4, 6 and 12, and one in another."""


@dataclass(frozen=True)
class UnitVectors:
    """The columns' units, and arithmetic on arrays of units.

    Attributes
    ----------
    base
        Symbols of the base units that occur.
    scale
        What exponents are multiplied by.
    columns
        Shape (columns, base).
    target
        Shape (base,).
    """

    base: tuple[str, ...]
    scale: int
    columns: Vectors
    target: Vectors

    @classmethod
    def of(cls, units: Sequence[Unit], target: Unit) -> UnitVectors:
        """Vectors for the units of a table."""
        every = (*units, target)
        base = tuple(sorted({symbol for unit in every for symbol, _ in unit.exponents}))
        denominators = [exponent.denominator for unit in every for _, exponent in unit.exponents]
        scale = ROOTS * math.lcm(*denominators) if denominators else ROOTS
        vectors = np.array(
            [[int(unit.exponent(symbol) * scale) for symbol in base] for unit in every], dtype=np.int16
        ).reshape(len(every), len(base))
        return cls(base, scale, vectors[:-1], vectors[-1])

    def encode(self, unit: Unit) -> Vectors:
        """One unit, shape (base,).

        Raises
        ------
        ValueError
            If its exponents are not whole after scaling, or it has a symbol of its own.
        """
        scaled = [exponent * self.scale for exponent in unit.vector(self.base)]
        if any(value.denominator != 1 for value in scaled):
            raise ValueError(f"{unit} has exponents finer than 1/{self.scale}")
        return np.array([int(value) for value in scaled], dtype=np.int16)

    def decode(self, vector: Vectors) -> Unit:
        """The unit of one row."""
        return Unit.of(
            (symbol, Fraction(int(value), self.scale))
            for symbol, value in zip(self.base, vector, strict=True)
        )

    def library(self, expressions: Iterable[Expression], checker: UnitChecker) -> tuple[Vectors, Mask]:
        """Units of given formulas.

        Returns
        -------
        vectors
            Shape (formulas, base).
        known
            Shape (formulas,): False where the formula does not balance, or a constant decides its unit.
        """
        rows: list[Vectors] = []
        known: list[bool] = []
        zero = np.zeros(len(self.base), dtype=np.int16)
        encoded: dict[int, Vectors | None] = {}
        for expression in expressions:
            code = checker.code(expression)
            if code >= 0 and code not in encoded:
                try:
                    encoded[code] = self.encode(checker.unit(code))
                except ValueError:
                    encoded[code] = None
            row = encoded.get(code)
            rows.append(zero if row is None else row)
            known.append(row is not None)
        return np.array(rows, dtype=np.int16).reshape(len(rows), len(self.base)), np.array(known, dtype=bool)

    def apply(self, operator: str, *arguments: Vectors) -> tuple[Vectors, Mask]:
        """Units of an operator applied to libraries, row by row (or by broadcasting).

        Parameters
        ----------
        operator
            A name in the operator table, but `pow`: see `power`.
        arguments
            Shape (..., base) each.

        Returns
        -------
        vectors
            Shape (..., base); meaningless where not valid.
        valid
            Shape (...): whether the arguments' units are allowed.
        """
        if operator == "mul":
            vectors = np.add(*arguments)
            return vectors, np.ones(vectors.shape[:-1], dtype=bool)
        if operator == "div":
            vectors = np.subtract(*arguments)
            return vectors, np.ones(vectors.shape[:-1], dtype=bool)
        degree = OPERATORS[operator].degree
        shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
        if degree is None:
            pure = np.ones(shape[:-1], dtype=bool)
            for argument in arguments:
                pure = pure & ~argument.any(axis=-1)
            return np.zeros(shape, dtype=np.int16), pure
        first = np.broadcast_to(arguments[0], shape)
        same = np.ones(shape[:-1], dtype=bool)
        for argument in arguments[1:]:
            same = same & (first == argument).all(axis=-1)
        vectors, whole = self.power(first, Fraction(degree))
        return vectors, same & whole

    def power(self, vectors: Vectors, exponent: Fraction) -> tuple[Vectors, Mask]:
        """Units of a library raised to an exact power, and where they stay whole."""
        scaled = vectors.astype(np.int32) * exponent.numerator
        whole = (scaled % exponent.denominator == 0).all(axis=-1)
        return (scaled // exponent.denominator).astype(np.int16), whole

    def keys(self, vectors: Vectors) -> npt.NDArray[np.int64]:
        """One number a row, equal for equal units; keys of a product are the sum of its factors' keys.

        Sums wrap around at 64 bits. Two different units share a key with a chance of about 2**-63.
        """
        multipliers = np.random.default_rng(len(self.base)).integers(
            np.iinfo(np.int64).min, np.iinfo(np.int64).max, size=len(self.base), dtype=np.int64
        )
        keys: npt.NDArray[np.int64] = (vectors.astype(np.int64) * (multipliers | 1)).sum(axis=-1)
        return keys
