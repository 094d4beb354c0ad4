"""The stage that looks for functions with unknown constants inside."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.reduction import Reduction, monomial
from physdiffuser.core.work import Work
from physdiffuser.expressions import Expression, Parameter, complexity, evaluate, to_text
from physdiffuser.expressions.tree import add, mul
from physdiffuser.functions.inner_functions import FAMILIES
from physdiffuser.generation.enumeration import parametric
from physdiffuser.generation.enumeration.noisy import PROBES
from physdiffuser.generation.enumeration.run import Run, Stage
from physdiffuser.library.ranking import ranked
from physdiffuser.library.screening import Affine, Standardised, variation
from physdiffuser.library.terms import power_products
from physdiffuser.transforms.output_transforms import OutputTransform

FloatArray = npt.NDArray[np.float64]

# Entries screened in one go, and the best of them that are kept for each target.
PIECE = 4_000
BEST_OF_PIECE = 6


def parametric_stage(run: Run, stage: Stage, reduction: Reduction) -> Work:
    """`T⁻¹(y) = A*(a + b*phi(c; u))` with power products A and u, and c unknown."""
    problem, rows = run.problem, run.noisy_rows
    products, _ = power_products(len(reduction.features), stage.entries)
    trees: list[Expression] = list(reduction.features)
    trees += [tree for product in products if (tree := monomial(product, reduction.features)) not in trees]
    values = np.stack([evaluate(tree, problem.inputs[rows]) for tree in trees])
    finite = np.asarray(np.isfinite(values).all(axis=1))
    plain = int(finite[: len(reduction.features)].sum())
    trees = [tree for tree, good in zip(trees, finite, strict=True) if good]
    if not trees:
        return
    made = parametric.entries(values[finite], plain, problem.operators)
    yield 0.01 + 2e-6 * len(made.values)
    if not len(made.values):
        return
    divisors, _ = power_products(len(reduction.features), stage.divisors)
    divided: list[Expression | None] = [
        None,
        *(monomial(product, reduction.features) for product in divisors),
    ]
    found: list[tuple[float, int, int]] = []
    targets: list[tuple[OutputTransform, Expression | None]] = []
    transformed: list[tuple[FloatArray, FloatArray]] = []
    for transform, target, weights in run.transformed(reduction):
        total = variation(target, weights)
        names, quotients, scaled = _quotients(transform, target, weights, divided, problem.inputs[rows])
        first = len(targets)
        targets.extend(names)
        transformed.extend(zip(quotients, scaled, strict=True))
        if not names:
            continue
        wanted = Affine.of(run.device.put(quotients), run.device.put(scaled))
        for start in range(0, len(made.values), PIECE):
            prepared = Standardised.of(run.device.put(made.values[start : start + PIECE]))
            residual = wanted.residuals(prepared, slice(None)) / np.float32(total)
            [block] = ranked([residual], run.device, BEST_OF_PIECE)
            found.extend(
                (left, start + column, first + row) for left, row, column in block.best_of_rows(BEST_OF_PIECE)
            )
            yield 2e-11 * residual.size * PROBES + 1e-4 * len(residual)
    target_sizes = [transform.cost + (0 if tree is None else complexity(tree)) for transform, tree in targets]
    laws: list[Expression] = []
    around: list[OutputTransform] = []
    initial: list[list[float]] = []
    said: list[tuple[str, ...]] = []
    for entry, which in parametric.finds(found, made, trees, target_sizes):
        transform, divisor = targets[which]
        family = FAMILIES[int(made.family[entry])].name
        of = " and ".join(to_text(tree, problem.names) for tree in made.arguments(entry, trees))
        for constant in (True, False):
            inner, starts = made.skeleton(entry, trees, 2 if constant else 1)
            # Inside an outer function they are no longer linear, and need a start of their own.
            linear = _linear_start(made.values[entry], *transformed[which], constant)
            law: Expression = mul(Parameter(1 if constant else 0), inner)
            if constant:
                law = add(Parameter(0), law)
            laws.append(law if divisor is None else mul(divisor, law))
            around.append(transform)
            initial.append([*linear, *starts])
            said.append((*transform.sentences(), f"fitted a function of the kind '{family}' of {of}"))
    remaining = iter(said)
    for fits in parametric.fitted(problem, reduction, around, laws, initial, device=run.device):
        for fit, sentences in zip(fits, remaining, strict=False):
            if np.isfinite(fit.loss):
                yield Candidate(fit.expression, "enumeration", sentences)
        yield 0.005 * len(fits)


def _linear_start(values: FloatArray, target: FloatArray, weights: FloatArray, constant: bool) -> list[float]:
    """Offset (where there is one) and factor of an entry, by weighted least squares on the probe rows."""
    factor = float(np.abs(values).max())
    columns = [np.ones_like(values), values / factor] if constant else [values / factor]
    root = np.sqrt(weights / weights.max())
    solution = np.linalg.lstsq(np.stack(columns, axis=1) * root[:, None], target * root, rcond=1e-12)[0]
    solution[-1] /= factor
    return [float(value) for value in solution]


def _quotients(
    transform: OutputTransform,
    target: FloatArray,
    weights: FloatArray,
    divisors: list[Expression | None],
    inputs: FloatArray,
) -> tuple[list[tuple[OutputTransform, Expression | None]], FloatArray, FloatArray]:
    """The target divided by each divisor, with the weights that keep residuals comparable."""
    names: list[tuple[OutputTransform, Expression | None]] = []
    quotients: list[FloatArray] = []
    scaled: list[FloatArray] = []
    for divisor in divisors:
        value = np.ones_like(target) if divisor is None else evaluate(divisor, inputs)
        with np.errstate(all="ignore"):
            quotient = target / value
            weight = weights * value * value
        if np.isfinite(quotient).all() and np.ptp(quotient) > 0 and 0.0 < weight.max() < np.inf:
            names.append((transform, divisor))
            quotients.append(quotient)
            scaled.append(weight)
    if not names:
        return names, np.empty((0, target.size)), np.empty((0, target.size))
    return names, np.stack(quotients), np.stack(scaled)
