"""Whether a system is believed: by simulation, by what is left over, and by the rivals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.solution import Verdict
from physdiffuser.dynamics.search.constants import SHORT_ERROR, is_short
from physdiffuser.dynamics.search.selection import Fitted, mean_square
from physdiffuser.dynamics.verification.simulation import Simulation
from physdiffuser.expressions import Apply, Expression, Number
from physdiffuser.expressions.tree import fitted_constants, walk
from physdiffuser.verification.checks import CheckState


@dataclass(frozen=True)
class VerdictPolicy:
    """What a system of equations must satisfy to be verified.

    Set on development systems, of which weaker demands verified two wrong ones (docs/dynamics.md).
    """

    min_gap: float = 6.0
    """Nats by which every rival must describe the trajectories worse."""
    good_fit: float = 1.5
    close_fit: float = 1.1
    """Mean squared residual, in the noise of the smoothed curves, of a system that leaves only noise; and of
    one that is verified, of very many values."""
    max_correlated: float = 3.0
    lags: int = 4
    """Standard deviations of chance by which residuals of successive times may be correlated, and lags that
    are tested."""
    min_significance: float = 3.0
    """Standard errors by which each fitted constant must differ from zero."""
    exact_fit: float = 1e3
    """Mean squared residual of values without noise, in units of the accuracy of integration (an error of
    3e-9)."""
    max_constants: int = 4
    max_exact_constants: int = 1
    """Fitted constants of an equation that can be verified, with and without noise."""
    max_probability: float = 0.995
    """Largest probability of a verdict."""


POLICY = VerdictPolicy()


@dataclass(frozen=True)
class SystemVerdict:
    """Verdict, the checks in words, and the probability of the chosen equations."""

    verdict: Verdict
    sentences: tuple[str, ...]
    probability: float
    states: tuple[CheckState, ...] = ()


def leaves_only_noise(fitted: Fitted, exact: bool) -> bool:
    """Whether the residuals of the trajectories are no larger than their noise."""
    return mean_square(fitted) < (POLICY.exact_fit if exact else POLICY.good_fit)


def serial_correlation(fitted: Fitted) -> float:
    """How far the residuals of successive times are correlated, in standard deviations of chance.

    The largest over the states, from the products at the first lags. A wrong form leaves waves, noise none.
    """
    residuals = fitted.fit.residuals
    known = np.isfinite(residuals)
    values = np.where(known, residuals, 0.0)
    count = np.maximum(known.sum(axis=(0, 1)), 1)
    variance = np.square(values).sum(axis=(0, 1)) / count
    total, pairs = np.zeros(values.shape[2]), np.zeros(values.shape[2])
    for lag in range(1, min(POLICY.lags, values.shape[1] - 1) + 1):
        total += (values[:, :-lag] * values[:, lag:]).sum(axis=(0, 1))
        pairs += (known[:, :-lag] & known[:, lag:]).sum(axis=(0, 1))
    with np.errstate(all="ignore"):
        deviation = total / (variance * np.sqrt(pairs))
    return float(np.max(deviation[np.isfinite(deviation)], initial=0.0))


def fit_limit(values: int) -> float:
    """Largest mean square of the residuals of so many values that noise leaves.

    The noise is estimated from the same values, so that the two hardly differ by chance.
    """
    return POLICY.close_fit + 1.5 * math.sqrt(2.0 / max(values, 1))


def has_fitted_power(expression: Expression) -> bool:
    """Whether an exponent is a fitted constant."""
    return any(
        isinstance(node, Apply) and node.operator == "pow" and fitted_constants(node.arguments[1]) > 0
        for node in walk(expression)
    )


def _unexplained(expression: Expression, exact: bool) -> int:
    """Fitted constants; without noise those alone that are no decimals of few digits."""
    if not exact:
        return fitted_constants(expression)
    numbers = [node for node in walk(expression) if isinstance(node, Number) and not node.exact]
    return sum(not is_short(float(one.value), SHORT_ERROR) for one in numbers)


def _noise_checks(fitted: Fitted, errors: Sequence[FloatArray]) -> Iterator[tuple[bool, str, str]]:
    """What noisy trajectories must show beside the simulation: whether, and the two sentences."""
    yield (
        mean_square(fitted) < fit_limit(int(fitted.fit.squares()[1].sum())),
        "the trajectories are met within the noise",
        "the residuals of the trajectories are larger than the noise",
    )
    waves = serial_correlation(fitted)
    yield (
        waves < POLICY.max_correlated,
        "the residuals of successive times are independent",
        f"the residuals of successive times are correlated ({waves:.1f} standard deviations)",
    )
    least = min(
        (
            float(np.min(np.abs(values) / np.where(error > 0.0, error, np.inf), initial=math.inf))
            for values, error in zip(fitted.parts(), errors, strict=True)
            if np.isfinite(error).all() and (error > 0.0).any()
        ),
        default=math.inf,
    )
    certain = all(np.isfinite(error).all() for error in errors)
    yield (
        certain and least > POLICY.min_significance,
        "all fitted constants differ from zero by several standard errors",
        "a fitted constant hardly differs from zero",
    )
    yield (
        not any(has_fitted_power(expression) for expression in fitted.expressions),
        "no exponent was fitted",
        "an exponent was fitted, which noisy trajectories hardly tell from other forms",
    )


def with_check(judged: SystemVerdict, holds: bool, sentence: str) -> SystemVerdict:
    """The verdict with one check more."""
    return SystemVerdict(
        judged.verdict if holds else "unknown",
        (*judged.sentences, sentence),
        judged.probability * (1.0 if holds else 0.5),
        (*judged.states, "passed" if holds else "failed"),
    )


def judge_system(
    fitted: Fitted,
    simulation: Simulation,
    gaps: Sequence[float],
    exact: bool,
    errors: Sequence[FloatArray] = (),
) -> SystemVerdict:
    """Judge a system.

    Parameters
    ----------
    fitted
        The system as fitted without the held-out rows.
    gaps
        Nats by which rival systems are worse.
    exact
        Whether the states have no noise.
    errors
        Standard errors of the constants of each equation.
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
    if exact:
        check(
            leaves_only_noise(fitted, exact),
            "the trajectories are met within the noise",
            "the residuals of the trajectories are larger than the noise",
        )
    else:
        for one in _noise_checks(fitted, errors):
            check(*one)
    most = max(_unexplained(expression, exact) for expression in fitted.expressions)
    check(
        most <= (POLICY.max_exact_constants if exact else POLICY.max_constants),
        "no equation has more fitted constants than such trajectories can prove",
        f"an equation has {most} constants that were not set to special values: it may only follow the curve",
    )
    check(
        gap > POLICY.min_gap,
        "no other system tried describes the trajectories nearly as well",
        "another system describes the trajectories nearly as well",
    )
    total = sum(math.exp(-max(one, 0.0) / 2.0) for one in gaps if math.isfinite(one))
    states: tuple[CheckState, ...] = tuple("passed" if holds else "failed" for holds in checks)
    if simulation.agrees is None:
        states = ("open", *states[1:])
    probability = POLICY.max_probability / (1.0 + total) * (1.0 if all(checks) else 0.5)
    return SystemVerdict("verified" if all(checks) else "unknown", tuple(sentences), probability, states)
