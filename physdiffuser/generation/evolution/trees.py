"""What evolution asks of a tree: where its nodes are, what it costs, what kind of formula it is."""

from __future__ import annotations

from collections.abc import Iterator

from physdiffuser.expressions import OPERATORS, Apply, Expression, Variable

Path = tuple[int, ...]


def positions(expression: Expression) -> list[tuple[Path, Expression]]:
    """Every node with the path of argument positions that leads to it, parents first."""
    found: list[tuple[Path, Expression]] = []
    stack: list[tuple[Path, Expression]] = [((), expression)]
    while stack:
        place = stack.pop()
        found.append(place)
        path, node = place
        if isinstance(node, Apply):
            stack.extend(((*path, index), node.arguments[index]) for index in range(len(node.arguments)))
    return found


def replace_at(expression: Expression, path: Path, new: Expression) -> Expression:
    """The tree with another subtree at a path."""
    if not path:
        return new
    assert isinstance(expression, Apply)
    arguments = list(expression.arguments)
    arguments[path[0]] = replace_at(arguments[path[0]], path[1:], new)
    return Apply(expression.operator, tuple(arguments))


def along(expression: Expression, path: Path) -> Iterator[Apply]:
    """The operators on the way from the root to a path's end, which is left out."""
    node = expression
    for index in path:
        assert isinstance(node, Apply)
        yield node
        node = node.arguments[index]


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
            cost += OPERATORS[node.operator].complexity
            if len(node.arguments) == 1:
                functions.add(node.operator)
            stack.extend(node.arguments)
        else:
            cost += 1
            if isinstance(node, Variable):
                variables |= 1 << node.index
    if not variables:
        return None
    return cost, f"{variables:x} {' '.join(sorted(functions))}"
