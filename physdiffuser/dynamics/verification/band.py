"""How well the constants determine the simulated trajectories: a band from the covariance of the fit."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.flow import ORDER_4, integrate
from physdiffuser.dynamics.integration.segments import run_inputs
from physdiffuser.dynamics.search.selection import Fitted, Selector, as_system, mean_square
from physdiffuser.dynamics.trajectories.runs import Trajectories

SAMPLES = 40
"""Draws of the constants: enough for a standard deviation to 11 %."""


def path_errors(
    table: Trajectories, selector: Selector, fitted: Fitted, paths: tuple[FloatArray, ...], seed: int = 0
) -> tuple[FloatArray | None, ...]:
    """Standard deviation of each simulated value, shape (points, coordinates); None where it is not known.

    Parameters
    ----------
    selector, fitted
        The fit, with the covariance of its constants.
    paths
        Of each run, as simulated; samples start from their first states.
    """
    count = fitted.fit.parameters.size
    covariance = fitted.fit.covariance * max(mean_square(fitted), 0.0)
    if selector.prepared.exact or not count or not np.isfinite(covariance).all():
        return (None,) * len(paths)
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(seed).standard_normal((count, SAMPLES))
    draws = fitted.fit.parameters[:, None] + root @ normal
    system = as_system(fitted.skeletons, len(table.inputs))
    errors: list[FloatArray | None] = []
    for number, (run, path) in enumerate(zip(table.runs, paths, strict=True)):
        start = np.repeat(path[0][:, None, None], SAMPLES, axis=1)
        found = integrate(
            system,
            draws,
            start,
            run.times[None, :],
            run_inputs(table, number),
            2 * fitted.substeps,
            ORDER_4,
            selector.stop,
        )[:, :, :, 0]
        finite = np.isfinite(found).all(axis=2)
        with np.errstate(all="ignore"):
            errors.append(np.where(finite, found.std(axis=2), np.nan))
    return tuple(errors)
