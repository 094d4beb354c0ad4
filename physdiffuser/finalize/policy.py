"""Numbers that the choice among the finalists depends on."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class FinalizePolicy:
    """What the choice among the finalists depends on, chosen on development laws with 0, 1 and 10 % noise."""

    min_dropped: int = 2
    max_rounds: int = 3
    """A formula that lost terms of this complexity when its constants were set is treated again, so many
    times in all."""
    same_nats: float = 1e-2
    """Descriptions of the same law that differ by less are equal."""
    clearly: float = 3.0
    """Nats by which the description has to be shorter for a formula to be preferred that is more complex and
    fits worse than another."""
    as_short: float = 1.0
    plain_numbers: float = math.log(12)
    """Nats by which a description with more exact constants may be the longer one, if the exact numbers take
    less than `plain_numbers` nats to write: 16/3 is no better than 5.33."""
    exact_slack: float = 8.0
    """A constant made exact may cost so much loss, over the number of rows."""
    form_prior_seconds: float = 1.0
    """Seconds that have to be left for the conditional form prior, on an idle machine."""
    form_prior_noise: float = 0.05
    """The conditional form prior is not asked where the best formula leaves residuals of more than this share
    of the target's deviation. At 1 % noise it gains laws, at 10 % it loses some (docs/search.md); between
    them nothing was measured."""
    min_constant_seconds: float = 0.3
    """Seconds that the constants of the most promising formula get, however late it is, on an idle
    machine."""
    rival_nats: float = 3.0
    comparable: float = 4.0
    """Rivals have descriptions that are longer by less than so many nats (odds of 20 to 1), and a loss less
    than so many times as large: of few rows a constant is a brief description too."""
    no_chance: float = 6.0
    """If the columns explain nothing, the best of all formulas tried is rarely shorter than a number by so
    many nats (docs/calibration.md)."""


POLICY = FinalizePolicy()
