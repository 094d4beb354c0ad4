"""The scikit-learn estimator: the whole pipeline in one readable `fit`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from physdiffuser.data.arrays import dataset_from_arrays, free_name, numbered_names
from physdiffuser.data.distinct_rows import distinct_rows, grouped_rows
from physdiffuser.data.groups import group_texts, with_groups
from physdiffuser.errors import NothingFoundError, UsageError
from physdiffuser.expressions import evaluate
from physdiffuser.options import DEFAULTS, SolveOptions
from physdiffuser.pipeline import solve_dataset
from physdiffuser.report.display import row_of

if TYPE_CHECKING:
    import pandas as pd

    from physdiffuser.core.problem import Loss, NoiseModelName
    from physdiffuser.core.progress import Progress
    from physdiffuser.core.solution import Equation
    from physdiffuser.data.input_errors import InputErrors
    from physdiffuser.report.functions import NumpyFunction
    from physdiffuser.report.torch_module import TorchLaw

CONTAINERS = ("default", "pandas", "polars")
FloatArray = npt.NDArray[np.float64]


class PhysDiffuserRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
    """Finds a short formula for `y` in terms of the columns of `X`.

    More than eight parameters: in scikit-learn the options of an estimator are arguments of its constructor.

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
        "squared", or "robust" for errors with heavy tails; "auto" chooses.
    noise_model
        How errors of `y` depend on its value: "constant", "relative", "poisson", "mixed" or "robust"; "auto"
        chooses it together with the law. Without effect when rows have different weights.
    attention
        For the learned generators: name of the attention variant.
    device
        "cpu", or "cuda" for pair searches, fits of many formulas and the networks; "auto" takes a GPU, where
        there is one, for the networks alone.
    initial
        Formulas to start from (`["A*exp(-b*t)"]`): names that are neither columns nor known constants are
        constants to be fitted. `solution_.guesses` says what became of each.
    input_errors
        Standard deviations of the columns of `X`, `{"x1": 0.01, "x2": "1%"}`: a number, or a percentage of
        the value.

    Attributes
    ----------
    solution_
        All that was found, as plain data (see `physdiffuser.core.solution.Solution`).
    best_
        The chosen formula: `text`, `latex`, `complexity`, `rmse`, `r2`, `verdict`, ...
    equations_
        Data frame of the Pareto front, simple formulas first, with the columns that PySR has (`complexity`,
        `loss`, `score`, `equation`, `sympy_format`, `lambda_format`) and more; `chosen` marks `best_`. Its
        index, `row`, counts from 1, as the report of the command line does; `predict`, `select`, `plot`,
        `sympy`, `latex`, `to_numpy` and `to_torch` take it.
    n_features_in_, feature_names_in_
        As scikit-learn defines them.

    Notes
    -----
    The search and its defaults are those of `physdiffuser.solve`. Before it, `fit` merges, drops and sorts
    rows: a row that occurs twice is a row with twice the weight, a row of weight zero is no row, and the
    order of the rows does not matter. `solve` leaves the rows as they are, so on a table with noise, whose
    rows are not sorted, other rows are in the test set and the constants can differ within their intervals.

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
        initial: Sequence[str] = DEFAULTS.initial,
        input_errors: InputErrors | None = DEFAULTS.input_errors,
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
        self.initial = initial
        self.input_errors = input_errors

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        on_improvement: Callable[[Progress], bool | None] | None = None,
    ) -> Self:
        """Search for the law.

        Parameters
        ----------
        X
            Shape (rows, columns); the names of a data frame's columns are used in formulas.
        y
            Shape (rows,).
        sample_weight
            Shape (rows,), not negative. For known errors of `y`, give `1/sigma**2`.
        groups
            Shape (rows,), text or numbers: the law then has one form for all groups of rows, and constants
            that they share or have of their own. Rows are not merged. `predict` takes `groups` as well.
        on_improvement
            Called with each better formula; if it returns True, the search stops with the best so far.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError
            If the table is not finite numbers of fitting shapes, or has fewer than two distinct rows.
        NothingFoundError
            If no formula is finite on all rows.
        KeyboardInterrupt
            After a second Ctrl-C, or a first one before any formula was found. The first one ends the fit
            with the best law so far.
        """
        target_name = getattr(y, "name", None)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        target = np.asarray(y, dtype=np.float64)
        rows = distinct_rows(X, target, weights) if groups is None else grouped_rows(X, target, weights)
        names = [str(name) for name in getattr(self, "feature_names_in_", numbered_names(X.shape[1]))]
        dataset = dataset_from_arrays(
            rows.inputs,
            rows.target,
            names=names,
            target_name=free_name((target_name, "y", "target"), names),
            weights=rows.weights,
        )
        if groups is not None:
            dataset = with_groups(dataset, groups, len(target))
        parameters = self.get_params(deep=False)
        del parameters["random_state"]
        options = SolveOptions(seed=self._seed(), **parameters)
        self.solution_ = solve_dataset(
            replace(dataset, row_numbers=rows.first), options, on_improvement=on_improvement
        )
        self.selected_row_: int | None = None
        if self.solution_.best is None:
            raise NothingFoundError("no formula is finite on all rows; allow more operators or more time")
        return self

    def predict(self, X: Any, row: int | None = None, *, groups: Any = None) -> Any:
        """Value of a formula on each row.

        Parameters
        ----------
        X
            Shape (rows, columns).
        row
            A row of `equations_`, counted from 1; the chosen formula when None.
        groups
            Shape (rows,): the group of each row, if the law was fitted with groups.

        Returns
        -------
        Shape (rows,), an array unless `set_output` says otherwise. nan or inf on rows outside the formula's
        domain, which only rows unlike those of `fit` can be.

        Raises
        ------
        DataError
            If a group is not one of those that were fitted.
        UsageError
            If groups are missing, or the law has none.
        """
        check_is_fitted(self, "solution_")
        index = getattr(X, "index", None)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        equation = self._equation(row)
        if (groups is None) != (self.solution_.groups is None):
            have = (
                "has no groups" if self.solution_.groups is None else "has groups: give groups=, one per row"
            )
            raise UsageError(f"the law {have}")
        if groups is not None:
            from physdiffuser.report.group_table import inputs_with_groups

            X = inputs_with_groups(self.solution_, equation, X, group_texts(groups))
        return self._output(evaluate(equation.expression, X), index)

    def set_output(self, *, predict: str | None = None) -> Self:
        """Say what `predict` returns.

        Parameters
        ----------
        predict
            "default" for an array, "pandas" or "polars" for a Series that has the name of the target, and in
            pandas the index of the table. None changes nothing.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        UsageError
            If there is no such container.
        """
        if predict is not None:
            if predict not in CONTAINERS:
                raise UsageError(f"there is no output {predict!r}: use one of {', '.join(CONTAINERS)}")
            # Where scikit-learn keeps such settings, so that `clone` takes them along.
            self._sklearn_output_config = {**getattr(self, "_sklearn_output_config", {}), "predict": predict}
        return self

    def select(self, row: int | None = None) -> Self:
        """Use another row of `equations_` as `best_`.

        `predict`, exports and plots then take it. `solution_` stays as found.

        Parameters
        ----------
        row
            Counted from 1; the row chosen by `fit` when None.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        UsageError
            If there is no such row.
        """
        check_is_fitted(self, "solution_")
        self.selected_row_ = row if row is None else int(row)
        if row is not None:
            row_of(self.solution_, self.selected_row_)
        return self

    @property
    def best_(self) -> Equation:
        """The chosen formula, or the row that `select` has named."""
        check_is_fitted(self, "solution_")
        return row_of(self.solution_, getattr(self, "selected_row_", None))

    @property
    def equations_(self) -> pd.DataFrame:
        """The Pareto front, one row a formula, simple ones first, numbered from 1."""
        check_is_fitted(self, "solution_")
        from physdiffuser.report.front_table import front_table

        return front_table(self.solution_, self.best_)

    def plot(self, kind: str = "fit", row: int | None = None, axes: Any = None) -> Any:
        """Draw one picture of a formula with matplotlib.

        Parameters
        ----------
        kind
            "fit" (prediction against measurement), "residuals", "pareto" or "partial" (partial dependence on
            each column; then one `Axes` for each).
        row
            A row of `equations_`, counted from 1; the chosen formula when None.
        axes
            Where to draw; new ones when None.

        Returns
        -------
        Axes
            What was drawn on; an array of them for "partial".
        """
        from physdiffuser.report.plots import plot

        return plot(self.solution_, self._equation(row), kind, axes)

    def report(self, path: str | PathLike[str] | None = None) -> str:
        """The page of the fit, as `physdiffuser solve` writes it.

        Parameters
        ----------
        path
            Where it is written, too, if given.

        Returns
        -------
        str
            HTML that needs no other file.
        """
        check_is_fitted(self, "solution_")
        page: str = self.solution_.report(path)
        return page

    def sympy(self, row: int | None = None) -> Any:
        """The chosen formula, or another row, as a sympy expression.

        Parameters
        ----------
        row
            A row of `equations_`, counted from 1; the chosen or selected one when None.

        Returns
        -------
        sympy.Expr
            Its symbols are the aliases of the columns.
        """
        from physdiffuser.report.functions import to_sympy

        equation = self._equation(row)
        return to_sympy(equation.expression, self.solution_.names)

    def latex(self, row: int | None = None) -> str:
        """The chosen formula, or another row, as LaTeX.

        Parameters
        ----------
        row
            A row of `equations_`, counted from 1; the chosen or selected one when None.

        Returns
        -------
        str
            Without dollar signs.
        """
        return self._equation(row).latex

    def to_numpy(self, row: int | None = None) -> NumpyFunction:
        """The chosen formula, or another row, as a function of numpy arrays.

        Parameters
        ----------
        row
            A row of `equations_`, counted from 1; the chosen or selected one when None.

        Returns
        -------
        NumpyFunction
            Called with one array of shape (rows, columns).
        """
        from physdiffuser.report.functions import to_numpy

        equation = self._equation(row)
        return to_numpy(equation.expression, self.solution_.names)

    def to_torch(self, row: int | None = None) -> TorchLaw:
        """The chosen formula, or another row, as a torch module.

        Its fitted constants are trainable parameters.

        Parameters
        ----------
        row
            A row of `equations_`, counted from 1; the chosen or selected one when None.

        Returns
        -------
        TorchLaw
            Called with one tensor of shape (rows, columns).
        """
        from physdiffuser.report.functions import to_torch

        equation = self._equation(row)
        return to_torch(equation.expression, self.solution_.names)

    def __str__(self) -> str:
        return str(self.solution_) if self.__sklearn_is_fitted__() else repr(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solution_")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; parameters that an earlier version did not have get their defaults."""
        super().__setstate__(state)
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if not hasattr(self, name):
                setattr(self, name, parameter.default)

    def _repr_html_inner(self) -> str:
        """What a notebook shows: the law once there is one, the parameters before."""
        if self.__sklearn_is_fitted__():
            return str(self.solution_._repr_html_())
        return str(super()._repr_html_inner())

    def _repr_latex_(self) -> str | None:
        if not self.__sklearn_is_fitted__():
            return None
        return replace(self.solution_, best=self.best_)._repr_latex_()

    def _repr_mimebundle_(self, **settings: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**settings)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def _output(self, values: FloatArray, index: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("predict", "default")
        if container == "pandas":
            import pandas as pd

            return pd.Series(values, index=index, name=self.solution_.target)
        if container == "polars":
            import polars as pl

            return pl.Series(self.solution_.target, values)
        return values

    def _equation(self, row: int | None) -> Equation:
        return self.best_ if row is None else row_of(self.solution_, row)

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))
