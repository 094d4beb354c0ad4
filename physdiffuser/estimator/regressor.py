"""The scikit-learn estimator: the whole pipeline in one readable `fit`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from physdiffuser.data.arrays import numbered_names
from physdiffuser.data.statements.groups import group_texts
from physdiffuser.errors import NothingFoundError, UsageError
from physdiffuser.estimator.fitted_laws import FittedLaws, earlier_formulas
from physdiffuser.expressions import evaluate
from physdiffuser.options import DEFAULTS, LossChoice, OperatorChoice, SolveOptions
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.parallel.cores import usable_cores
from physdiffuser.targets.tables import merged_dataset, solve_tables, target_names

if TYPE_CHECKING:
    from physdiffuser.core.problem import NoiseModelName
    from physdiffuser.core.progress import Progress
    from physdiffuser.data.statements.input_errors import InputErrors
    from physdiffuser.targets.answer import TargetSolutions

# What scikit-learn calls so.
ALL_CORES = -1
CONTAINERS = ("default", "pandas", "polars")


class PhysDiffuserRegressor(FittedLaws, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # sklearn has no types
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
        Names of the operators that may occur (`["add", "mul", "sqrt"]`); None for all. Definitions of
        further ones, `{"sinc": "sin(x)/x"}` beside all others or `"sinc(x)=sin(x)/x"` among the names.
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
        "squared", or "robust" for errors with heavy tails; "auto" chooses. "huber", "absolute",
        "quantile=0.5", "logistic", a function of target and prediction, or a `Likelihood`: that is minimised.
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
    template
        Form of the law, `"exp(-x1/L)*f(x2)"`: functions that are no operators are searched for, other names
        are constants. `solution_.template` holds the functions.
    known
        A known part of the law, to which `f(...)`, a function of all columns, is added; with a leading `*` a
        known factor.
    constraints
        What the law must satisfy, `[{"increasing": "x1"}, {"positive": True}]`, or a YAML file;
        `solution_.constraints` says whether it does.
    input_errors
        Standard deviations of the columns of `X`, `{"x1": 0.01, "x2": "1%"}`: a number, or a percentage of
        the value.
    complexity
        Complexity of operators, columns and numbers, `{"exp": 3, "x1": 2, "constant": 2}`.
    forbid
        Forbidden nestings, `["sin(sin)", "exp(log)"]`: no such operator anywhere inside the other.
    suggest_next
        How many measurements to suggest that would best separate the laws that remain;
        `solution_.next_measurements` has them.
    suggest_range
        Ranges of columns within which they are sought, `{"x1": (0, 10)}`; None for those of the rows.
    n_jobs
        Processes that work at the same time; -1 for all cores. None: all cores too, but one inside of joblib,
        dask and other parallel work, as in a grid search that has jobs of its own.
    auto_origin
        Whether columns far from zero, such as years, are also tried with a shift, which the law states.
    warm_start
        Whether `fit` goes on from the formulas of the fit before, if the columns have the same names.

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
    targets_, target_solutions_
        After a fit to several targets, in place of the attributes above: a fitted estimator for each by its
        name, and what the laws have in common (see `physdiffuser.targets.answer.TargetSolutions`).
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
        operators: OperatorChoice = DEFAULTS.operators,
        max_complexity: int = DEFAULTS.max_complexity,
        constants: str | Mapping[str, float | str | None] | None = DEFAULTS.constants,
        units: Any = DEFAULTS.units,
        noise: float | None = DEFAULTS.noise,
        loss: LossChoice = DEFAULTS.loss,
        noise_model: NoiseModelName = DEFAULTS.noise_model,
        attention: str | None = DEFAULTS.attention,
        device: str = DEFAULTS.device,
        initial: Sequence[str] = DEFAULTS.initial,
        template: str | None = DEFAULTS.template,
        known: str | None = DEFAULTS.known,
        constraints: Any = DEFAULTS.constraints,
        input_errors: InputErrors | None = DEFAULTS.input_errors,
        complexity: str | Mapping[str, int] | None = DEFAULTS.complexity,
        forbid: Sequence[str] = DEFAULTS.forbid,
        suggest_next: int = DEFAULTS.suggest_next,
        suggest_range: str | Mapping[str, tuple[float, float]] | None = DEFAULTS.suggest_range,
        n_jobs: int | None = DEFAULTS.jobs,
        auto_origin: bool = DEFAULTS.auto_origin,
        warm_start: bool = False,
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
        self.template = template
        self.known = known
        self.constraints = constraints
        self.input_errors = input_errors
        self.complexity = complexity
        self.forbid = forbid
        self.auto_origin = auto_origin
        self.warm_start = warm_start
        self.suggest_next = suggest_next
        self.suggest_range = suggest_range
        self.n_jobs = n_jobs

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
            Shape (rows,), or (rows, targets): `targets_` then holds an estimator for each target, and
            `predict` returns one column for each.
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
        shape = np.asarray(y).shape
        named, several = y, len(shape) == 2 and shape[1] > 1
        X, y = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, multi_output=several, ensure_min_samples=2
        )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        names = [str(name) for name in getattr(self, "feature_names_in_", numbered_names(X.shape[1]))]
        parameters = self.get_params(deep=False)
        del parameters["random_state"], parameters["warm_start"]
        jobs = parameters.pop("n_jobs")
        options = SolveOptions(
            seed=self._seed(), jobs=usable_cores() if jobs == ALL_CORES else jobs, **parameters
        )
        if self.warm_start:
            options = options.changed(resumed=earlier_formulas(self))
        self.selected_row_: int | None = None
        target = np.asarray(y, dtype=np.float64)
        self.__dict__.pop("targets_", None)
        if several:
            called = target_names(named, target.shape[1], names)
            tables = {
                name: merged_dataset(X, target[:, number], weights, names, name, groups)
                for number, name in enumerate(called)
            }
            self._take_targets(solve_tables(tables, options, on_improvement))
            return self
        dataset = merged_dataset(X, target, weights, names, target_name, groups)
        self.solution_ = solve_dataset(dataset, options, on_improvement=on_improvement)
        if self.solution_.best is None:
            raise NothingFoundError("no formula is finite on all rows; allow more operators or more time")
        return self

    def _take_targets(self, found: TargetSolutions) -> None:
        """Keep the laws of several targets, each in an estimator of its own."""
        self.__dict__.pop("solution_", None)
        self.target_solutions_ = found
        self.targets_: dict[str, PhysDiffuserRegressor] = {}
        for name, solution in found.solutions.items():
            one = self.targets_[name] = clone(self)
            one.solution_, one.selected_row_ = solution, None
            one.n_features_in_ = self.n_features_in_
            if hasattr(self, "feature_names_in_"):
                one.feature_names_in_ = self.feature_names_in_

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
        Shape (rows,), or (rows, targets); an array unless `set_output` says otherwise. nan or inf on rows
        outside the formula's domain, which only rows unlike those of `fit` can be.

        Raises
        ------
        DataError
            If a group is not one of those that were fitted.
        UsageError
            If groups are missing, or the law has none.
        """
        check_is_fitted(self)
        if hasattr(self, "targets_"):
            return self._predict_targets(X, row, groups)
        index = getattr(X, "index", None)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        equation = self._equation(row)
        if (groups is None) != (self.solution_.groups is None):
            have = (
                "has no groups" if self.solution_.groups is None else "has groups: give groups=, one per row"
            )
            raise UsageError(f"the law {have}")
        if groups is not None:
            from physdiffuser.report.text.group_table import inputs_with_groups

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; parameters that an earlier version did not have get their defaults."""
        super().__setstate__(state)
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if not hasattr(self, name):
                setattr(self, name, parameter.default)

    def _repr_html_inner(self) -> str:
        """What a notebook shows: the law once there is one, the parameters before."""
        if hasattr(self, "solution_"):
            return str(self.solution_._repr_html_())
        return str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **settings: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**settings)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))
