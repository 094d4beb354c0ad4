"""Conserved quantities of known equations: `H` with `dH/dt = 0` along the flow.

`H` is a sum of library terms. Its rate of change is linear in the coefficients, so conserved quantities are
null vectors of the matrix of the rates of the terms at many states. Sparse ones are found term by term, and
then checked by sympy.

References
----------
Kaiser, Kutz and Brunton, *Discovering conservation laws from data for control* (2018).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.conservation.derivatives import differentiate, product, total
from physdiffuser.dynamics.search.terms import products
from physdiffuser.expressions import ZERO, Apply, Expression, Number, Variable, evaluate
from physdiffuser.expressions.tree import add, call, mul, power, variables, walk


@dataclass(frozen=True)
class ConservationPolicy:
    """How exactly a conserved quantity must be conserved.

    The tolerances follow from double precision, the numbers of terms and states were set on the
    development systems (docs/dynamics.md).
    """

    max_terms: int = 6
    max_library: int = 90
    """Terms of a conserved quantity, and terms of the library they are chosen from."""
    states: int = 240
    jitter: float = 0.15
    """States at which the rates of the terms are compared, and their distance from visited ones as a share of
    the ranges."""
    null_rate: float = 1e-9
    """Largest rate of a conserved quantity, relative to the rates of its terms."""
    null_space: float = 1e-11
    """Singular values of null vectors, relative to the largest one."""
    small: float = 1e-7
    """Coefficients of null vectors that are 0 within rounding."""
    trivial: float = 1e-5
    """A sum whose gradient is so small beside those of its terms is constant: `x - sin(x)` of tiny values."""
    max_denominator: int = 1_000
    """Largest denominator of an exact coefficient."""
    seconds: float = 5.0
    """Most seconds of the symbolic check in a run with a time limit."""


POLICY = ConservationPolicy()


@dataclass(frozen=True, eq=False)
class Quantity:
    """A conserved quantity.

    Attributes
    ----------
    expression
        Over the variables of the flow.
    proven
        Whether sympy has shown that it is conserved.
    """

    expression: Expression
    proven: bool


def conserved_quantities(flow: Sequence[Expression], states: FloatArray, seed: int = 0) -> list[Quantity]:
    """Independent conserved quantities of an autonomous system, the simplest first.

    Parameters
    ----------
    states
        Shape (rows, coordinates): states that were visited. The rates are compared near them.
    """
    count = len(flow)
    if any(max(variables(rate), default=0) >= count for rate in flow):
        return []  # driven by the time or by inputs
    nodes = _nodes(flow, states, seed)
    if nodes.shape[0] < POLICY.states // 4:
        return []
    rates = np.stack([evaluate(rate, nodes) for rate in flow])
    terms, columns, gradients = _matrix(flow, nodes, rates)
    found: list[Quantity] = []
    directions: list[FloatArray] = []
    for chosen in _null_vectors(columns):
        if len(found) >= max(count - 1, 1):
            break
        slope = np.sum([value * gradients[one] for one, value in chosen.items()], axis=0)
        parts = [np.abs(value * gradients[one]) for one, value in chosen.items()]
        if np.abs(slope).max() <= POLICY.trivial * np.max(parts) or _depends(directions, slope):
            continue
        quantity = _quantity(flow, terms, chosen, nodes)
        if quantity is not None:
            found.append(quantity)
            directions.append(slope)
    return found


def _nodes(flow: Sequence[Expression], states: FloatArray, seed: int) -> FloatArray:
    """Random states near the visited ones at which all rates are finite."""
    states = states[np.isfinite(states).all(axis=1)]
    low, high = states.min(axis=0), states.max(axis=0)
    rng = np.random.default_rng(seed)
    near = states[rng.integers(0, states.shape[0], POLICY.states)]
    near = near + POLICY.jitter * (high - low) * rng.standard_normal(near.shape)
    # Within their ranges, so that logarithms of positive coordinates exist.
    nodes = np.where((near < low) | (near > high), rng.uniform(low, high, near.shape), near)
    usable = [np.isfinite(evaluate(rate, nodes)) for rate in flow]
    return np.asarray(nodes[np.all(usable, axis=0)], dtype=np.float64)


def conserved_terms(flow: Sequence[Expression], order: int | None = None) -> Iterator[Expression]:
    """Terms that energies, momenta and first integrals of usual systems consist of.

    Parameters
    ----------
    flow
        The equations, whose functions occur in their first integrals.
    order
        Highest degree of products; by the number of coordinates when None.
    """
    count = len(flow)
    yield from products(count, order or (4 if count <= 2 else 3 if count == 3 else 2))[1:]
    leaves = [Variable(index) for index in range(count)]
    for leaf in leaves:
        yield from (call("log", leaf), call("sin", leaf), call("cos", leaf), call("exp", leaf))
    # The functions of the equations themselves, and what their derivatives come from.
    for node in dict.fromkeys(node for rate in flow for node in walk(rate)):
        if isinstance(node, Apply) and node.operator in ("sin", "cos", "exp", "tanh") and variables(node):
            yield from (call(other, node.arguments[0]) for other in _INTEGRALS[node.operator])
    for one, other in combinations(leaves, 2):
        square = add(power(one, Number(2)), power(other, Number(2)))
        yield power(square, Number(Fraction(-1, 2)))
        yield call("log", square)
    yield from (power(leaf, Number(exponent)) for leaf in leaves for exponent in (-1, -2))


_INTEGRALS = {"sin": ("cos", "sin"), "cos": ("sin", "cos"), "exp": ("exp",), "tanh": ("tanh",)}


def _matrix(
    flow: Sequence[Expression], nodes: FloatArray, rates: FloatArray
) -> tuple[list[tuple[Expression, float]], FloatArray, list[FloatArray]]:
    """Usable terms, their rates of change, and their gradients, shape (coordinates, rows).

    Terms are scaled so that the parts of each rate have unit size.
    """
    terms: list[tuple[Expression, float]] = []
    columns: list[FloatArray] = []
    gradients: list[FloatArray] = []
    with np.errstate(all="ignore"):
        for term in dict.fromkeys(conserved_terms(flow)):
            slopes = [differentiate(term, index) for index in range(len(flow))]
            values = [evaluate(slope, nodes) for slope in slopes if slope is not None]
            if len(values) < len(flow) or not np.isfinite(values).all():
                continue
            parts = np.stack(values) * rates
            size = float(np.sqrt(np.mean(np.abs(parts).sum(axis=0) ** 2)))
            if not 0.0 < size < 1e8:
                continue
            terms.append((term, size))
            gradients.append(np.stack(values) / size)
            columns.append(parts.sum(axis=0) / size)
            if len(terms) == POLICY.max_library:
                break
    return terms, np.stack(columns, axis=1), gradients


def _null_vectors(columns: FloatArray) -> list[dict[int, float]]:
    """Sums of terms whose rate is 0, coefficients by term; few and simple terms first.

    A basis of the null space in echelon form, with pivots at the last terms of the library, is sparse: each
    vector has one term that no other has, and the simplest of the others.
    """
    _, sizes, directions = np.linalg.svd(columns, full_matrices=True)
    padded = np.zeros(columns.shape[1])
    padded[: sizes.size] = sizes
    basis = directions[padded <= POLICY.null_space * padded.max()]
    found: list[dict[int, float]] = []
    for row in _echelon(basis):
        support = np.flatnonzero(np.abs(row) > POLICY.small * np.abs(row).max())
        if support.size > POLICY.max_terms:
            continue
        first, others = int(support[0]), support[1:]
        values = np.linalg.lstsq(columns[:, others], -columns[:, first], rcond=None)[0]
        parts = columns[:, support] * np.concatenate([[1.0], values])
        if np.abs(parts.sum(axis=1)).max() <= POLICY.null_rate * max(
            np.abs(parts).max(), 1.0 if support.size == 1 else 0.0
        ):
            found.append({first: 1.0} | dict(zip(others.tolist(), values.tolist(), strict=True)))
    return sorted(found, key=lambda one: (len(one), sum(one)))


def _echelon(basis: FloatArray) -> FloatArray:
    """Reduced echelon form from the last column on."""
    rows, done = basis.copy(), 0
    for column in range(rows.shape[1] - 1, -1, -1):
        if done == rows.shape[0]:
            break
        pivot = done + int(np.argmax(np.abs(rows[done:, column])))
        if abs(rows[pivot, column]) < 1e-6:
            continue
        rows[[done, pivot]] = rows[[pivot, done]]
        rows[done] /= rows[done, column]
        others = np.arange(rows.shape[0]) != done
        rows[others] -= np.outer(rows[others, column], rows[done])
        done += 1
    return rows


def _depends(directions: Sequence[FloatArray], slope: FloatArray) -> bool:
    """Whether a gradient lies in the span of others at (nearly) every state."""
    if not directions:
        return False
    stacked = np.stack([*directions, slope], axis=2).transpose(1, 0, 2)  # rows, coordinates, quantities
    scaled = stacked / np.maximum(np.linalg.norm(stacked, axis=1, keepdims=True), 1e-300)
    smallest = np.linalg.svd(scaled, compute_uv=False)[:, -1]
    if scaled.shape[2] > scaled.shape[1]:
        return True
    return bool(np.median(smallest) < 1e-6)


def _quantity(
    flow: Sequence[Expression],
    terms: Sequence[tuple[Expression, float]],
    chosen: dict[int, float],
    nodes: FloatArray,
) -> Quantity | None:
    """The sum as a formula, checked; None if it is not conserved after all."""
    fitted = any(isinstance(n, Number) and not n.exact for rate in flow for n in walk(rate))
    expression: Expression = ZERO
    for term, value in normalised(
        [(terms[place][0], value / terms[place][1]) for place, value in chosen.items()]
    ):
        expression = total(expression, product(_number(value, fitted), term))
    if fitted:
        return Quantity(expression, False)
    verdict = _proof(flow, expression, nodes)
    return None if verdict == "different" else Quantity(expression, verdict == "verified")


def normalised(parts: list[tuple[Expression, float]]) -> list[tuple[Expression, float]]:
    """Scaled so that a squared coordinate has the factor 1/2, as in energies, or the first term 1."""
    squares = [
        value
        for term, value in parts
        if isinstance(term, Apply) and term.operator == "pow" and term.arguments[1] == Number(2)
    ]
    scale = 0.5 / squares[-1] if squares and len(parts) > 1 else 1.0 / parts[0][1]
    return [(term, value * scale) for term, value in parts]


def _number(value: float, fitted: bool) -> Number:
    if not fitted:
        near = Fraction(value).limit_denominator(POLICY.max_denominator)
        if near and abs(float(near) - value) <= 1e-8 * abs(value):
            return Number(int(near) if near.denominator == 1 else near)
    return Number(float(f"{value:.6g}"))


def _proof(flow: Sequence[Expression], expression: Expression, nodes: FloatArray) -> str:
    """`verified`, `different` or `unknown`: sympy on one part of the rate and minus the others."""
    from physdiffuser.verification.equivalence import equivalent
    from physdiffuser.verification.patience import allowed

    parts = []
    for index, rate in enumerate(flow):
        slope = differentiate(expression, index)
        if slope is None:
            return "unknown"
        if slope != ZERO and rate != ZERO:
            parts.append(product(slope, rate))
    if len(parts) < 2:
        return "unknown"
    rest: Expression = ZERO
    for part in parts[1:]:
        rest = total(rest, part)
    ranges = list(zip(nodes.min(axis=0).tolist(), nodes.max(axis=0).tolist(), strict=True))
    return equivalent(parts[0], mul(Number(-1), rest), ranges, seconds=allowed(POLICY.seconds))


def drift(expression: Expression, runs: Sequence[FloatArray]) -> float:
    """How much a quantity varies along runs, relative to the size of its terms.

    Parameters
    ----------
    runs
        States of each run, shape (points, coordinates).
    """
    from physdiffuser.expressions.tree import Apply as Node

    def summands(node: Expression) -> list[Expression]:
        if isinstance(node, Node) and node.operator == "add":
            return [*summands(node.arguments[0]), *summands(node.arguments[1])]
        return [node]

    worst = 0.0
    with np.errstate(all="ignore"):
        for states in runs:
            known = states[np.isfinite(states).all(axis=1)]
            if known.shape[0] < 2:
                continue
            values = evaluate(expression, known)
            terms = [evaluate(term, known) for term in summands(expression)]
            size = max(float(np.ptp(term)) for term in terms) or 1.0
            if len(terms) == 1:
                size = max(float(np.abs(values).max()), 1e-300)
            worst = max(worst, float(np.ptp(values)) / size)
    return worst
