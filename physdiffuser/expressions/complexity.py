"""Complexity: the one definition used by the search, the Pareto table and `--max-complexity`.

The complexity of a formula is the sum over its nodes, as written, of

* 1 for a leaf: a variable, a number (`2`, `3/2`, `0.731`), or a named constant (`pi`);
* the operator's own entry in the operator table: 1 for `+ - * / **`, a sign and `sqrt`,
  2 for `exp log sin cos abs`, 3 for the rest.

So `m*v**2/2` has complexity 7 and `2*pi*sqrt(a**3/mu)` has 10.
"""

from __future__ import annotations

from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.tree import Apply, Expression, walk


def complexity(expression: Expression) -> int:
    """Complexity of an expression, at least 1."""
    return sum(
        OPERATORS[node.operator].complexity if isinstance(node, Apply) else 1 for node in walk(expression)
    )
