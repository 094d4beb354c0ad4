"""What a fitted estimator shows of its laws: rows of the Pareto front, pictures, exports, texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from physdiffuser.arrays import FloatArray
from physdiffuser.report.text.display import row_of
from physdiffuser.targets.tables import refuse_several

if TYPE_CHECKING:
    import pandas as pd

    from physdiffuser.core.solution import Equation, Solution
    from physdiffuser.data.dataset import Dataset
    from physdiffuser.report.export.functions import NumpyFunction
    from physdiffuser.report.export.torch_module import TorchLaw


def earlier_formulas(estimator: FittedLaws) -> Callable[[Dataset], tuple[str, ...]]:
    """What gives the formulas of the fit before for a table; none if it had other columns."""
    targets = {name: one.solution_ for name, one in getattr(estimator, "targets_", {}).items()}
    single = getattr(estimator, "solution_", None)

    def formulas(dataset: Dataset) -> tuple[str, ...]:
        earlier = targets.get(dataset.target_column.name, single)
        if earlier is None:
            return ()
        own = () if earlier.groups is None else earlier.groups.constants
        if earlier.names != (*dataset.names, *own) or (own and dataset.groups is None):
            return ()
        functions = () if earlier.template is None else earlier.template.statements
        return (*(row.text for row in earlier.pareto), *functions)

    return formulas


class FittedLaws:
    """The results of an estimator that has found a solution.

    Attributes
    ----------
    solution_
        What was found.
    targets_
        With several targets: an estimator for each, by name.
    """

    solution_: Solution
    targets_: dict[str, Any]

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
        self._check_one_law()
        self.selected_row_ = row if row is None else int(row)
        if row is not None:
            row_of(self.solution_, self.selected_row_)
        return self

    @property
    def best_(self) -> Equation:
        """The chosen formula, or the row that `select` has named."""
        self._check_one_law()
        return row_of(self.solution_, getattr(self, "selected_row_", None))

    @property
    def equations_(self) -> pd.DataFrame:
        """The Pareto front, one row a formula, simple ones first, numbered from 1."""
        self._check_one_law()
        from physdiffuser.report.text.front_table import front_table

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
        self._check_one_law()
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
        from physdiffuser.report.export.functions import to_sympy

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
        from physdiffuser.report.export.functions import to_numpy

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
        from physdiffuser.report.export.functions import to_torch

        equation = self._equation(row)
        return to_torch(equation.expression, self.solution_.names)

    def __str__(self) -> str:
        return str(self.solution_) if self.__sklearn_is_fitted__() else repr(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solution_") or hasattr(self, "targets_")

    def _repr_latex_(self) -> str | None:
        if not hasattr(self, "solution_"):
            return None
        return replace(self.solution_, best=self.best_)._repr_latex_()

    def _check_one_law(self) -> None:
        check_is_fitted(self)
        refuse_several(self)

    def _equation(self, row: int | None) -> Equation:
        return self.best_ if row is None else row_of(self.solution_, row)

    def _predict_targets(self, X: Any, row: int | None, groups: Any) -> Any:
        """One column for each target."""
        columns = {name: one.predict(X, row, groups=groups) for name, one in self.targets_.items()}
        container = getattr(self, "_sklearn_output_config", {}).get("predict", "default")
        if container == "default":
            return np.column_stack(list(columns.values()))
        if container == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        import polars as pl

        return pl.DataFrame(columns)

    def _output(self, values: FloatArray, index: Any) -> Any:
        container = getattr(self, "_sklearn_output_config", {}).get("predict", "default")
        if container == "pandas":
            import pandas as pd

            return pd.Series(values, index=index, name=self.solution_.target)
        if container == "polars":
            import polars as pl

            return pl.Series(self.solution_.target, values)
        return values
