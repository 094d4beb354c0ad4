"""Constants that were set farther than a standard error from their fitted values are fitted numbers again.

Each constant was set while some of the others were held. Fitted together with them it may lie elsewhere.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.core.formula_fits import refitted
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import PI, Expression, Number, Parameter, Symbol, to_text
from physdiffuser.expressions.tree import substitute, walk
from physdiffuser.finalize.constants.statements import (
    freed_values,
    is_fitted,
    is_quarter,
    marked_constants,
    value_of,
)

# Standard errors by which setting a constant may move it.
FARTHEST = 1.0


@np.errstate(all="ignore")
def within_standard_error(expression: Expression, problem: Problem) -> tuple[Expression, tuple[str, ...]]:
    """The formula with each set constant within a standard error of its fitted value, and what was changed.

    The constant that lies farthest off becomes a fitted number, until none lies farther off than
    `FARTHEST`. Numbers 1 and powers by quarters are the form of the formula and stay, and so do constants
    with a name, which the user has asked for.

    Parameters
    ----------
    expression
        The formula; its float numbers are fitted, all other numbers were set.
    """
    changes: tuple[str, ...] = ()
    while (freed := _with_one_freed(expression, problem)) is not None:
        expression, change = freed
        changes = (*changes, change)
    return expression, changes


def _with_one_freed(expression: Expression, problem: Problem) -> tuple[Expression, str] | None:
    """The formula with the constant freed that is farthest off, the others fitted again; None if none is."""
    marked, nodes, exponents = marked_constants(expression)
    if all(is_fitted(node) or _is_form(node, power) for node, power in zip(nodes, exponents, strict=True)):
        return None
    off: list[tuple[float, int, float]] = []
    for index, (fitted, sigma) in freed_values(marked, nodes, problem).items():
        node = nodes[index]
        if is_fitted(node) or _is_form(node, exponents[index]) or _is_named(node):
            continue
        away = abs(value_of(node) - fitted)
        if away > FARTHEST * sigma:
            off.append((away / sigma if sigma > 0.0 else np.inf, index, fitted))
    for away, index, fitted in sorted(off, reverse=True):
        parts = [Number(fitted) if place == index else node for place, node in enumerate(nodes)]
        found = refitted(_with_parts(marked, parts), problem, tied=True)
        if problem.allows(found) and problem.satisfies(found):
            said = f"{to_text(nodes[index])} lies {away:.2g} standard errors from the fitted {fitted:.6g}"
            return found, f"{said}, which stays"
    return None


def _is_form(node: Expression, exponent: bool) -> bool:
    value = value_of(node)
    return abs(value) == 1.0 or (exponent and is_quarter(value))


def _is_named(node: Expression) -> bool:
    return any(isinstance(leaf, Symbol) and leaf != PI for leaf in walk(node))


def _with_parts(marked: Expression, parts: list[Expression]) -> Expression:
    return substitute(marked, lambda node: parts[node.index] if isinstance(node, Parameter) else None)
