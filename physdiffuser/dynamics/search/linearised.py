"""Sums of terms for one rate, chosen by the trajectories themselves instead of by smoothed rates.

Around a system that is fitted already, the residuals of the trajectories depend linearly on small changes of
one right-hand side, along a flow that its sensitivities give. The best sums of library terms are then those
of a linear regression, free of the bias of smoothed derivatives. Initial states and the constants of the
other equations are eliminated from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.dynamics.integration.flow import System
from physdiffuser.dynamics.integration.shooting import Segments, ShootingFit, sensitivities
from physdiffuser.dynamics.search.sparse import extended, pairs
from physdiffuser.expressions import Expression, Parameter, evaluate
from physdiffuser.expressions.tree import add, bind, mul, parameter_count, with_parameters

Sums = list[tuple[tuple[Expression, ...], FloatArray, float]]
"""Terms, their coefficients and a sum of squares."""

MAX_TERMS = 5
BEAM = 16
KEPT = 6
"""Sums of each size that are returned."""
_RANK = 1e-13


def linearised_sums(
    skeletons: Sequence[Expression],
    fit: ShootingFit,
    segments: Segments,
    state: int,
    terms: Sequence[Expression],
    groups: Sequence[Sequence[int]],
    inputs: int = 0,
) -> list[Sums]:
    """The best sums of terms in place of one equation, from each of some groups of terms.

    Parameters
    ----------
    skeletons, fit
        The system, each equation with parameters from 0 on, and its fit.

    Returns
    -------
    For each group: terms, their coefficients, and the sum of squares that the linear model expects.
    """
    normal, gradient = _normal(skeletons, fit, segments, state, terms, inputs)
    # The current equation leaves (its factor becomes 0), the terms come in.
    square = max(fit.chi_square - 2.0 * float(gradient[0]) + float(normal[0, 0]), 0.0)
    if not (math.isfinite(square) and np.isfinite(normal).all() and np.isfinite(gradient).all()):
        return [[] for _ in groups]
    along = normal[1:, 0] - gradient[1:]
    return [_sums(normal[1:, 1:], along, square, terms, np.asarray(group, dtype=np.intp)) for group in groups]


def _sums(
    gram: FloatArray,
    along: FloatArray,
    square: float,
    terms: Sequence[Expression],
    group: IndexArray,
) -> Sums:
    """Subsets of a group, grown term by term (a beam)."""
    length = np.sqrt(np.maximum(np.diag(gram), 0.0))[group]
    places = group[length > 1e-9 * length.max(initial=0.0)]
    if not places.size:
        return []
    length = np.sqrt(np.diag(gram)[places])
    values, vectors = np.linalg.eigh(gram[np.ix_(places, places)] / np.outer(length, length))
    kept = values > _RANK * values[-1]
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    target = (vectors[:, kept].T @ (along[places] / length)) / np.sqrt(values[kept])
    found: Sums = []
    beam: list[tuple[int, ...]] = [()]
    for size in range(1, min(MAX_TERMS, places.size, target.size - 1) + 1):
        ordered = pairs(root, target) if size == 2 else extended(root, target, beam)
        beam = ordered[:BEAM]
        for subset in ordered[:KEPT]:
            factors = np.linalg.lstsq(root[:, subset], target, rcond=None)[0]
            left = square - float(target @ target) + float(np.sum((root[:, subset] @ factors - target) ** 2))
            chosen = places[list(subset)]
            found.append((tuple(terms[place] for place in chosen), factors / length[list(subset)], left))
    return found


def _normal(
    skeletons: Sequence[Expression],
    fit: ShootingFit,
    segments: Segments,
    state: int,
    terms: Sequence[Expression],
    inputs: int,
) -> tuple[FloatArray, FloatArray]:
    """Normal matrix and gradient of the factors of the current equation and of the terms.

    Both factors are measured from where the system is: 0 is the current equation alone.
    """
    counts = [parameter_count(skeleton) for skeleton in skeletons]
    parts = np.split(fit.parameters, np.cumsum(counts)[:-1])
    equations: list[Expression] = []
    values: list[float] = []
    for place, (skeleton, own) in enumerate(zip(skeletons, parts, strict=True)):
        if place == state:
            equations.append(skeleton)
            continue
        equations.append(with_parameters(skeleton, range(len(values), len(values) + len(own))))
        values += list(own)
    others = len(values)
    current = bind(skeletons[state], list(parts[state]))
    total = add(current, mul(Parameter(others), current))
    for number, term in enumerate(terms, others + 1):
        total = add(total, mul(Parameter(number), term))
    equations[state] = total
    parameters = np.concatenate([values, np.zeros(1 + len(terms))])
    normal, gradient = sensitivities(System(tuple(equations), inputs), parameters, segments, fit.initial)
    if not others or not np.isfinite(normal).all():
        return normal, gradient
    solved = np.linalg.lstsq(normal[:others, :others], normal[:others, others:], rcond=1e-10)[0]
    reduced = normal[others:, others:] - normal[others:, :others] @ solved
    return reduced, gradient[others:] - solved.T @ gradient[:others]


def finite_terms(terms: Sequence[Expression], nodes: FloatArray) -> list[Expression]:
    """Those that have values everywhere along the trajectories."""
    return [term for term in terms if np.isfinite(evaluate(term, nodes)).all()]
