"""Constants: linear ones solved for, nonlinear ones by Levenberg-Marquardt, then snapped to exact forms."""

from physdiffuser.fitting.fit import Fit, fit_constants, refit
from physdiffuser.fitting.levenberg_marquardt import Outcome
from physdiffuser.fitting.losses import relative_loss

__all__ = ["Fit", "Outcome", "fit_constants", "refit", "relative_loss"]
