"""Generators of the rational functions in which `identities` writes formulas, with their relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import sympy

IMAGINARY = sympy.Symbol("i_")
PI = sympy.Symbol("pi_")


class Undecided(Exception):
    """The formula has parts this method cannot treat."""


class Generators:
    """The generators met so far, their relations, and their values at the sample points."""

    def __init__(self, samples: Sequence[dict[Any, Any]], divisors: dict[Any, int]) -> None:
        count = len(samples)
        self.divisors = divisors
        self.denominators: dict[Any, int] = {}
        self.values: dict[Any, list[Any]] = {
            IMAGINARY: [mpmath.mpc(0, 1)] * count,
            PI: [+mpmath.pi] * count,
        }
        for symbol in samples[0] if samples else ():
            self.values[symbol] = [mpmath.mpc(sample[symbol]) for sample in samples]
        self.count = count
        self.known: dict[Any, Any] = {}
        # root -> (degree, radicand)
        self.relations: dict[Any, tuple[int, Any]] = {IMAGINARY: (2, sympy.Integer(-1))}
        self.meaning: dict[Any, tuple[str, Any]] = {}

    def new(self, kind: str, key: Any, values: list[Any]) -> Any:
        """The generator for a key, made when it is new."""
        known = self.known.get((kind, key))
        if known is None:
            if not all(mpmath.isfinite(value) for value in values):
                raise Undecided
            known = sympy.Symbol(f"g{len(self.known)}_")
            self.known[(kind, key)] = known
            self.values[known] = values
            self.meaning[known] = (kind, key)
        return known

    def evaluate(self, expression: Any) -> list[Any]:
        """Values of a rational function of generators at the sample points."""
        if expression.is_Rational:
            return [mpmath.mpc(int(expression.p)) / int(expression.q)] * self.count
        if expression.is_Symbol:
            return self.values[expression]
        if expression.is_Pow and expression.exp.is_Integer:
            power = int(expression.exp)
            base = self.evaluate(expression.base)
            if power < 0 and any(value == 0 for value in base):
                raise Undecided
            return [value**power for value in base]
        parts = [self.evaluate(part) for part in expression.args]
        if expression.is_Add:
            return [mpmath.fsum(values) for values in zip(*parts, strict=True)]
        if expression.is_Mul:
            return [mpmath.fprod(values) for values in zip(*parts, strict=True)]
        raise Undecided
