"""Fixed points of a system and their stability, from the eigenvalues of the Jacobian.

References
----------
Strogatz, *Nonlinear Dynamics and Chaos* (1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray
from physdiffuser.dynamics.integration.flow import System
from physdiffuser.expressions import Expression
from physdiffuser.expressions.tree import variables

MOST = 8
"""Most fixed points that are reported."""
_STARTS = 60
_OUTSIDE = 0.25
"""Fixed points are searched for in the box of the visited states, widened by this share."""
_ZERO = 1e-6
"""Eigenvalues whose real part is below this share of the largest rate are on the imaginary axis."""


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """A state that does not change.

    Attributes
    ----------
    state
        Shape (coordinates,).
    eigenvalues
        Of the Jacobian there, shape (coordinates,), complex, the largest real part first.
    kind
        `stable node`, `saddle`, `centre`, ...
    """

    state: FloatArray
    eigenvalues: npt.NDArray[np.complex128]
    kind: str

    @property
    def is_stable(self) -> bool:
        """Whether every small deviation decays."""
        return self.kind.startswith("stable")


def is_autonomous(flow: Sequence[Expression]) -> bool:
    """Whether neither the time nor an input occurs."""
    return all(max(variables(rate), default=0) < len(flow) for rate in flow)


def fixed_points(flow: Sequence[Expression], states: FloatArray, seed: int = 0) -> list[FixedPoint]:
    """Fixed points in and near the box of the visited states.

    Parameters
    ----------
    flow
        Rate of change of each coordinate; without fixed points where the time or an input occurs in one.
    states
        Shape (rows, coordinates): visited states.
    """
    from scipy.optimize import root

    if not is_autonomous(flow):
        return []
    states = states[np.isfinite(states).all(axis=1)]
    if not states.size:
        return []
    low, high = states.min(axis=0), states.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    rng = np.random.default_rng(seed)
    starts = [0.5 * (low + high), *(low + size * rng.uniform(-_OUTSIDE, 1 + _OUTSIDE, (_STARTS, size.size)))]

    compiled, nothing, time = System(tuple(flow)).compiled(), np.zeros(0), np.zeros(())

    def rates(state: FloatArray) -> FloatArray:
        return compiled(state, nothing, time, nothing)

    found: list[FixedPoint] = []
    with np.errstate(all="ignore"):
        some = [rates(state) for state in states[:: len(states) // 40 + 1]]
        typical = max(float(np.nanmedian(np.abs(some))), 1e-300)

        def scaled_rates(scaled: FloatArray) -> FloatArray:
            return rates(scaled * size) / typical

        for start in starts:
            if not np.isfinite(rates(start)).all():
                continue
            try:
                answer = root(scaled_rates, start / size, tol=1e-12)
            except (ValueError, ArithmeticError):
                continue
            state = np.asarray(answer.x * size, dtype=np.float64)
            state = np.where(np.abs(state) < 1e-9 * size, 0.0, state)
            left = rates(state)
            inside = ((state >= low - _OUTSIDE * size) & (state <= high + _OUTSIDE * size)).all()
            known = any(np.abs((one.state - state) / size).max() < 1e-5 for one in found)
            if inside and not known and np.isfinite(left).all() and np.abs(left).max() < 1e-7 * typical:
                found.append(_classified(rates, state, size, typical))
    found.sort(key=lambda one: tuple(np.round(one.state / size, 6).tolist()))
    return found[:MOST]


def _classified(rates: object, state: FloatArray, size: FloatArray, typical: float) -> FixedPoint:
    """The fixed point with its eigenvalues and what they say."""
    assert callable(rates)
    jacobian = np.empty((state.size, state.size))
    for index in range(state.size):
        step = np.zeros(state.size)
        step[index] = 1e-5 * size[index]
        jacobian[:, index] = (rates(state + step) - rates(state - step)) / (2 * step[index])
    if not np.isfinite(jacobian).all():
        return FixedPoint(state, np.full(state.size, np.nan + 0j), "at the edge of the domain")
    values = np.linalg.eigvals(jacobian).astype(np.complex128)
    values = values[np.lexsort((-values.imag, -values.real))]
    return FixedPoint(state, values, _kind(values))


def _kind(values: npt.NDArray[np.complex128]) -> str:
    scale = float(np.abs(values).max())
    if scale == 0.0:
        return "degenerate"
    real = np.where(np.abs(values.real) < _ZERO * scale, 0.0, values.real)
    turning = bool((np.abs(values.imag) > _ZERO * scale).any())
    if (real == 0.0).all():
        return "centre (to first order)" if turning else "degenerate"
    if (real == 0.0).any():
        return "degenerate (an eigenvalue is 0)"
    if (real > 0).any() and (real < 0).any():
        return "saddle-focus" if turning else "saddle"
    stable = "stable" if (real < 0).all() else "unstable"
    return f"{stable} {'focus' if turning else 'node'}"
