"""What evolution asks of a tree: what it costs, and what kind of formula it is."""

from __future__ import annotations

from physdiffuser.expressions import Apply, Expression, Variable
from physdiffuser.expressions.complexity import node_complexity


def profile(expression: Expression, allowed: frozenset[str] | None = None) -> tuple[int, str] | None:
    """Complexity, and the kind: which functions and which variables occur.

    None when there is no variable, or an operator that is not allowed. Two formulas of one kind compete
    with each other; the population keeps the best of many kinds.
    """
    cost = 0
    variables = 0
    functions: set[str] = set()
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply):
            if allowed is not None and node.operator not in allowed:
                return None
            cost += node_complexity(node)
            if len(node.arguments) == 1:
                functions.add(node.operator)
            stack.extend(node.arguments)
        else:
            cost += node_complexity(node)
            if isinstance(node, Variable):
                variables |= 1 << node.index
    if not variables:
        return None
    return cost, f"{variables:x} {' '.join(sorted(functions))}"
