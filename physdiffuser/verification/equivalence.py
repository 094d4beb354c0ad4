"""Whether two formulas are the same law.

Canonical forms are compared first, then values at random points to 60 digits, which prove most
differences; what is left is for sympy, in a process that is killed when time is up. *verified* is
said only of what was shown symbolically, *different* only of what differs at a point.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from physdiffuser.expressions import (
    PI,
    Apply,
    Expression,
    Number,
    Parameter,
    Symbol,
    Variable,
    to_prefix,
)
from physdiffuser.expressions.definitions import expanded
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import free_constants, substitute, walk
from physdiffuser.verification.constants import (
    Freedom,
    Polish,
    equals,
    exact_floats,
    has_floats,
    polish,
    recognise,
)
from physdiffuser.verification.numeric import Range, sample_outcomes
from physdiffuser.verification.worker import SymbolicWorker, shared_worker

Rule = Literal["strict", "srbench"]
Verdict = Literal["verified", "different", "unknown"]

# A fitted constant this close to the exact one, relatively, counts as equal to it.
STRICT_TOLERANCE = 1e-9
_POINTS = 12
_MIN_POINTS = 4


def equivalent(
    left: Expression,
    right: Expression,
    ranges: Sequence[Range],
    *,
    rule: Rule = "strict",
    seconds: float = 10.0,
    worker: SymbolicWorker | None = None,
) -> Verdict:
    """Whether two formulas are equal on the ranges of their variables.

    Parameters
    ----------
    left
        The formula to judge. Its floats are fitted constants: they may be off by 1e-9 relative
        (`strict`), or in the third decimal (`srbench`).
    right
        The reference. Where it has no real value nothing is compared.
    ranges
        Lowest and highest value of each variable; `abs` and roots of squares follow from them.
    rule
        `strict`: equal. `srbench`: `left - right` or `left / right` is a constant, after rounding
        constants to three decimals (La Cava et al. 2021, "Contemporary symbolic regression
        methods and their relative performance").
    seconds
        Hard limit of the symbolic part.
    worker
        The process to use; one is shared by default.
    """
    deadline = time.monotonic() + seconds
    ranges = [(float(low), float(high)) for low, high in ranges]
    left, right, ranges = _named_as_variables(expanded(left), expanded(right), ranges)
    worker = worker or shared_worker()
    verdict = _strict(left, right, ranges, deadline, worker)
    if rule == "strict" or verdict == "verified":
        return verdict
    loose = [_loose(left, right, ranges, freedom, deadline, worker) for freedom in ("offset", "factor")]
    if "verified" in loose:
        return "verified"
    return "unknown" if "unknown" in (verdict, *loose) else "different"


def _named_as_variables(
    left: Expression, right: Expression, ranges: list[Range]
) -> tuple[Expression, Expression, list[Range]]:
    """Named constants that both formulas have become variables, the others plain numbers."""
    names_left, names_right = (
        {node for node in walk(side) if isinstance(node, Symbol)} for side in (left, right)
    )
    shared = sorted((names_left & names_right) - {PI}, key=lambda node: node.name)
    places = {symbol: Variable(len(ranges) + place) for place, symbol in enumerate(shared)}
    if any(isinstance(node, Parameter) for side in (left, right) for node in walk(side)):
        raise ValueError("formulas to compare must have values for all parameters; use tree.bind first")

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Symbol) and node != PI:
            return places.get(node) or Number(_plain(node.value))
        return None

    around = [
        (min(0.9 * node.value, 1.1 * node.value), max(0.9 * node.value, 1.1 * node.value)) for node in shared
    ]
    return substitute(left, replace), substitute(right, replace), [*ranges, *around]


def _plain(value: float) -> int | Fraction:
    fraction = Fraction(value)
    return int(fraction) if fraction.denominator == 1 else fraction


def _strict(
    left: Expression, right: Expression, ranges: list[Range], deadline: float, worker: SymbolicWorker
) -> Verdict:
    if has_floats(left):
        return _fitted(left, right, ranges, deadline, worker)
    if has_floats(right):
        return _fitted(right, left, ranges, deadline, worker)
    return _exact(left, right, ranges, deadline, worker)


def _exact(
    left: Expression, right: Expression, ranges: list[Range], deadline: float, worker: SymbolicWorker
) -> Verdict:
    """Both formulas without fitted constants."""
    agreed, differed = sample_outcomes(left, right, ranges, wanted=_POINTS)
    if differed:
        return "different"
    if agreed < _MIN_POINTS:
        # Never verified on the strength of rules alone: the formulas may have no values at all.
        return "unknown"
    if canonical(left, ranges=ranges) == canonical(right, ranges=ranges):
        return "verified"
    answer = worker.run(
        {"kind": "zero", "left": to_prefix(left), "right": to_prefix(right), "ranges": ranges},
        max(0.0, deadline - time.monotonic()),
    )
    return "verified" if answer is not None and answer.get("zero") is True else "unknown"


def _fitted(
    left: Expression, right: Expression, ranges: list[Range], deadline: float, worker: SymbolicWorker
) -> Verdict:
    """The left formula has fitted constants: with exact ones nearby it must be the right one."""
    skeleton, start = free_constants(canonical(left, ranges=ranges))
    if not start:
        return _strict_again(skeleton, right, ranges, deadline, worker)
    twin, values = free_constants(canonical(right, ranges=ranges))
    if twin == skeleton and all(_close(a, b) for a, b in zip(start, values, strict=True)):
        return "verified"
    reference = exact_floats(right)
    found = polish(skeleton, start, reference, ranges)
    if found is None:
        return "unknown"
    if not found.met:
        return "different" if found.within > 1.0 else "unknown"
    if not all(_close(float(new), old) for new, old in zip(found.constants, start, strict=True)):
        return "different"
    exact = put_exact(skeleton, found)
    return "unknown" if exact is None else _exact(exact, reference, ranges, deadline, worker)


def _strict_again(
    left: Expression, right: Expression, ranges: list[Range], deadline: float, worker: SymbolicWorker
) -> Verdict:
    """All fitted constants of the left formula were whole numbers or cancelled."""
    if has_floats(right):
        return _fitted(right, left, ranges, deadline, worker)
    return _exact(left, right, ranges, deadline, worker)


def _close(left: float, right: float) -> bool:
    return abs(left - right) <= STRICT_TOLERANCE * max(abs(left), abs(right))


def put_exact(skeleton: Expression, found: Polish, written: Sequence[Expression] = ()) -> Expression | None:
    """The skeleton with exact forms of the constants, or None if one is not recognised.

    Parameters
    ----------
    written
        Products of named constants that may be among them.
    """
    values: list[Expression] = []
    for constant, size in zip(found.constants, found.sizes, strict=True):
        value = recognise(constant, size)
        if value is None:
            value = next((tree for tree in written if equals(tree, constant)), None)
        if value is None:
            return None
        values.append(value)

    def replace(node: Expression) -> Expression | None:
        return values[node.index] if isinstance(node, Parameter) else None

    return substitute(skeleton, replace)


def _loose(
    left: Expression,
    right: Expression,
    ranges: list[Range],
    freedom: Freedom,
    deadline: float,
    worker: SymbolicWorker,
) -> Verdict:
    """`left + constant` or `left * constant` is the right formula, constants rounded to 3 decimals."""
    skeleton, start = free_constants(canonical(_released(left), ranges=ranges))
    reference = exact_floats(right)
    found = polish(skeleton, start, reference, ranges, freedom=freedom)
    if found is None:
        return "unknown"
    if not found.met:
        return "different"
    if not all(_same_decimals(float(new), old) for new, old in zip(found.constants, start, strict=True)):
        return "different"
    exact = put_exact(skeleton, found)
    extra = recognise(found.extra)
    if exact is None or extra is None:
        return "unknown"
    combined = Apply("add" if freedom == "offset" else "mul", (exact, extra))
    return _exact(combined, reference, ranges, deadline, worker)


def _released(expression: Expression) -> Expression:
    """Decimals such as 0.159 are measured constants under the rule that rounds them."""

    def replace(node: Expression) -> Expression | None:
        if isinstance(node, Number) and isinstance(node.value, Fraction):
            denominator = node.value.denominator
            if denominator > 12 and 10_000 % denominator == 0:
                return Number(float(node.value))
        return None

    return substitute(expression, replace)


def _same_decimals(left: float, right: float) -> bool:
    return round(left, 3) == round(right, 3) or abs(left - right) <= 5e-4
