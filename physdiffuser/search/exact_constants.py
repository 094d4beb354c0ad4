"""Exact constants for a formula of a problem, constants of nature among them."""

from __future__ import annotations

from collections.abc import Callable

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Symbol
from physdiffuser.fitting.exact_constants.snapping import Snap, snap


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
        if problem.allows(snapped.expression):
            return snapped
    return with_constants(problem.constants)
