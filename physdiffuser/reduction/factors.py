"""Hypotheses about the reduction of a law, read off fitted slopes: what can be divided out or merged?

* If `y = x1**2 * g(x2, x3)`, then d log y / d log x1 is 2 everywhere: the power is divided out. An
  exponent of 0 everywhere means that the column is not needed at all.
* If y depends on x1 and x2 only through `u = x1**a * x2**b` (up to a power of x1), the logarithmic
  slopes of the two are proportional: u takes their place.
* If y depends on x1 and x2 only through `x1 - x2`, their plain slopes are opposite.

The slopes come from a polynomial fitted to the table, so they are approximate, and every hypothesis is
only a place to search first. Reading symmetries off slopes is in the spirit of dimensional analysis
from data and of AI Feynman (Udrescu and Tegmark 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Exponents, Reduction, monomial
from physdiffuser.expressions import Expression, Variable
from physdiffuser.expressions.tree import add, sub, substitute
from physdiffuser.reduction.surrogate import careful_slopes, fit_slopes


@dataclass(frozen=True)
class FactorPolicy:
    """When an exponent read off slopes is divided out.

    Set on development laws (docs/methods/reduction.md).
    """

    max_exponent: int = 6
    finest: int = 5
    """Largest exponent, and the finest parts of 1 that it is counted in."""
    careful: float = 0.1
    """Doubt about an exponent up to which it is divided out where no column is dropped."""
    max_columns: int = 14
    max_relevant: int = 6
    """Symmetries are looked for among at most so many columns, and the relevant columns are at most so
    many."""
    separable_rows: int = 500
    """Rows that are used when columns are separated from a target that changes sign."""


POLICY = FactorPolicy()

_SEPARABLE_EXPONENTS = tuple(Fraction(n, 2) for n in (-4, -2, -1, 0, 1, 2, 3, 4, 6))
# Ratios of exponents that a group of columns may have.
_RATIOS = np.array([-3, -2, -1.5, -1, -2 / 3, -0.5, -1 / 3, 1 / 3, 0.5, 2 / 3, 1, 1.5, 2, 3])


def hypotheses(problem: Problem) -> list[Reduction]:
    """Reductions for a problem: what its units demand first, then what its rows suggest."""
    proposed_reductions = reductions(problem.inputs, problem.target)
    first = demanded(problem)
    return (
        proposed_reductions
        if first is None
        else [first, *(reduction for reduction in proposed_reductions if reduction != first)]
    )


def demanded(problem: Problem) -> Reduction | None:
    """The reduction to dimensionless groups; None where units are unknown or the columns form none."""
    if problem.units is None or problem.target_unit is None:
        return None
    from physdiffuser.expressions.units.dimensionless import dimensionless_groups

    groups = dimensionless_groups(problem.units, problem.target_unit)
    if groups.prefactor is None:
        return None
    return Reduction.of(
        ((Variable(column), Fraction(exponent)) for column, exponent in enumerate(groups.prefactor)),
        (
            monomial(tuple((c, Fraction(e)) for c, e in enumerate(group) if e), None)
            for group in groups.groups
        ),
    )


def reductions(inputs: FloatArray, target: FloatArray) -> list[Reduction]:
    """Hypotheses, the boldest first, ending with the bare columns."""
    columns = inputs.shape[1]
    bare = Reduction.of_columns((), range(columns))
    if columns > POLICY.max_columns:
        relevant = relevant_columns(inputs, target)
        return [*_some_columns(inputs, target, relevant), bare]
    if (target > 0).any() and (target < 0).any():
        separable = _separable(inputs, target)
        left = [column for column in range(columns) if column not in dict(separable)]
        signed_reductions = [Reduction.of_columns(separable, left)] if separable else []
        for signed_reduction in [*signed_reductions, bare]:
            kept = left if signed_reduction is not bare else list(range(columns))
            merged = _differences(inputs, target, signed_reduction, kept)
            signed_reductions = [*signed_reductions, *([merged] if merged is not None else [])]
        return [*signed_reductions, bare]
    usable = (inputs != 0).all(axis=1)
    size = np.abs(target)
    usable &= size > 1e-3 * np.median(size)
    if usable.sum() < columns + 3:
        return [bare]
    fitted = careful_slopes(np.log(np.abs(inputs[usable])), np.log(size[usable]))
    if fitted is None:
        return [bare]
    slopes, unseen = fitted
    # Trimmed: near zeros of the target and at the corners the polynomial is at its worst.
    low, middle, high = np.quantile(slopes, [0.1, 0.5, 0.9], axis=0)
    signed: BoolArray = np.asarray((inputs < 0).any(axis=0))
    spread = 0.5 * (high - low) + unseen
    nearest = np.where(signed, np.round(middle), np.round(2 * middle) / 2)
    doubt = np.abs(middle - nearest) + spread
    # Thirds and finer are believed only of slopes that hardly vary.
    for parts, most in ((3, 0.05), (4, 0.02), (5, 0.02)):
        finer = np.round(parts * middle) / parts
        surer = np.abs(middle - finer) + spread
        chosen = ~signed & (surer < most) & (2 * surer < doubt)
        nearest, doubt = np.where(chosen, finer, nearest), np.where(chosen, surer, doubt)
    doubt[(np.abs(nearest) > POLICY.max_exponent) | (inputs == 0).any(axis=0)] = np.inf
    found: list[Reduction] = []
    for threshold in (0.6, 0.3, 0.1, 0.03, 0.0):
        chosen = doubt < threshold
        factors = _powers_of(nearest, chosen)
        left = [int(column) for column in np.flatnonzero(~chosen)]
        plain = Reduction.of_columns(factors, left)
        for reduction in (
            _grouped(slopes, left, factors, signed),
            _differences(inputs, target, plain, left),
            plain,
        ):
            if reduction is not None and reduction not in found:
                found.append(reduction)
    # A column whose slope is nearly nothing may be needed all the same: 343 + u, where u is small.
    sure = (doubt < POLICY.careful) & (nearest != 0)
    careful = Reduction.of_columns(_powers_of(nearest, sure), np.flatnonzero(~sure).tolist())
    return list(dict.fromkeys([*found, careful, bare]))


def _powers_of(exponents: FloatArray, chosen: BoolArray) -> Exponents:
    """Chosen columns and their exponents, those of exponent zero left out."""
    return tuple(
        (int(column), Fraction(float(exponents[column])).limit_denominator(POLICY.finest))
        for column in np.flatnonzero(chosen)
        if exponents[column] != 0
    )


def _separable(inputs: FloatArray, target: FloatArray) -> Exponents:
    """Power-law factors of a target that changes sign, where logarithms say little.

    A column is a factor `x**e` if the target divided by it needs the column no more: a polynomial in the
    other columns then fits as well as one in all columns fits the target.
    """
    rows = np.arange(min(len(target), POLICY.separable_rows))
    some, wanted = inputs[rows], target[rows]
    columns = inputs.shape[1]
    if columns < 2 or len(rows) < 20:
        return ()
    with_all = fit_slopes(some, wanted, with_error=True)[1]
    found: list[tuple[int, Fraction]] = []
    for column in range(columns):
        values = some[:, column]
        if (values == 0).any():
            continue
        others = np.delete(some, column, axis=1)
        positive = (values > 0).all()
        errors: dict[Fraction, float] = {}
        for exponent in _SEPARABLE_EXPONENTS:
            if not positive and exponent.denominator != 1:
                continue
            divided = wanted / values ** (int(exponent) if exponent.denominator == 1 else float(exponent))
            errors[exponent] = fit_slopes(others, divided, with_error=True)[1]
        best = min(errors, key=lambda exponent: errors[exponent])
        rest = min(error for exponent, error in errors.items() if exponent != best)
        # As good as with the column, and clearly better than with any other exponent.
        if errors[best] < 1.15 * with_all + 1e-9 and errors[best] < 0.6 * rest + 1e-9 and best != 0:
            found.append((column, best))
    return tuple(found)


def _some_columns(inputs: FloatArray, target: FloatArray, chosen: list[int]) -> list[Reduction]:
    """The reductions of a narrower table, in terms of this one's columns."""

    def rename(node: Expression) -> Expression | None:
        return Variable(chosen[node.index]) if isinstance(node, Variable) else None

    return [
        Reduction.of(
            ((substitute(tree, rename), exponent) for tree, exponent in reduction.factors),
            (substitute(feature, rename) for feature in reduction.features),
        )
        for reduction in reductions(inputs[:, chosen], target)
    ]


