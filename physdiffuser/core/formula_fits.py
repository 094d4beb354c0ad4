"""Formulas on the rows of a problem, with its weights and its loss."""

from __future__ import annotations

from collections.abc import Callable

from physdiffuser.core.archive import relative_loss
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Symbol, evaluate
from physdiffuser.expressions.tree import walk
from physdiffuser.fitting import refit
from physdiffuser.fitting.exact_constants.snapping import Snap, snap


def loss_of(expression: Expression, problem: Problem) -> float:
    """Loss of a formula relative to the best constant's; inf where it has no finite value."""
    return relative_loss(problem, evaluate(expression, problem.inputs))


def refitted(expression: Expression, problem: Problem, *, tied: bool = False) -> Expression:
    """The formula with its constants fitted again, from the values they have (`fitting.refit`)."""
    return refit(
        expression, problem.inputs, problem.target, weights=problem.weights, loss=problem.loss, tied=tied
    ).expression


def with_exact_constants(start: Expression, problem: Problem, stop: Callable[[], bool] | None) -> Snap:
    """Exact constants, those of nature among them if the formula then balances in its units."""

    def with_constants(known: tuple[Symbol, ...]) -> Snap:
        return snap(
            start,
            problem.inputs,
            problem.target,
            weights=problem.weights,
            loss=problem.loss,
            noise=problem.noise,
            known_constants=known,
            rng=problem.generator(5),
            stop=stop,
        )

    if problem.physical_constants:
        snapped = with_constants((*problem.constants, *problem.physical_constants))
        names = {node.name for node in walk(snapped.expression) if isinstance(node, Symbol)}
        # Without one of them their products are no alternatives to numbers like 2*pi, and do not count.
        if names & {symbol.name for symbol in problem.physical_constants} and problem.allows(
            snapped.expression
        ):
            return snapped
    return with_constants(problem.constants)
