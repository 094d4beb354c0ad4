"""The answer of one run, as plain data: everything that is printed, saved or exported comes from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, IndexArray, spread_places
from physdiffuser.core.solution_parts.constraint_status import ConstraintStatus
from physdiffuser.core.solution_parts.display import Displayed, Restorable
from physdiffuser.core.solution_parts.fit_rows import FitRows
from physdiffuser.core.solution_parts.group_constants import GroupNames, with_group_constants
from physdiffuser.core.solution_parts.next_measurements import NextMeasurements
from physdiffuser.core.solution_parts.template_parts import TemplateParts
from physdiffuser.expressions import Expression
from physdiffuser.verification.checks import CheckState

Status = Literal["exact", "approximate", "none"]
Verdict = Literal["verified", "different", "unknown"]
GuessState = Literal["kept", "simplified", "improved", "beaten", "unusable"]


@dataclass(frozen=True)
class ConstantEstimate:
    """A constant of the chosen formula.

    Attributes
    ----------
    name
        `c1`, `c2`, ... in order of appearance in the formula.
    value
        The value that stands in the formula.
    low, high
        95 % confidence interval of a fitted value, the constants that were set held; None when it cannot be
        given.
    text
        How it is written: `2*pi`, `3/2`, or with the standard error of its last digits, `1.730(4)`.
    exact
        Whether the digits of a noise-free table prove the value that it was set to.
    fitted, sigma
        Fitted value and standard error. Of a constant that was set, those it has when all constants are
        fitted together; None where the rows do not determine it beside the others.
    set_to
        The special value that it was set to, as text; None if it is fitted.
    odds
        Chance that an arbitrary constant would lie as near to a form that is as simple; None if not known, or
        not set.
    agrees_with
        Product of physical constants in SI that a fitted constant agrees with, where the table has no units,
        or a special value that lies too far off for it to be set; else None.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    text: str
    exact: bool
    fitted: float | None = None
    sigma: float | None = None
    set_to: str | None = None
    odds: float | None = None
    agrees_with: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was set to a special value; else it is a fitted number of the formula."""
        return self.set_to is not None


@dataclass(frozen=True, repr=False)
class Equation(Displayed):
    """One row of the Pareto table.

    Attributes
    ----------
    expression
        The tree, with exact constants where the data cannot tell them from the fitted ones.
    text, latex
        As printed, in the aliases of the columns.
    rmse, r2
        On all rows of the table (weighted where rows have weights).
    max_relative_error
        Largest error as a share of the target's value, over all rows whose target is not 0.
    test_rmse
        On the test set, the rows used by neither search nor fit; None when the table is too small for one.
    verdict
        See `docs/methods/answer.md`.
    verification
        How the verdict was reached, one sentence a check.
    check_states
        How each of these checks came out, in the same order; empty when not known.
    verdict_reason
        Why the law is not verified, if it is the chosen one; continues "not verified: ".
    constants
        The constants of the formula; those that were not set are, in the same order, the float numbers of
        `expression` from left to right.
    covariance
        Covariance matrix of those fitted constants, one tuple a row, from which `predict --intervals`
        gets the intervals of predictions; None when it cannot be given.
    degrees_of_freedom
        Rows less fitted constants, for the quantile of Student's t; None when not known.
    reduced_chi_square
        Of the rows of the fit, over `degrees_of_freedom`; None unless the errors of the target were stated.
    probability
        That the formula is the law, calibrated on development tables; None when not known.
    description_length
        Nats to describe the rows of the fit by this formula, up to a constant of the table; None when not
        known.
    table_digits, extra_digits
        Significant digits of fitted constants in the Pareto table, and digits added to those that the
        uncertainty of a constant asks for: with them the printed text has the printed `rmse`.
    mean_loss
        Mean loss over all rows, where another loss than least squares was asked for.
    names
        Aliases of the table's input columns, in the order of the variables.
    groups
        For a table with groups: the constants of each group (`p1`, `p2`, ...), by its label.
    group_covariance
        For a table with groups: the covariance matrix of the shared fitted constants and of each group's own,
        by its label; empty where it is not known.
    """

    expression: Expression
    text: str
    latex: str
    complexity: int
    rmse: float
    r2: float
    max_relative_error: float
    test_rmse: float | None = None
    verdict: Verdict = "unknown"
    verification: tuple[str, ...] = ()
    check_states: tuple[CheckState, ...] = ()
    constants: tuple[ConstantEstimate, ...] = ()
    derivation: tuple[str, ...] = ()
    generator: str = ""
    covariance: tuple[tuple[float, ...], ...] | None = None
    degrees_of_freedom: int | None = None
    reduced_chi_square: float | None = None
    probability: float | None = None
    description_length: float | None = None
    verdict_reason: str = ""
    table_digits: int = 4
    extra_digits: int = 0
    mean_loss: float | None = None
    names: tuple[str, ...] = field(default=(), compare=False)
    groups: Mapping[str, tuple[ConstantEstimate, ...]] = field(default_factory=dict, compare=False)
    group_covariance: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, eq=False)
class FitPoints(Restorable):
    """Truth and prediction of the chosen formula, for plots.

    Attributes
    ----------
    truth, prediction
        Shape (points,): the whole table, or a sample of it when it is large.
    test
        Shape (points,), True for the rows of the test set.
    rows
        Rows of the table, of which these are a sample.
    inputs
        Shape (points, columns), the input columns of these rows; None when they were not kept.
    codes
        Shape (points,), the group of each row; None for a table without groups.
    """

    truth: FloatArray
    prediction: FloatArray
    test: BoolArray
    rows: int
    inputs: FloatArray | None = None
    codes: IndexArray | None = None


def sample_fit_points(
    truth: FloatArray,
    prediction: FloatArray,
    test: BoolArray,
    limit: int = 5_000,
    *,
    inputs: FloatArray | None = None,
    codes: IndexArray | None = None,
) -> FitPoints:
    """Pick the rows that a plot shows: all of a small table; else an even spread and every extreme.

    The rows with the largest residuals and the outermost targets are always among them, so that a
    plot never hides the worst rows of a large table. Deterministic.

    Parameters
    ----------
    truth, prediction, test
        Shape (rows,).
    limit
        Most points to keep.
    inputs
        Shape (rows, columns), to keep the input columns of the chosen rows too.
    codes
        Shape (rows,): the group of each row, to keep it too.
    """
    rows = int(truth.shape[0])
    chosen = np.arange(rows)
    if rows > limit:
        extreme = limit // 10
        with np.errstate(all="ignore"):
            residual = np.nan_to_num(np.abs(truth - prediction), nan=np.inf)
        worst = np.argpartition(residual, rows - extreme)[rows - extreme :]
        lowest, highest = np.argmin(truth), np.argmax(truth)
        spread = spread_places(rows, limit - extreme - 2)
        chosen = np.unique(np.concatenate([spread, worst, [lowest, highest]]))
    kept = None if inputs is None else inputs[chosen]
    groups = None if codes is None else codes[chosen]
    return FitPoints(truth[chosen], prediction[chosen], test[chosen], rows, kept, groups)


@dataclass(frozen=True)
class ColumnSummary:
    """A column in a few numbers, for the summary of the data.

    Attributes
    ----------
    name, alias
        As the table has it, and as formulas have it.
    unit
        As text; empty when not given.
    low, median, high
        Over all rows.
    distinct
        Distinct values among `looked_at` rows spread over the table.
    """

    name: str
    alias: str
    unit: str
    low: float
    median: float
    high: float
    distinct: int
    looked_at: int


@dataclass(frozen=True)
class GuessOutcome:
    """What became of a formula that the user started from.

    Attributes
    ----------
    text
        As the user wrote it.
    expression, rmse, complexity
        With fitted constants, on all rows of the table; None where no constants give finite values.
    state
        "kept": the chosen law has this form. "simplified": it is a special case without some of the columns.
        "improved": it has the guess as a special case. "beaten": it has another form. "unusable": the guess
        has no finite values.
    sentence
        The same for readers.
    """

    text: str
    expression: str | None
    rmse: float | None
    complexity: int | None
    state: GuessState
    sentence: str


@dataclass(frozen=True, repr=False)
class Solution(Displayed):
    """What `solve` returns.

    `print` shows the report of the command line, a notebook the law with its evidence.

    Attributes
    ----------
    target
        Name of the target column, as the table has it.
    status
        "exact" when the law is exact up to rounding, "none" when no finite formula was found.
    best
        The chosen row of `pareto`; None when the status is "none".
    pareto
        From simple to complex.
    names, columns
        Aliases of the input columns in the order of the variables, and their names in the table.
    aliases
        Alias to name, where they differ.
    notes
        What was assumed on the user's behalf (delimiter, target, ...), by topic.
    rows, test_rows
        Rows of the table; those of the test set.
    known_constants
        The named constants that formulas may hold, with their values.
    timing
        Seconds, by part of the run; `elapsed_seconds` is the whole.
    fit_points
        What the plots show; None when there is nothing to plot.
    none_of_these
        Probability that no row of `pareto` is the law; None when not known.
    evidence
        Figures that the probability of the chosen law is computed from; see
        `physdiffuser.finalize.evidence.figures`.
    guesses
        What became of the formulas that the user started from.
    template
        What was found for the unknown functions of a template; None without one.
    constraints
        Whether the chosen law satisfies each constraint that was given.
    groups
        The groups of the table, and the names of the constants that they have of their own: these are the
        last of `names`. None for a table without groups.
    summaries
        The input columns and, last, the target; empty when read back from a file.
    next_measurements
        What to measure next; None unless asked for with `suggest_next`.
    operators
        The operators that the user has defined, `{"sinc(x)": "sin(x)/x"}`.
    loss
        Name of the loss, where another one than least squares was asked for.
    fit_rows
        The test rows, the rows that were left out and the weights; None for large tables and groups.
    """

    target: str
    status: Status
    best: Equation | None
    pareto: tuple[Equation, ...]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    aliases: Mapping[str, str]
    derivation: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    test_rows: int = 0
    known_constants: Mapping[str, float] = field(default_factory=dict)
    timing: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    version: str = ""
    fit_points: FitPoints | None = field(default=None, compare=False, repr=False)
    summaries: tuple[ColumnSummary, ...] = field(default=(), compare=False, repr=False)
    none_of_these: float | None = None
    evidence: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)
    guesses: tuple[GuessOutcome, ...] = ()
    next_measurements: NextMeasurements | None = field(default=None, compare=False, repr=False)
    groups: GroupNames | None = None
    operators: Mapping[str, str] = field(default_factory=dict)
    loss: str = ""
    template: TemplateParts | None = None
    fit_rows: FitRows | None = None
    constraints: tuple[ConstraintStatus, ...] = ()

    def inputs_for(self, equation: Equation) -> FloatArray | None:
        """Inputs of `fit_points` with the constants that a formula has for each group; None without."""
        points = self.fit_points
        if points is None or points.inputs is None or self.groups is None or points.codes is None:
            return None if points is None else points.inputs
        return with_group_constants(points.inputs, equation.groups, self.groups, points.codes)

    def plot(self, kind: str = "fit", row: int | None = None, axes: Any = None) -> Any:
        """Draw one picture of the chosen formula, or of a row of `pareto` counted from 1, with matplotlib.

        See `physdiffuser.report.plots.plot`: `kind` is "fit", "residuals", "pareto" or "partial".
        """
        return self._display().plot_of(self, kind, row, axes)

    def report(self, path: str | PathLike[str] | None = None) -> str:
        """The page that `physdiffuser solve` leaves in its run folder, written to `path` if that is given.

        Returns
        -------
        HTML that needs no other file; a notebook shows it as a page.
        """
        page: str = self._display().page_of(self, path)
        return page
