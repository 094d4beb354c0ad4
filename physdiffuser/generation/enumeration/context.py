"""What the stages of one run share: probe rows, libraries, transformed targets, and what was proposed."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import Expression
from physdiffuser.library.expression_library import Library
from physdiffuser.library.matches import Match, candidates
from physdiffuser.library.screening import variation
from physdiffuser.library.terms import fill
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.transforms.transform import OutputTransform, known_transforms

# Rows on which exact matches are distinguished.
EXACT_PROBES = 24
# Rows on which noisy fits are ranked. What stands around a matrix product costs as much with fewer, so that
# work is charged as on this many.
PROBES = 320


class TransformedTarget(NamedTuple):
    """The target with an output transform inverted, and row weights; both of shape (probes,)."""

    transform: OutputTransform
    target: FloatArray
    weights: FloatArray


def transformed_targets(
    target: FloatArray, weights: FloatArray, available: tuple[OutputTransform, ...]
) -> list[TransformedTarget]:
    """The target under each transform that can be inverted."""
    found = []
    for transform in available:
        result = transform.undo(target)
        if result is None:
            continue
        transformed, scaled = result[0], result[1] * weights
        # The squares of very large or small numbers are none: a transform that leads there is of no use.
        if 0.0 < variation(transformed, scaled) < np.inf:
            found.append(TransformedTarget(transform, transformed, scaled))
    return found


class Context:
    """What the stages of one run share.

    Parameters
    ----------
    device
        Where pairs are ranked and constants fitted.

    Attributes
    ----------
    exact_rows, screening_rows
        The rows that exact lookups and screenings look at.
    tolerance
        Relative accuracy of the target's numbers.
    """

    def __init__(self, problem: Problem, device: Device = HOST) -> None:
        self.problem = problem
        self.device = device
        order = problem.generator(1).permutation(problem.rows)
        self.exact_rows = _spanning_first(
            np.resize(order, max(5, min(EXACT_PROBES, problem.rows))), problem.target
        )
        self.screening_rows = order[:PROBES]
        self.tolerance = decimal_precision(problem.target)
        self._libraries: dict[tuple[str, Reduction], tuple[int, Library]] = {}
        self._tried: set[Expression] = set()

    def library(
        self, rows: str, reduction: Reduction, features: FloatArray, entries: int
    ) -> Generator[float, None, Library]:
        """Build a library of the given size; yields the nominal seconds of each piece, returns the library.

        Parameters
        ----------
        rows
            A name of the rows that `features`, shape (rows, features), are taken on; a library is built once
            for each.
        """
        key = (rows, reduction)
        known = self._libraries.get(key)
        if known is None or known[0] != entries:
            library = Library(features, reduction.features, self.problem.operators)
            fill(library, entries // 2)
            size = library.size
            for now in library.grow(entries):
                if now - size > 10_000:
                    yield 1e-6 * (now - size)
                    size = now
            known = (entries, library)
            # Large libraries of earlier reductions are not needed again at this size.
            self._libraries = {k: v for k, v in self._libraries.items() if v[0] < 20_000}
            self._libraries[key] = known
        return known[1]

    def noise_tolerant_transforms(self) -> tuple[OutputTransform, ...]:
        """The transforms that are useful with noise."""
        return tuple(
            transform
            for transform in known_transforms(1)
            if transform.noise_tolerant and transform.allowed(self.problem.operators)
        )

    def transformed(self, reduction: Reduction) -> list[TransformedTarget]:
        """The target under each noise-tolerant transform on the screening rows, factors divided out."""
        rows = self.screening_rows
        weights = None if self.problem.weights is None else self.problem.weights[rows]
        left = reduction.divided_out(self.problem.inputs[rows], self.problem.target[rows], weights)
        return [] if left is None else transformed_targets(*left, self.noise_tolerant_transforms())

    def offer(self, matches: Iterable[Match], tolerance: float) -> Iterator[Candidate]:
        """The formulas of matches that have not been proposed before; see `matches.candidates`."""
        for match in matches:
            for candidate in candidates(match, self.problem, tolerance):
                if candidate.expression not in self._tried:
                    self._tried.add(candidate.expression)
                    yield candidate


def _spanning_first(rows: IndexArray, target: FloatArray) -> IndexArray:
    """The rows in an order in which the first few span the target.

    The index divides by the difference between the first row and the third: numbers of few digits leave
    little of it where the two are close.
    """
    ranked = rows[np.argsort(target[rows], kind="stable")]
    first = np.array([0, len(rows) // 2, len(rows) - 1, len(rows) // 4, 3 * len(rows) // 4])
    rest = np.setdiff1d(np.arange(len(rows)), first)
    ordered: IndexArray = ranked[np.concatenate([first, rest])]
    return ordered
