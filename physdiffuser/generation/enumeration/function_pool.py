"""Functions of single features: with constants inside, on a grid of these, and without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, Number, Parameter, evaluate
from physdiffuser.expressions.tree import call, div, mul, power, substitute, variables
from physdiffuser.functions.table import families_for
from physdiffuser.generation.enumeration.context import Context

_COMMON = ("sin", "cos", "tan", "exp", "log", "sqrt")
_UNARY = (*_COMMON, "sinh", "cosh", "tanh", "atan")
# Turning points of a function among the rows; faster waves are distinct from chance in many rows only.
MOST_TURNS = 10
# Values that vary by less than this share of the largest are constant in single precision.
_FLAT = 1e-4


@dataclass(frozen=True)
class PoolTerm:
    """A function: a tree with parameters from index 0 on, and a start for each.

    Attributes
    ----------
    form
        Name or tree, and argument; the same for terms that differ in the constants alone.
    """

    form: tuple[object, ...]
    tree: Expression
    starts: tuple[float, ...]

    @property
    def place(self) -> tuple[object, ...]:
        """Factor and argument; the same for terms that differ in the kind of function."""
        return tuple(part for part in self.form if not isinstance(part, str))

    def law(self, first: int) -> Expression:
        """The tree with parameters from an index on."""

        def move(node: Expression) -> Expression | None:
            return Parameter(node.index + first) if isinstance(node, Parameter) else None

        return substitute(self.tree, move) if self.starts else self.tree


@dataclass(frozen=True)
class FunctionPool:
    """Terms, and their values, shape (terms, probes), each with a largest size of 1."""

    terms: tuple[PoolTerm, ...]
    values: FloatArray

    def __len__(self) -> int:
        return len(self.terms)

    def joined(self, other: FunctionPool) -> FunctionPool:
        """The terms of both."""
        return FunctionPool((*self.terms, *other.terms), np.concatenate([self.values, other.values]))

    def first(self, most: int) -> FunctionPool:
        """So many of the terms."""
        return FunctionPool(self.terms[:most], self.values[:most])


def pool_of(
    terms: Sequence[PoolTerm], values: Sequence[FloatArray] | FloatArray, probes: int
) -> FunctionPool:
    """The terms that are finite and vary on so many probes."""
    table = np.reshape(np.asarray(values, dtype=float), (len(terms), probes))
    with np.errstate(all="ignore"):
        size = np.abs(table).max(axis=1, initial=0.0)
        kept = np.isfinite(size) & (size > 0) & (size < 1e140) & (np.ptp(table, axis=1) > _FLAT * size)
    chosen = tuple(terms[int(place)] for place in np.flatnonzero(kept))
    return FunctionPool(chosen, table[kept] / size[kept, None])


def of_trees(trees: Sequence[Expression], inputs: FloatArray) -> FunctionPool:
    """Functions without parameters, by their values on inputs of shape (probes, columns)."""
    values = [evaluate(tree, inputs) for tree in trees]
    return pool_of([PoolTerm((tree,), tree, ()) for tree in trees], values, len(inputs))


def plain_functions(context: Context, reduction: Reduction, common: bool = False) -> FunctionPool:
    """Functions of single features without constants, and their reciprocals; with `common` only a few."""
    operators = context.problem.operators
    trees: list[Expression] = []
    for feature in reduction.features:
        square = power(feature, Number(2))
        of_one: list[Expression] = [feature]
        of_one += [call(name, feature) for name in (_COMMON if common else _UNARY) if name in operators]
        if not common:
            of_one += [square, power(feature, Number(3))]
            of_one += [call(name, square) for name in ("sin", "cos") if name in operators]
        trees += of_one
        if "div" in operators:
            trees += [div(Number(1), tree) for tree in of_one]
    return of_trees(trees, context.problem.inputs[context.screening_rows])


def products_of_two(pool: FunctionPool) -> FunctionPool:
    """Products of two of the terms, of different columns."""
    terms, values = [], []
    for left in range(len(pool)):
        for right in range(left + 1, len(pool)):
            one, other = pool.terms[left], pool.terms[right]
            if variables(one.tree) == variables(other.tree):
                continue
            tree = mul(one.tree, other.tree)
            terms.append(PoolTerm((*one.form, *other.form), tree, ()))
            values.append(pool.values[left] * pool.values[right])
    return pool_of(terms, values, pool.values.shape[1])


def times_factors(pool: FunctionPool, factors: FunctionPool, most: int) -> FunctionPool:
    """Products of a term and a factor that have no column in common, of the first factors first.

    Parameters
    ----------
    most
        Factors of which the products would be more are left out.
    """
    of_terms = [variables(term.tree) for term in pool.terms]
    terms: list[PoolTerm] = []
    values: list[FloatArray] = []
    for factor, value in zip(factors.terms, factors.values, strict=True):
        inside = variables(factor.tree)
        apart = [place for place, of in enumerate(of_terms) if not inside & of]
        if len(terms) + len(apart) > most:
            break
        for place in apart:
            term = pool.terms[place]
            form = (factor.tree, *term.form)
            terms.append(PoolTerm(form, mul(factor.tree, term.tree), term.starts))
        values.append(pool.values[apart] * value)
    return pool_of(terms, np.concatenate(values) if values else [], pool.values.shape[1])


def functions_with_constants(
    context: Context, arguments: Sequence[Expression], most: int | None = None, turns: int | None = None
) -> FunctionPool:
    """The families of enumeration on each of some arguments.

    Parameters
    ----------
    most
        Points of the grid of a family on one argument, other than those of waves, of which every n-th is
        left out until no more are left.
    turns
        Turning points that a function may have among the rows.
    """
    terms: list[PoolTerm] = []
    values: list[FloatArray] = []
    inputs = context.problem.inputs[context.screening_rows]
    for family in families_for("enumeration"):
        if family.spec.arity != 1 or not family.needs <= context.problem.operators:
            continue
        for argument in arguments:
            with np.errstate(all="ignore"):
                u = evaluate(argument, inputs)
                if not (np.isfinite(u).all() and np.ptp(u) > 0):
                    continue
                grid = family.tries("enumeration", u)
                made = family.values([u], grid)
                if turns is not None:
                    slow = _turns(made[:, np.argsort(u)]) <= turns
                    grid, made = grid[slow], made[slow]
            step = 1 if most is None or "sin" in family.needs else max(1, round(len(grid) / most))
            tree = family.build((argument,), [Parameter(place) for place in range(family.constants)])
            terms += [PoolTerm((family.name, argument), tree, tuple(map(float, one))) for one in grid[::step]]
            values += list(made[::step])
    return pool_of(terms, values, len(inputs))


def _turns(values: FloatArray) -> IntArray:
    """How often functions turn from row to row, shape (functions,)."""
    rises = np.sign(np.diff(values, axis=1))
    return np.asarray((rises[:, 1:] * rises[:, :-1] < 0).sum(axis=1))
