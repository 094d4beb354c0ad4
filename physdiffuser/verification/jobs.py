"""What the worker process does: the symbolic jobs, from prefix tokens to prefix tokens."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import sympy

from physdiffuser.expressions import Expression, Variable, from_prefix, to_prefix
from physdiffuser.expressions.sympy_bridge import from_sympy, to_sympy
from physdiffuser.expressions.tree import walk
from physdiffuser.verification.identities import DIGITS, is_zero
from physdiffuser.verification.numeric import Undefined, random_point, value_at

Job = Mapping[str, Any]


def answer(job: Job) -> dict[str, Any]:
    """The reply to a job; an error inside it is a reply too."""
    run = _JOBS.get(str(job.get("kind")))
    if run is None:
        return {"error": f"unknown job {job.get('kind')!r}"}
    try:
        return run(job)
    except Exception as error:  # whatever sympy raises means: not decided
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def _zero(job: Job) -> dict[str, Any]:
    """Whether `left - right` can be shown to be zero on the ranges."""
    left, right = _read(job, "left"), _read(job, "right")
    ranges = [(float(low), float(high)) for low, high in job["ranges"]]
    positive = {index for index, (low, _) in enumerate(ranges) if low >= 0.0}
    difference = to_sympy(left, positive=positive) - to_sympy(right, positive=positive)
    if difference == 0:
        return {"zero": True}
    with mpmath.workdps(DIGITS):
        points = _common_points(left, right, ranges, int(job.get("seed", 0)))
        samples = [
            {symbol: point[int(symbol.name[1:]) - 1] for symbol in difference.free_symbols}
            for point in points
        ]
        if points and is_zero(difference, samples):
            return {"zero": True}
        # Known to be equal at the samples, so of one sign there: equal squares are enough, and
        # squaring takes off an outer root.
        squares = to_sympy(left, positive=positive) ** 2 - to_sympy(right, positive=positive) ** 2
        if points and is_zero(squares, samples):
            return {"zero": True}
    for attempt in (sympy.simplify, lambda value: sympy.simplify(sympy.expand_log(value, force=True))):
        if attempt(difference) == 0:
            return {"zero": True}
    return {"zero": False}


def _common_points(
    left: Expression, right: Expression, ranges: list[tuple[float, float]], seed: int
) -> list[list[Any]]:
    rng = random.Random(seed)
    points: list[list[Any]] = []
    for _ in range(200):
        point = random_point(ranges, rng)
        try:
            value_at(left, point)
            value_at(right, point)
        except Undefined:
            continue
        points.append(point)
        if len(points) == 6:
            break
    return points


def _derivative(job: Job) -> dict[str, Any]:
    """The derivative of a formula by a variable."""
    symbolic = to_sympy(_read(job, "expression"))
    return {"form": to_prefix(from_sympy(sympy.diff(symbolic, _variable(job))))}


def _integral(job: Job) -> dict[str, Any]:
    """An integral of a formula over a variable that the operators can write."""
    symbolic = to_sympy(_read(job, "expression"))
    return {"form": to_prefix(from_sympy(sympy.integrate(symbolic, _variable(job), conds="none")))}


def _limit(job: Job) -> dict[str, Any]:
    """The limit of a formula as a variable goes to plus or minus infinity, all others being positive."""
    expression = _read(job, "expression")
    others = {node.index for node in walk(expression) if isinstance(node, Variable)} - {int(job["by"])}
    end = -sympy.oo if job["kind"] == "limit_below" else sympy.oo
    found = sympy.limit(to_sympy(expression, positive=others), _variable(job), end)
    return {"form": to_prefix(from_sympy(found))}


def _variable(job: Job) -> Any:
    return to_sympy(Variable(int(job["by"])))


def _hang(job: Job) -> dict[str, Any]:
    """Never finish, inside native code: a power tower, for tests of the limit."""
    return {"digits": (9 ** (9**9)).bit_length()}


def _ping(job: Job) -> dict[str, Any]:
    return {"sympy": sympy.__version__, "pid": os.getpid()}


def _read(job: Job, key: str) -> Expression:
    return from_prefix([str(token) for token in job[key]])


_JOBS: Mapping[str, Callable[[Job], dict[str, Any]]] = {
    "ping": _ping,
    "zero": _zero,
    "derivative": _derivative,
    "integral": _integral,
    "limit": _limit,
    "limit_below": _limit,
    "hang": _hang,
}
