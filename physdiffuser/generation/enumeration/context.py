"""One run of the enumeration: probe rows, libraries, and the work of each kind of stage."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import Expression
from physdiffuser.generation.enumeration import clean, noisy
from physdiffuser.library.expression_library import Library
from physdiffuser.library.matches import Match, candidates
from physdiffuser.library.terms import fill, power_products
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.reduction.means import averaged
from physdiffuser.transforms.output_transforms import SINGLE, OutputTransform, output_transforms

FloatArray = npt.NDArray[np.float64]

# Rows on which exact matches are told apart.
CLEAN_PROBES = 24
# With fewer rows some of the many sums with a factor fit by chance.
ROWS_FOR_SCALED = 20
# Matches of one stage that are fitted and offered, cheapest first.
MOST_MATCHES = 40


class Stage(NamedTuple):
    """One rung of the ladder.

    Attributes
    ----------
    kind
        "clean", "prefactors" and "triples" (exact lookups), "noisy", "sums" and "scaled sums" (screenings),
        "parametric" and "parametric sums" (screenings with constants inside).
    entries
        Size of the library.
    divisors
        How many entries are tried as the other factor.
    depth
        Depth of the outer transforms.
    shifts
        How many entries are tried as the third part of triples, or as prefactors.
    least, features
        The stage is for reductions with at least and at most so many features.
    """

    kind: str
    entries: int
    divisors: int = 0
    depth: int = 1
    shifts: int = 0
    least: int = 1
    features: int = 1_000


class Run:
    """What the stages of one run share.

    Parameters
    ----------
    problem
        Rows and rules.
    device
        Where pairs are ranked and constants fitted.
    """

    def __init__(self, problem: Problem, device: Device = HOST) -> None:
        self.problem = problem
        self.device = device
        order = problem.generator(1).permutation(problem.rows)
        self.clean_rows = _telling_first(
            np.resize(order, max(5, min(CLEAN_PROBES, problem.rows))), problem.target
        )
        self.noisy_rows = order[: noisy.PROBES]
        self.tolerance = decimal_precision(problem.target)
        self._libraries: dict[tuple[str, Reduction], tuple[int, Library]] = {}
        self._tried: set[Expression] = set()

    def library(
        self, kind: str, reduction: Reduction, features: FloatArray, entries: int
    ) -> Iterator[Library | float]:
        """Build a library of the given size, yielding the seconds of each piece, the library last.

        Parameters
        ----------
        kind
            What rows `features`, shape (rows, features), are taken on; a library is built once for each.
        """
        key = (kind, reduction)
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
        yield known[1]

    def _built(
        self, kind: str, reduction: Reduction, features: FloatArray, entries: int
    ) -> Generator[float, None, Library]:
        for item in self.library(kind, reduction, features, entries):
            if isinstance(item, Library):
                return item
            yield item
        raise AssertionError("library() ends with the library")

    def _small(self, reduction: Reduction, limit: int, functions: bool) -> Library:
        """Power products, and with `functions` simple functions of them, on the exact probe rows."""
        features = reduction.values(self.problem.inputs[self.clean_rows])
        library = Library(features, reduction.features, self.problem.operators)
        if functions:
            fill(library, limit)
        else:
            library.add_monomials(*power_products(len(reduction.features), limit))
        return library

    def exact(self, stage: Stage, reduction: Reduction) -> Work:
        """Hash lookups of pairs or triples."""
        rows = self.clean_rows
        features = reduction.values(self.problem.inputs[rows])
        library = yield from self._built("exact", reduction, features, stage.entries)
        target = self.problem.target[rows] / reduction.product(self.problem.inputs[rows])
        if not np.isfinite(target).all():
            return
        available = output_transforms(stage.depth, self.problem.operators)
        if stage.kind == "triples":
            pieces = clean.triples(
                library,
                self._small(reduction, stage.shifts, functions=True),
                self._small(reduction, stage.divisors, functions=False),
                reduction,
                target,
                self.noise_tolerant_transforms(),
                self.tolerance,
            )
        elif stage.kind == "prefactors":
            pieces = clean.prefactors(
                library, reduction, target, available, stage.shifts, stage.divisors, self.tolerance
            )
        else:
            pieces = clean.lookups(library, reduction, target, available, stage.divisors, self.tolerance)
        found: list[Match] = []
        for matches, seconds in pieces:
            found.extend(matches)
            yield seconds
        found.sort(key=lambda match: match.cost)
        for match in found[:MOST_MATCHES]:
            yield from self.fresh(candidates(match, self.problem, 1e3 * self.tolerance))

    def screened(self, stage: Stage, reduction: Reduction, average: bool = False) -> Work:
        """Matrix screenings of products or sums.

        Parameters
        ----------
        average
            Of a reduction with one feature, screen means over neighbouring values of it instead of some rows.
        """
        if stage.kind == "scaled sums" and self.problem.rows < ROWS_FOR_SCALED:
            return
        means = averaged(self.problem.all_rows, reduction, noisy.PROBES) if average else None
        if means is None:
            features = reduction.values(self.problem.inputs[self.noisy_rows])
            library = yield from self._built("rows", reduction, features, stage.entries)
            transformed = self.transformed(reduction)
        else:
            library = yield from self._built("means", reduction, means.features, stage.entries)
            transformed = noisy.transformed_targets(
                means.target, means.weights, self.noise_tolerant_transforms()
            )
        top_k = noisy.TopK()
        ranked = np.argsort(library.costs, kind="stable")
        order = noisy.distinct(library, ranked, affine=True)[: stage.entries]
        if stage.kind == "sums":
            pieces = noisy.screen_sums(library, order, reduction, transformed, top_k, self.device)
        else:
            factors = noisy.distinct(library, ranked, affine=False)
            screen = noisy.screen_products
            if stage.kind == "scaled sums":
                factors = factors[~library.functions[factors]]
                screen = noisy.screen_scaled_sums
            pieces = screen(
                library, order, reduction, transformed, factors[: stage.divisors], top_k, self.device
            )
        yield from pieces
        # Matches are fitted and written down, whatever the size of the library.
        yield 0.02
        for match in top_k.take():
            yield from self.fresh(candidates(match, self.problem, 1e-6))
        if stage.kind == "noisy":
            bare = noisy.TopK()
            yield from noisy.screen_bare(library, reduction, transformed, bare)
            for match in bare.take():
                yield from self.fresh(candidates(match, self.problem, 1e-6))

    def noise_tolerant_transforms(self) -> tuple[OutputTransform, ...]:
        """The transforms that are useful with noise."""
        return tuple(
            transform
            for transform in SINGLE
            if transform.noise_tolerant and transform.allowed(self.problem.operators)
        )

    def transformed(self, reduction: Reduction) -> list[tuple[OutputTransform, FloatArray, FloatArray]]:
        """The target under each tolerant chain on the noisy probe rows, with row weights."""
        rows = self.noisy_rows
        weights = None if self.problem.weights is None else self.problem.weights[rows]
        left = reduction.divided_out(self.problem.inputs[rows], self.problem.target[rows], weights)
        return [] if left is None else noisy.transformed_targets(*left, self.noise_tolerant_transforms())

    def fresh(self, proposed: list[Candidate]) -> Iterator[Candidate]:
        """The candidates that have not been proposed before."""
        for candidate in proposed:
            if candidate.expression not in self._tried:
                self._tried.add(candidate.expression)
                yield candidate


def _telling_first(rows: npt.NDArray[np.intp], target: FloatArray) -> npt.NDArray[np.intp]:
    """The rows in an order in which the first few span the target.

    The index divides by the difference between the first row and the third: numbers of few digits leave
    little of it where the two are close.
    """
    ranked = rows[np.argsort(target[rows], kind="stable")]
    first = np.array([0, len(rows) // 2, len(rows) - 1, len(rows) // 4, 3 * len(rows) // 4])
    rest = np.setdiff1d(np.arange(len(rows)), first)
    ordered: npt.NDArray[np.intp] = ranked[np.concatenate([first, rest])]
    return ordered
