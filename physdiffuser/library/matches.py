"""From a match in the library to a candidate: linear constants fitted, formula and derivation written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.derivation import divided, found_as, target_symbol
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, Number, Variable, evaluate, to_text
from physdiffuser.expressions.tree import add, mul
from physdiffuser.transforms.output_transforms import OutputTransform

FloatArray = npt.NDArray[np.float64]

# A factor so many of its standard errors from 1 is tried as 1.
STANDARD_ERRORS = 3.0

# How the parts are joined: t = a + b*B, t = A*(a + b*B), t = ±A + a + b*B, t = a + b*A + c*B,
# t = ±D + A*(a + b*B), t = D*(±A + a + b*B).
Kind = Literal[
    "single",
    "product",
    "difference",
    "negative difference",
    "sum",
    "shifted product",
    "negatively shifted product",
    "scaled difference",
    "negative scaled difference",
]


@dataclass(frozen=True)
class Match:
    """Library entries that together explain the transformed target.

    Attributes
    ----------
    left, right, third
        A, B and D.
    prefactor
        A further factor of the target, divided out before the transform was undone.
    """

    reduction: Reduction
    transform: OutputTransform
    kind: Kind
    left: Expression | None
    right: Expression
    cost: int
    third: Expression | None = None
    prefactor: Expression | None = None


def candidates(match: Match, problem: Problem, tolerance: float) -> list[Candidate]:
    """Formulas for a match, with their linear constants fitted by weighted least squares.

    Parameters
    ----------
    tolerance
        A term whose share of the transformed target is below this is dropped. Both the full formula and,
        where it makes sense, the one without the constant term are returned.
    """
    factor = match.reduction.product(problem.inputs)
    if match.prefactor is not None:
        factor = factor * evaluate(match.prefactor, problem.inputs)
    transformed = match.transform.undo(problem.target / factor)
    if transformed is None:
        return []
    target, weights = transformed
    weights = weights * np.square(factor / np.abs(factor).max())
    if problem.weights is not None:
        weights = weights * problem.weights
    right = evaluate(match.right, problem.inputs)
    ones = np.ones_like(target)
    match match.kind:
        case "single":
            terms, trees = [ones, right], [Number(1), match.right]
        case "product" if match.left is not None:
            left = evaluate(match.left, problem.inputs)
            terms, trees = [left, left * right], [match.left, mul(match.left, match.right)]
        case "difference" | "negative difference" if match.left is not None:
            # The coefficient of A was 1 or -1 in the lookup; here it is fitted like the others.
            left = evaluate(match.left, problem.inputs)
            terms, trees = [ones, right, left], [Number(1), match.right, match.left]
        case "sum" if match.left is not None:
            left = evaluate(match.left, problem.inputs)
            terms, trees = [ones, left, right], [Number(1), match.left, match.right]
        case "shifted product" | "negatively shifted product" if (
            match.left is not None and match.third is not None
        ):
            left, third = evaluate(match.left, problem.inputs), evaluate(match.third, problem.inputs)
            terms = [left, left * right, third]
            trees = [match.left, mul(match.left, match.right), match.third]
        case "scaled difference" | "negative scaled difference" if (
            match.left is not None and match.third is not None
        ):
            left, third = evaluate(match.left, problem.inputs), evaluate(match.third, problem.inputs)
            terms = [third, third * right, third * left]
            trees = [match.third, mul(match.third, match.right), mul(match.third, match.left)]
        case _:
            return []
    found: list[Candidate] = []
    for chosen in _subsets(len(terms), match.kind):
        some, names = [terms[i] for i in chosen], [trees[i] for i in chosen]
        coefficients = _least_squares(some, target, weights)
        if coefficients is None:
            continue
        tried = [coefficients]
        if len(some) == 1 and _may_be_one(float(coefficients[0]), some[0], target, weights):
            tried.append(np.sign(coefficients))
        for numbers in tried:
            inner = _combination(numbers, names, some, tolerance)
            if inner is None:
                continue
            expression = match.transform.redo(inner)
            if match.prefactor is not None:
                expression = mul(match.prefactor, expression)
            outside = match.reduction.factor()
            if outside is not None:
                expression = mul(outside, expression)
            found.append(Candidate(expression, "enumeration", _derivation(match, inner, problem)))
    return found


def _may_be_one(factor: float, term: FloatArray, target: FloatArray, weights: FloatArray) -> bool:
    """Whether a fitted factor differs from 1 or -1, if at all, by no more than its standard errors allow."""
    with np.errstate(all="ignore"):
        root = np.sqrt(weights)
        size = float(np.abs(root * term).max())
        if not 0 < size < np.inf:
            return False
        # In units of the largest: squares of it are normal numbers.
        unit = root * term / size
        residual = root * target / size - factor * unit
        error = np.sqrt(float(residual @ residual) / (max(len(target) - 1, 1) * float(unit @ unit)))
    return bool(abs(abs(factor) - 1) <= STANDARD_ERRORS * error)


def _subsets(count: int, kind: Kind) -> list[tuple[int, ...]]:
    every = tuple(range(count))
    # Without the constant (or, for a product, without the bare A): often the law, and simpler.
    return [every, every[1:]]


def _least_squares(terms: list[FloatArray], target: FloatArray, weights: FloatArray) -> FloatArray | None:
    design = np.stack(terms, axis=1)
    if not np.isfinite(design).all() or not np.isfinite(target).all() or not np.isfinite(weights).all():
        return None
    root = np.sqrt(weights)[:, None]
    scale = np.abs(design).max(axis=0)
    height = np.abs(target).max()
    if not (scale > 0).all() or height == 0 or not np.isfinite(scale).all():
        return None
    solution, _, rank, _ = np.linalg.lstsq(
        root * (design / scale), root[:, 0] * (target / height), rcond=1e-14
    )
    if rank < len(terms):
        return None
    result: FloatArray = solution * height / scale
    return result if np.isfinite(result).all() else None


def near_simple(value: float, tolerance: float) -> Number:
    """The number, exact when it is a small integer to within the tolerance."""
    nearest = round(value) if abs(value) < 1e6 else 0
    if nearest and abs(nearest) <= 12 and abs(value - nearest) <= tolerance * abs(value):
        return Number(nearest)
    return Number(float(value))


def _combination(
    coefficients: FloatArray, trees: list[Expression], terms: list[FloatArray], tolerance: float
) -> Expression | None:
    shares = [abs(c) * float(np.abs(term).max()) for c, term in zip(coefficients, terms, strict=True)]
    largest = max(shares)
    result: Expression | None = None
    for coefficient, tree, share in zip(coefficients, trees, shares, strict=True):
        if share <= tolerance * largest:
            continue
        number = near_simple(float(coefficient), tolerance)
        if tree == Number(1):
            term: Expression = number
        else:
            term = tree if number == Number(1) else mul(number, tree)
        result = term if result is None else add(result, term)
    return result


def _derivation(match: Match, inner: Expression, problem: Problem) -> tuple[str, ...]:
    names = problem.names
    steps: list[str] = []
    factor = match.reduction.factor()
    if factor is not None:
        steps.append(f"divided by the power law {to_text(factor, names)}")
    if match.reduction.features != tuple(Variable(column) for column in range(problem.columns)):
        features = [to_text(feature, names) for feature in match.reduction.features]
        steps.append(f"what is left depends on {', '.join(features) or 'nothing'}")
    if match.prefactor is not None:
        steps.append(f"divided by {to_text(match.prefactor, names)}")
    steps.extend(match.transform.sentences())
    left = divided(target_symbol(problem), factor, match.prefactor)
    found = found_as(match.transform.shown(left), inner, problem)
    what = {"single": "found", "product": "found a product of two"}.get(match.kind, "found a sum of")
    where = "in the library of small formulas" if match.kind == "single" else "formulas of the library"
    steps.append(f"{what} {where}: {found}")
    return tuple(steps)
