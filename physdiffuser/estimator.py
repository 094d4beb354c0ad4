"""The scikit-learn estimator: the whole pipeline in one readable `fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from physdiffuser.data.arrays import dataset_from_arrays, free_name, numbered_names
from physdiffuser.errors import NothingFoundError, UsageError
from physdiffuser.expressions import evaluate
from physdiffuser.options import DEFAULTS, SolveOptions
from physdiffuser.pipeline import solve_dataset

if TYPE_CHECKING:
    import pandas as pd

    from physdiffuser.core.problem import Loss, NoiseModelName
    from physdiffuser.core.solution import Equation
    from physdiffuser.report.functions import NumpyFunction
    from physdiffuser.report.torch_module import TorchLaw

FloatArray = npt.NDArray[np.float64]


class PhysDiffuserRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Finds a short formula for `y` in terms of the columns of `X`.

    Parameters
    ----------
    time
        Time limit in seconds; 60 if neither `time` nor `steps` is given. The search stops earlier when the
        law is exact, or as good as the noise allows.
    steps
        Maximum number of steps of the search: equal steps give equal results on the same machine, which
        seconds cannot promise. With both, whichever ends first.
    random_state
        Seed of the search. None for a fresh one at each fit.
    generators
        Names of the generators to use; None for the default choice.
    operators
        Names of the operators that may occur (`["add", "mul", "sqrt"]`); None for all.
    max_complexity
        Formulas above it are not considered.
    constants
        Known constants that may occur, by name and value; a name with the value None is looked up
        among the physical constants.
    units
        Unit of each column and of the target, by name (`{"x1": "m", "y": "m/s"}`), or a file that holds
        them. Formulas must then balance. The target is called `y` unless `y` is a named Series.
    noise
        Relative standard deviation of the target, if known.
    loss
        "squared", or "huber" for tables with outliers; "auto" compares neighbouring rows to choose.
    noise_model
        How errors of `y` depend on its value: "constant", "relative", "poisson", "mixed" or "robust"; "auto"
        chooses it together with the law. Without effect when rows have different weights.
    attention
        For the learned generators: name of the attention variant.
    device
        "cpu", or "cuda" for pair searches, fits of many formulas and the networks; "auto" takes a GPU, where
        there is one, for the networks alone.

    Attributes
    ----------
    solution_
        All that was found, as plain data (see `physdiffuser.core.solution.Solution`).
    best_
        The chosen formula: `text`, `latex`, `complexity`, `rmse`, `r2`, `verdict`, ...
    equations_
        Data frame of the Pareto front, simple formulas first; `chosen` marks `best_`. Its index, `row`,
        counts from 1, as the report of the command line does; `sympy`, `latex`, `to_numpy` and `to_torch`
        take it.
    n_features_in_, feature_names_in_
        As scikit-learn defines them.

    Notes
    -----
    The search and its defaults are those of `physdiffuser.solve`. Before it, `fit` merges, drops and sorts
    rows: a row that occurs twice is a row with twice the weight, a row of weight zero is no row, and the
    order of the rows does not matter. `solve` leaves the rows as they are, so on a table with noise, whose
    rows are not sorted, other rows are held out and the constants can differ within their intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from physdiffuser import PhysDiffuserRegressor
    >>> X = np.random.default_rng(0).uniform(1, 5, (200, 2))
    >>> law = PhysDiffuserRegressor(time=10).fit(X, X[:, 0] * X[:, 1] ** 2 / 2)
    >>> law.best_.text
    'x1*x2**2/2'
    """

    def __init__(
        self,
        time: float | None = DEFAULTS.time,
        steps: int | None = DEFAULTS.steps,
        random_state: int | np.random.RandomState | None = DEFAULTS.seed,
        generators: Sequence[str] | None = DEFAULTS.generators,
        operators: Sequence[str] | None = DEFAULTS.operators,
        max_complexity: int = DEFAULTS.max_complexity,
        constants: str | Mapping[str, float | str | None] | None = DEFAULTS.constants,
        units: Any = DEFAULTS.units,
        noise: float | None = DEFAULTS.noise,
        loss: Loss | Literal["auto"] = DEFAULTS.loss,
        noise_model: NoiseModelName = DEFAULTS.noise_model,
        attention: str | None = DEFAULTS.attention,
        device: str = DEFAULTS.device,
    ) -> None:
        self.time = time
        self.steps = steps
        self.random_state = random_state
        self.generators = generators
        self.operators = operators
        self.max_complexity = max_complexity
        self.constants = constants
        self.units = units
        self.noise = noise
        self.loss = loss
        self.noise_model = noise_model
        self.attention = attention
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search for the law.

        Parameters
        ----------
        X
            Shape (rows, columns); the names of a data frame's columns are used in formulas.
        y
            Shape (rows,).
        sample_weight
            Shape (rows,), not negative. For known errors of `y`, give `1/sigma**2`.

        Raises
        ------
        ValueError
            If the table is not finite numbers of fitting shapes, or has fewer than two distinct rows.
        NothingFoundError
            If no formula is finite on all rows.
        """
        target_name = getattr(y, "name", None)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        rows = distinct_rows(X, np.asarray(y, dtype=np.float64), weights)
        names = [str(name) for name in getattr(self, "feature_names_in_", numbered_names(X.shape[1]))]
        dataset = dataset_from_arrays(
            rows.inputs,
            rows.target,
            names=names,
            target_name=free_name((target_name, "y", "target"), names),
            weights=rows.weights,
        )
        parameters = self.get_params(deep=False)
        del parameters["random_state"]
        options = SolveOptions(seed=self._seed(), **parameters)
        self.solution_ = solve_dataset(replace(dataset, row_numbers=rows.first), options)
        if self.solution_.best is None:
            raise NothingFoundError("no formula is finite on all rows; allow more operators or more time")
        return self

    def predict(self, X: Any) -> FloatArray:
        """Value of the chosen formula on each row, shape (rows,).

        nan or inf on rows outside the formula's domain, which only rows unlike those of `fit` can be.
        """
        check_is_fitted(self, "solution_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return evaluate(self.best_.expression, X)

    @property
    def best_(self) -> Equation:
        """The chosen formula."""
        check_is_fitted(self, "solution_")
        best = self.solution_.best
        assert best is not None  # fit refuses a solution without
        return best

    @property
    def equations_(self) -> pd.DataFrame:
        """The Pareto front, one row a formula, simple ones first, numbered from 1."""
        check_is_fitted(self, "solution_")
        import pandas as pd

        front = self.solution_.pareto
        return pd.DataFrame(
            [
                {
                    "expression": equation.text,
                    "complexity": equation.complexity,
                    "rmse": equation.rmse,
                    "r2": equation.r2,
                    "max_relative_error": equation.max_relative_error,
                    "held_out_rmse": equation.held_out_rmse,
                    "latex": equation.latex,
                    "verdict": equation.verdict,
                    "generator": equation.generator,
                    "chosen": equation == self.best_,
                }
                for equation in front
            ],
            index=pd.RangeIndex(1, len(front) + 1, name="row"),
        )

    def sympy(self, row: int | None = None) -> Any:
        """The chosen formula, or a row of `equations_` counted from 1, as a sympy expression."""
        from physdiffuser.report.functions import to_sympy

        equation = self._equation(row)
        return to_sympy(equation.expression, self.solution_.names)

    def latex(self, row: int | None = None) -> str:
        """The chosen formula, or a row of `equations_` counted from 1, as LaTeX."""
        return self._equation(row).latex

    def to_numpy(self, row: int | None = None) -> NumpyFunction:
        """The chosen formula, or a row of `equations_` counted from 1, as a function of numpy arrays."""
        from physdiffuser.report.functions import to_numpy

        equation = self._equation(row)
        return to_numpy(equation.expression, self.solution_.names)

    def to_torch(self, row: int | None = None) -> TorchLaw:
        """The chosen formula, or a row of `equations_` counted from 1, as a torch module.

        Its fitted constants are trainable parameters.
        """
        from physdiffuser.report.functions import to_torch

        equation = self._equation(row)
        return to_torch(equation.expression, self.solution_.names)

    def _equation(self, row: int | None) -> Equation:
        best = self.best_
        if row is None:
            return best
        pareto: tuple[Equation, ...] = self.solution_.pareto
        if not 1 <= row <= len(pareto):
            raise UsageError(f"equations_ has no row {row}: its rows are numbered from 1 to {len(pareto)}")
        return pareto[row - 1]

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))


class DistinctRows(NamedTuple):
    """The different rows of a table.

    Attributes
    ----------
    inputs
        Shape (distinct, columns).
    target
        Shape (distinct,).
    weights
        Shape (distinct,), or None when all are equal.
    first
        Shape (distinct,): where each row occurs first in the table, counted from 0.
    """

    inputs: FloatArray
    target: FloatArray
    weights: FloatArray | None
    first: npt.NDArray[np.intp]


def distinct_rows(inputs: FloatArray, target: FloatArray, weights: FloatArray | None = None) -> DistinctRows:
    """One row for each that occurs, with the weights of its copies added up, in lexicographic order.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), not negative; all 1 when None. Rows of weight zero are left out.

    Raises
    ------
    ValueError
        If fewer than two distinct rows are left.
    """
    kept = np.ones(target.shape[0]) if weights is None else weights
    numbers = np.flatnonzero(kept > 0)
    table = np.column_stack([inputs, target])[numbers] + 0.0  # -0.0 + 0.0 is 0.0: one zero, not two
    kept = kept[numbers]
    # The last key of lexsort counts most: columns from the right, so that the first input comes first.
    # Weights are the least of the keys: in a sum over equal rows, their order must not show.
    order = np.lexsort((kept, *table.T[::-1]))
    table, kept, numbers = table[order], kept[order], numbers[order]
    starts = np.flatnonzero(np.r_[True, (table[1:] != table[:-1]).any(axis=1)]) if len(table) else order
    if len(starts) < 2:
        raise ValueError(
            f"{len(starts)} distinct sample(s) of weight above zero while a minimum of 2 is required"
        )
    sums = np.add.reduceat(kept, starts)
    rows = table[starts]
    first = np.minimum.reduceat(numbers, starts)
    return DistinctRows(rows[:, :-1], rows[:, -1], None if np.ptp(sums) == 0.0 else sums, first)
