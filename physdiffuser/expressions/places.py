"""Places in a tree: paths to its nodes, and the tree with another subtree at one."""

from __future__ import annotations

from collections.abc import Iterator

from physdiffuser.expressions.tree import Apply, Expression

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
