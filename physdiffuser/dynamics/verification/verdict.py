"""Whether a system is believed: by simulation, by what is left over, and by the rivals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from physdiffuser.core.solution import Verdict
from physdiffuser.dynamics.search.selection import Fitted, mean_square
from physdiffuser.dynamics.verification.simulation import Simulation
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.verification.checks import CheckState

LEAST_GAP = 6.0
"""Nats by which every rival must describe the trajectories worse."""
GOOD_FIT = 1.5
"""Mean squared residual, in the noise of the smoothed curves, of a system that leaves only noise."""
EXACT_FIT = 1e3
"""The same for values without noise, in units of the accuracy of integration (an error of 3e-9)."""
MOST_CONSTANTS, MOST_EXACT = 4, 1
"""Fitted constants of an equation that can be verified, with and without noise."""
HIGHEST = 0.995


@dataclass(frozen=True)
class SystemVerdict:
    """Verdict, the checks in words, and the probability of the chosen equations."""

    verdict: Verdict
    sentences: tuple[str, ...]
    probability: float
    states: tuple[CheckState, ...] = ()


def leaves_only_noise(fitted: Fitted, exact: bool) -> bool:
    """Whether the residuals of the trajectories are no larger than their noise."""
    return mean_square(fitted) < (EXACT_FIT if exact else GOOD_FIT)


def judge_system(fitted: Fitted, simulation: Simulation, gaps: Sequence[float], exact: bool) -> SystemVerdict:
    """Judge a system.

    Parameters
    ----------
    fitted
        The system as fitted without the held-out rows.
    simulation
        Its simulation.
    gaps
        Nats by which rival systems are worse.
    exact
        Whether the states have no noise.
    """
    gap = min(gaps, default=math.inf)
    sentences: list[str] = []
    checks: list[bool] = []

    def check(holds: bool, good: str, bad: str) -> None:
        checks.append(holds)
        sentences.append(good if holds else bad)

    if simulation.agrees is None:
        check(False, "", "held-out rows: not checked, there are too few points to hold any out")
    else:
        within = "to four digits" if exact else "within the noise"
        check(
            simulation.agrees and not simulation.diverged,
            f"a simulation from the first point agrees with {simulation.held_out} {within}",
            f"a simulation from the first point differs from {simulation.held_out} by more than the noise",
        )
        check(
            simulation.informative,
            f"{simulation.held_out} varies by more than the noise",
            f"{simulation.held_out} hardly varies, so it is no test",
        )
    check(
        leaves_only_noise(fitted, exact),
        "the trajectories are met within the noise",
        "the residuals of the trajectories are larger than the noise",
    )
    most = max(fitted_constants(expression) for expression in fitted.expressions)
    check(
        most <= (MOST_EXACT if exact else MOST_CONSTANTS),
        "no equation has more fitted constants than such trajectories can prove",
        f"an equation has {most} constants that were not set to special values: it may only follow the curve",
    )
    check(
        gap > LEAST_GAP,
        "no other system tried describes the trajectories nearly as well",
        "another system describes the trajectories nearly as well",
    )
    total = sum(math.exp(-max(one, 0.0) / 2.0) for one in gaps if math.isfinite(one))
    states: tuple[CheckState, ...] = tuple("passed" if holds else "failed" for holds in checks)
    if simulation.agrees is None:
        states = ("open", *states[1:])
    probability = HIGHEST / (1.0 + total) * (1.0 if all(checks) else 0.5)
    return SystemVerdict("verified" if all(checks) else "unknown", tuple(sentences), probability, states)
