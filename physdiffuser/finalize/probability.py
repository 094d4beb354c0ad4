"""The probability that the chosen formula is the law, calibrated on development tables with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.finalize.evidence import LawEvidence

FEATURES = ("gap", "rivals", "explained", "noise", "constants", "complexity", "form")


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


def features(evidence: LawEvidence) -> npt.NDArray[np.float64]:
    """What the logistic regression takes, shape (features,)."""
    return np.array(
        [
            evidence.gap,
            math.log1p(evidence.rivals),
            math.log(max(evidence.explained, 0.1)),
            math.log(max(evidence.noise, 1e-6)),
            evidence.constants,
            evidence.complexity,
            evidence.form,
        ]
    )


# Fitted by `tools/fit_probability.py`; docs/calibration.md has the command and the calibration.
MODEL = ProbabilityModel(
    (7.656, 1.621, 2.675, -3.559, 2.046, 14.54, 2.182),
    (12.67, 1.3, 1.357, 1.911, 1.666, 8.125, 1.031),
    (0.2894, -0.8335, 0.4116, -0.9904, -1.069, -0.7337, -0.5002),
    -0.2368,
)
