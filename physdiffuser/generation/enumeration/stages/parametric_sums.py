"""Sums of two parts with an unknown constant inside at least one of them.

A peak on a background, a saturation less a power, two exponentials: `T⁻¹(y) = a + b*D + c*A*phi(k; u)`,
where D is a power product or such a function itself. All pairs are ranked by their best linear fit, as
in `screening`, and the constants of the best are finished by Levenberg-Marquardt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Parameter, complexity, evaluate, to_text
from physdiffuser.expressions.tree import add, mul
from physdiffuser.generation.enumeration import parametric
from physdiffuser.generation.enumeration.context import PROBES, Context, TransformedTarget
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.generation.enumeration.screening import POLICY as SCREENING
from physdiffuser.generation.enumeration.screening import TARGETS
from physdiffuser.library.ranking import PairBlocks
from physdiffuser.library.screening import unexplained
from physdiffuser.library.terms import power_products
from physdiffuser.transforms.output_transforms import INVERSE
from physdiffuser.transforms.transform import OutputTransform

FloatArray32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ParametricSumPolicy:
    """How many pairs of functions are fitted.

    Set on development laws (docs/search.md).

    Attributes
    ----------
    best_of_block, followed, best_of_family
        Best pairs of one block, pairs that are fitted for each target, and of each pair of families.
    alone_of_family, max_alone
        Functions under a factor that are fitted beside nothing but a constant: of each family, and in
        all.
    plain_followed
        Pairs of functions of single features are fitted whatever ranks before them: so many of each
        number of constants.
    min_constants
        Two factors and a constant inside are the fewest constants.
    close
        Parts whose unit vectors differ by no more are one.
    """

    best_of_block: int = 4
    followed: int = 90
    best_of_family: int = 8
    alone_of_family: int = 3
    max_alone: int = 200
    plain_followed: int = 24
    min_constants: int = 3
    close: float = 1e-9


POLICY = ParametricSumPolicy()

# A sum is rarely under anything but a reciprocal.
OUTER = frozenset({INVERSE.id})

_Form = tuple[Expression | None, int, int]
# Residual and places of two parts.
_Pair = tuple[float, int, int]


@dataclass(frozen=True)
class _Part:
    """A summand: a power product, times a function with constants unless `entry` is None."""

    factor: Expression | None
    entry: int | None

    def form(self, made: parametric.ParametricEntries) -> _Form:
        """Factor, family and argument, whatever the constants; -1 where there is none."""
        if self.entry is None:
            return self.factor, -1, -1
        return self.factor, int(made.family[self.entry]), int(made.argument[self.entry])

    def skeleton(
        self, made: parametric.ParametricEntries, products: list[Expression], first: int
    ) -> tuple[Expression, list[float]]:
        """The summand with parameters from `first` on, and their starts."""
        if self.entry is None:
            assert self.factor is not None
            return self.factor, []
        inner, starts = made.skeleton(self.entry, products, first)
        return (inner if self.factor is None else mul(self.factor, inner)), starts


@register
class ParametricSums(Stage):
    """`T⁻¹(y) = a + b*D + c*A*phi(k; u)` with power products A and u; see the module.

    The cheapest `Size.entries` power products are taken as u, `Size.divisors` as A, `Size.shifts` as D.
    """

    name = "parametric sums"
    fits_constants = True

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether there are rows for the constants."""
        return problem.rows >= parametric.POLICY.rows_of_constant * POLICY.min_constants

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Rank pairs of parts, and fit the best; see `Stage`."""
        parts = _parts(context, size, reduction)
        if parts is None:
            return
        yield 1e-8 * len(parts.values) * PROBES
        for target in context.transformed(reduction):
            if OUTER.issuperset(target.transform.ids):
                yield from _sums(context, reduction, parts, target)


@dataclass(frozen=True)
class _Parts:
    """What sums are made of.

    Attributes
    ----------
    values
        Shape (parts, probes).
    first
        So many parts, the first ones, have no factor before a function.
    made
        The functions.
    inside
        The power products that functions are applied to.
    """

    parts: list[_Part]
    values: FloatArray
    first: int
    made: parametric.ParametricEntries
    inside: list[Expression]

    @property
    def products(self) -> int:
        """How many parts, the first ones, are power products."""
        return sum(part.entry is None for part in self.parts)


def _parts(context: Context, size: Size, reduction: Reduction) -> _Parts | None:
    """The parts that are numbers and vary; None where no function is of use."""
    problem, many = context.problem, len(reduction.features)
    inputs = problem.inputs[context.screening_rows]

    def products(limit: int) -> tuple[list[Expression], FloatArray]:
        found, _ = power_products(many, limit)
        trees = [monomial(product, reduction.features) for product in found]
        values = np.stack([evaluate(tree, inputs) for tree in trees])
        good = np.asarray((np.isfinite(values) & (np.abs(values) < 1e140)).all(axis=1))
        return [tree for tree, kept in zip(trees, good, strict=True) if kept], values[good]

    inside, inside_values = products(size.entries)
    outside, outside_values = products(size.divisors)
    summands, summand_values = products(size.shifts)
    made = parametric.entries(inside_values, min(many, len(inside)), problem.operators)
    if not len(made.values):
        return None
    parts = [_Part(tree, None) for tree in summands]
    blocks = [summand_values, made.values]
    parts += [_Part(None, entry) for entry in range(len(made.values))]
    # D is a power product or a function by itself; the other part may have a factor as well.
    first_parts = len(parts)
    with np.errstate(all="ignore"):
        for tree, value in zip(outside, outside_values, strict=True):
            blocks.append(made.values * value)
            parts += [_Part(tree, entry) for entry in range(len(made.values))]
    values = np.concatenate(blocks)
    good = np.isfinite(values).all(axis=1) & (np.ptp(values, axis=1) > 1e-9 * np.abs(values).max(axis=1))
    kept = [part for part, use in zip(parts, good, strict=True) if use]
    return _Parts(kept, values[good], int(good[:first_parts].sum()), made, inside)


def _sums(context: Context, reduction: Reduction, parts: _Parts, target: TransformedTarget) -> Work:
    """Rank and fit the sums that a transformed target may be."""
    transform, values, weights = target

    def follow(sums: Iterator[tuple[int, ...]]) -> Work:
        some = ([parts.parts[place] for place in places] for places in sums)
        yield from _follow(context, reduction, transform, some, parts)

    root = np.sqrt(weights)
    unit = root * (parts.values - (parts.values @ weights)[:, None] / weights.sum())
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-300)
    unit32 = unit.astype(np.float32)
    wanted = root * (values - np.average(values, weights=weights))
    wanted /= np.linalg.norm(wanted)
    correlation = unit32 @ wanted.astype(np.float32)
    yield 1e-8 * len(parts.values) * PROBES
    single = _alone(1 - np.square(unit @ wanted), parts)
    yield from follow(single)
    simple = [
        place
        for place, part in enumerate(parts.parts[: parts.first])
        if _is_plain(part, parts.made, reduction)
    ]
    pairs = _best_of_forms(unit[simple], wanted, [parts.parts[place].form(parts.made) for place in simple])
    yield 3e-9 * len(simple) ** 2
    yield from follow(
        _simplest([(residual, simple[left], simple[right]) for residual, left, right in pairs], parts)
    )
    found = yield from _ranked_pairs(context, parts, unit32, correlation)
    yield from follow(_promising(found, parts))


def _ranked_pairs(
    context: Context, parts: _Parts, unit: FloatArray32, correlation: FloatArray32
) -> Generator[float, None, list[_Pair]]:
    """The best pairs with a function among them, by blocks.

    Parameters
    ----------
    unit
        Shape (parts, probes): weighted, centred, of unit norm.
    correlation
        Shape (parts,): with the target.
    """
    device, plain, last = context.device, parts.products, len(parts.values)
    found: list[_Pair] = []
    # Power products apart: among finds with more constants inside, theirs would rank low.
    columns = [slice(at, min(at + SCREENING.entries, last)) for at in range(plain, last, SCREENING.entries)]
    blocks = PairBlocks(
        device.put(unit), device.put(correlation), columns, POLICY.best_of_block, device, once=False
    )
    for start in (0, *range(plain, parts.first, TARGETS)):
        block = slice(start, min(start + TARGETS, parts.first) if start else plain)
        for number, some in enumerate(columns):
            residual_block = blocks.residual_block(block, number, parts.first)
            most = min(POLICY.best_of_block, some.stop - some.start - 1) or 1
            best = (
                residual_block.best_rows(POLICY.best_of_block) if start else residual_block.best_of_rows(most)
            )
            found += [(residual, block.start + row, some.start + column) for residual, row, column in best]
        yield 1.2e-11 * (block.stop - block.start) * last * PROBES
    return found


def _is_plain(part: _Part, made: parametric.ParametricEntries, reduction: Reduction) -> bool:
    """Whether it is a function with constants of a single feature, and nothing else."""
    return (
        part.factor is None and part.entry is not None and made.argument[part.entry] < len(reduction.features)
    )


def _best_of_forms(unit: FloatArray, wanted: FloatArray, forms: list[_Form]) -> list[_Pair]:
    """Of each pair of forms the constants on the grid that leave least over, in double precision.

    Parameters
    ----------
    unit
        Shape (entries, probes): weighted, centred, of unit norm; entries of one form one after the other.
    wanted
        Shape (probes,): likewise the target.
    """
    correlation = unit @ wanted
    starts = [0, *(place for place in range(1, len(forms)) if forms[place] != forms[place - 1]), len(forms)]
    found: list[_Pair] = []
    for position, (begin, end) in enumerate(pairwise(starts)):
        same = unit[begin:end] @ unit[begin:].T
        pair = correlation[begin:end, None], correlation[None, begin:]
        residual = unexplained(same, *pair, close=POLICY.close, rounding=0)
        for first, last in pairwise(starts[position:]):
            block = residual[:, first - begin : last - begin]
            row, column = divmod(int(block.argmin()), last - first)
            found.append((float(block[row, column]), begin + row, first + column))
    return found


def _simplest(found: list[_Pair], parts: _Parts) -> Iterator[tuple[int, ...]]:
    """The best pairs of each number of constants."""
    counts: Counter[int] = Counter()
    for _, left, right in sorted(found):
        constants = sum(
            parts.made.family_of(part.entry).constants
            for part in (parts.parts[left], parts.parts[right])
            if part.entry is not None
        )
        counts[constants] += 1
        if counts[constants] <= POLICY.plain_followed:
            yield left, right


def _alone(residual: FloatArray, parts: _Parts) -> Iterator[tuple[int, ...]]:
    """The best functions under a factor, which stand beside a constant: `a + c*A*phi(k; u)`."""
    seen: set[_Form] = set()
    counts: Counter[int] = Counter()
    for place in np.argsort(residual, kind="stable"):
        part = parts.parts[int(place)]
        form = part.form(parts.made)
        # Without a factor they are looked for among the functions themselves.
        if part.entry is None or part.factor is None or form in seen:
            continue
        seen.add(form)
        counts[form[1]] += 1
        if counts[form[1]] > POLICY.alone_of_family:
            continue
        if len(seen) > POLICY.max_alone:
            return
        yield (int(place),)


def _promising(found: list[_Pair], parts: _Parts) -> Iterator[tuple[int, ...]]:
    """The best pairs, one start for each pair of forms: neighbours on the grid end in the same place."""
    counts: Counter[tuple[int, int]] = Counter()
    seen: set[tuple[_Form, _Form]] = set()
    followed = 0
    for _, left, right in sorted(found):
        one, other = parts.parts[left], parts.parts[right]
        form = (one.form(parts.made), other.form(parts.made))
        if form in seen or (one.entry is None and other.entry is None):
            continue
        seen.add(form)
        key = (form[0][1], form[1][1])
        counts[key] += 1
        if counts[key] > POLICY.best_of_family:
            continue
        followed += 1
        if followed > POLICY.followed:
            return
        yield left, right


def _follow(
    context: Context,
    reduction: Reduction,
    transform: OutputTransform,
    sums: Iterable[list[_Part]],
    of: _Parts,
) -> Work:
    """Fit the constants of sums."""
    problem = context.problem
    laws: list[Expression] = []
    initial: list[list[float]] = []
    for parts in sums:
        for constant in (False, True):
            law: Expression | None = Parameter(0) if constant else None
            starts: list[float] = []
            linear = len(parts) + constant
            for place, part in enumerate(parts):
                inner, more = part.skeleton(of.made, of.inside, linear + len(starts))
                term = mul(Parameter(place + constant), inner)
                law = term if law is None else add(law, term)
                starts += more
            if law is None or parametric.POLICY.rows_of_constant * (linear + len(starts)) > problem.rows:
                continue
            laws.append(law)
            initial.append([*([1.0] * linear), *starts])
    for fits in parametric.fitted(
        problem, reduction, [transform] * len(laws), laws, initial, device=context.device
    ):
        for fit in fits:
            if np.isfinite(fit.loss) and complexity(fit.expression) <= problem.max_complexity:
                what = to_text(fit.expression, problem.names, digits=4)
                yield Candidate(
                    fit.expression,
                    "enumeration",
                    (*transform.sentences(), f"found a sum of parts with constants inside: {what}"),
                )
        yield 0.0075 * len(fits)
