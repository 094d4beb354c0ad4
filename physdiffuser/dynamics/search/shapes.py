"""Terms with a constant inside, such as `y*x/(k + x)`, `exp(-k*x)` or `cos(w*t)`.

Each function family of one argument is tried on every column, at the points of its grid, times products of
the columns, beside the best sums of products. The most promising constants are refined in the weak form;
the refined term then joins the library of sparse sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.schedule import Stop, never
from physdiffuser.dynamics.search.terms import products, sparse_sums
from physdiffuser.dynamics.search.weak import WeakForm
from physdiffuser.expressions import ONE, Expression, Parameter, Variable, evaluate
from physdiffuser.expressions.tree import add, bind, call, free_constants, mul, substitute, with_columns


@dataclass(frozen=True)
class ShapePolicy:
    """Functions with a constant inside that are tried beside sums of products.

    Set on the development systems (docs/dynamics.md).
    """

    max_base: int = 3
    """Most terms of the sum of products beside which a function is tried."""
    refined: int = 10
    linear: int = 4
    """Functions whose constants are refined for each state, and how many of them stand beside all linear
    terms."""
    joined: int = 3
    """Refined functions that join the library of sparse sums."""
    periods: float = 24.0
    frequencies: int = 160
    """Highest frequency of the time, in periods over the longest run, and frequencies tried up to it."""
    block: int = 4_000
    """Terms that are compared at once, so that memory stays small."""


POLICY = ShapePolicy()


@dataclass(frozen=True, eq=False)
class Term:
    """A function with constants inside, which are parameters from 0 on, and their values."""

    tree: Expression
    values: FloatArray


@dataclass(frozen=True, eq=False)
class FittedSum:
    """A right-hand side: skeleton, parameters and mean squared residual in the weak form."""

    skeleton: Expression
    parameters: FloatArray
    loss: float


def shaped_sums(
    weak: WeakForm, state: int, columns: Sequence[int], time: int | None, stop: Stop = never
) -> Iterator[FittedSum]:
    """Sums of products and of one function with constants inside, for the rate of one state.

    Parameters
    ----------
    columns
        Positions of the variables that may occur.
    time
        Position of the time, if it may occur.
    """
    order = 3 if len(columns) <= 3 else 2
    usual = [with_columns(term, columns) for term in products(len(columns), order)]
    bases = _bases(weak, state, usual)
    refined: list[tuple[float, Term]] = []
    for base, term in _promising(weak, state, _tries(weak, state, columns, time, stop), bases):
        skeleton, start = _joined([*base], term)
        parameters, loss = weak.fit(skeleton, start, state)
        if not math.isfinite(loss):
            continue
        yield FittedSum(skeleton, parameters, loss)
        inner = parameters[parameters.size - term.values.size :]
        size = 0.5 * weak.windows * math.log(max(loss, 1e-30)) + 4.0 * parameters.size
        refined.append((size, Term(term.tree, inner)))
    refined.sort(key=lambda pair: pair[0])
    for _, term in refined[: POLICY.joined]:
        yield from _reselected(weak, state, usual, term)


def _bases(weak: WeakForm, state: int, usual: list[Expression]) -> list[tuple[Expression, ...]]:
    """All linear terms; nothing; and the best sums of up to `POLICY.max_base` products."""
    linear = tuple(term for term in usual if isinstance(term, Variable))
    return [linear, (), *(one.terms for one in sparse_sums(weak, state, usual, most=POLICY.max_base))]


def _promising(
    weak: WeakForm,
    state: int,
    tries: Iterator[tuple[list[Term], FloatArray]],
    bases: Sequence[tuple[Expression, ...]],
) -> list[tuple[tuple[Expression, ...], Term]]:
    """Pairs of a base and a function whose residual is smallest for their number of terms."""
    target = weak.rates[:, state] / weak.errors[:, state]
    frames = [_basis(weak, state, base) for base in bases]
    rests = [target - frame @ (frame.T @ target) for frame in frames]
    every: list[tuple[float, int, Term]] = []
    for terms, values in tries:
        # Their size does not matter, and the square of a large exponential is no number.
        heights = np.abs(values).max(axis=0)
        values = values / np.where(heights > 0, heights, 1.0)
        for place, (frame, rest) in enumerate(zip(frames, rests, strict=True)):
            apart = values - frame @ (frame.T @ values)
            size = np.square(apart).sum(axis=0)
            whole = np.square(values).sum(axis=0)
            usable = size > 1e-10 * whole
            gain = np.where(usable, (apart.T @ rest) ** 2 / np.where(usable, size, 1.0), 0.0)
            left = np.maximum(float(rest @ rest) - gain, 1e-12 * float(target @ target))
            best = np.argsort(left, kind="stable")[: POLICY.refined]
            cost = 4.0 * frame.shape[1]
            every += [
                (0.5 * weak.windows * math.log(left[one] / weak.windows) + cost, place, terms[one])
                for one in best
            ]
    every.sort(key=lambda row: row[0])
    # Without the function no sum may show which linear terms there are, so all of them are always tried.
    first = [row for row in every if row[1] == 0][: POLICY.linear]
    every = [*first, *(row for row in every if row not in first)]
    chosen: list[tuple[tuple[Expression, ...], Term]] = []
    seen: set[tuple[int, Expression]] = set()
    for _, place, term in every:
        key = (place, term.tree)
        if key not in seen:
            seen.add(key)
            chosen.append((bases[place], term))
        if len(chosen) == POLICY.refined:
            break
    return chosen


def _basis(weak: WeakForm, state: int, base: Sequence[Expression]) -> FloatArray:
    """Orthonormal columns that span the terms in the weak form, shape (windows, terms)."""
    if not base:
        return np.zeros((weak.windows, 0))
    values = np.column_stack([weak.mean(evaluate(term, weak.nodes)) for term in base])
    return np.asarray(np.linalg.qr(values / weak.errors[:, [state]])[0], dtype=np.float64)


def _tries(
    weak: WeakForm, state: int, columns: Sequence[int], time: int | None, stop: Stop
) -> Iterator[tuple[list[Term], FloatArray]]:
    """Functions times products of columns, in blocks, with their values in the weak form."""
    factors = [with_columns(term, columns) for term in products(len(columns), 2 if len(columns) <= 4 else 1)]
    heights = [evaluate(factor, weak.nodes) for factor in factors]
    for column in columns:
        blocks = list(_functions(weak, column, time))
        values = [evaluate(bind(block.tree, list(block.values)), weak.nodes) for block in blocks]
        for factor, height in zip(factors, heights, strict=True):
            if stop():
                return
            terms, stacked = [], []
            for block, value in zip(blocks, values, strict=True):
                shaped = value * height
                if np.isfinite(shaped).all() and float(np.ptp(shaped)) > 0:
                    terms.append(Term(block.tree if factor == ONE else mul(factor, block.tree), block.values))
                    stacked.append(shaped)
            for begin in range(0, len(terms), POLICY.block):
                chosen = np.column_stack(stacked[begin : begin + POLICY.block])
                yield terms[begin : begin + POLICY.block], weak.mean(chosen) / weak.errors[:, [state]]


def _functions(weak: WeakForm, column: int, time: int | None) -> Iterator[Term]:
    """Functions of one column with constants inside."""
    from physdiffuser.functions.blocks import with_constants

    values = weak.nodes[:, column]
    if column == time:
        span = float(np.ptp(values)) or 1.0
        for frequency in np.linspace(0.5, POLICY.periods, POLICY.frequencies) * 2.0 * np.pi / span:
            inside = mul(Parameter(0), Variable(column))
            yield Term(call("sin", inside), np.array([frequency]))
            yield Term(call("cos", inside), np.array([frequency]))
            for phase in (math.pi / 4, -math.pi / 4):
                yield Term(call("cos", add(inside, Parameter(1))), np.array([frequency, phase]))
    for block in with_constants(column, values):
        tree, constants = free_constants(block)
        if constants:
            yield Term(tree, np.array(constants))


def _joined(base: Sequence[Expression], term: Term) -> tuple[Expression, FloatArray]:
    """The sum of the base and the function, with a factor each, the constants inside last."""
    count = len(base) + 1

    def behind(node: Expression) -> Expression | None:
        return Parameter(node.index + count) if isinstance(node, Parameter) else None

    total: Expression = mul(Parameter(0), substitute(term.tree, behind))
    for place, part in enumerate(base, 1):
        total = add(total, Parameter(place) if part == ONE else mul(Parameter(place), part))
    return total, np.concatenate([np.ones(count), term.values])


def _reselected(weak: WeakForm, state: int, usual: list[Expression], term: Term) -> Iterator[FittedSum]:
    """Sparse sums of products and of the function, which may also stand times a column."""
    bound = bind(term.tree, list(term.values))
    for one in sparse_sums(weak, state, [bound, *usual], most=5):
        if bound not in one.terms:
            continue
        base = [part for part in one.terms if part != bound]
        skeleton, start = _joined(base, term)
        parameters, loss = weak.fit(skeleton, start, state, iterations=12)
        if math.isfinite(loss):
            yield FittedSum(skeleton, parameters, loss)
