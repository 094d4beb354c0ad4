"""From the formulas of a search to the solution: final constants, one law chosen and verified."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Equation, Solution
from physdiffuser.data.dataset import Dataset, summaries
from physdiffuser.expressions import PI, Number, Symbol, complexity, evaluate, to_text
from physdiffuser.expressions.poles import has_pole
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import walk
from physdiffuser.finalize.constants.statements import proved
from physdiffuser.finalize.constraint_report import constraint_report
from physdiffuser.finalize.evidence.chi_square import chi_square_warning
from physdiffuser.finalize.evidence.diagnostics import ENOUGH_ROWS, diagnostics, shows_pattern
from physdiffuser.finalize.evidence.figures import law_evidence
from physdiffuser.finalize.evidence.poles import box_points
from physdiffuser.finalize.evidence.probability import probability_of_law, row_probabilities
from physdiffuser.finalize.evidence.unresolved_functions import unresolved_function
from physdiffuser.finalize.exactness import Exactness, exactness
from physdiffuser.finalize.finalists import conditional_form_prior
from physdiffuser.finalize.finalize import Law, finalize
from physdiffuser.finalize.fit_rows import fit_rows
from physdiffuser.finalize.input_errors import with_input_errors
from physdiffuser.finalize.policy import POLICY
from physdiffuser.finalize.scoring import equation, points_of_fit, predict, with_verdict
from physdiffuser.finalize.shown_rows import left_out, rounding_error, rows_to_show
from physdiffuser.finalize.written_form import rewritten_fit
from physdiffuser.noise.reweighting import Reweighted
from physdiffuser.search.loop import SearchResult
from physdiffuser.search.run_control import RunControl
from physdiffuser.search.table_search import Found, PosedTable, on_rows
from physdiffuser.selection.description_length import shortest
from physdiffuser.selection.misfit import POLICY as MISFIT
from physdiffuser.selection.misfit import misfit
from physdiffuser.selection.residual_structure import POLICY as STRUCTURE
from physdiffuser.verification.checks import (
    Check,
    comparison_check,
    competitor_check,
    function_check,
    interpolation_check,
    noise_check,
    pole_check,
    probability_check,
    residual_check,
)

# Share of the time for finalization in which the formulas get their final constants; the rest is for
# verifying the chosen one.
CONSTANTS_SHARE = 0.7
VERIFYING_SECONDS = 3.0
MIN_VERIFYING = 0.2
# Of a law that is exact to the last digit, on development tables (docs/benchmarks.md).
EXACT_PROBABILITY = 0.995


@dataclass(frozen=True)
class Front:
    """The laws that are shown, and the chosen one.

    Attributes
    ----------
    laws, equations, predictions
        In the order shown.
    hidden
        Equations that are not shown because another one is as good.
    position
        Of the chosen one.
    warnings
        For the user.
    """

    laws: list[Law]
    equations: list[Equation]
    predictions: list[FloatArray]
    hidden: list[Equation]
    position: int
    warnings: tuple[str, ...]


def build_solution(found: Found, control: RunControl) -> Solution:
    """Finalize the formulas of a search: the solution."""
    searched = control.clock()
    front = _final_front(found, control, searched)
    solution = without_equations(found.dataset, found.seed, front.warnings)
    if not front.laws:
        return replace(solution, timing=_timing(control, searched, found.result))
    dataset, position = found.dataset, front.position
    best, prediction = front.equations[position], front.predictions[position]
    judged = exactness(best.expression, dataset, prediction)
    above_floor = front.laws[position].loss > found.loop.floor
    agreeing = sum(constant.agrees_with is not None for constant in best.constants)
    evidence = law_evidence(front.laws[position], found.result.archive, agreeing)
    pattern = (
        above_floor
        and not judged.exact
        and (
            evidence.structure > STRUCTURE.pattern
            or evidence.misfit > MISFIT.pattern
            or shows_pattern(dataset, prediction)
        )
    )
    probability = EXACT_PROBABILITY if judged.exact else probability_of_law(evidence, pattern)
    verified = _verified(front, found, control, pattern, judged, probability)
    shares = row_probabilities([row.description_length for row in front.equations], position, probability)
    if judged.exact:
        verified = replace(verified, constants=proved(verified.constants))
    equations = [
        verified if number == position else replace(row, probability=share)
        for number, (row, share) in enumerate(zip(front.equations, shares, strict=True))
    ]
    constraints, contradictions = constraint_report(verified, found)
    return replace(
        solution,
        status="exact" if judged.exact else "approximate",
        best=verified,
        pareto=tuple(equations),
        none_of_these=max(1.0 - sum(shares), 0.0),
        derivation=verified.derivation,
        warnings=(*_warnings(front, found, verified, judged, pattern), *contradictions),
        constraints=constraints,
        notes={**solution.notes, **_weighting(found.reweighted, judged.exact)},
        test_rows=int(found.split.test.size),
        known_constants=_named_constants(found.problem, equations),
        timing=_timing(control, searched, found.result),
        fit_points=points_of_fit(dataset, prediction, found.split.test),
        summaries=summaries(dataset),
        evidence=asdict(evidence),
        fit_rows=fit_rows(found),
    )


def _final_front(found: Found, control: RunControl, searched: float) -> Front:
    """The formulas of the search with final constants, scored; those worth showing."""
    dataset, split, limit = found.dataset, found.split, control.limit
    loop, archive, warnings = found.loop, found.result.archive, found.warnings
    form_prior = conditional_form_prior(loop.generators, found.result.steps, loop.failed, loop.problem)
    fit_problem = on_rows(found.problem, dataset, split.fit)
    laws: list[Law] = []
    position = 0
    if archive.front():
        laws, position = finalize(
            archive,
            fit_problem,
            loop.floor,
            # Formulas of many constants take long to verify as well.
            searched + CONSTANTS_SHARE * (limit.finalize_by - searched),
            clock=control.clock,
            form_prior=form_prior,
            slowdown=limit.slowdown,
            compared_on=_with_test_set(found) if split.test.size else None,
        )
    if form_prior is not None and form_prior.fault is not None:
        warnings = (*warnings, form_prior.fault)
    laws, position = _with_values(laws, position, dataset)
    fitted = [with_input_errors(law, dataset, split, fit_problem) for law in laws]
    laws = [law for law, _ in fitted]
    made = [equation(law, dataset, split, own) for law, own in fitted]
    if not made:
        return Front([], [], [], [], 0, warnings)
    rounding = rounding_error(dataset.target, dataset.weights, loop.floor)
    scored = [one for one, _ in made]
    shown = rows_to_show(scored, position, rounding)
    return Front(
        laws=[laws[row] for row in shown],
        equations=[scored[row] for row in shown],
        predictions=[made[row][1] for row in shown],
        hidden=[scored[row] for row in left_out(scored, position, rounding)],
        position=shown.index(position),
        warnings=warnings,
    )


def _with_test_set(found: Found) -> Problem:
    """The problem on the fit rows and the test set."""
    return on_rows(found.problem, found.dataset, np.union1d(found.split.fit, found.split.test))


def _with_values(laws: list[Law], position: int, dataset: Dataset) -> tuple[list[Law], int]:
    """Laws with a value on every row, the test set included, and the position of the chosen one; else all."""
    finite = [law for law in laws if np.isfinite(predict(law.final, dataset.inputs)).all()]
    if not finite or len(finite) == len(laws):
        return laws, position
    kept = any(law is laws[position] for law in finite)
    chosen = laws[position] if kept else finite[shortest(law.length for law in finite)]
    return finite, next(number for number, law in enumerate(finite) if law is chosen)


def _verified(
    front: Front,
    found: Found,
    control: RunControl,
    pattern: bool,
    judged: Exactness,
    probability: float,
) -> Equation:
    """The chosen equation with its verdict."""
    from physdiffuser.verification import verify
    from physdiffuser.verification.patience import allowed
    from physdiffuser.verification.worker import shared_worker

    dataset, split, slowdown = found.dataset, found.split, control.limit.slowdown
    best = front.equations[front.position]
    left = max(slowdown * MIN_VERIFYING, control.limit.finalize_by - control.clock())
    # Whether a law is verified must not depend on how fast the machine is: a start is not counted.
    limit = allowed(slowdown * VERIFYING_SECONDS + shared_worker().starting())
    law = front.laws[front.position]
    checked = verify(
        rewritten_fit(law.fitted, found.problem) if law.rewritten else law.fitted,
        best.expression,
        dataset.inputs,
        dataset.target,
        split.fit,
        split.test,
        names=dataset.names,
        weights=dataset.weights,
        further=_further_checks(front, found, pattern, judged, probability),
        seconds=min(limit, left),
    )
    return replace(with_verdict(best, checked), probability=probability)


def _better_change(law: Law, found: Found) -> str:
    """The change of a law that fits the rows better than chance explains; empty if there is none."""
    against = misfit(law.final, found.result.archive.problem.all_rows)
    return against.change if against.nats > MISFIT.pattern else ""


def _further_checks(
    front: Front, found: Found, pattern: bool, judged: Exactness, probability: float
) -> list[Check]:
    """Checks of the chosen law beside those on the table's own rows; none of an exact law."""
    interpolation = [interpolation_check(judged.interpolation)] if judged.interpolation else []
    if judged.exact:
        return interpolation
    dataset, position = found.dataset, front.position
    chosen = front.equations[position]
    change = _better_change(front.laws[position], found) if pattern else ""
    checks = [residual_check(pattern, change)] if dataset.rows >= ENOUGH_ROWS else []
    checks += interpolation
    checks.append(pole_check(has_pole(chosen.expression, box_points(dataset.inputs))))
    roots = np.ones(dataset.rows) if dataset.weights is None else np.sqrt(dataset.weights)
    test = found.split.test
    errors = [(roots * (dataset.target - prediction))[test] for prediction in front.predictions]
    simpler = [
        errors[row]
        for row, equation in enumerate(front.equations)
        if equation.complexity < chosen.complexity and np.isfinite(errors[row]).all()
    ]
    compared = comparison_check(errors[position], simpler)
    fit = on_rows(found.problem, dataset, found.split.fit)
    also = [
        compared,
        noise_check(math.sqrt(max(1.0 - chosen.r2, 0.0))),
        function_check(unresolved_function(chosen.expression, fit)),
        competitor_check(_nearly_as_brief(front, found.loop.floor)),
    ]
    return [*checks, *(check for check in also if check), probability_check(probability)]


