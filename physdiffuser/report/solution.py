"""The answer of one run, as plain data: everything that is printed, saved or exported comes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from physdiffuser.expressions import Expression

Status = Literal["exact", "approximate", "none"]
Verdict = Literal["verified", "different", "unknown"]


@dataclass(frozen=True)
class ConstantEstimate:
    """A constant of the chosen formula.

    Attributes
    ----------
    name
        `c1`, `c2`, ... in order of appearance in the formula.
    value
        The value that stands in the formula.
    low, high
        95 % confidence interval of the fitted value, or None when it cannot be given.
    text
        How it is written (`2*pi`, `3/2`, `0.731`).
    exact
        Whether it was snapped to an exact form.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    text: str
    exact: bool


@dataclass(frozen=True)
class Equation:
    """One row of the Pareto table.

    Attributes
    ----------
    expression
        The tree, with exact constants where the data cannot tell them from the fitted ones.
    text, latex
        As printed, in the aliases of the columns.
    rmse, r2, max_relative_error
        On all rows of the table (weighted where rows have weights).
    held_out_rmse
        On the rows that neither search nor fit have seen; None when the table is too small.
    verdict
        See `docs/architecture.md`, "Believing a formula".
    verification
        How the verdict was reached, one sentence a check.
    """

    expression: Expression
    text: str
    latex: str
    complexity: int
    rmse: float
    r2: float
    max_relative_error: float
    held_out_rmse: float | None = None
    verdict: Verdict = "unknown"
    verification: tuple[str, ...] = ()
    constants: tuple[ConstantEstimate, ...] = ()
    derivation: tuple[str, ...] = ()
    generator: str = ""


@dataclass(frozen=True)
class Solution:
    """What `solve` returns."""

    target: str
    status: Status
    best: Equation | None
    pareto: tuple[Equation, ...]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    aliases: Mapping[str, str]
    derivation: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    held_out_rows: int = 0
    known_constants: Mapping[str, float] = field(default_factory=dict)
    timing: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    version: str = ""
