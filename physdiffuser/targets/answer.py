"""What several targets give together: their solutions, shared parts and ties, as data, JSON and text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from physdiffuser.core.solution import ConstantEstimate, Equation, FitPoints, Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Expression, Number, evaluate, to_text
from physdiffuser.expressions.tree import substitute
from physdiffuser.finalize.scoring import predict, rms_error, with_digits
from physdiffuser.fitting.accuracy import max_relative_error
from physdiffuser.fitting.losses import root_mean_square
from physdiffuser.fitting.uncertainty import student_quantile
from physdiffuser.io.display import listed, visible
from physdiffuser.report.documents.json_document import SCHEMA, document
from physdiffuser.report.text.digits import concise, shown_digits
from physdiffuser.targets.parts import SharedPart
from physdiffuser.targets.ties import Tie, Tied


@dataclass(frozen=True)
class TargetSolutions:
    """The laws of several targets of one table; a mapping from target to `Solution`.

    Attributes
    ----------
    solutions
        By the name of the target, in the order asked for.
    shared
        Parts that several laws have.
    ties
        Constants of different laws that have one value.
    timing
        Seconds; `elapsed_seconds` is the whole.
    """

    solutions: Mapping[str, Solution]
    shared: tuple[SharedPart, ...] = ()
    ties: tuple[Tie, ...] = ()
    timing: Mapping[str, float] = field(default_factory=dict)

    def __getitem__(self, target: str) -> Solution:
        return self.solutions[target]

    def __iter__(self) -> Iterator[str]:
        return iter(self.solutions)

    def __len__(self) -> int:
        return len(self.solutions)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the laws have in common, one sentence each."""
        parts = [
            f"the laws of {listed(list(part.targets))} share {visible(part.text, 2_000)}"
            for part in self.shared
        ]
        return (*parts, *(tie_sentence(tie) for tie in self.ties))


def tie_sentence(tie: Tie) -> str:
    """Which constants have one value, and what that costs."""
    names = " and ".join(f"{place.name} of '{visible(place.target)}'" for place in tie.places)
    return (
        f"{names} agree within their errors and are tied: {concise(tie.value, tie.sigma)} "
        f"(chi-square rises by {tie.chi_square:.2g})"
    )


def targets_document(found: TargetSolutions) -> dict[str, Any]:
    """All laws as plain JSON values; `targets` holds an ordinary document for each."""
    first = next(iter(found.solutions.values()))
    return {
        "schema": SCHEMA,
        "targets": {target: document(solution) for target, solution in found.solutions.items()},
        "shared": [{"expression": part.text, "targets": list(part.targets)} for part in found.shared],
        "tied": [
            {
                "value": tie.value,
                "sigma": tie.sigma,
                "chi_square": tie.chi_square,
                "constants": [{"target": place.target, "name": place.name} for place in tie.places],
            }
            for tie in found.ties
        ],
        "timing": dict(found.timing),
        "seed": first.seed,
        "version": first.version,
    }


def with_tied_constants(solution: Solution, tied: Tied, ties: tuple[Tie, ...], dataset: Dataset) -> Solution:
    """The solution whose chosen law has the tied constants, scored anew."""
    best = solution.best
    assert best is not None  # it has ties
    fitted = [one for one in best.constants if not one.is_set]
    values = {one.value: float(value) for one, value in zip(fitted, tied.values, strict=True)}
    law = _rewritten(best.expression, values)
    freedom = best.degrees_of_freedom or 0
    factor = student_quantile(0.95, freedom) if best.reduced_chi_square is None else 1.959963984540054
    errors = iter(np.sqrt(np.maximum(np.diag(tied.covariance), 0.0)).tolist())
    own = [tie for tie in ties if any(place.target == solution.target for place in tie.places)]
    made = replace(
        best,
        expression=law,
        text=to_text(law, solution.names),
        constants=tuple(
            one if one.is_set else _estimate(one, values[one.value], next(errors), factor)
            for one in best.constants
        ),
        covariance=tuple(tuple(float(part) for part in row) for row in tied.covariance),
        verification=(*best.verification, *(f"tied constants: {tie_sentence(tie)}" for tie in own)),
    )
    made = _scored(made, best, solution, dataset)
    shown = to_text(law, solution.names, shown_digits(made))
    made = replace(made, derivation=(*made.derivation, f"constants tied: {_alias(solution)} = {shown}"))
    pareto = tuple(made if row.expression == best.expression else row for row in solution.pareto)
    return replace(solution, best=made, pareto=pareto, fit_points=_points(solution.fit_points, law))


def _alias(solution: Solution) -> str:
    """What formulas call the target."""
    names = {name: alias for alias, name in solution.aliases.items()}
    return names.get(solution.target, solution.target)


def _estimate(one: ConstantEstimate, value: float, sigma: float, factor: float) -> ConstantEstimate:
    low, high = value - factor * sigma, value + factor * sigma
    return replace(
        one, value=value, fitted=value, sigma=sigma, low=low, high=high, text=concise(value, sigma)
    )


def _scored(made: Equation, before: Equation, solution: Solution, dataset: Dataset) -> Equation:
    """Errors of the law with tied constants, from how the residuals of all rows have changed."""
    old = rms_error(before.expression, dataset)
    ratio = rms_error(made.expression, dataset) / old if old > 0 else 1.0
    points, test = solution.fit_points, None
    if before.test_rmse is not None and points is not None and points.truth.size == points.rows:
        assert points.inputs is not None
        part = points.inputs[points.test]
        truth = points.truth[points.test]
        errors = [root_mean_square(truth - evaluate(one.expression, part)) for one in (made, before)]
        test = before.test_rmse * errors[0] / errors[1] if errors[1] > 0 else before.test_rmse
    made = replace(
        made,
        rmse=before.rmse * ratio,
        r2=1.0 - (1.0 - before.r2) * ratio**2,
        max_relative_error=max_relative_error(dataset.target, predict(made.expression, dataset.inputs)),
        test_rmse=test,
    )
    return with_digits(made, dataset)


def _rewritten(expression: Expression, values: Mapping[float, float]) -> Expression:
    def replace_number(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not node.exact and float(node.value) in values:
            return Number(values[float(node.value)])
        return None

    return substitute(expression, replace_number)


def _points(points: FitPoints | None, law: Expression) -> FitPoints | None:
    if points is None or points.inputs is None:
        return points
    return replace(points, prediction=evaluate(law, points.inputs))
