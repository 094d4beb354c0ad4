"""Which formulas the search takes the time to rewrite."""

from __future__ import annotations

from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import size
from physdiffuser.search.selection import fitted_constants

# A long sum with many fitted numbers has a great many arrangements and is no law.
MOST_NODES = 40
MOST_CONSTANTS = 4


def worth_arranging(expression: Expression) -> bool:
    """Whether a formula may be a law, and is worth the milliseconds that arranging takes."""
    return size(expression) <= MOST_NODES and fitted_constants(expression) <= MOST_CONSTANTS
