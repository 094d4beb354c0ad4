"""Dimensional analysis of a table without units: scale symmetries, taken out one after the other.

Every law of physics stays true in other units. So for each base unit in it there is a way to multiply columns
by powers of one factor that multiplies y by another (Buckingham 1914), and one column can go: divided out
of the others, and a power of it out of y. A symmetry that `scalings` suggests is believed when a polynomial
in the features that are left follows the rows as well as one in all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.expressions import Expression, complexity
from physdiffuser.reduction.scale_symmetries import POLICY as SYMMETRIES
from physdiffuser.reduction.scale_symmetries import Scaling, scalings
from physdiffuser.reduction.trend import divided, trend

# The polynomial in the features left may be so much worse: chance alone does as much; or, where no other
# symmetry comes near, so much, since fewer terms follow an awkward function less well.
_WORSE, _AWKWARD, _ALONE, _ROUNDING = 1.2, 1.5, 1.4, 1e-6
# Errors so near each other are equal.
_EQUAL = 1.04
# Reductions in the end, and how much worse than the best of as few features one may be.
MAX_REDUCTIONS, _MUCH_WORSE = 2, 1.5
# A feature is at most so complex.
_MAX_COMPLEX = 13


def scale_reductions(
    problem: Problem, reductions: list[Reduction]
) -> Generator[float, None, list[Reduction]]:
    """The best further reductions by scale symmetries; those of fewest features first.

    Parameters
    ----------
    reductions
        Where to begin.
    """
    found: dict[frozenset[bytes], tuple[float, Reduction]] = {}
    for reduction in reductions:
        some = (
            divided(problem, reduction) if 2 <= len(reduction.features) <= SYMMETRIES.max_features else None
        )
        if some is None:
            continue
        count = len(reduction.features)
        own = tuple(tuple(Fraction(int(i == j)) for j in range(count)) for i in range(count))
        state = _State(reduction, own, (Fraction(0),) * count, *some, *trend(*some))
        while len(state.products) > 1:
            yield 2e-3
            if state.slopes is None:
                break
            with np.errstate(all="ignore"):
                tried = [
                    (_applied(state, scaling), scaling)
                    for scaling in scalings(state.values, state.target, state.slopes)
                ]
            yield 1e-3 + 2e-3 * len(tried)
            chosen = _chosen(tried, state.error)
            if chosen is None:
                break
            state = chosen
        if len(state.products) < count:
            made = state.reduced()
            # u/v says as much as v/u does.
            key = frozenset(alike(value) for value in made.values(problem.inputs).T)
            if key not in found or state.error < found[key][0]:
                found[key] = (state.error, made)
    ranked = sorted(found.values(), key=lambda item: (len(item[1].features), item[0]))
    fewest: dict[int, float] = {}
    for error, made in ranked:
        fewest.setdefault(len(made.features), error)
    return [made for error, made in ranked if error <= _MUCH_WORSE * fewest[len(made.features)] + _ROUNDING][
        :MAX_REDUCTIONS
    ]


def _chosen(tried: list[tuple[_State | None, Scaling]], error: float) -> _State | None:
    """The state to go on with, or None where none follows the rows as well as before."""
    made = [(state, scaling) for state, scaling in tried if state is not None]
    if not made:
        return None
    best, line = min(((state, scaling.line) for state, scaling in made), key=lambda item: item[0].error)
    others = [state.error for state, scaling in made if scaling.line != line]
    alone = not others or best.error * _ALONE < min(others)
    if best.error > (_AWKWARD if alone else _WORSE) * error + _ROUNDING:
        return None
    # Of those that noise does not tell apart the shortest: a column alone before a combination with others.
    good = [item for item in made if item[0].error <= _EQUAL * best.error + _ROUNDING]
    return min(good, key=lambda item: (item[1].length, sum(map(complexity, item[0].features()))))[0]


@dataclass(frozen=True)
class _State:
    """What is left of a reduction.

    Attributes
    ----------
    reduction
        Where it began.
    products
        Exponents of the reduction's features in each feature that is left.
    factor
        Exponents of the reduction's features in what was divided out of the target.
    values, target
        The features left, (features, rows), and what is left of the target, (rows,).
    slopes, error
        Of a polynomial; see `trend`.
    """

    reduction: Reduction
    products: tuple[tuple[Fraction, ...], ...]
    factor: tuple[Fraction, ...]
    values: FloatArray
    target: FloatArray
    slopes: FloatArray | None
    error: float

    def features(self) -> tuple[Expression, ...]:
        """The features left; u is as good as any power of u, and whole exponents need no root."""
        trees = []
        for exponents in self.products:
            scale = int(np.lcm.reduce([exponent.denominator for exponent in exponents]))
            whole = [int(exponent * scale) for exponent in exponents]
            common = int(np.gcd.reduce(whole)) or 1
            chosen = tuple(
                (place, Fraction(exponent // common)) for place, exponent in enumerate(whole) if exponent
            )
            trees.append(monomial(chosen, self.reduction.features))
        return tuple(trees)

    def reduced(self) -> Reduction:
        """The reduction it stands for."""
        left = zip(self.reduction.features, self.factor, strict=True)
        return Reduction.of((*self.reduction.factors, *left), self.features())


def _applied(state: _State, scaling: Scaling) -> _State | None:
    """The state without the scaling's pivot; None where that says nothing or is too long."""
    power, goes = state.values[scaling.pivot], state.products[scaling.pivot]
    columns: list[FloatArray] = []
    products: list[tuple[Fraction, ...]] = []
    for position, exponent in enumerate(scaling.exponents):
        if position != scaling.pivot:
            columns.append(
                state.values[position] * power ** float(exponent) if exponent else state.values[position]
            )
            pairs = zip(state.products[position], goes, strict=True)
            products.append(tuple(own + exponent * other for own, other in pairs))
    target = state.target / power ** float(scaling.factor)
    values = np.stack(columns) if columns else np.empty((0, len(target)))
    if not (np.isfinite(values).all() and np.isfinite(target).all() and (np.ptp(values, axis=1) > 0).all()):
        return None
    pairs = zip(state.factor, goes, strict=True)
    factor = tuple(own + scaling.factor * other for own, other in pairs)
    made = _State(state.reduction, tuple(products), factor, values, target, *trend(values, target))
    return made if max(map(complexity, made.features()), default=0) <= _MAX_COMPLEX else None


def alike(values: FloatArray) -> bytes:
    """A key that features share which order the rows alike, forwards or backwards."""
    order = np.argsort(values, kind="stable").astype(np.int32)
    return min(order.tobytes(), order[::-1].tobytes())
