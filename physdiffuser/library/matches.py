"""From a match in the library to a candidate: linear constants fitted, formula and derivation written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.derivation import divided, found_as, target_symbol
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import ONE, Expression, Number, Variable, evaluate, to_text
from physdiffuser.expressions.tree import add, mul
from physdiffuser.transforms.transform import OutputTransform

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

# A factor so many of its standard errors from 1 is tried as 1.
STANDARD_ERRORS = 3.0


class Term(NamedTuple):
    """A summand without its coefficient: its tree, and its values on all rows."""

    tree: Expression
    values: FloatArray


@dataclass(frozen=True)
class Match(ABC):
    """Library entries that together explain the transformed target t; each kind of match is a subclass.

    Attributes
    ----------
    reduction
        Its factors are divided out of the target; the entries are functions of its features.
    transform
        The output transform that is inverted on the target.
    cost
        Search cost of the entries and of the transform.
    prefactor
        A further factor of the target, divided out before the transform is inverted.
    """

    reduction: Reduction
    transform: OutputTransform
    cost: int
    prefactor: Expression | None = field(default=None, kw_only=True)

    sentence: ClassVar[str] = "found a sum of formulas of the library"

    @abstractmethod
    def terms(self, inputs: Float64[np.ndarray, "rows columns"]) -> list[Term]:
        """The terms whose linear combination is t.

        The law may be without the first of them: the constant, or A in `A*(a + b*B)`.
        """

    def build(self, inner: Expression) -> Expression:
        """The formula of the target, given that of t."""
        expression = self.transform.redo(inner)
        for factor in (self.prefactor, self.reduction.factor()):
            if factor is not None:
                expression = mul(factor, expression)
        return expression


@dataclass(frozen=True)
class Single(Match):
    """`t = a + b*B`."""

    right: Expression

    sentence = "found in the library of small formulas"

    @checked
    def terms(self, inputs: Float64[np.ndarray, "rows columns"]) -> list[Term]:
        """1 and B."""
        right = _term(self.right, inputs)
        return [Term(ONE, np.ones_like(right.values)), right]


@dataclass(frozen=True)
class Product(Match):
    """`t = A*(a + b*B)`."""

    left: Expression
    right: Expression

    sentence = "found a product of two formulas of the library"

    @checked
    def terms(self, inputs: Float64[np.ndarray, "rows columns"]) -> list[Term]:
        """A and A*B."""
        left = _term(self.left, inputs)
        return [left, _times(left, _term(self.right, inputs))]


@dataclass(frozen=True)
class Sum(Match):
    """`t = a + b*A + c*B`."""

    left: Expression
    right: Expression

    @checked
    def terms(self, inputs: Float64[np.ndarray, "rows columns"]) -> list[Term]:
        """1, A and B."""
        left = _term(self.left, inputs)
        return [Term(ONE, np.ones_like(left.values)), left, _term(self.right, inputs)]


@dataclass(frozen=True)
class ShiftedProduct(Match):
    """`t = A*(a + b*B) + d*D`."""

    left: Expression
    right: Expression
    third: Expression

    @checked
    def terms(self, inputs: Float64[np.ndarray, "rows columns"]) -> list[Term]:
        """A, A*B and D."""
        left = _term(self.left, inputs)
        return [left, _times(left, _term(self.right, inputs)), _term(self.third, inputs)]


@dataclass(frozen=True)
class ScaledSum(Match):
    """`t = D*(a + b*A + c*B)`."""

    left: Expression
    right: Expression
    third: Expression

    @checked
    def terms(self, inputs: Float64[np.ndarray, "rows columns"]) -> list[Term]:
        """D, D*B and D*A."""
        third = _term(self.third, inputs)
        return [third, _times(third, _term(self.right, inputs)), _times(third, _term(self.left, inputs))]


def _term(tree: Expression, inputs: FloatArray) -> Term:
    return Term(tree, evaluate(tree, inputs))


def _times(one: Term, other: Term) -> Term:
    return Term(mul(one.tree, other.tree), one.values * other.values)


def candidates(match: Match, problem: Problem, tolerance: float) -> list[Candidate]:
    """Formulas for a match, with their linear constants fitted by weighted least squares.

    Parameters
    ----------
    match
        The terms, the transform and the reduction.
    tolerance
        A term whose share of the transformed target is below this is dropped. Both the full formula and,
        where it makes sense, the one without the constant term are returned.
    """
    transformed = _transformed_target(match, problem)
    if transformed is None:
        return []
    terms = match.terms(problem.inputs)
    found: list[Candidate] = []
    # Without the constant (or, for a product, without the bare A): often the law, and simpler.
    for some in (terms, terms[1:]):
        for coefficients in _coefficients([term.values for term in some], *transformed):
            inner = _combination(coefficients, some, tolerance)
            if inner is not None:
                found.append(Candidate(match.build(inner), "enumeration", _derivation(match, inner, problem)))
    return found


def _transformed_target(match: Match, problem: Problem) -> tuple[FloatArray, FloatArray] | None:
    """What the terms of a match add up to, with row weights; None where the transform cannot be inverted."""
    factor = match.reduction.product(problem.inputs)
    if match.prefactor is not None:
        factor = factor * evaluate(match.prefactor, problem.inputs)
    transformed = match.transform.undo(problem.target / factor)
    if transformed is None:
        return None
    target, weights = transformed
    weights = weights * np.square(factor / np.abs(factor).max())
    if problem.weights is not None:
        weights = weights * problem.weights
    return target, weights


def _coefficients(terms: list[FloatArray], target: FloatArray, weights: FloatArray) -> list[FloatArray]:
    """Coefficients by least squares, and 1 or -1 for a single one that may be that; none where they fail."""
    coefficients = _least_squares(terms, target, weights)
    if coefficients is None:
        return []
    if len(terms) == 1 and _may_be_one(float(coefficients[0]), terms[0], target, weights):
        return [coefficients, np.sign(coefficients)]
    return [coefficients]


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


def _combination(coefficients: FloatArray, terms: list[Term], tolerance: float) -> Expression | None:
    """The sum of the terms with their coefficients, without those of negligible size."""
    shares = [
        abs(coefficient) * float(np.abs(term.values).max())
        for coefficient, term in zip(coefficients, terms, strict=True)
    ]
    largest = max(shares)
    result: Expression | None = None
    for coefficient, (tree, _), share in zip(coefficients, terms, shares, strict=True):
        if share <= tolerance * largest:
            continue
        number = near_simple(float(coefficient), tolerance)
        if tree == ONE:
            term: Expression = number
        else:
            term = tree if number == ONE else mul(number, tree)
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
    steps.append(f"{match.sentence}: {found}")
    return tuple(steps)
