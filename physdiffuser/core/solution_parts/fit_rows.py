"""How the rows of a table took part in the fit: what one needs to compute the printed numbers again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FitRows:
    """Test rows, rows that were left out, and weights.

    Attributes
    ----------
    loss
        That was minimised: squares of the residuals, or the likelihood of Student's t.
    test
        Data rows of the test set, counted from 1: constants and their intervals are computed without them.
    left_out
        Data rows that did not count at all, because they lie far from the others.
    weights
        Of the rows that were used, in the order of the table, with mean 1; None if all count alike.
    """

    loss: Literal["squared", "robust"]
    test: tuple[int, ...]
    left_out: tuple[int, ...]
    weights: tuple[float, ...] | None
