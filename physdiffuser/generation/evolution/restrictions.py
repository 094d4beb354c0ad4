"""Restrictions of the search space: formulas whose unit can be right, and the columns that are used."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression
from physdiffuser.expressions.nesting import nesting_test
from physdiffuser.generation.evolution.policy import POLICY
from physdiffuser.generation.evolution.scoring import Scorer


def form_test(problem: Problem) -> Callable[[Expression], bool]:
    """Whether a formula has no forbidden nesting, and some outer constant gives it the target's unit."""
    if not problem.forbidden:
        return unit_test(problem)
    units, nestings = unit_test(problem), nesting_test(problem.forbidden)
    return lambda expression: nestings(expression) and units(expression)


def unit_test(problem: Problem) -> Callable[[Expression], bool]:
    """Whether some outer constant gives a formula the target's unit; always, when units are not known."""
    if problem.units is None or problem.target_unit is None:
        return lambda expression: True
    from physdiffuser.expressions.units.dimensions import IMPOSSIBLE, UnitChecker

    checker = UnitChecker(problem.units, problem.target_unit, problem.constant_units)
    return lambda expression: checker.code(expression) != IMPOSSIBLE


def relevant_columns(scorer: Scorer, columns: int) -> list[int]:
    """Columns to use: all, or the most correlated with the target when there are too many."""
    everyone = list(range(columns))
    if columns <= POLICY.max_columns:
        return everyone
    with np.errstate(all="ignore"):
        ranks = np.argsort(np.argsort(scorer.inputs, axis=0), axis=0).astype(np.float64)
        target = np.argsort(np.argsort(scorer.target)).astype(np.float64)
        ranks -= ranks.mean(axis=0)
        target -= target.mean()
        strength = np.abs(ranks.T @ target) / np.sqrt((ranks**2).sum(axis=0) * (target**2).sum())
    return sorted(sorted(everyone, key=lambda index: -float(strength[index]))[: POLICY.max_columns])
