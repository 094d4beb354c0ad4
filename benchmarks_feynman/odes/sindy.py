"""Peer: sparse identification of nonlinear dynamics (SINDy) through pysindy.

Polynomials up to the second and third degree, also with sines and cosines, and polynomials in the weak form,
which the documentation of pysindy recommends for noise. Derivatives of noisy values come from its smoothed
finite differences, coefficients from its sequentially thresholded least squares. Library, threshold and ridge
penalty have no default for all tables: models of a grid are simulated from the first points, and Bayes'
information criterion of the simulations chooses.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks_feynman.systems import require
from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression, Number, parse
from physdiffuser.expressions.tree import add, mul

THRESHOLDS = (0.003, 0.01, 0.03, 0.07, 0.15, 0.3, 0.6)
PENALTIES = (0.05, 1e-5)
"""That of the package, and one that hardly shrinks coefficients of few rows."""
DEGREE = 3
ACCURACY = 1e-9
"""Share of the variance that counts as met, so that a sparser model is preferred to a digit."""
MIN_POINTS = 11
"""Of the window of the smoothed finite differences."""


@dataclass(frozen=True)
class Named:
    """A state, by name."""

    name: str


@dataclass(frozen=True, eq=False)
class PeerSystem:
    """What a peer found, with the attributes by which an answer is judged."""

    states: tuple[Named, ...]
    expressions: tuple[Expression, ...]
    order: int = 1

    @property
    def phase(self) -> tuple[Named, ...]:
        """Equations of first order: the states."""
        return self.states

    def simulate(self, initial: Sequence[float], times: FloatArray) -> FloatArray:
        """Shape (points, states)."""
        from physdiffuser.dynamics.integration.flow import System, simulate

        return simulate(System(self.expressions), np.asarray(initial, dtype=np.float64), times)


def solve(table: Mapping[str, FloatArray], names: Sequence[str], noisy: bool) -> PeerSystem | None:
    """The model with the least criterion; None if every one blows up.

    Parameters
    ----------
    table
        `run`, `t` and the states.
    names
        The states.
    noisy
        Whether the values have noise.
    """
    require("pysindy", "pysindy")
    runs = [table["run"] == number for number in np.unique(table["run"])]
    times = [table["t"][rows] for rows in runs]
    values = [np.column_stack([table[name][rows] for name in names]) for rows in runs]
    best: tuple[float, PeerSystem] | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in _models(times, values, noisy):
            found = PeerSystem(tuple(Named(name) for name in names), _equations(model, names))
            criterion = _criterion(found, model.coefficients(), times, values)
            if best is None or criterion < best[0]:
                best = (criterion, found)
    return None if best is None else best[1]


def _models(times: list[FloatArray], values: list[FloatArray], noisy: bool) -> Iterator[Any]:
    """Fitted models: strong form with each threshold, then weak form with each threshold."""
    package: Any = require("pysindy", "pysindy")
    smooth = noisy and min(one.size for one in times) > MIN_POINTS
    difference = package.SmoothedFiniteDifference() if smooth else package.FiniteDifference(order=4)
    for threshold, penalty in product(THRESHOLDS, PENALTIES):
        for strong in (
            package.PolynomialLibrary(degree=2),
            package.PolynomialLibrary(degree=DEGREE),
            package.PolynomialLibrary(degree=DEGREE) + package.FourierLibrary(n_frequencies=1),
        ):
            optimizer = package.STLSQ(threshold=threshold, alpha=penalty)
            yield from _fitted(package.SINDy(optimizer, strong, difference), values, times)
    if len(times) > 1 and any(one.size != times[0].size or (one != times[0]).any() for one in times):
        return  # a weak library has one grid of times
    for threshold, penalty in product(THRESHOLDS, PENALTIES):
        weak = package.WeakPDELibrary(
            function_library=package.PolynomialLibrary(degree=DEGREE, include_bias=True),
            spatiotemporal_grid=times[0],
            is_uniform=False,
            K=200,
        )
        optimizer = package.STLSQ(threshold=threshold, alpha=penalty)
        yield from _fitted(package.SINDy(optimizer, weak), values, times)


def _fitted(model: Any, values: list[FloatArray], times: list[FloatArray]) -> Iterator[Any]:
    """The model, unless the package gives up on these tables."""
    try:
        model.fit(values, t=times)
    except (ValueError, np.linalg.LinAlgError, IndexError, TypeError):
        return
    if np.isfinite(model.coefficients()).all():
        yield model


def _equations(model: Any, names: Sequence[str]) -> tuple[Expression, ...]:
    """The right-hand sides as formulas; the package writes `x0 x1^2` and `sin(1 x0)`."""
    columns = [f"x{index}" for index in range(len(names))]
    features = []
    for text in model.get_feature_names():
        spelled = re.sub(r"(?<=[\w)])\s+(?=[\w(])", "*", text)
        features.append(parse(spelled, columns))
    equations = []
    for row in np.asarray(model.coefficients(), dtype=np.float64):
        terms = [
            mul(Number(float(factor)), feature)
            for factor, feature in zip(row, features, strict=True)
            if factor != 0.0
        ]
        total: Expression = terms[0] if terms else Number(0)
        for term in terms[1:]:
            total = add(total, term)
        equations.append(total)
    return tuple(equations)


def _criterion(
    found: PeerSystem, coefficients: FloatArray, times: list[FloatArray], values: list[FloatArray]
) -> float:
    """Bayes' information criterion of the simulations from the first points; infinite if one blows up."""
    paths = [found.simulate(list(seen[0]), at) for seen, at in zip(values, times, strict=True)]
    if not all(np.isfinite(path).all() for path in paths):
        return math.inf
    measured, simulated = np.concatenate(values), np.concatenate(paths)
    square = np.mean((measured - simulated) ** 2, axis=0) / np.maximum(measured.var(axis=0), 1e-300)
    size = measured.shape[0]
    return float(
        size * np.log(np.maximum(square, ACCURACY)).sum() + np.count_nonzero(coefficients) * np.log(size)
    )
