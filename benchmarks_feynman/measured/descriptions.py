"""The description length of a table by a formula under the noise model that suits it best.

The length is the project's own, with the same terms for an answer and for the law of the field: form,
numbers, fitted constants, and what is left over under each noise model of `physdiffuser.noise.models`.
Constants are fitted under that model (iteratively reweighted least squares).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks_feynman.measured_tables import MeasuredTable
from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, Variable, complexity, evaluate, parse
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import Parameter, bind, distinct_constants, substitute
from physdiffuser.fitting import fit_constants
from physdiffuser.noise.models import KINDS, NoiseKind, fit_noise_model
from physdiffuser.noise.precision import decimal_precision
from physdiffuser.selection.description_length import DescriptionLength, rounding_loss

# Fits of the reweighting, and steps of each.
REWEIGHTINGS, ITERATIONS = 4, 200


@dataclass(frozen=True, eq=False)
class Description:
    """A formula fitted to a table.

    Attributes
    ----------
    expression
        With its fitted constants.
    kind
        The noise model that gives the shortest description.
    nats
        Length, comparable between formulas and noise models of one table.
    constants
        Number of fitted constants.
    prediction, weights
        Shape (rows,); the weights are inverse variances of mean 1.
    """

    expression: Expression
    kind: NoiseKind
    nats: float
    complexity: int
    constants: int
    prediction: FloatArray
    weights: FloatArray


def law_skeletons(table: MeasuredTable) -> list[tuple[Expression, tuple[float, ...]]]:
    """The law of the field with parameters, and where their fit starts.

    As it is written, and in canonical form: `b1*b2*x/(1 + b2*x)` has two constants in either.
    """
    count = len(table.names)
    tree = parse(table.law, (*table.names, *(name for name, _ in table.constants)))

    def parameter(node: Expression) -> Expression | None:
        free = isinstance(node, Variable) and node.index >= count
        return Parameter(node.index - count) if free and isinstance(node, Variable) else None

    written = substitute(tree, parameter)
    values = tuple(value for _, value in table.constants)
    # No two alike and none a whole number, so that no constant is taken for another or for an exact one.
    apart = [value * (1 + 1e-7 * math.sqrt(2 + number)) for number, value in enumerate(values)]
    return [(written, values), distinct_constants(canonical(bind(written, apart)))]


def describe_law(table: MeasuredTable) -> Description:
    """The shortest description by the law of the field."""
    return min((describe(*form, table) for form in law_skeletons(table)), key=lambda found: found.nats)


def describe_answer(expression: Expression, table: MeasuredTable) -> Description:
    """The description by an answer; its fitted constants are fitted again, the exact ones stay."""
    return describe(*distinct_constants(expression), table)


@np.errstate(all="ignore")
def describe(skeleton: Expression, start: Sequence[float], table: MeasuredTable) -> Description:
    """The shortest description by a skeleton.

    Parameters
    ----------
    skeleton
        An expression with parameters; one that stands in several places counts once.
    start
        Shape (parameters,): where the fit starts.
    """
    lengths = DescriptionLength(table.rows, table.inputs.shape[1])
    kinds = KINDS if table.target.min() > 0 or table.target.max() < 0 else ("constant", "mixed")
    values = _fitted(skeleton, start, table, None)
    found = [_under(kind, skeleton, values, table, lengths) for kind in kinds]
    return min(found, key=lambda description: description.nats)


def _under(
    kind: NoiseKind,
    skeleton: Expression,
    values: FloatArray,
    table: MeasuredTable,
    lengths: DescriptionLength,
) -> Description:
    weights = np.ones(table.rows)
    for _ in range(1 if kind == "constant" else REWEIGHTINGS):
        prediction = _finite(skeleton, values, table)
        model = fit_noise_model(kind, table.target, prediction, values.size)
        if not np.isfinite(model.nats):
            break
        weights = model.weights(prediction)
        values = _fitted(skeleton, values, table, weights)
    prediction = _finite(skeleton, values, table)
    model = fit_noise_model(kind, table.target, _above_rounding(prediction, table), values.size)
    expression = bind(skeleton, list(values))
    nats = model.nats + lengths.formula_nats(expression) + values.size * lengths.constant_nats
    nats = nats if np.isfinite(nats) else float("inf")
    size = complexity(expression)
    return Description(expression, kind, nats, size, values.size, prediction, weights)


def _fitted(
    skeleton: Expression,
    start: Sequence[float] | FloatArray,
    table: MeasuredTable,
    weights: FloatArray | None,
) -> FloatArray:
    initial = np.asarray(start, float)
    if not initial.size:
        return initial
    fit = fit_constants(
        skeleton,
        table.inputs,
        table.target,
        weights=weights,
        initial=initial,
        starts=1,
        iterations=ITERATIONS,
    )
    return fit.parameters if np.isfinite(fit.loss) else initial


def _finite(skeleton: Expression, values: FloatArray, table: MeasuredTable) -> FloatArray:
    return np.asarray(evaluate(bind(skeleton, list(values)), table.inputs) + np.zeros(table.rows), float)


def _above_rounding(prediction: FloatArray, table: MeasuredTable) -> FloatArray:
    """The prediction with residuals that are at least as large as the rounding of the target."""
    floor = rounding_loss(table.target, decimal_precision(table.target))
    residual = table.target - prediction
    loss = float(np.square(residual).mean() / table.target.var())
    return table.target - residual * np.sqrt(floor / loss) if 0.0 < loss < floor else prediction
