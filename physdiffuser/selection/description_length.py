"""Which formula to believe: the one with the minimum description length.

The description of a table by a formula has two parts: the formula, and its residuals. With n rows,
p fitted constants and mean squared residual s**2 the second costs (n - p)/2 * log(s**2) nats up to a
constant (the size of the noise is not known and has to be averaged over); a formula costs what its form
costs (`form_nats`), and half a log(n) for each fitted constant (the accuracy to which n rows
determine it). See Rissanen, "Modeling by shortest data description" (1978), and for
formulas Udrescu et al., "AI Feynman 2.0" (2020).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, complexity, evaluate
from physdiffuser.expressions.complexity import set_complexity, table_complexity
from physdiffuser.expressions.tree import fitted_constants, substitute, walk
from physdiffuser.fitting.linear import power_of_two
from physdiffuser.selection.form_prior import usual_forms
from physdiffuser.selection.standard_code import standard_nats

if TYPE_CHECKING:
    from physdiffuser.core.problem import Problem


# log of about twenty words to choose from at each place of a formula.
NATS_PER_UNIT = 3.0


@dataclass(frozen=True)
class FormLengthPolicy:
    """How the form of a formula is priced.

    The weights of the conditional prior were chosen on development laws (docs/search.md); the others
    follow from the code that is meant.
    """

    usual_nats: float = 0.0
    """What the code of usual forms takes to begin with; a large number leaves it out."""
    conditional_share: float = 0.3
    max_doubt: float = 30.0
    """Weight of a conditional form prior, which has seen the table, beside what is known of forms without it,
    and by how many nats at most it may find a form less usual."""
    simpler_nats: float = 0.05
    """So much of each unit of complexity stays where a form is usual: of two ways to write it the simpler is
    preferred."""
    exponent_nats: float = float(np.log(4))
    """Exponents up to 4 and half-integers up to 2 cost nothing: this is what one of them takes."""
    least_exponent: float = 0.35
    """A fitted number is as likely in each decade, but a fitted exponent in each interval from -4 to 4: below
    this (8 over the logarithm of ten decades) an exponent is less likely than a factor of the same size."""


FORMS = FormLengthPolicy()

# Relative mean squared residuals below this are rounding.
ROUNDING_LOSS = 1e-22


def exact_nats(expression: Expression, most: float = float("inf")) -> float:
    """Nats to write down the exact numbers of a formula: log(p*q) for p/q, less for exponents.

    Also what fitted exponents near 0 take beyond other fitted constants.

    Parameters
    ----------
    most
        What a number takes at most, as a fitted one would; but not an exponent, which few rows hardly tell
        from others.
    """
    total = 0.0
    for node in walk(expression):
        if not isinstance(node, Apply):
            if node is expression:
                total += min(most, _number_nats(node))
            continue
        for position, argument in enumerate(node.arguments):
            exponent = node.operator == "pow" and position == 1
            total += _exponent_nats(argument) if exponent else min(most, _number_nats(argument))
    return total


def _exponent_nats(node: Expression) -> float:
    if isinstance(node, Number) and not node.exact and node.value:
        return max(0.0, math.log(FORMS.least_exponent / abs(float(node.value))))
    nats = _number_nats(node)
    halves = isinstance(node, Number) and Fraction(node.value).denominator <= 2
    return max(0.0, nats - FORMS.exponent_nats) if halves else nats


def _number_nats(node: Expression) -> float:
    if not isinstance(node, Number) or not node.exact or not node.value:
        return 0.0
    value = Fraction(node.value)
    # The logarithm of an integer of any length, which numpy has not.
    return math.log(abs(value.numerator)) + math.log(value.denominator)


def form_nats(expression: Expression, columns: int, conditional: float | None = None) -> float:
    """Nats to write down a formula's form, numbers left out, in the shortest of three codes.

    One takes `NATS_PER_UNIT` for each unit of complexity, another what the form costs among the laws that
    `physdiffuser.selection.form_prior` has counted: a form that no one has met costs no more than without it.
    The third lists the usual laws of one input (`physdiffuser.selection.standard_code`).
    A function of one argument that the user has defined is as usual as the exponential: it was defined
    because it is expected. With a code for the table at hand (a conditional form prior), both probabilities
    are pooled, in the logarithm. Each unit of complexity that the user has set beyond that of the operator
    table costs `NATS_PER_UNIT` more.

    Parameters
    ----------
    columns
        From how many columns its variables are chosen.
    conditional
        Nats in a code for this table, if there is one (`physdiffuser.core.generator.FormPrior`).

    References
    ----------
    Logarithmic opinion pools: Genest and Zidek, *Statistical Science* 1 (1986).
    """
    size = table_complexity(expression)
    usual = _with_usual_names(expression)
    by_parts = usual_forms().nats(usual, columns)
    listed = standard_nats(usual, columns, by_parts)
    nats = min(NATS_PER_UNIT * size, FORMS.usual_nats + by_parts, listed)
    # A usual law is expected as a whole; a conditional form prior reads it part by part.
    if conditional is not None and nats < listed:
        nats += FORMS.conditional_share * min(conditional - nats, FORMS.max_doubt)
    # Of two ways to write one form, the simpler.
    return nats + FORMS.simpler_nats * size + NATS_PER_UNIT * set_complexity(expression)


def _with_usual_names(expression: Expression) -> Expression:
    def rename(node: Expression) -> Expression | None:
        match node:
            case Apply(operator, (argument,)) if OPERATORS[operator].definition is not None:
                return Apply("exp", (_with_usual_names(argument),))
        return None

    return substitute(expression, rename)


@dataclass(frozen=True)
class DescriptionLength:
    """Measures descriptions of one table.

    Attributes
    ----------
    rows, columns
        Of the table.
    floor
        Losses below it count as it: rounding of the numbers in the table.
    """

    rows: int
    columns: int
    floor: float = ROUNDING_LOSS

    @property
    def constant_nats(self) -> float:
        """Nats to write down a fitted constant."""
        return 0.5 * float(np.log(max(self.rows, 2)))

    def formula_nats(self, expression: Expression, conditional: float | None = None) -> float:
        """Nats to write down a formula but for its fitted constants; see `form_nats`."""
        return form_nats(expression, self.columns, conditional) + exact_nats(expression, self.constant_nats)

    def length(self, expression: Expression, loss: float, conditional: float | None = None) -> float:
        """Nats to describe the table by a formula of known loss, up to a constant of the table."""
        return self.total(self.formula_nats(expression, conditional), fitted_constants(expression), loss)

    def plain_length(self, expression: Expression, loss: float) -> float:
        """The same with `NATS_PER_UNIT` for each unit of complexity, however usual the form is."""
        nats = NATS_PER_UNIT * complexity(expression) + exact_nats(expression, self.constant_nats)
        return self.total(nats, fitted_constants(expression), loss)

    def total(self, nats: float, constants: int, loss: float) -> float:
        """The same by what the formula takes, its fitted constants left out, and their number.

        Parameters
        ----------
        nats
            As of `DescriptionLength.formula_nats`.
        loss
            Mean squared residual relative to the constant model's.
        """
        return self.left(constants, loss) + nats + constants * self.constant_nats

    def left(self, constants: int, loss: float) -> float:
        """Nats to write down the residuals of a formula."""
        if not np.isfinite(loss):
            return float("inf")
        # With as many constants as rows nothing is explained; a formula never gains from having more.
        free = max(self.rows - constants, 0)
        return 0.5 * free * float(np.log(max(loss, self.floor)))


def rounding_loss(target: FloatArray, tolerance: float) -> float:
    """The relative loss that rounding of the target alone causes.

    Parameters
    ----------
    tolerance
        Relative rounding of a number that begins with a 1, as of `decimal_precision`.
    """
    if tolerance <= 1e-10:
        return ROUNDING_LOSS
    scale = float(np.abs(target).max()) or 1.0
    unit = target / scale
    spread = float(unit.var())
    # Uniform within half a unit of the last digit, which is the same for 100 and for 999.
    leading = np.zeros_like(target)
    leading[target != 0] = 10.0 ** np.floor(np.log10(np.abs(target[target != 0])))
    half = tolerance * leading / scale
    return max(ROUNDING_LOSS, float(np.square(half).mean()) / 3 / max(spread, 1e-300))


def shortest(lengths: Iterable[float]) -> int:
    """Position of the shortest description; the first among equals."""
    return int(np.argmin(np.fromiter(lengths, float)))


def leaves_noise(problem: Problem, expression: Expression) -> bool:
    """Whether the residuals of a formula are noise in all rows of a problem; see `residual_is_noise`."""
    rows = problem.all_rows
    return residual_is_noise(rows.inputs, rows.target - evaluate(expression, rows.inputs), rows.weights)


def residual_is_noise(inputs: FloatArray, residual: FloatArray, weights: FloatArray | None = None) -> bool:
    """Whether nothing in the columns predicts the residuals of a formula.

    Four tests, each at about one false alarm in a thousand: the residuals of nearest neighbours are
    uncorrelated, their signs are (which a few large residuals cannot hide), also among neighbours in each
    column and each two of them (rows are far apart in all of four), and a quadratic polynomial in the
    columns explains no more than chance would.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    residual
        Shape (rows,).
    weights
        Shape (rows,), inverse variances when known.
    """
    rows = len(inputs)
    if rows < 12:
        return True
    if weights is not None:
        residual = residual * np.sqrt(weights)
    scale = float(np.abs(residual).max())
    if scale == 0:
        return True
    residual = residual / scale
    residual = residual - residual.mean()
    # A few outliers must not hide a pattern in the rest.
    limit = 6 * 1.4826 * float(np.median(np.abs(residual)))
    if limit > 0:
        residual = np.clip(residual, -limit, limit)
    inputs = inputs / power_of_two(np.abs(inputs).max(axis=0))  # the squares of 1e200 are no numbers
    spread = inputs.std(axis=0)
    unit = (inputs - inputs.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    near = _neighbours(unit[:1000])
    return (
        _neighbours_independent(residual[:1000], near)
        and _signs_independent(residual[:1000], near)
        and _no_quadratic(unit, residual)
        and _planes_independent(unit, residual)
    )


@dataclass(frozen=True)
class NoiseTestPolicy:
    """The test whether residuals are noise.

    Set on development laws with noise (docs/search.md).
    """

    neighbours: int = 4
    """Neighbours of each row whose residuals are compared with its own."""
    plane_rows: int = 400
    plane_columns: int = 6
    plane_deviations: float = 4.3
    """Rows and columns of the test in planes, and the deviations that one of its many tests may show."""


NOISE_TEST = NoiseTestPolicy()


def _neighbours(unit: FloatArray) -> IndexArray:
    """The nearest other rows of each row, nearest first, shape (rows, neighbours)."""
    if unit.shape[1] == 0:
        return np.empty((len(unit), 0), np.intp)
    square = np.square(unit).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * unit @ unit.T
    np.fill_diagonal(distance, np.inf)
    some = np.argpartition(distance, NOISE_TEST.neighbours, axis=1)[:, : NOISE_TEST.neighbours]
    order = np.argsort(np.take_along_axis(distance, some, axis=1), axis=1)
    return np.take_along_axis(some, order, axis=1)


def _neighbours_independent(residual: FloatArray, near: IndexArray) -> bool:
    if near.shape[1] == 0:
        return True
    products = residual * residual[near[:, 0]]
    error = float(products.std()) / np.sqrt(len(products)) or 1.0
    # Mutual neighbours enter twice, which widens the true error by up to sqrt(2).
    return bool(float(products.mean()) < 3.1 * np.sqrt(2) * error)


def _signs_independent(residual: FloatArray, near: IndexArray, deviations: float = 3.1) -> bool:
    """Whether rows lie above the fit without regard to where their neighbours lie."""
    if near.shape[1] == 0:
        return True
    sign = np.sign(residual - np.median(residual))
    agreement = float((sign[:, None] * sign[near]).mean())
    return bool(agreement < deviations * np.sqrt(2.0 / near.size))


def _planes_independent(unit: FloatArray, residual: FloatArray) -> bool:
    """Whether signs are independent among neighbours in each column and each two of three columns or more."""
    columns = range(min(unit.shape[1], NOISE_TEST.plane_columns))
    if unit.shape[1] < 3:
        return True
    some, left = unit[: NOISE_TEST.plane_rows], residual[: NOISE_TEST.plane_rows]
    planes = [[column] for column in columns] + [list(pair) for pair in combinations(columns, 2)]
    return all(
        _signs_independent(left, _neighbours(some[:, plane]), NOISE_TEST.plane_deviations) for plane in planes
    )


def _no_quadratic(unit: FloatArray, residual: FloatArray) -> bool:
    rows = len(unit)
    # So many columns that the polynomial has at most a third as many terms as there are rows.
    columns = unit[:, : int(np.sqrt(rows / 3)) - 1]
    pairs = [columns[:, [i]] * columns[:, i:] for i in range(columns.shape[1])]
    design = np.column_stack([np.ones(rows), columns, *pairs])
    fitted = design @ np.linalg.lstsq(design, residual, rcond=1e-10)[0]
    explained, left = float(np.square(fitted).sum()), float(np.square(residual - fitted).sum())
    terms, free = design.shape[1] - 1, rows - design.shape[1]
    if left <= 0 or terms == 0:
        return True
    ratio = (explained / terms) / (left / free)
    # Wilson-Hilferty: the cube root of a chi-square over its degrees of freedom is nearly normal.
    limit = (1 + 3.1 * np.sqrt(2 / (9 * terms)) - 2 / (9 * terms)) ** 3 * (1 + 3 / np.sqrt(free))
    return bool(ratio < limit)
