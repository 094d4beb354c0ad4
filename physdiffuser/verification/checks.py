"""One check of a law: how it came out, what is said of it, and why it keeps the law from being verified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from physdiffuser.arrays import FloatArray

CheckState = Literal["passed", "failed", "open"]


@dataclass(frozen=True)
class VerificationPolicy:
    """When checks of a law pass.

    Chosen so that few verified laws are wrong (docs/calibration.md).
    """

    min_probability: float = 0.9
    """A law with noise is verified from this probability on."""
    max_noise: float = 0.1
    """Of laws with more noise, relative to the spread of the target, too many were not the law."""
    better: float = 2.0
    """A simpler formula is better on the test set by more than chance if the mean difference of the squared
    errors is so many standard errors."""
    min_test_rows: int = 8
    """Rows of a test set on which two formulas can be compared."""


POLICY = VerificationPolicy()


@dataclass(frozen=True)
class Check:
    """A check of a law.

    Attributes
    ----------
    state
        *open* if it could not be made.
    sentence
        For the user: the topic, a colon, and what was found.
    reason
        Why the law is not verified, if the check did not pass; continues "not verified: ".
    """

    state: CheckState
    sentence: str
    reason: str = ""


def residual_check(pattern: bool, change: str = "") -> Check:
    """Whether the residuals depend on the inputs.

    Parameters
    ----------
    change
        A change of the law that fits the rows better than chance explains.
    """
    if pattern:
        better = f": {change} fits the rows better" if change else ""
        return Check(
            "failed",
            f"residuals: they still show a pattern in the columns, so the law is not complete{better}",
            "the residuals still depend on the inputs",
        )
    return Check("passed", "residuals: no pattern is left in them")


def probability_check(probability: float) -> Check:
    """Whether the formula is probable enough to be the law."""
    percent = min(math.floor(100 * probability + 1e-9), 99)
    said = f"probability: {percent} % that this is the law"
    if probability >= POLICY.min_probability:
        return Check("passed", said)
    least = round(100 * POLICY.min_probability)
    return Check(
        "failed",
        f"{said}, too little for it to be verified",
        f"the probability that this is the law is {percent} %, below {least} %",
    )


def noise_check(noise: float) -> Check | None:
    """Whether the residuals are small enough for terms to be seen; None if they are.

    Parameters
    ----------
    noise
        Standard deviation of the residuals relative to that of the target.
    """
    if noise <= POLICY.max_noise:
        return None
    share = f"{100 * noise:.0f} %"
    return Check(
        "failed",
        f"noise: the residuals are {share} of the target's spread; smaller terms would not be seen",
        f"the noise, {share} of the target's spread, would hide further terms",
    )


def function_check(name: str | None) -> Check | None:
    """Whether the rows show each function of the formula; None if they do.

    Parameters
    ----------
    name
        Of a function in whose place a straight line or a parabola fits as well.
    """
    if name is None:
        return None
    return Check(
        "failed",
        f"functions: with a straight line or a parabola in the place of {name} the formula fits as well",
        f"the rows do not distinguish {name} from a straight line or a parabola",
    )


def competitor_check(rows: Sequence[int]) -> Check:
    """Whether the rows decide between the formula and the others that are shown.

    Parameters
    ----------
    rows
        Numbers of the rows of the Pareto table that explain the data almost as well.
    """
    if not rows:
        return Check("passed", "other formulas: none of those shown explains the data almost as well")
    said = f"{naming_rows(rows)} the data almost as well"
    return Check("failed", f"other formulas: {said}", said)


def naming_rows(rows: Sequence[int]) -> str:
    """The subject and the verb of a sentence on rows of the Pareto table: "rows 2, 3 of ... explain"."""
    if len(rows) > 1:
        return f"rows {', '.join(map(str, rows))} of the Pareto table explain"
    return f"row {rows[0]} of the Pareto table explains"


def interpolation_check(sentence: str) -> Check:
    """A formula that only interpolates, and why."""
    return Check("failed", sentence, "the formula only interpolates the rows")


def pole_check(has_pole: bool) -> Check:
    """Whether the formula is finite everywhere between the rows."""
    if has_pole:
        return Check(
            "failed",
            "poles: a denominator or the argument of a logarithm passes 0 inside the ranges of the inputs",
            "the formula has a pole inside the ranges of the inputs",
        )
    return Check("passed", "poles: none inside the ranges of the inputs")


def comparison_check(chosen: FloatArray, simpler: list[FloatArray]) -> Check | None:
    """Whether a simpler formula predicts the test set better by more than chance.

    Parameters
    ----------
    chosen
        Errors of the chosen formula on the test set, in units of the standard deviation of the noise at
        their row up to a common factor, shape (rows,).

    Returns
    -------
    None if there is none, or if the test set is too small.
    """
    if len(chosen) < POLICY.min_test_rows or not simpler:
        return None
    largest = max(float(np.abs(errors).max(initial=0.0)) for errors in (chosen, *simpler)) or 1.0
    for errors in simpler:
        gain = np.square(chosen / largest) - np.square(errors / largest)
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        if float(gain.mean()) > POLICY.better * error:
            return Check(
                "failed",
                "simpler formulas: one of them predicts the test rows better, by more than chance explains",
                "a simpler formula predicts the test rows better",
            )
    return Check("passed", "simpler formulas: none predicts the test rows better")
