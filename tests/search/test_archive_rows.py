"""The archive beyond the rows of the search: all rows of the table, and formulas that are refused."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from archive_parts import NAMES, candidate, problem, texts

from physdiffuser.core.archive import relative_loss
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import evaluate, parse, to_text
from physdiffuser.fitting import refit
from physdiffuser.search.archive import NOTHING_LEFT, ParetoArchive
from physdiffuser.search.archive import POLICY as ARCHIVE
from physdiffuser.selection.description_length import DescriptionLength


class TestAllRows:
    """Where a table has many more rows than the search looks at."""

    def few(self, noise: float = 0.5, rows: int = 200, shift: float = 1.0) -> tuple[Problem, Problem]:
        whole = problem(noise, rows=20_000)
        few = replace(
            whole, inputs=whole.inputs[:rows], target=whole.target[:rows] * shift, full_problem=whole
        )
        return few, whole

    def test_constants_are_fitted_to_all_rows(self) -> None:
        few, whole = self.few(shift=1.05)
        archive = ParetoArchive(few)
        assert archive.description_length == DescriptionLength(20_000, 2)
        archive.offer(candidate("1.05e0*a**2*b"))
        (found,) = archive.front()
        factor = evaluate(found.candidate.expression, np.ones((1, 2)))[0]
        form = whole.inputs[:, 0] ** 2 * whole.inputs[:, 1]
        assert factor == pytest.approx((form @ whole.target) / (form @ form), rel=1e-9)
        assert found.loss == pytest.approx(
            np.square(whole.target - factor * form).mean() / whole.target.var(), rel=1e-9
        )

    def test_the_loss_on_the_rows_of_the_search_is_kept(self) -> None:
        few, whole = self.few()
        archive = ParetoArchive(few)
        archive.offer(candidate("a**2*b"))
        (found,) = archive.front()
        expression = found.candidate.expression
        assert found.search_loss == relative_loss(few, evaluate(expression, few.inputs))
        assert found.loss == relative_loss(whole, evaluate(expression, whole.inputs))

    def test_constants_of_a_formula_that_is_far_too_long_are_not_fitted_again(self) -> None:
        few, _ = self.few(noise=0.01)
        archive = ParetoArchive(few)
        archive.offer(candidate("a**2*b"))
        best = archive.length(archive.front()[0])
        # Few constants and few nodes: on the front, though far too long.
        archive.offer(candidate("3.0e0*a"))
        found = next(entry for entry in archive.front() if entry.constants)
        assert archive.length(found) > best + ARCHIVE.refitted
        assert to_text(found.candidate.expression, NAMES) == "3*a"

    def test_a_refit_never_makes_a_formula_worse(self) -> None:
        few, whole = self.few()
        form = whole.inputs[:, 0] ** 2 * whole.inputs[:, 1]
        best = float((form @ whole.target) / (form @ form))
        archive = ParetoArchive(few)
        archive.offer(candidate(f"{best!r}*a**2*b"))
        (found,) = archive.front()
        smallest = np.square(whole.target - best * form).mean() / whole.target.var()
        assert found.loss <= smallest * (1 + 1e-12)

    @pytest.mark.parametrize("factor", [0.5, 2.0])
    def test_a_formula_is_judged_on_all_rows_unless_a_simpler_one_is_clearly_better(
        self, factor: float
    ) -> None:
        """Clearly: by so many nats on the rows of the search."""
        rows = 300
        ratio = math.exp(2 * ARCHIVE.undecided * factor / rows)
        x = np.linspace(-1, 1, rows)
        # Two columns; the residuals of `a` and of `b + 0*a` have mean squares 1 and `ratio`.
        noise = np.where(np.arange(rows) % 2, 1.0, -1.0)
        inputs = np.column_stack([10 * x, 10 * x + noise * (math.sqrt(ratio) - 1)])
        whole = Problem(np.tile(inputs, (10, 1)), np.tile(10 * x - noise, 10), NAMES)
        few = replace(whole, inputs=inputs, target=10 * x - noise, full_problem=whole)
        archive = ParetoArchive(few)
        archive.offer(candidate("a"))
        assert archive.latest < math.inf
        archive.offer(candidate("b + 0*a"))
        assert (archive.latest < math.inf) is (factor < 1)

    def test_a_formula_that_loses_on_the_rows_of_the_search_is_not_judged_on_all(self) -> None:
        few, _ = self.few()
        archive = ParetoArchive(few)
        assert archive.offer(candidate("a**2*b"))
        assert archive.offer(candidate("a*b + a**2*b/9")) is False
        assert archive.latest == math.inf

    @pytest.mark.parametrize("loss", ["squared", "robust"])
    def test_refits_on_all_rows_use_weights_and_the_loss(self, loss: Literal["squared", "robust"]) -> None:
        few, whole = self.few()
        target = whole.target.copy()
        target[::7] *= 3
        weights = np.where(np.arange(20_000) % 5 == 0, 5.0, 1e-3)
        weights = None if loss == "robust" else weights / weights.mean()
        changed = replace(whole, target=target, weights=weights, loss=loss)
        archive = ParetoArchive(replace(few, full_problem=changed, loss=loss))
        archive.offer(candidate("0.9e0*a**2*b"))
        (found,) = archive.front()
        expected = refit(
            parse("0.9e0*a**2*b", NAMES), changed.inputs, target, weights=weights, loss=loss
        ).expression
        assert found.candidate.expression == expected

    def test_formulas_that_are_not_finite_on_all_rows_are_refused(self) -> None:
        few, whole = self.few()
        inputs = whole.inputs.copy()
        inputs[-1, 0] = -1.0
        archive = ParetoArchive(replace(few, full_problem=replace(whole, inputs=inputs)))
        assert not archive.offer(candidate("sqrt(a)**4*b"))
        assert archive.offer(candidate("a**2*b"))

    def test_exact_formulas_are_not_judged_again(self) -> None:
        whole = problem(noise=0.0, rows=2_000)
        target = whole.target.copy()
        target[1_000:] *= 2
        few = replace(whole, inputs=whole.inputs[:100], target=whole.target[:100])
        archive = ParetoArchive(replace(few, full_problem=replace(whole, target=target)))
        assert archive.offer(candidate("a**2*b"))
        assert archive.best_loss < NOTHING_LEFT


class TestRefusals:
    def test_a_new_archive_has_been_offered_nothing(self) -> None:
        archive = ParetoArchive(problem())
        assert (archive.offered, archive.latest, archive.cancelled) == (0, math.inf, False)
        assert (archive.faults, archive.front(), archive.near()) == ([], [], [])

    def test_operators_that_the_problem_lacks_are_refused(self) -> None:
        archive = ParetoArchive(replace(problem(), operators=frozenset({"mul"})))
        assert not archive.offer(candidate("a + b"))
        assert archive.offer(candidate("a*b"))

    def test_terms_that_cancel_are_refused_and_the_next_offer_starts_anew(self) -> None:
        archive = ParetoArchive(problem())
        archive.offer(candidate("0.5e0*b"))
        cancelling = "a**2*b + 1e9*(a + 1.1e0) - 1e9*(a + 1.1e0)"
        assert not archive.offer(candidate(cancelling))
        assert archive.cancelled and archive.latest == math.inf
        assert texts(archive.front()) == ["0.5*b"] and cancelling not in texts(archive.near())
        assert not archive.offer(candidate("exp(exp(exp(a*b*b)))"))
        assert not archive.cancelled
        assert archive.offer(candidate("a*b"))
        assert not archive.cancelled

    def test_an_equal_offer_is_not_stored_again(self) -> None:
        archive = ParetoArchive(problem())
        assert archive.offer(candidate("a*b"))
        assert not archive.offer(candidate("a*b"))
        assert not archive.offer(candidate("b*a"))
        assert texts(archive.front()) == ["a*b"]

    def test_a_refit_that_changes_nothing_keeps_the_constants(self) -> None:
        """Of constants that fit all rows as well as those that are fitted, the first stay."""
        whole = problem(0.3, rows=2_000)
        few = replace(whole, inputs=whole.inputs[:100], target=whole.target[:100], full_problem=whole)
        fitted = refit(parse("1.1e0*a**2*b", NAMES), whole.inputs, whole.target).expression
        archive = ParetoArchive(few)
        archive.offer(Candidate(fitted, "test"))
        (found,) = archive.front()
        assert found.candidate.expression == fitted
