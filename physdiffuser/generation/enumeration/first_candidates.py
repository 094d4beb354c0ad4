"""What costs next to nothing and comes before the stages: sums of columns, and pure power laws."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import ONE, Variable
from physdiffuser.expressions.tree import mul
from physdiffuser.generation.sparse.dictionary import make
from physdiffuser.generation.sparse.logarithmic import logarithmic
from physdiffuser.generation.sparse.regression import forward, least_squares, scaled
from physdiffuser.generation.sparse.sums import combination
from physdiffuser.library.matches import near_simple
from physdiffuser.reduction.factors import relevant_columns


def sums_of_columns(problem: Problem) -> Work:
    """Sums of the relevant columns, and power products of them with fitted exponents (sums of logarithms).

    What any other formula has to beat, in a few milliseconds.
    """
    weights = np.ones(problem.rows) if problem.weights is None else problem.weights
    columns = [Variable(column) for column in relevant_columns(problem.inputs, problem.target)]
    dictionary = make(list(columns), problem.inputs)
    for supports in forward(*scaled(dictionary.values, problem.target, weights)):
        best = supports[0].columns
        coefficients = least_squares(dictionary.values[:, best], problem.target, weights)
        if coefficients is None:
            continue
        tree = combination(coefficients, [dictionary.terms[column] for column in best])
        if tree is not None:
            yield Candidate(tree, "enumeration", ("fitted a sum of columns",))
    # The same of the logarithms.
    yield from logarithmic(problem, Reduction((), tuple(columns)), plain=True)


def power_laws(reductions: Iterable[Reduction], problem: Problem) -> Iterator[Candidate]:
    """Pure power laws: each hypothesis with nothing but a constant left."""
    for reduction in reductions:
        tree = reduction.factor()
        if tree is None:
            continue
        product = reduction.product(problem.inputs)
        weights = np.ones_like(product) if problem.weights is None else problem.weights
        scale = np.abs(product).max()
        unit = product / scale
        constant = float((weights * unit * problem.target).sum() / (weights * unit * unit).sum() / scale)
        if np.isfinite(constant) and constant != 0:
            number = near_simple(constant, 1e-11)
            yield Candidate(
                tree if number == ONE else mul(number, tree),
                "enumeration",
                ("the logarithm of the target is linear in the logarithms of the columns: a power law",),
            )
