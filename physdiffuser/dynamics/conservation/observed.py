"""Conserved quantities seen in the trajectories themselves, where the equations have none exactly.

Constants that were fitted to noisy values break the symmetry of equations a little: two components of a
central force get constants that differ in the third digit, and no angular momentum is conserved. The
trajectories then show it: a sum of few terms that is constant along every run within its error, and differs
between runs. Of a single run nothing is concluded: its orbit satisfies equations of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.conservation.derivatives import differentiate, product, total
from physdiffuser.dynamics.conservation.search import Quantity, conserved_terms, normalised
from physdiffuser.dynamics.search.sparse import extended, pairs
from physdiffuser.expressions import ZERO, Expression, Number, evaluate
from physdiffuser.expressions.tree import variables


@dataclass(frozen=True)
class ObservedPolicy:
    """When a sum of terms counts as conserved along noisy trajectories.

    Set on the development systems (docs/dynamics.md).
    """

    max_terms: int = 3
    beam: int = 8
    """Terms of a sum, and sums that are followed."""
    within: float = 2.0
    """Variation of a conserved quantity in its standard errors."""
    max_rate: float = 0.02
    """Its rate by the equations, relative to the parts of that rate."""
    min_variation: float = 20.0
    """Its terms vary by so many times the error of the sum; otherwise anything would seem constant."""
    digits: int = 4
    """Digits of its coefficients."""


POLICY = ObservedPolicy()


def observed_quantities(
    flow: Sequence[Expression], runs: Sequence[FloatArray], errors: Sequence[FloatArray], most: int
) -> list[Quantity]:
    """Sums of up to three terms that are constant along every run within the errors, the simplest first.

    Parameters
    ----------
    flow
        Rate of change of each coordinate, as found: what it changes quickly is not conserved.
    runs
        Smoothed states of each run, shape (points, coordinates).
    """
    count = len(flow)
    if any(max(variables(rate), default=0) >= count for rate in flow) or count < 2 or len(runs) < 2:
        return []
    states = np.concatenate(runs)
    terms, columns = _terms(flow, runs)
    found: list[Quantity] = []
    for place in range(len(terms)):
        target, others = columns[:, place], columns[:, place + 1 :]
        beam: list[tuple[int, ...]] = [()]
        for size in range(1, min(POLICY.max_terms, others.shape[1] + 1)):
            beam = (pairs(others, target) if size == 2 else extended(others, target, beam))[: POLICY.beam]
            for subset in beam:
                values = np.linalg.lstsq(others[:, subset], target, rcond=None)[0]
                parts = [(terms[place], 1.0)]
                parts += [(terms[place + 1 + s], -v) for s, v in zip(subset, values.tolist(), strict=True)]
                quantity = _expression(parts)
                if quantity is not None and _is_constant(quantity, flow, runs, errors, states):
                    found.append(Quantity(quantity, False))
                    break
            else:
                continue
            break
        if len(found) == most:
            break
    return found


def _terms(flow: Sequence[Expression], runs: Sequence[FloatArray]) -> tuple[list[Expression], FloatArray]:
    """Terms and their deviations from the mean of each run, shape (rows, terms)."""
    terms, columns = [], []
    with np.errstate(all="ignore"):
        for term in dict.fromkeys(conserved_terms(flow, order=2)):
            values = [evaluate(term, run) for run in runs]
            centred = np.concatenate([value - value.mean() for value in values])
            if np.isfinite(centred).all() and float(np.abs(centred).max()) > 0.0:
                terms.append(term)
                columns.append(centred)
    return terms, np.stack(columns, axis=1) if columns else np.zeros((0, 0))


def _expression(parts: list[tuple[Expression, float]]) -> Expression | None:
    largest = max(abs(value) for _, value in parts)
    if not np.isfinite(largest) or largest > 1e6:
        return None
    expression: Expression = ZERO
    for term, value in normalised(parts):
        expression = total(expression, product(Number(float(f"{value:.{POLICY.digits}g}")), term))
    return expression


def _is_constant(
    quantity: Expression,
    flow: Sequence[Expression],
    runs: Sequence[FloatArray],
    errors: Sequence[FloatArray],
    states: FloatArray,
) -> bool:
    """Whether it does not vary by more than its error, which is small, and hardly changes along the flow."""
    slopes = [differentiate(quantity, index) for index in range(len(flow))]
    known = [slope for slope in slopes if slope is not None]
    if len(known) < len(flow):
        return False

    levels: list[float] = []
    largest = 0.0
    with np.errstate(all="ignore"):
        for run, error in zip(runs, errors, strict=True):
            deviation = evaluate(quantity, run) - evaluate(quantity, run).mean()
            gradient = np.stack([evaluate(slope, run) for slope in known], axis=1)
            sigma = np.sqrt(np.square(gradient * error).sum(axis=1))
            spread = float(np.abs(gradient * run.std(axis=0)).sum(axis=1).mean())
            if not np.sqrt(np.mean(deviation**2)) <= POLICY.within * np.sqrt(np.mean(sigma**2)):
                return False
            if not spread > POLICY.min_variation * np.sqrt(np.mean(sigma**2)):
                return False
            levels.append(float(evaluate(quantity, run).mean()))
            largest = max(largest, float(np.sqrt(np.mean(sigma**2))))
        if np.ptp(levels) < POLICY.min_variation * largest:
            return False
        pairs_of = zip(known, flow, strict=True)
        parts = np.stack([evaluate(slope, states) * evaluate(rate, states) for slope, rate in pairs_of])
    size = float(np.sqrt(np.mean(np.abs(parts).sum(axis=0) ** 2)))
    return bool(np.sqrt(np.mean(parts.sum(axis=0) ** 2)) <= POLICY.max_rate * size)
