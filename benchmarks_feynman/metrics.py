"""Numbers about an answer: errors on fresh rows, distance between trees, intervals of rates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.expressions import Apply, Expression, Number, Parameter, Symbol, Variable
from physdiffuser.expressions.tree import size
from physdiffuser.fitting import accuracy

_MAX_TREE = 250


def max_relative_error(prediction: FloatArray, truth: FloatArray) -> float:
    """Largest error as a share of the true value, where that is not 0; inf without finite predictions."""
    if not np.isfinite(prediction).all():
        return float("inf")
    if not np.abs(truth).max(initial=0.0):
        return float(np.abs(prediction).max(initial=0.0))
    return accuracy.max_relative_error(truth, prediction)


def r2(prediction: FloatArray, truth: FloatArray) -> float | None:
    """Coefficient of determination; None where the prediction is not finite or the truth constant."""
    if len(truth) < 2 or not np.isfinite(prediction).all():
        return None
    scale = float(np.abs(truth).max())
    if scale == 0.0:
        return None
    total = float(np.sum(((truth - truth.mean()) / scale) ** 2))
    if total == 0.0:
        return None
    with np.errstate(over="ignore"):
        value = 1.0 - float(np.sum(((prediction - truth) / scale) ** 2)) / total
    return value if np.isfinite(value) else None


def _label(node: Expression) -> str:
    match node:
        case Apply(operator=operator):
            return operator
        case Variable(index=index):
            return f"x{index}"
        case Parameter():
            return "number"
        case Symbol(name=name):
            return name
        case Number(value=value):
            return str(value) if node.exact else "number"


def tree_distance(left: Expression, right: Expression) -> int:
    """Edit distance of two ordered trees: fewest nodes inserted, deleted or relabelled.

    The algorithm of Zhang and Shasha, SIAM J. Comput. 18 (1989) 1245. Fitted constants share one label.
    """
    a, b = _Postorder(left), _Postorder(right)
    distance = np.zeros((a.count, b.count), dtype=np.int64)
    for i in a.keyroots:
        for j in b.keyroots:
            _forest_distance(a, b, i, j, distance)
    return int(distance[-1, -1])


class _Postorder:
    """Labels in postorder, the leftmost leaf below each node, and the nodes that have a left sibling."""

    def __init__(self, expression: Expression) -> None:
        self.labels: list[str] = []
        self.leftmost: list[int] = []
        self._visit(expression)
        self.count = len(self.labels)
        last = {leaf: node for node, leaf in enumerate(self.leftmost)}
        self.keyroots = sorted(last.values())

    def _visit(self, node: Expression) -> int:
        children = [self._visit(child) for child in node.arguments] if isinstance(node, Apply) else []
        leaf = children[0] if children else len(self.labels)
        self.labels.append(_label(node))
        self.leftmost.append(leaf)
        return leaf


def _forest_distance(a: _Postorder, b: _Postorder, i: int, j: int, distance: IntArray) -> None:
    first_a, first_b = a.leftmost[i], b.leftmost[j]
    rows, columns = i - first_a + 2, j - first_b + 2
    forest = [[0] * columns for _ in range(rows)]
    for row in range(1, rows):
        forest[row][0] = row
    forest[0] = list(range(columns))
    for row in range(1, rows):
        node_a = first_a + row - 1
        for column in range(1, columns):
            node_b = first_b + column - 1
            shorter = min(forest[row - 1][column], forest[row][column - 1]) + 1
            if a.leftmost[node_a] == first_a and b.leftmost[node_b] == first_b:
                change = int(a.labels[node_a] != b.labels[node_b])
                forest[row][column] = min(shorter, forest[row - 1][column - 1] + change)
                distance[node_a, node_b] = forest[row][column]
            else:
                before = forest[a.leftmost[node_a] - first_a][b.leftmost[node_b] - first_b]
                forest[row][column] = min(shorter, before + int(distance[node_a, node_b]))


def normalised_tree_distance(answer: Expression, truth: Expression) -> float | None:
    """Edit distance divided by the size of the true tree, at most 1.

    The measure of Matsubara et al., "Rethinking symbolic regression datasets and benchmarks for
    scientific discovery" (2022), where a missing answer counts as 1. None for trees of more than 250 nodes.
    """
    if max(size(answer), size(truth)) > _MAX_TREE:
        return None
    return min(1.0, tree_distance(answer, truth) / size(truth))


LEVEL, DRAWS = 0.95, 2000


@cache
def _resamples(count: int, draws: int) -> IntArray:
    return np.random.Generator(np.random.PCG64(0)).integers(0, count, (draws, count))


def bootstrap_interval(rates: Sequence[float]) -> tuple[float, float] | None:
    """Percentile bootstrap interval, 95 %, of a mean rate over laws; None without any.

    Parameters
    ----------
    rates
        One per law: 1 or 0, or the share of its tables (seeds) on which it was recovered.

    The bounds for all or no hits would coincide, which 20 laws cannot show: there the rule of three
    gives the open side (Hanley and Lippman-Hand, JAMA 249 (1983) 1743).
    """
    count = len(rates)
    if count == 0:
        return None
    values = np.asarray(rates, dtype=np.float64)
    open_side = min(1.0, -np.log(1.0 - LEVEL) / count)
    if (values == 1.0).all():
        return float(1.0 - open_side), 1.0
    if (values == 0.0).all():
        return 0.0, float(open_side)
    means = values[_resamples(count, DRAWS)].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