def _warnings(
    front: Front, found: Found, verified: Equation, judged: Exactness, pattern: bool
) -> tuple[str, ...]:
    reweighted, exact = found.reweighted, judged.exact
    doubtful = diagnostics(
        verified,
        found.dataset,
        exact=exact,
        pattern=pattern,
        test=found.split.test if found.split.test.size else None,
        rivals=_nearly_as_brief(front, found.loop.floor),
        left_out=front.hidden,
    )
    chi_square = None if exact else chi_square_warning(verified)
    return (
        *front.warnings,
        *((chi_square,) if chi_square else ()),
        *((reweighted.note,) if reweighted.note else ()),
        # How noise was weighted matters only where there is some.
        *(() if exact else reweighted.said),
        *doubtful,
        *((judged.interpolation,) if judged.interpolation else ()),
    )


def _nearly_as_brief(front: Front, floor: float) -> list[int]:
    """Rows of the Pareto table, from 1, that describe the data nearly as briefly as the chosen law.

    These are for the reader; `evidence.figures.rivals` counts formulas of the whole search, for the
    probability.
    """
    chosen = front.laws[front.position]
    return [
        row
        for row, law in enumerate(front.laws, start=1)
        if law is not chosen
        and law.length < chosen.length + POLICY.rival_nats
        and max(law.loss, floor) < POLICY.comparable * max(chosen.loss, floor)
    ]


