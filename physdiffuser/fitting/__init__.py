"""Constants: linear ones solved for, nonlinear ones by Levenberg-Marquardt, then snapped to exact forms."""

from physdiffuser.fitting.batched.batched_fit import fit_batched
from physdiffuser.fitting.exact_constants.snapping import Snap, snap
from physdiffuser.fitting.fit import Fit, fit_constants, refit
from physdiffuser.fitting.levenberg_marquardt import Outcome
from physdiffuser.fitting.linear import LinearFit, linear_least_squares
from physdiffuser.fitting.losses import relative_loss
from physdiffuser.fitting.uncertainty import Uncertainty, prediction_interval, uncertainty

__all__ = [
    "Fit",
    "LinearFit",
    "Outcome",
    "Snap",
    "Uncertainty",
    "fit_batched",
    "fit_constants",
    "linear_least_squares",
    "prediction_interval",
    "refit",
    "relative_loss",
    "snap",
    "uncertainty",
]
