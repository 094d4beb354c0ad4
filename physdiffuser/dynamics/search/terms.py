"""Sparse regression of the weak form on a library of terms.

Subsets grow term by term from the best of the size below (a beam), which no threshold has to be set for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.search.sparse import BEAM, extended, pairs
from physdiffuser.dynamics.search.weak import WeakForm
from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import add, call, div, mul, power, sub, substitute, variables, walk

MAX_TERMS = 6
_KEPT = 6
"""Subsets of each size that are kept."""
_MAX_LIBRARY = 300
RADIAL = (Fraction(-3, 2), Fraction(-1), Fraction(-1, 2), Fraction(1, 2))
"""Powers of the squared distance by which a coordinate is multiplied."""


@dataclass(frozen=True)
class TermSum:
    """A sum of terms with a parameter in front of each, and the values that fit best."""

    terms: tuple[Expression, ...]
    skeleton: Expression
    parameters: FloatArray
    loss: float


def library(columns: int, states: int, measured: int | None = None) -> list[Expression]:
    """Terms over the first `states` variables (products and functions) and the others (as they are).

    Parameters
    ----------
    measured
        How many of these are measured; the others are derivatives, which have other units. All when None.
    """
    leaves = [Variable(index) for index in range(columns)]
    order = 5 if columns == 1 else 4 if columns == 2 else 3 if columns <= 4 else 2
    terms = products(columns, order)
    periodic: list[Expression] = [
        f for leaf in leaves[:states] for f in (call("sin", leaf), call("cos", leaf))
    ]
    terms += periodic
    terms += [mul(leaf, one) for leaf in leaves for one in periodic]
    terms += [mul(a, b) for a, b in combinations_with_replacement(periodic, 2)]
    measured = states if measured is None else measured
    for a, b in combinations(leaves[:states], 2):
        terms += [div(a, b), div(b, a)]
        if a.index < measured <= b.index:
            continue  # a position is not added to a velocity
        terms.append(sub(a, b))  # what couples two bodies or boxes has one constant
        terms += [
            call("sin", sub(a, b)),
            call("sin", add(a, b)),
            call("cos", sub(a, b)),
            call("cos", add(a, b)),
        ]
        # Central forces, and friction that grows with the speed in a plane.
        square = add(power(a, Number(2)), power(b, Number(2)))
        terms += [mul(one, power(square, Number(half))) for one in (a, b) for half in RADIAL]
    for leaf in leaves[:states]:
        terms += [mul(leaf, call("abs", leaf)), call("exp", leaf), div(ONE, leaf)]
        terms += [call("exp", mul(Number(-1), leaf)), div(ONE, power(leaf, Number(2))), call("sqrt", leaf)]
        terms += [call("log", leaf), mul(leaf, call("log", leaf)), call("tanh", leaf)]
        # Saturation and inhibition, in units of their half.
        for part in (leaf, power(leaf, Number(2))):
            terms += [div(part, add(ONE, part)), div(ONE, add(ONE, part))]
    return terms[:_MAX_LIBRARY]


def products(columns: int, order: int) -> list[Expression]:
    """1 and all products of at most `order` variables."""
    leaves: list[Expression] = [Variable(index) for index in range(columns)]
    terms: list[Expression] = [ONE]
    for degree in range(1, order + 1):
        terms += [_product(chosen) for chosen in combinations_with_replacement(leaves, degree)]
    return terms


def _product(factors: tuple[Expression, ...]) -> Expression:
    """`x**2*y` of (x, x, y)."""
    tree: Expression | None = None
    for factor in dict.fromkeys(factors):
        count = factors.count(factor)
        part = factor if count == 1 else power(factor, Number(count))
        tree = part if tree is None else mul(tree, part)
    assert tree is not None
    return tree


def sparse_sums(weak: WeakForm, state: int, terms: list[Expression], most: int = MAX_TERMS) -> list[TermSum]:
    """The best sums of one to `most` terms for the rate of one state."""
    with np.errstate(all="ignore"):
        columns = np.column_stack([weak.mean(evaluate(term, weak.nodes)) for term in terms])
    columns = columns / weak.errors[:, [state]]
    target = weak.rates[:, state] / weak.errors[:, state]
    length = np.sqrt(np.square(columns).sum(axis=0))
    usable = np.isfinite(length) & (length > 0) & np.isfinite(columns).all(axis=0)
    places = np.flatnonzero(usable)
    unit = columns[:, places] / length[places]
    subsets: dict[frozenset[int], tuple[int, ...]] = {}
    beam: list[tuple[int, ...]] = [()]
    for size in range(1, min(most, places.size, weak.windows - 2) + 1):
        scored = pairs(unit, target) if size == 2 else extended(unit, target, beam)
        beam = scored[:BEAM]
        for subset in scored[:_KEPT]:
            # A term that came in early may be needless beside the later ones.
            for fewer in (subset, *(subset[:at] + subset[at + 1 :] for at in range(len(subset)))):
                subsets.setdefault(frozenset(fewer), fewer)
    sums: list[TermSum] = []
    for subset in subsets.values():
        if not subset:
            continue
        design = unit[:, subset]
        values = np.linalg.lstsq(design, target, rcond=None)[0]
        # Not what the growing basis has left: differences of large squares are no small number.
        loss = float(np.mean((design @ values - target) ** 2))
        chosen = [terms[places[place]] for place in subset]
        sums.append(TermSum(tuple(chosen), term_sum(chosen), values / length[places[list(subset)]], loss))
    return sums


def term_sum(terms: Sequence[Expression]) -> Expression:
    """`c1*a + c2*b + ...`, with parameters for the coefficients."""
    tree: Expression | None = None
    for index, term in enumerate(terms):
        part: Expression = Parameter(index) if term == ONE else mul(Parameter(index), term)
        tree = part if tree is None else add(tree, part)
    assert tree is not None
    return tree


def shorter_sums(skeleton: Expression, parameters: FloatArray) -> Iterator[tuple[Expression, FloatArray]]:
    """The formula without one term of its sums, for each of these, with the parameters that are left."""
    for tree in dict.fromkeys(_without_a_term(skeleton)):
        used = sorted({node.index for node in walk(tree) if isinstance(node, Parameter)})
        yield _renamed(tree, {old: new for new, old in enumerate(used)}), parameters[used]


def _without_a_term(node: Expression) -> Iterator[Expression]:
    if not isinstance(node, Apply):
        return
    if node.operator in ("add", "sub"):
        left, right = node.arguments
        if not _is_sum(right):
            yield left
        if not _is_sum(left):
            yield right if node.operator == "add" else mul(Number(-1), right)
    for place, argument in enumerate(node.arguments):
        for shorter in _without_a_term(argument):
            yield replace(node, arguments=(*node.arguments[:place], shorter, *node.arguments[place + 1 :]))


def with_signed_squares(skeleton: Expression) -> Iterator[Expression]:
    """The formula with `x*abs(x)` in place of a square `x**2`, or the other way round, for each variable.

    The two are the same while a state keeps its sign, as the drag on a body that does not turn back.
    """
    nodes = set(walk(skeleton))
    for index in sorted(variables(skeleton)):
        leaf = Variable(index)
        square, signed = power(leaf, Number(2)), mul(leaf, call("abs", leaf))
        for old, new in ((square, signed), (signed, square)):
            if old in nodes:
                yield _exchanged(skeleton, old, new)


def _exchanged(tree: Expression, old: Expression, new: Expression) -> Expression:
    return substitute(tree, lambda node: new if node == old else None)


def _is_sum(node: Expression) -> bool:
    return isinstance(node, Apply) and node.operator in ("add", "sub")


def summands(node: Expression) -> list[Expression]:
    """Terms of a sum; the formula itself where it is none."""
    if isinstance(node, Apply) and node.operator == "add":
        return [part for argument in node.arguments for part in summands(argument)]
    if isinstance(node, Apply) and node.operator == "sub":
        left, right = node.arguments
        return [*summands(left), *(mul(Number(-1), part) for part in summands(right))]
    return [node]


def _renamed(tree: Expression, numbers: dict[int, int]) -> Expression:
    def renamed(node: Expression) -> Expression | None:
        return Parameter(numbers[node.index]) if isinstance(node, Parameter) else None

    return substitute(tree, renamed)