def relevant_columns(inputs: FloatArray, target: FloatArray) -> list[int]:
    """The columns that say most about the target, sorted.

    Forward selection on each column, its square and (where positive) its logarithm, for the target and
    for its logarithm; a column counts by the first of its terms that is taken.
    """
    terms: list[FloatArray] = []
    owners: list[int] = []
    for column in range(inputs.shape[1]):
        value = inputs[:, column]
        spread = float(value.std())
        if spread == 0:
            continue
        unit = (value - value.mean()) / spread
        shapes = [unit, unit * unit]
        if (value > 0).all():
            shapes.append(np.log(value))
        for shape in shapes:
            shape = shape - shape.mean()
            norm = float(np.linalg.norm(shape))
            if norm > 0:
                terms.append(shape / norm)
                owners.append(column)
    if not terms:
        return []
    design = np.stack(terms)
    images = [target]
    if (target > 0).all() or (target < 0).all():
        images.append(np.log(np.abs(target)))
    scores = dict.fromkeys(range(inputs.shape[1]), 0.0)
    for image in images:
        residual = image - image.mean()
        residual = residual / (np.linalg.norm(residual) or 1.0)
        basis = design.copy()
        for _ in range(min(2 * POLICY.max_relevant, len(target) // 4)):
            gain = np.square(basis @ residual)
            best = int(np.argmax(gain))
            scores[owners[best]] += float(gain[best])
            direction = basis[best]
            residual = residual - direction * (direction @ residual)
            basis = basis - np.outer(basis @ direction, direction)
            norm = np.linalg.norm(basis, axis=1, keepdims=True)
            basis = np.where(norm > 1e-6, basis / np.maximum(norm, 1e-6), 0.0)
    ranked = sorted(scores, key=lambda column: -scores[column])[: POLICY.max_relevant]
    return sorted(column for column in ranked if scores[column] > 0)


def _proportional(first: FloatArray, second: FloatArray) -> tuple[float, float] | None:
    """(ratio, offset) such that `first = ratio*second + offset` closely, or None."""
    low, high = np.quantile(second, [0.1, 0.9])
    inside = (second >= low) & (second <= high)
    x, y = second[inside], first[inside]
    spread = x.std()
    if spread < 0.02:
        return None
    ratio = float(((x - x.mean()) * (y - y.mean())).mean() / spread**2)
    offset = float(y.mean() - ratio * x.mean())
    left = float((y - ratio * x - offset).std())
    if left > 0.35 * abs(ratio) * spread:
        return None
    return ratio, offset


def _grouped(slopes: FloatArray, left: list[int], factors: Exponents, signed: BoolArray) -> Reduction | None:
    """Columns whose logarithmic slopes are proportional, merged into power products."""
    free = [column for column in left if not signed[column]]
    features: list[Expression] = []
    more: list[tuple[int, Fraction]] = []
    merged: set[int] = set()
    for column in free:
        if column in merged:
            continue
        group: list[tuple[int, Fraction]] = [(column, Fraction(1))]
        for other in free:
            if other == column or other in merged:
                continue
            relation = _proportional(slopes[:, other], slopes[:, column])
            if relation is None:
                continue
            ratio, offset = relation
            simple = float(_RATIOS[np.argmin(np.abs(_RATIOS - ratio))])
            half = round(2 * offset) / 2
            if abs(simple - ratio) > 0.15 * abs(simple) or abs(half - offset) > 0.2:
                continue
            group.append((other, Fraction(simple).limit_denominator(6)))
            if half:
                more.append((other, Fraction(int(2 * half), 2)))
        if len(group) > 1:
            merged.update(position for position, _ in group)
            features.append(monomial(_integral(group), None))
    if not features:
        return None
    features.extend(Variable(column) for column in left if column not in merged)
    powers = ((Variable(column), exponent) for column, exponent in (*factors, *more))
    return Reduction.of(powers, features)


def _integral(group: list[tuple[int, Fraction]]) -> Exponents:
    """The same group with whole exponents: u is as good as any power of u."""
    scale = int(np.lcm.reduce([exponent.denominator for _, exponent in group]))
    return tuple((position, exponent * scale) for position, exponent in group)


def _differences(
    inputs: FloatArray, target: FloatArray, plain: Reduction, left: list[int]
) -> Reduction | None:
    """Columns whose plain slopes are opposite (or equal), merged into differences (or sums)."""
    if len(left) < 2:
        return None
    divided = target / plain.product(inputs)
    slopes = _best_slopes(inputs[:, left], divided)
    if slopes is None:
        return None
    features: list[Expression] = []
    merged: set[int] = set()
    for first in range(len(left)):
        for second in range(first + 1, len(left)):
            if first in merged or second in merged:
                continue
            both = np.stack([slopes[:, first], slopes[:, second]])
            size = np.quantile(np.abs(both), 0.9)
            if np.quantile(np.abs(both[0] + both[1]), 0.8) < 0.12 * size:
                features.append(sub(Variable(left[first]), Variable(left[second])))
            elif np.quantile(np.abs(both[0] - both[1]), 0.8) < 0.12 * size:
                features.append(add(Variable(left[first]), Variable(left[second])))
            else:
                continue
            merged.update((first, second))
    if not features:
        return None
    features.extend(Variable(column) for position, column in enumerate(left) if position not in merged)
    return Reduction.of(plain.factors, features)


def _best_slopes(inputs: FloatArray, target: FloatArray) -> FloatArray | None:
    """Slopes of the target, or of a function of it that a polynomial follows better.

    A symmetry of y is one of every function of y.
    """
    best: FloatArray | None = None
    least = float("inf")
    with np.errstate(all="ignore"):
        images = [target, 1 / target, np.log(target), np.square(target), np.sqrt(target)]
    for image in images:
        if not np.isfinite(image).all() or not np.ptp(image) > 0:
            continue
        slopes, error = fit_slopes(inputs, image, with_error=True)
        if slopes is not None and error < least:
            best, least = slopes, error
    return best
