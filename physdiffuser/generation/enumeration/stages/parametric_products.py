"""Products of a power product and a function with unknown constants inside."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Parameter, complexity, evaluate, to_text
from physdiffuser.expressions.tree import add, mul
from physdiffuser.generation.enumeration import parametric
from physdiffuser.generation.enumeration.context import PROBES, Context, TransformedTarget
from physdiffuser.generation.enumeration.registry import Size, Stage, register
from physdiffuser.generation.enumeration.skeletons import Skeleton, offer_fitted
from physdiffuser.library.ranking import ranked
from physdiffuser.library.screening import Affine, Standardised, variation
from physdiffuser.library.terms import power_products
from physdiffuser.transforms.transform import OutputTransform

# Entries screened in one go, and the best of them that are kept for each target.
PIECE = 4_000
BEST_OF_PIECE = 6


@register
class ParametricProducts(Stage):
    """`T⁻¹(y) = A*(a + b*phi(c; u))` with power products A and u, and c unknown.

    The cheapest `Size.entries` power products are taken as u, the cheapest `Size.divisors` as A.
    """

    name = "parametric products"
    fits_constants = True

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Rank on a grid of the constants inside, then fit the best; see `Stage`."""
        trees, values, plain = _arguments(context, size.entries, reduction)
        if not trees:
            return
        made = parametric.entries(values, plain, context.problem.operators)
        yield 0.01 + 2e-6 * len(made.values)
        if not len(made.values):
            return
        products, _ = power_products(len(reduction.features), size.divisors)
        divisors = [None, *(monomial(product, reduction.features) for product in products)]
        targets: list[_Quotient] = []
        found: list[tuple[float, int, int]] = []
        for transformed in context.transformed(reduction):
            quotients = list(_quotients(context, transformed, divisors))
            if quotients:
                total = variation(transformed.target, transformed.weights)
                found += yield from _screened(context, made, quotients, total, len(targets))
            targets += quotients
        sizes = [
            one.transform.cost + (0 if one.divisor is None else complexity(one.divisor)) for one in targets
        ]
        skeletons = [
            skeleton
            for entry, which in parametric.finds(found, made, trees, sizes)
            for skeleton in _skeletons(context, made, entry, trees, targets[which])
        ]
        yield from offer_fitted(context, reduction, skeletons)


class _Quotient(NamedTuple):
    """A transformed target divided by a power product, with the weights that keep residuals comparable."""

    transform: OutputTransform
    divisor: Expression | None
    values: FloatArray
    weights: FloatArray


def _arguments(
    context: Context, entries: int, reduction: Reduction
) -> tuple[list[Expression], FloatArray, int]:
    """What functions are applied to, its values on the probes, and how many of them are features."""
    products, _ = power_products(len(reduction.features), entries)
    trees: list[Expression] = list(reduction.features)
    trees += [tree for product in products if (tree := monomial(product, reduction.features)) not in trees]
    values = np.stack([evaluate(tree, context.problem.inputs[context.screening_rows]) for tree in trees])
    finite = np.asarray(np.isfinite(values).all(axis=1))
    plain = int(finite[: len(reduction.features)].sum())
    return [tree for tree, good in zip(trees, finite, strict=True) if good], values[finite], plain


def _quotients(
    context: Context, transformed: TransformedTarget, divisors: Sequence[Expression | None]
) -> Iterator[_Quotient]:
    """The target divided by each divisor, where that leads to numbers."""
    transform, target, weights = transformed
    inputs = context.problem.inputs[context.screening_rows]
    for divisor in divisors:
        value = np.ones_like(target) if divisor is None else evaluate(divisor, inputs)
        with np.errstate(all="ignore"):
            quotient = target / value
            weight = weights * value * value
        if np.isfinite(quotient).all() and np.ptp(quotient) > 0 and 0.0 < weight.max() < np.inf:
            yield _Quotient(transform, divisor, quotient, weight)


def _screened(
    context: Context,
    made: parametric.ParametricEntries,
    quotients: Sequence[_Quotient],
    total: float,
    first: int,
) -> Generator[float, None, list[tuple[float, int, int]]]:
    """The best entries for each quotient: residual, entry, number of the quotient from `first` on."""
    device = context.device
    wanted = Affine.of(
        device.put(np.stack([quotient.values for quotient in quotients])),
        device.put(np.stack([quotient.weights for quotient in quotients])),
    )
    found: list[tuple[float, int, int]] = []
    for start in range(0, len(made.values), PIECE):
        prepared = Standardised.of(device.put(made.values[start : start + PIECE]))
        residual = wanted.residuals(prepared, slice(None)) / np.float32(total)
        [block] = ranked([residual], device, BEST_OF_PIECE)
        found.extend(
            (left, start + column, first + row) for left, row, column in block.best_of_rows(BEST_OF_PIECE)
        )
        yield 2e-11 * residual.size * PROBES + 1e-4 * len(residual)
    return found


def _skeletons(
    context: Context,
    made: parametric.ParametricEntries,
    entry: int,
    trees: Sequence[Expression],
    target: _Quotient,
) -> Iterator[Skeleton]:
    """An entry with a constant beside it, and without."""
    family = made.family_of(entry).name
    of = " and ".join(to_text(tree, context.problem.names) for tree in made.arguments(entry, trees))
    derivation = (*target.transform.sentences(), f"fitted a function of the kind '{family}' of {of}")
    for constant in (True, False):
        inner, starts = made.skeleton(entry, trees, 2 if constant else 1)
        # Inside an outer function they are no longer linear, and need a start of their own.
        linear = _linear_start(made.values[entry], target.values, target.weights, constant)
        law: Expression = mul(Parameter(1 if constant else 0), inner)
        if constant:
            law = add(Parameter(0), law)
        if target.divisor is not None:
            law = mul(target.divisor, law)
        yield Skeleton(target.transform, law, [*linear, *starts], derivation)


def _linear_start(values: FloatArray, target: FloatArray, weights: FloatArray, constant: bool) -> list[float]:
    """Offset (where there is one) and factor of an entry, by weighted least squares on the probe rows."""
    factor = float(np.abs(values).max())
    columns = [np.ones_like(values), values / factor] if constant else [values / factor]
    root = np.sqrt(weights / weights.max())
    solution = np.linalg.lstsq(np.stack(columns, axis=1) * root[:, None], target * root, rcond=1e-12)[0]
    solution[-1] /= factor
    return [float(value) for value in solution]
