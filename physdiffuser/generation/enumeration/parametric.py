"""Functions with an unknown constant inside: `exp(-c*x)`, `sin(c*x + p)`, `1/(1 + c*x*y)`, `x**c`.

A grid of values of the constant (and of an offset or phase, where the function has one) turns each
such function into library entries. The screening then finds which function, of which power product,
with about which constants; Levenberg-Marquardt finishes the constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import Expression, Parameter, complexity
from physdiffuser.expressions.tree import mul
from physdiffuser.fitting import Fit, fit_batched
from physdiffuser.functions.family import Family
from physdiffuser.functions.table import families_for
from physdiffuser.transforms.transform import OutputTransform


@dataclass(frozen=True)
class ParametricPolicy:
    """How many functions with constants inside are fitted, and how.

    Set on development laws (docs/search.md).
    """

    max_pairs: int = 15
    """Pairs of columns that functions of two are tried on, first ones first."""
    iterations: int = 15
    tolerance: float = 1e-8
    """Steps of Levenberg-Marquardt for a find, and the relative gain below which they end."""
    together: int = 60
    """Skeletons fitted in one go: enough to share the overhead, few enough to stop in time."""
    rows_of_constant: int = 4
    """Rows to each constant of sums and curves with several inside: with fewer, they describe chance."""
    best: int = 40
    best_of_family: int = 5
    best_of_complexity: int = 6
    """Finds followed up with Levenberg-Marquardt: of all, of each family, and of each complexity."""


POLICY = ParametricPolicy()


@dataclass(frozen=True)
class ParametricEntries:
    """Entries made from a family: which family, which argument, which constants.

    Attributes
    ----------
    values
        Shape (entries, probes).
    families
        The families, those without entries too.
    family
        Place of each entry's family in `families`.
    argument
        Place of the power product; for functions of two, the number of products and the place in `pairs`.
    products
        How many power products there are.
    pairs
        Places of the first and the second column of functions of two.
    constants
        Shape (entries, most constants of a family); zero where there are fewer.
    """

    values: FloatArray
    families: tuple[Family, ...]
    family: IntArray
    argument: IntArray
    products: int
    pairs: tuple[tuple[int, int], ...]
    constants: FloatArray

    def family_of(self, entry: int) -> Family:
        """The family of an entry."""
        return self.families[int(self.family[entry])]

    def arguments(self, entry: int, products: Sequence[Expression]) -> tuple[Expression, ...]:
        """What the function of an entry is of."""
        place = int(self.argument[entry])
        if place < self.products:
            return (products[place],)
        first, second = self.pairs[place - self.products]
        return products[first], products[second]

    def argument_size(self, entry: int, products: Sequence[Expression]) -> int:
        """Complexity of what the function of an entry is of."""
        return sum(complexity(tree) for tree in self.arguments(entry, products))

    def skeleton(
        self, entry: int, products: Sequence[Expression], first: int
    ) -> tuple[Expression, list[float]]:
        """The formula with parameters from index `first` on, and their starting values."""
        family = self.family_of(entry)
        starts = [float(value) for value in self.constants[entry, : family.constants]]
        holders = [Parameter(first + position) for position in range(family.constants)]
        return family.build(self.arguments(entry, products), holders), starts


def entries(products: FloatArray, plain: int, operators: frozenset[str]) -> ParametricEntries:
    """All families on all power products.

    Parameters
    ----------
    products
        Shape (products, probes).
    plain
        The first so many are single columns; most families with two constants, and those of two columns, are
        tried on these only.
    """
    table = families_for("enumeration")
    width = max((family.constants for family in table), default=0)
    pairs = tuple(combinations(range(min(plain, len(products))), 2))[: POLICY.max_pairs]
    # Of no entries to begin with, so that there is something to concatenate.
    values = [np.empty((0, products.shape[1]))]
    families, which = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    constants = [np.empty((0, width))]
    for code, family in enumerate(table):
        if not family.needs <= operators:
            continue
        if family.spec.arity == 2:
            arguments = [(len(products) + place, products[[*pair]]) for place, pair in enumerate(pairs)]
        else:
            most = len(products) if family.constants == 1 else family.spec.products or plain
            arguments = [(row, products[[row]]) for row in range(min(most, len(products)))]
        for argument, columns in arguments:
            if not (np.ptp(columns, axis=1) > 0).all():
                continue
            with np.errstate(all="ignore"):
                grid = family.tries("enumeration", *columns)
                made = family.values(list(columns), grid)
                size = np.abs(made).max(axis=1)
                good = np.isfinite(size) & (np.ptp(made, axis=1) > 1e-5 * size)
            kept = int(good.sum())
            values.append(made[good])
            families.append(np.full(kept, code))
            which.append(np.full(kept, argument))
            constants.append(np.pad(grid[good], ((0, 0), (0, width - family.constants))))
    return ParametricEntries(
        np.concatenate(values),
        table,
        np.concatenate(families),
        np.concatenate(which),
        len(products),
        pairs,
        np.concatenate(constants),
    )


def finds(
    found: list[tuple[float, int, int]],
    entries_: ParametricEntries,
    products: Sequence[Expression],
    target_sizes: list[int],
) -> list[tuple[int, int]]:
    """The (entry, target) pairs that are worth a fit, the best first.

    The grid of constants is coarse, so the true law may rank behind wrong ones that happen to be near a
    grid point: the best of each family, and of each complexity, are taken as well.

    Parameters
    ----------
    found
        (residual, entry, target).
    products
        The power products that functions are of.
    target_sizes
        Complexity of what stands around each target.
    """
    seen: set[tuple[int, int, int]] = set()
    families: dict[int, int] = {}
    complexities: dict[int, int] = {}
    chosen: list[tuple[int, int]] = []
    for rank, (_, entry, target) in enumerate(sorted(found)):
        family, argument = int(entries_.family[entry]), int(entries_.argument[entry])
        if (family, argument, target) in seen:
            continue
        seen.add((family, argument, target))
        size = entries_.argument_size(entry, products) + target_sizes[target]
        families[family] = families.get(family, 0) + 1
        complexities[size] = complexities.get(size, 0) + 1
        if (
            rank < POLICY.best
            or families[family] <= POLICY.best_of_family
            or complexities[size] <= POLICY.best_of_complexity
        ):
            chosen.append((entry, target))
    return chosen


def fitted(
    problem: Problem,
    reduction: Reduction,
    output_transforms: Sequence[OutputTransform],
    laws: Sequence[Expression],
    initial: Sequence[Sequence[float]],
    iterations: int = POLICY.iterations,
    tolerance: float = POLICY.tolerance,
    device: Device = HOST,
) -> Iterator[list[Fit]]:
    """Laws with parameters, each under its output transform and a factor, fitted in batches.

    Under an outer function constants are first fitted to the transformed target, where most of them are
    linear and need no start: `1/(a + b*p*exp(c/(T + q)))` so reaches its minimum from four times c in 60
    steps, and otherwise not in 200. What is kept is polished when it is archived.

    Parameters
    ----------
    transforms, laws, initial
        Equally many; `initial` has a start for each parameter.
    iterations, tolerance, device
        As for `fit_batched`.
    """
    factor = reduction.factor()
    for begin in range(0, len(laws), POLICY.together):
        some = slice(begin, begin + POLICY.together)
        starts = [list(start) for start in initial[some]]
        skeletons = [
            transform.redo(law) for transform, law in zip(output_transforms[some], laws[some], strict=True)
        ]
        if factor is not None:
            skeletons = [mul(factor, skeleton) for skeleton in skeletons]
        for transform in dict.fromkeys(output_transforms[some]):
            places = [place for place, other in enumerate(output_transforms[some]) if other == transform]
            if transform.steps:
                inner = [laws[begin + place] for place in places]
                worse = [starts[place] for place in places]
                better = _started(problem, reduction, transform, inner, worse, device)
                for place, start in zip(places, better, strict=True):
                    starts[place] = start
        yield fit_batched(
            skeletons,
            starts,
            problem.inputs,
            problem.target,
            weights=problem.weights,
            loss=problem.loss,
            iterations=iterations,
            tolerance=tolerance,
            device=device,
        )


def _started(
    problem: Problem,
    reduction: Reduction,
    transform: OutputTransform,
    laws: Sequence[Expression],
    initial: list[list[float]],
    device: Device,
) -> list[list[float]]:
    """Parameters of laws, fitted to the target with a factor divided out and the outer functions inverted."""
    with np.errstate(all="ignore"):
        left = reduction.divided_out(problem.inputs, problem.target, problem.weights)
        transformed = None if left is None else transform.undo(left[0])
    if left is None or transformed is None:
        return initial
    fits = fit_batched(
        laws,
        initial,
        problem.inputs,
        transformed[0],
        weights=transformed[1] * left[1],
        iterations=POLICY.iterations,
        tolerance=POLICY.tolerance,
        device=device,
    )
    return [
        fit.parameters.tolist() if np.isfinite(fit.loss) else start
        for fit, start in zip(fits, initial, strict=True)
    ]
