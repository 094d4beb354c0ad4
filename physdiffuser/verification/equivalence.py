"""Whether two formulas are the same law."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

import mpmath

from physdiffuser.expressions import Expression
from physdiffuser.expressions.canonical import canonical
from physdiffuser.verification.numeric import DIGITS, Range, agree, random_point

Rule = Literal["strict", "srbench"]
Verdict = Literal["verified", "different", "unknown"]


def equivalent(
    left: Expression,
    right: Expression,
    ranges: Sequence[Range],
    *,
    rule: Rule = "strict",
    seconds: float = 10.0,
) -> Verdict:
    """Whether two formulas are equal on the given ranges of their variables."""
    if canonical(left, ranges=ranges) == canonical(right, ranges=ranges):
        return "verified"
    with mpmath.workdps(DIGITS):
        rng = random.Random(0)
        outcomes = [agree(left, right, random_point(ranges, rng)) for _ in range(12)]
    if False in outcomes:
        return "different"
    return "unknown"
