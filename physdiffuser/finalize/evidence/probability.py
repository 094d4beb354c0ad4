"""The probability that the chosen formula is the law, calibrated on development tables with noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.finalize.evidence.figures import LawEvidence

FEATURES = (
    "rivals",
    "explained",
    "noise",
    "large noise",
    "constants",
    "complexity",
    "form",
    "structure",
    "misfit",
    "columns",
)
# Above this logarithm the noise counts twice.
LARGE_NOISE = -5.0
# If the chosen formula is not the law, the share of tables in which another row of the table is
# (docs/calibration.md).
OTHER_ROWS = 0.036
# Of a formula whose residuals show a pattern: it is not complete. On development tables with such a structure
# none of 126 was the law.
INCOMPLETE = 0.02


@dataclass(frozen=True)
class ProbabilityModel:
    """Logistic regression on the figures of `LawEvidence`, in the order of `FEATURES`.

    Attributes
    ----------
    means, deviations
        Of each feature over the development tables.
    coefficients, intercept
        Of the standardised features.
    """

    means: tuple[float, ...]
    deviations: tuple[float, ...]
    coefficients: tuple[float, ...]
    intercept: float

    def of(self, evidence: LawEvidence) -> float:
        """The probability for one law."""
        standard = (features(evidence) - np.array(self.means)) / np.array(self.deviations)
        logit = self.intercept + float(standard @ np.array(self.coefficients))
        return 1.0 / (1.0 + math.exp(-max(min(logit, 30.0), -30.0)))


def probability_of_law(evidence: LawEvidence, pattern: bool) -> float:
    """The probability that a formula is the law, small if its residuals show a pattern."""
    probability = MODEL.of(evidence)
    return min(probability, INCOMPLETE) if pattern else probability


def features(evidence: LawEvidence) -> FloatArray:
    """What the logistic regression takes, shape (features,)."""
    noise = math.log(max(evidence.noise, 1e-6))
    return np.array(
        [
            math.log1p(evidence.rivals),
            math.log(max(evidence.explained, 0.1)),
            noise,
            max(noise - LARGE_NOISE, 0.0),
            evidence.constants,
            evidence.complexity,
            evidence.form,
            math.log1p(max(evidence.structure, 0.0)),
            math.log1p(evidence.misfit),
            evidence.columns,
        ]
    )


def row_probabilities(lengths: Sequence[float | None], chosen: int, probability: float) -> list[float]:
    """The probability of each row of the Pareto table; what is missing from 1 is for none of them.

    Parameters
    ----------
    lengths
        Description lengths of the rows; None for a row without one, which gets 0.
    chosen
        Position of the chosen row.
    probability
        Of the chosen row.
    """
    weights = np.array(
        [
            -math.inf if length is None or position == chosen else -length
            for position, length in enumerate(lengths)
        ]
    )
    shares = np.zeros(len(weights))
    if np.isfinite(weights).any():
        shares = np.exp(weights - weights.max())
        shares *= OTHER_ROWS * (1.0 - probability) / shares.sum()
    shares[chosen] = probability
    return [float(share) for share in shares]


# Fitted by `tools/fit_probability.py`; docs/calibration.md has the command and the calibration.
MODEL = ProbabilityModel(
    (1.58, 2.902, -3.436, 1.86, 1.932, 12.98, 2.185, 0.4751, 0.933, 2.367),
    (1.35, 1.482, 1.967, 1.564, 1.565, 7.31, 1.063, 1.042, 1.139, 1.192),
    (-1.349, 0.1033, -0.6575, -0.5555, -0.6312, -1.329, -0.3797, -1.512, -1.616, 0.5806),
    -1.09,
)
