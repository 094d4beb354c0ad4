"""Complexity: the one definition used by the search, the Pareto table and `--max-complexity`.

The complexity of a formula is the sum over its nodes, as written, of

* 1 for a leaf: a variable, a number (`2`, `3/2`, `0.731`), or a named constant (`pi`);
* the operator's own entry in the operator table: 1 for `+ - * / **`, a sign and `sqrt`,
  2 for `exp log sin cos abs`, 3 for the rest.

So `m*v**2/2` has complexity 7 and `2*pi*sqrt(a**3/mu)` has 10. Within `costing` the complexities that the
user has set hold instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Apply, Expression, Number, Parameter, Variable, walk


@dataclass(frozen=True)
class Costs:
    """Complexities that a user has set.

    Attributes
    ----------
    operators
        By key of the operator table.
    columns
        By position of the column.
    constant
        Of a number; None where it is not set.
    """

    operators: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[int, int] = field(default_factory=dict)
    constant: int | None = None


_COSTS: ContextVar[Costs | None] = ContextVar("COSTS", default=None)


@contextmanager
def costing(costs: Costs | None) -> Iterator[None]:
    """These complexities hold in this thread within the block; None for those of the operator table."""
    token = _COSTS.set(costs)
    try:
        yield
    finally:
        _COSTS.reset(token)


def complexity(expression: Expression) -> int:
    """Complexity of an expression, at least 1."""
    costs = _COSTS.get()
    if costs is None:
        return table_complexity(expression)
    return sum(_cost(node, costs) for node in walk(expression))


def table_complexity(expression: Expression) -> int:
    """The same by the operator table alone, whatever the user has set."""
    return sum(
        OPERATORS[node.operator].complexity if isinstance(node, Apply) else 1 for node in walk(expression)
    )


def set_complexity(expression: Expression) -> int:
    """By how much the complexities that the user has set raise that of the expression."""
    return 0 if _COSTS.get() is None else complexity(expression) - table_complexity(expression)


def node_complexity(node: Expression) -> int:
    """What one node adds."""
    costs = _COSTS.get()
    if costs is not None:
        return _cost(node, costs)
    return OPERATORS[node.operator].complexity if isinstance(node, Apply) else 1


def _cost(node: Expression, costs: Costs) -> int:
    match node:
        case Apply(operator=operator):
            known = costs.operators.get(operator)
            return OPERATORS[operator].complexity if known is None else known
        case Variable(index=index):
            return costs.columns.get(index, 1)
        case Number() | Parameter():
            return 1 if costs.constant is None else costs.constant
    return 1
