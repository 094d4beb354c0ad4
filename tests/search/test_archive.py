"""What the archive keeps: dominance, remembered formulas, and what counts as solved."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from archive_parts import NAMES, candidate, entry, problem, texts

from physdiffuser.core.archive import relative_loss, same_loss
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Apply, Number, Variable, evaluate, parse
from physdiffuser.search import archive as archive_module
from physdiffuser.search.archive import NOTHING_LEFT, ParetoArchive
from physdiffuser.search.archive import POLICY as ARCHIVE
from physdiffuser.selection.description_length import DescriptionLength


class TestDominance:
    """Whether one entry beats another, by one property at a time."""

    base = entry(complexity=7, constants=2, loss=0.1, nats=20.0)

    @pytest.mark.parametrize(
        ("change", "beats"),
        [
            ({}, True),
            ({"complexity": 6}, True),
            ({"complexity": 8}, False),
            ({"constants": 1}, True),
            ({"constants": 3}, False),
            ({"loss": 0.09}, True),
            ({"loss": 0.11}, False),
            ({"nats": 20.0 + ARCHIVE.same_form}, True),
            ({"nats": 20.1 + ARCHIVE.same_form, "loss": 0.09}, False),
            # Equal losses are those of one function: then the form does not count.
            ({"nats": 99.0}, True),
            ({"nats": 99.0, "loss": 0.1 * (1 + 5e-7)}, True),
            ({"nats": 99.0, "loss": 0.1 * (1 + 2e-6)}, False),
            ({"nats": 99.0, "complexity": 8}, False),
            ({"nats": 99.0, "constants": 3}, False),
        ],
    )
    def test_beats(self, change: dict[str, float], beats: bool) -> None:
        other = replace(self.base, **change)  # type: ignore[arg-type]
        assert archive_module._beats(other, self.base) is beats

    def test_equal_losses_are_equal_to_a_millionth(self) -> None:
        assert same_loss(1.0, 1.0 + 9e-7) and same_loss(1.0 + 9e-7, 1.0)
        assert not same_loss(1.0, 1.0 + 2e-6) and not same_loss(1.0 + 2e-6, 1.0)
        assert same_loss(0.0, 0.0)

    def test_a_formula_with_fewer_fitted_constants_is_not_lost_to_a_better_fit(self) -> None:
        archive = ParetoArchive(problem())
        assert archive.offer(candidate("a**2*b"))
        assert archive.offer(candidate("a**2.001e0*b")) or archive.offer(candidate("a**1.999e0*b"))
        assert "a**2*b" in texts(archive.front())

    def test_a_formula_with_more_fitted_constants_and_no_better_fit_is_refused(self) -> None:
        archive = ParetoArchive(problem())
        assert archive.offer(candidate("a**2*b"))
        assert not archive.offer(candidate("a**2.5e0*b"))

    def test_a_formula_without_constants_is_not_refused_for_one_with_constants_that_fits_better(self) -> None:
        """Also where both describe the rows far worse than the shortest description does."""
        archive = ParetoArchive(problem())
        assert archive.offer(candidate("a**2*b"))
        assert archive.offer(candidate("7.5e0*b"))
        assert archive.offer(candidate("b/a"))
        losses = {
            text: entry.loss for text, entry in zip(texts(archive.front()), archive.front(), strict=True)
        }
        assert losses["7.5*b"] < losses["b/a"]

    def test_the_front_holds_nothing_that_is_beaten_later(self) -> None:
        archive = ParetoArchive(problem())
        assert archive.offer(candidate("a**2*b + 1"))
        assert archive.offer(candidate("a**2*b"))
        assert texts(archive.front()) == ["a**2*b"]

    def test_simple_formulas_come_first(self) -> None:
        archive = ParetoArchive(problem())
        for text in ("a**2*b", "a", "a*b"):
            assert archive.offer(candidate(text))
        assert [e.complexity for e in archive.front()] == [1, 3, 5]

    def test_of_equally_complex_forms_the_shorter_description_stays(self) -> None:
        """`b*a**7` costs more than `b*a**2` and fits worse; `a*b**2` fits worse."""
        archive = ParetoArchive(problem())
        assert archive.offer(candidate("a*b**2"))
        assert archive.offer(candidate("a**2*b"))
        assert not archive.offer(candidate("a*b**2"))
        assert "a*b**2" not in texts(archive.front())

    def test_a_rare_number_that_fits_a_little_better_does_not_take_the_place_of_a_common_one(self) -> None:
        base = problem(noise=0.5)
        exponents = [Fraction(600 + step, 300) for step in range(-20, 21) if step]
        rare = [Apply("mul", (Apply("pow", (Variable(0), Number(e))), Variable(1))) for e in exponents]
        losses = [relative_loss(base, evaluate(formula, base.inputs)) for formula in rare]
        archive = ParetoArchive(base)
        archive.offer(candidate("a**2*b"))
        assert min(losses) < archive.best_loss
        assert archive.offer(Candidate(rare[int(np.argmin(losses))], "test")) is False
        assert texts(archive.front()) == ["a**2*b"]


class TestOffer:
    def test_entries_hold_the_score_of_the_formula(self) -> None:
        base = problem()
        archive = ParetoArchive(base)
        archive.offer(candidate("a**2.5e0*b + 0.5e0"))
        (found,) = archive.front()
        expression = found.candidate.expression
        residual = base.target - evaluate(expression, base.inputs)
        assert found.loss == pytest.approx(np.square(residual).mean() / base.target.var(), rel=1e-12)
        assert found.search_loss == found.loss
        assert (found.complexity, found.constants) == (7, 2)
        measure = DescriptionLength(base.rows, 2)
        assert found.nats == pytest.approx(measure.formula_nats(expression))
        assert archive.length(found) == pytest.approx(measure.length(expression, found.loss))
        assert archive.latest == archive.length(found)

    def test_what_is_refused_has_no_length(self) -> None:
        archive = ParetoArchive(problem())
        archive.offer(candidate("a"))
        for text in ("log(a - 2)", "exp(exp(exp(a*b*b)))"):
            assert not archive.offer(candidate(text))
            assert archive.latest == math.inf
        assert archive.offered == 3

    def test_a_length_is_known_of_what_is_beaten_but_near(self) -> None:
        archive = ParetoArchive(problem())
        archive.offer(candidate("a**2*b"))
        assert not archive.offer(candidate("a**2*b + 0*a"))
        assert archive.latest < math.inf

    def test_a_hopeless_formula_is_not_measured(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What it takes to write it down need not be known when its residuals alone cost more."""
        archive = ParetoArchive(problem())
        archive.offer(candidate("a**2*b"))
        measured: list[object] = []
        formula_nats = DescriptionLength.formula_nats

        def spy(self: DescriptionLength, *arguments: object) -> float:
            measured.append(arguments)
            return formula_nats(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(DescriptionLength, "formula_nats", spy)
        assert not archive.offer(candidate("exp(a) - b**3 + a"))
        assert not measured
        # A simpler formula is not hopeless, however badly it fits: it may be on the front.
        assert archive.offer(candidate("a"))
        assert measured

    def test_the_largest_complexity_is_allowed(self) -> None:
        assert ParetoArchive(replace(problem(), max_complexity=5)).offer(candidate("a**2*b"))
        assert not ParetoArchive(replace(problem(), max_complexity=4)).offer(candidate("a**2*b"))

    def test_losses_are_weighted_and_use_the_loss_of_the_problem(self) -> None:
        base = problem()
        target = base.target.copy()
        target[0] = 1e4
        weights = np.where(np.arange(base.rows) == 0, 1e-12, 1.0)
        prediction = evaluate(parse("a**2*b", NAMES), base.inputs)
        plain = relative_loss(replace(base, target=target), prediction)
        weighted = relative_loss(replace(base, target=target, weights=weights), prediction)
        robust = relative_loss(replace(base, target=target, loss="robust"), prediction)
        residual = (target - prediction) ** 2
        centre = np.average(target, weights=weights)
        expected = weights @ residual / (weights @ (target - centre) ** 2)
        assert weighted == pytest.approx(expected, rel=1e-9)
        assert weighted < 0.01 < plain
        assert robust < 0.01

    def test_the_best_loss(self) -> None:
        archive = ParetoArchive(problem())
        assert archive.best_loss == math.inf
        archive.offer(candidate("a"))
        archive.offer(candidate("a**2*b"))
        archive.offer(candidate("b"))
        assert archive.best_loss == min(entry.loss for entry in archive.front())


class TestSolved:
    def exact(self, constants: int) -> ParetoArchive:
        x = np.linspace(1, 2, 30)
        coefficients = [0.31, 1.7, -0.23, 0.11, 0.9, -1.3, 0.77, 0.41][:constants]
        text = " + ".join(f"({float(c)!r}e0)*a**{power}" for power, c in enumerate(coefficients, 1))
        tree = parse(text, ("a",))
        archive = ParetoArchive(Problem(x[:, None], evaluate(tree, x[:, None]), ("a",)))
        archive.offer(Candidate(tree, "test"))
        return archive

    def test_few_constants_that_leave_nothing_solve_a_table(self) -> None:
        archive = self.exact(ARCHIVE.few_constants)
        assert archive.best_loss < NOTHING_LEFT and archive.is_solved
        archive = self.exact(ARCHIVE.few_constants + 1)
        assert archive.best_loss < NOTHING_LEFT and not archive.is_solved


class TestNear:
    """Formulas off the front that are nearly as short are remembered."""

    def archive(self) -> ParetoArchive:
        base = problem(noise=0.5)
        residual = base.target - evaluate(parse("a**2*b", NAMES), base.inputs)
        # A positive constant added to the law makes it worse.
        archive = ParetoArchive(replace(base, target=base.target - residual.mean() - 1e-3))
        archive.offer(candidate("a**2*b"))
        return archive

    def test_a_beaten_formula_with_a_fitted_constant_is_remembered(self) -> None:
        archive = self.archive()
        assert not archive.offer(candidate("a**2*b + 0.0001e0"))
        assert texts(archive.near()) == ["a**2*b + 0.0001"]

    def test_those_without_fitted_constants_are_not(self) -> None:
        archive = self.archive()
        archive.offer(candidate("a**2*b + 0*a"))
        assert not archive.near()

    def test_those_that_are_too_long_are_not(self) -> None:
        archive = self.archive()
        archive.offer(candidate("a + 0.0001e0"))
        assert not archive.near()

    def test_they_are_forgotten_once_something_is_much_shorter(self) -> None:
        archive = ParetoArchive(problem(noise=0.5))
        archive.offer(candidate("3.1e0*a*b"))
        assert texts(archive.near()) == ["3.1*a*b"]
        length = archive.latest
        archive.offer(candidate("a**2*b"))
        assert archive.latest < length - ARCHIVE.near
        assert not archive.near()

    def test_they_are_ranked_and_their_number_is_limited(self) -> None:
        archive = self.archive()
        for number in range(3 * ARCHIVE.max_near):
            archive.offer(candidate(f"a**2*b + {1e-4 * (97 * number % 500 + 1)!r}e0"))
        near = archive.near()
        assert len(near) == ARCHIVE.max_near
        lengths = [archive.length(entry) for entry in near]
        assert lengths == sorted(lengths)
        best = archive.length(archive.front()[-1])
        assert all(length < best + ARCHIVE.near for length in lengths)