def _named_constants(problem: Problem, equations: Sequence[Equation]) -> dict[str, float]:
    """The constants the user gave, and those of nature that occur in a formula."""
    named = {symbol.name: symbol.value for symbol in problem.constants}
    for one in equations:
        for node in walk(one.expression):
            if isinstance(node, Symbol) and node != PI:
                named[node.name] = node.value
    return named


def _weighting(reweighted: Reweighted, exact: bool) -> dict[str, str]:
    """What the errors of an exact law's table are weighted by; else a warning says so."""
    if not exact or not reweighted.said or reweighted.dataset.weights is None:
        return {}
    target = reweighted.dataset.target_column.name
    return {"errors": f"those of approximate formulas are weighted by 1/{target}**2"}


def _timing(control: RunControl, searched: float, result: SearchResult | None) -> dict[str, float]:
    now = control.clock()
    timing = {
        "elapsed_seconds": now - control.started,
        "search_seconds": searched - control.started,
        "finalize_seconds": now - searched,
    }
    if result is not None:
        timing |= {f"steps_{name}": float(steps) for name, steps in result.steps.items()}
    return timing


def without_equations(dataset: Dataset, seed: int, warnings: tuple[str, ...]) -> Solution:
    """A solution without an equation."""
    from physdiffuser.version import version

    return Solution(
        target=dataset.target_column.name,
        status="none",
        best=None,
        pareto=(),
        names=dataset.names,
        columns=tuple(column.name for column in dataset.columns),
        aliases=dataset.aliases,
        warnings=warnings,
        notes=dataset.notes,
        rows=dataset.rows,
        seed=seed,
        version=version(),
    )


def constant_solution(posed: PosedTable, seed: int, control: RunControl) -> Solution:
    """The solution of a table whose target never changes, which needs no search."""
    dataset = posed.dataset
    value = float(dataset.target[0])
    number = Number(int(value)) if value == int(value) and abs(value) < 1e15 else Number(value)
    names = dataset.names
    law = Equation(
        expression=number,
        text=to_text(number, names),
        latex=to_latex(number, names),
        complexity=complexity(number),
        rmse=0.0,
        r2=float("nan"),
        max_relative_error=float(np.abs(evaluate(number, dataset.inputs[:1])[0] - value)),
        verdict="verified",
        verification=("every row has this value",),
        check_states=("passed",),
        derivation=("the target is the same in every row",),
        generator="constant",
        names=names,
    )
    prediction = np.full(dataset.rows, value)
    return replace(
        without_equations(dataset, seed, posed.warnings),
        status="exact",
        best=law,
        pareto=(law,),
        derivation=law.derivation,
        timing=_timing(control, control.clock(), None),
        fit_points=points_of_fit(dataset, prediction, np.empty(0, np.intp)),
        summaries=summaries(dataset),
    )
