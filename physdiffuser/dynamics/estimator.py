"""A scikit-learn-like estimator for systems of differential equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from physdiffuser.arrays import FloatArray
from physdiffuser.data.arrays import free_name
from physdiffuser.dynamics.report.solution import DynamicsSolution
from physdiffuser.dynamics.solve import solve_dynamics
from physdiffuser.errors import UsageError
from physdiffuser.expressions import evaluate


class PhysDiffuserDynamics(BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Finds differential equations from trajectories.

    Parameters
    ----------
    order
        1, 2 or "auto", as in `solve_dynamics`.
    time, steps
        Limits of the search; 60 seconds if neither is given.
    random_state
        Seed of the search.
    operators
        Names of the operators that may occur; None for all.
    max_complexity
        Largest right-hand side.
    noise_model
        "auto", "constant" or "relative".

    Attributes
    ----------
    solution_ : DynamicsSolution
        The answer, with `equations`, `latex`, `to_sympy` and the rest.
    n_features_in_ : int
        Number of states.
    feature_names_in_ : ndarray of shape (states,)
        Their names.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 4, 60)
    >>> model = PhysDiffuserDynamics(steps=2).fit(3 * np.exp(-0.5 * t)[:, None], t)
    >>> model.equations_
    ['dx1/dt = -0.5*x1']
    """

    def __init__(
        self,
        *,
        order: int | str = "auto",
        time: float | None = None,
        steps: int | None = None,
        random_state: int = 0,
        operators: Sequence[str] | None = None,
        max_complexity: int = 40,
        noise_model: str = "auto",
    ) -> None:
        self.order = order
        self.time = time
        self.steps = steps
        self.random_state = random_state
        self.operators = operators
        self.max_complexity = max_complexity
        self.noise_model = noise_model

    def fit(self, X: Any, t: Any, runs: npt.ArrayLike | None = None, u: Any = None) -> Self:
        """Find the equations.

        Parameters
        ----------
        X
            Shape (points, states): an array, or a DataFrame whose columns name the states; nan where a value
            is missing. A list of such arrays is one run each.
        t
            Shape (points,), increasing within each run; a list of these for a list of runs.
        runs
            Shape (points,): a number for each point that tells runs apart; not for lists.
        u
            Known driving inputs, shape (points, inputs): an array, or a DataFrame with their names; a list
            for a list of runs.

        Raises
        ------
        PhysdiffuserError
            If shapes do not fit, or no equations follow the trajectories.
        """
        states, times, labels, inputs = _stacked(X, t, runs, u)
        names = _names(X, states.shape[1], "x")
        driving = [] if inputs is None else _names(u, inputs.shape[1], "u")
        time = free_name(["t"], [*names, *driving])
        label = free_name(["run"], [*names, *driving, time])
        table: dict[str, Any] = {time: times}
        table |= dict(zip(names, states.T, strict=True))
        if inputs is not None:
            table |= dict(zip(driving, inputs.T, strict=True))
        if labels is not None:
            table[label] = labels
        self.solution_: DynamicsSolution = solve_dynamics(
            table,
            time_column=time,
            states=names,
            inputs=driving,
            runs=None if labels is None else label,
            order=self.order,
            time=self.time,
            steps=self.steps,
            seed=self.random_state,
            operators=self.operators,
            max_complexity=self.max_complexity,
            noise_model=self.noise_model,
        )
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, dtype=object)
        return self

    @property
    def equations_(self) -> list[str]:
        """The equations as text."""
        check_is_fitted(self, "solution_")
        return [f"{one.target} = {one.best.text}" for one in self.solution_.equations if one.best is not None]

    def predict(self, X: Any, t: Any = 0.0, u: Any = None) -> FloatArray:
        """Rates of change (second derivatives for order 2), shape (points, states).

        Parameters
        ----------
        X
            Shape (points, coordinates of the phase space): states, and for order 2 then their derivatives.
        t
            Times of shape (points,) or one number, for equations in which the time stands.
        u
            Inputs, shape (points, inputs).

        Raises
        ------
        UsageError
            If the number of columns is not that of the coordinates and inputs.
        """
        check_is_fitted(self, "solution_")
        phase = np.atleast_2d(np.asarray(X, dtype=np.float64))
        count, inputs = len(self.solution_.phase), len(self.solution_.inputs)
        if phase.shape[1] != count:
            raise UsageError(f"X has {phase.shape[1]} columns; the equations have {count} coordinates")
        driving = np.zeros((phase.shape[0], 0)) if u is None else np.asarray(u, dtype=np.float64)
        driving = driving.reshape(phase.shape[0], -1)  # (times, inputs), also for one input (times,)
        if driving.shape[1] != inputs:
            raise UsageError(f"u has {driving.shape[1]} columns; the equations have {inputs} inputs")
        moments = np.broadcast_to(np.asarray(t, dtype=np.float64), phase.shape[:1])
        nodes = np.column_stack([phase, driving, moments])
        return np.column_stack([evaluate(one, nodes) for one in self.solution_.expressions])

    def simulate(
        self, x0: Mapping[str, float] | Sequence[float], t: npt.ArrayLike, u: Mapping[str, Any] | None = None
    ) -> FloatArray:
        """Integrate the equations from `x0`; see `DynamicsSolution.simulate`."""
        check_is_fitted(self, "solution_")
        return self.solution_.simulate(x0, t, u)

    def score(self, X: Any, t: npt.ArrayLike) -> float:
        """Mean R2 of a simulation from the first row of one run, without missing values.

        For order 2 the columns of `X` are the states and then their derivatives.
        """
        measured = np.asarray(X, dtype=np.float64)
        path = self.simulate([float(value) for value in measured[0]], t)
        total = np.square(measured - measured.mean(axis=0)).sum(axis=0)
        left = np.square(path - measured).sum(axis=0)
        return float(np.mean(1.0 - left / total)) if np.isfinite(left).all() else -np.inf


def _names(given: Any, count: int, letter: str) -> list[str]:
    first = given[0] if isinstance(given, list) and given and hasattr(given[0], "shape") else given
    columns = getattr(first, "columns", None)
    return [f"{letter}{i + 1}" for i in range(count)] if columns is None else [str(one) for one in columns]


def _stacked(
    X: Any, t: Any, runs: npt.ArrayLike | None, u: Any
) -> tuple[FloatArray, FloatArray, npt.NDArray[Any] | None, FloatArray | None]:
    """States (points, states), times (points,), labels of runs and inputs of all runs, stacked."""
    if isinstance(X, list) and X and np.ndim(X[0]) == 2:
        if runs is not None:
            raise UsageError("runs: X is a list, so each of its arrays is a run. Leave runs out.")
        if len(X) != len(t) or (u is not None and len(u) != len(X)):
            raise UsageError("X, t and u must be lists of the same length, one entry for each run")
        labels = np.repeat(np.arange(len(X), dtype=np.float64), [len(one) for one in X])
        given = None if u is None else np.concatenate([_two(one) for one in u])
        return (
            np.concatenate([_two(one) for one in X]),
            np.concatenate([np.asarray(s) for s in t]),
            labels,
            given,
        )
    states, times = _two(X), np.asarray(t, dtype=np.float64)
    if times.shape != states.shape[:1]:
        raise UsageError(f"t has shape {times.shape}; X has {states.shape[0]} points")
    return states, times, None if runs is None else np.asarray(runs), None if u is None else _two(u)


def _two(given: Any) -> FloatArray:
    values = np.asarray(given, dtype=np.float64)
    return values[:, None] if values.ndim == 1 else values
