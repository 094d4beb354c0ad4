"""Solve a table under a loss: forms from searches, constants and choice by the loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.derivation import readable
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import ConstantEstimate, Equation, Solution
from physdiffuser.data.dataset import Dataset, summaries
from physdiffuser.errors import UsageError
from physdiffuser.expressions import ONE, Apply, Expression, Number, complexity, evaluate, to_text
from physdiffuser.expressions.tree import add, call, distinct_constants, div, fitted_constants
from physdiffuser.finalize.constraint_report import statuses_of
from physdiffuser.finalize.guess_outcomes import guess_outcomes
from physdiffuser.finalize.scoring import measured, points_of_fit, predict, with_digits
from physdiffuser.finalize.solution import without_equations
from physdiffuser.losses.fits import Errors, LossFit, bootstrap_errors, fit_loss
from physdiffuser.losses.likelihoods import Loss, check_target
from physdiffuser.options import SolveOptions
from physdiffuser.report.text.digits import concise
from physdiffuser.search.formulas import search_formulas
from physdiffuser.search.posing import constraint_rules
from physdiffuser.search.refinement.guesses import Guess
from physdiffuser.search.run_control import RunControl
from physdiffuser.search.table_search import pose_table
from physdiffuser.selection.description_length import DescriptionLength

# Rows that forms are compared on, and formulas of a search that are fitted.
ROWS, MAX_FORMS = 2_000, 30
SHARES = (0.4, 0.4)
# A row of the Pareto table is so many nats more likely than those before it.
BETTER = 0.5
REASON = "the checks are for least squares, and are not made for another loss"


FormulaSearch = Callable[[Dataset, Sequence[str], float, SolveOptions, RunControl], Sequence[Expression]]
"""As `physdiffuser.search.formulas.search_formulas`."""


def solve_with_loss(
    dataset: Dataset,
    loss: Loss,
    guesses: Sequence[Guess],
    options: SolveOptions,
    control: RunControl,
    search: FormulaSearch | None = None,
) -> Solution:
    """Find the law of least loss.

    A first search, with errors of heavy tails or on a smoothed target, gives forms. Their constants are
    fitted to the loss; around the best of them the loss is a sum of weighted squares, which a second search
    works on. The law is the one with the shortest description, its residuals in nats of the loss.

    Parameters
    ----------
    dataset
        The table; without stated errors. A weight counts as a number of equal rows.
    loss
        What is minimised.
    guesses
        Starting formulas of the user.
    options, control
        Of the search.
    search
        Finds the only formulas that may be the law; the ordinary search when None.

    Raises
    ------
    UsageError
        If the loss is not for this target, or an option has no meaning with it.
    """
    _check_options(dataset, options)
    check_target(loss, dataset.target)
    table = dataset.sample(ROWS)
    if table.weights is not None:
        table = replace(table, weights=table.weights / table.weights.mean())
    problem = pose_table(table, options, control).problem
    problem = replace(problem, rules=constraint_rules(options, dataset))
    selection = _Selection(table, loss, problem, control)
    if search is None:
        selection.consider([Number(float(np.median(table.target)))])
    search = search or search_formulas
    selection.consider([one.expression for one in guesses if one.expression is not None])
    earlier = tuple(options.formulas(dataset))
    plain = options.changed(loss="auto", noise_model="constant", suggest_next=0, suggest_range=None)
    aim = table.target if loss.smoothed is None else loss.smoothed(_neighbourhoods(table))
    first = replace(table, target=np.asarray(aim, dtype=np.float64))
    if np.ptp(first.target) > 0:
        selection.consider(search(first, earlier, SHARES[0], plain, control))
    best = selection.best
    if best is not None and not control.over():
        with np.errstate(all="ignore"):
            prediction = evaluate(best.expression, table.inputs)
            target, weights = loss.working(table.target, prediction, table.weights)
        if np.ptp(target) > 0 and weights.max() > 0:
            second = replace(table, target=target, weights=np.maximum(weights, 1e-6 * weights.max()))
            known = [to_text(one.expression, table.names) for one in selection.shortest[:10]]
            around = plain.changed(loss="squared")
            selection.consider(search(second, known, SHARES[1], around, control))
    solution = _solution(selection, dataset, options, control)
    shown = [_as_law(guess, selection) for guess in guesses]
    return replace(solution, guesses=guess_outcomes(shown, solution, dataset))


def _as_law(guess: Guess, selection: _Selection) -> Guess:
    """The guess as a formula for the target: a probability where it is the logarithm of odds."""
    fitted = None if guess.expression is None else selection.shown(guess.expression)
    return replace(guess, skeleton=selection.shown(guess.skeleton), expression=fitted)


def _check_options(dataset: Dataset, options: SolveOptions) -> None:
    if dataset.stated_errors is not None or dataset.input_errors is not None:
        raise UsageError("--loss: stated errors are for least squares; leave them out, or give --weights")
    for name, given in (
        ("--group", dataset.groups is not None),
        ("--suggest-next", bool(options.suggest_next)),
        ("--noise-model", options.noise_model not in ("auto", "constant")),
    ):
        if given:
            raise UsageError(f"--loss: {name} works with least squares only; leave one of them out")


def _neighbourhoods(table: Dataset) -> FloatArray:
    """Targets of the nearest rows of each row, shape (rows, neighbours)."""
    spread = table.inputs.std(axis=0)
    unit = table.inputs / np.where(spread > 0, spread, 1.0)
    count = min(table.rows, max(10, round(2 * math.sqrt(table.rows))))
    square = np.square(unit).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * unit @ unit.T
    near = np.argpartition(distance, count - 1, axis=1)[:, :count]
    return np.asarray(table.target[near])


class _Selection:
    """Formulas with constants fitted to the loss."""

    def __init__(self, table: Dataset, loss: Loss, problem: Problem, control: RunControl) -> None:
        self.table, self.loss, self.problem, self.control = table, loss, problem, control
        self.measure = DescriptionLength(table.rows, len(table.columns))
        self.fits: dict[Expression, LossFit] = {}
        self.violating: LossFit | None = None
        self._tried: set[Expression] = set()

    def consider(self, formulas: Sequence[Expression]) -> None:
        """Fit some formulas, the first ones as long as there is time."""
        for formula in formulas[:MAX_FORMS]:
            if self.control.over() and self.fits:
                return
            self._take(formula)

    def _take(self, formula: Expression) -> None:
        formula = readable(formula)
        skeleton = distinct_constants(formula)[0]
        if skeleton in self._tried:
            return
        self._tried.add(skeleton)
        table = self.table
        fit = fit_loss(formula, table.inputs, table.target, self.loss, table.weights)
        law = self.shown(fit.expression)
        allowed = self.problem.admits(fit.expression) and self.problem.admits(law)
        if not math.isfinite(fit.nats) or not allowed or complexity(law) > self.problem.max_complexity:
            return
        if self.problem.satisfies(law):
            self.fits[skeleton] = fit
        elif self.violating is None or self.length(fit) < self.length(self.violating):
            self.violating = fit

    def shown(self, formula: Expression) -> Expression:
        """The law of the target: the probability, where the formula is the logarithm of odds."""
        if not self.loss.is_logit:
            return formula
        match formula:
            case Apply("neg", (inner,)):
                negative = inner
            case Apply("sub", (left, right)):
                negative = Apply("sub", (right, left))
            case Apply("add", (Number(value=value), rest)) if value < 0:
                negative = Apply("sub", (Number(-value), rest))
            case _:
                negative = Apply("neg", (formula,))
        return div(ONE, add(ONE, call("exp", negative)))

    def length(self, fit: LossFit) -> float:
        """Nats to describe the rows by a formula."""
        constants = fitted_constants(fit.expression)
        return fit.nats + self.measure.formula_nats(fit.expression) + constants * self.measure.constant_nats

    @property
    def shortest(self) -> list[LossFit]:
        """The fits, the shortest description first."""
        return sorted(self.fits.values(), key=self.length)

    @property
    def best(self) -> LossFit | None:
        """The chosen one; one that violates a constraint if all do, None if no formula has finite values."""
        return next(iter(self.shortest), self.violating)

    def front(self) -> list[LossFit]:
        """Fits that no simpler one is as likely as, and the chosen one."""
        front: list[LossFit] = []
        best = self.best
        fits = self.fits.values() or [fit for fit in (best,) if fit is not None]
        for fit in sorted(fits, key=lambda fit: (complexity(fit.expression), fit.nats)):
            if fit is best or fit.nats < min((one.nats for one in front), default=math.inf) - BETTER:
                front.append(fit)
        return front


def _solution(
    selection: _Selection, dataset: Dataset, options: SolveOptions, control: RunControl
) -> Solution:
    """The solution of the laws selected, scored on all rows."""
    loss, chosen = selection.loss, selection.best
    empty = replace(without_equations(dataset, options.seed, dataset.warnings), loss=loss.name)
    if chosen is None:
        return empty
    table = selection.table
    errors = bootstrap_errors(
        chosen.expression,
        table.inputs,
        table.target,
        loss,
        options.seed,
        control.over,
        table.weights,
    )
    rows = [
        _equation(fit, selection, dataset, errors if fit is chosen else None) for fit in selection.front()
    ]
    best = next(row for row, fit in zip(rows, selection.front(), strict=True) if fit is chosen)
    prediction = predict(best.expression, dataset.inputs)
    gain = 0.0
    if selection.violating is not None:
        gain = selection.length(chosen) - selection.length(selection.violating)
    statuses, warnings = statuses_of(selection.problem.rules, [best.expression], dataset.names, gain)
    known = {symbol.name: symbol.value for symbol in selection.problem.constants}
    return replace(
        empty,
        status="approximate",
        best=best,
        pareto=tuple(rows),
        derivation=best.derivation,
        known_constants=known,
        constraints=statuses,
        warnings=(*empty.warnings, *warnings),
        fit_points=points_of_fit(dataset, prediction, np.empty(0, np.intp)),
        summaries=summaries(dataset),
        timing={"elapsed_seconds": control.clock() - control.started},
    )


def _equation(fit: LossFit, selection: _Selection, dataset: Dataset, errors: Errors | None) -> Equation:
    loss = selection.loss
    law = selection.shown(fit.expression)
    own = distinct_constants(fit.expression)[1]
    values = distinct_constants(law)[1]
    # The sign of one may have changed where the logarithm of odds was put in.
    order = [[abs(one) for one in own].index(abs(value)) for value in values]
    with np.errstate(all="ignore"):
        mean = loss.mean(dataset.target, predict(fit.expression, dataset.inputs), dataset.weights)
    made, _ = measured(
        law,
        dataset,
        constants=tuple(
            _constant(number, value, errors, place)
            for number, (value, place) in enumerate(zip(values, order, strict=True))
        ),
        covariance=(
            None
            if errors is None or loss.is_logit
            else tuple(map(tuple, errors.covariance[np.ix_(order, order)].tolist()))
        ),
        verdict_reason=REASON,
        derivation=(
            f"searched with the loss '{loss.name}' as weighted least squares",
            f"constants of least loss: {dataset.target_column.alias} = {to_text(law, dataset.names, 6)}",
        ),
        generator="loss",
        description_length=selection.length(fit),
        mean_loss=mean if math.isfinite(mean) else None,
    )
    return with_digits(made, dataset)


def _constant(number: int, value: float, errors: Errors | None, place: int) -> ConstantEstimate:
    name = f"c{number + 1}"
    if errors is None:
        return ConstantEstimate(name, value, None, None, concise(value, None), False, fitted=value)
    sigma = float(errors.sigma[place])
    low, high = float(errors.low[place]), float(errors.high[place])
    if not low <= value <= high:
        low, high = -high, -low
    return ConstantEstimate(name, value, low, high, concise(value, sigma), False, value, sigma)
