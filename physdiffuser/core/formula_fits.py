"""Formulas on the rows of a problem, with its weights and its loss."""

from __future__ import annotations

from physdiffuser.core.archive import relative_loss
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.fitting import refit


def loss_of(expression: Expression, problem: Problem) -> float:
    """Loss of a formula relative to the best constant's; inf where it has no finite value."""
    return relative_loss(problem, evaluate(expression, problem.inputs))


def refitted(expression: Expression, problem: Problem, *, tied: bool = False) -> Expression:
    """The formula with its constants fitted again, from the values they have (`fitting.refit`)."""
    return refit(
        expression, problem.inputs, problem.target, weights=problem.weights, loss=problem.loss, tied=tied
    ).expression
