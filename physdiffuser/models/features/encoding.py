"""Numbers for the networks: columns scaled by powers of two and rounded to half precision.

A column whose largest magnitude lies in a comfortable window is left alone, so that `1 - v**2` keeps
its 1. Others are multiplied by 2**-shift; columns of similar size share one shift, so that
differences between them stay differences. A power of two changes no digit, hence the way back is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, IntArray, checked
from physdiffuser.expressions import Apply, Expression, Number, Variable
from physdiffuser.expressions.tree import mul, substitute
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float16, Float64, Int

# Exponents of the largest magnitude that are left alone, and the one others are brought to.
LOWEST, HIGHEST, PREFERRED = -6, 10, 1
# Columns within this many doublings of a group's largest share its shift.
SHARED = 10


@dataclass(frozen=True)
class Scaling:
    """What was done to the columns: scaled = original * 2**-shift.

    Attributes
    ----------
    inputs
        Shift of each input column.
    target
        Shift of the target.
    """

    inputs: tuple[int, ...]
    target: int

    @checked
    def apply(
        self, inputs: Float64[np.ndarray, "rows columns"], target: Float64[np.ndarray, " rows"]
    ) -> tuple[Float64[np.ndarray, "rows columns"], Float64[np.ndarray, " rows"]]:
        """Scaled columns, (rows, columns), and target, (rows,)."""
        return np.ldexp(inputs, -np.array(self.inputs, dtype=np.int32)), np.ldexp(target, -self.target)

    def undo(self, expression: Expression) -> Expression:
        """The formula for the original columns and target, from one for the scaled ones."""

        def replace(node: Expression) -> Expression | None:
            if isinstance(node, Variable) and self.inputs[node.index]:
                return mul(Number(power_of_two(-self.inputs[node.index])), node)
            return None

        original = substitute(expression, replace)
        return original if self.target == 0 else Apply("mul", (Number(power_of_two(self.target)), original))


def power_of_two(exponent: int) -> int | Fraction:
    """2**exponent, exactly."""
    return 2**exponent if exponent >= 0 else Fraction(1, 2**-exponent)


def _exponents(columns: FloatArray) -> IntArray:
    largest = np.abs(columns).max(axis=0, initial=0.0)
    exponents: IntArray = np.frexp(largest)[1].astype(np.int64) * (largest > 0)
    return exponents


@checked
def choose_scaling(
    inputs: Float64[np.ndarray, "rows columns"], target: Float64[np.ndarray, " rows"]
) -> Scaling:
    """Shifts that bring every column into the window.

    Parameters
    ----------
    inputs
        Shape (rows, columns), finite.
    target
        Shape (rows,), finite.
    """
    exponents = _exponents(inputs)
    shifts = np.zeros_like(exponents)
    outside = [j for j in range(len(exponents)) if not LOWEST <= exponents[j] <= HIGHEST]
    outside.sort(key=lambda j: -int(exponents[j]))
    group_shift, group_top = 0, None
    for j in outside:
        exponent = int(exponents[j])
        if group_top is None or group_top - exponent > SHARED:
            group_top, group_shift = exponent, exponent - PREFERRED
        shifts[j] = group_shift
    top = int(_exponents(target[:, None])[0])
    target_shift = 0 if LOWEST <= top <= HIGHEST else top - PREFERRED
    return Scaling(tuple(int(shift) for shift in shifts), target_shift)


@checked
def to_half(
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    slots: Int[np.ndarray, " columns"],
) -> Float16[np.ndarray, "rows 10"]:
    """Rows as the networks read them.

    Parameters
    ----------
    inputs
        Scaled, shape (rows, columns).
    target
        Scaled, shape (rows,).
    slots
        For each column, which of the nine places it takes.

    Returns
    -------
    Shape (rows, 10), half precision: nine places, unused ones zero, and the target.
    """
    table = np.zeros((inputs.shape[0], MAX_VARIABLES + 1), dtype=np.float16)
    with np.errstate(over="ignore", under="ignore"):
        table[:, slots] = np.clip(inputs, -65_504, 65_504)
        table[:, MAX_VARIABLES] = np.clip(target, -65_504, 65_504)
    return table
