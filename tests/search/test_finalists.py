"""Finalists: which formulas are finalized, and by what they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from decimals import to_be_fitted

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Apply, Expression, Number, Variable, evaluate, parse, to_text
from physdiffuser.finalize.finalists import (
    ConditionalDescriptionLength,
    ConditionalFormPrior,
    FormNats,
    finalists,
)
from physdiffuser.finalize.finalize import finalize
from physdiffuser.fitting import refit
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.description_length import DescriptionLength, exact_nats, form_nats

NAMES = ("x", "y")
FLOOR = 1e-22


def problem(noise: float = 0.05) -> Problem:
    random = np.random.default_rng(3)
    inputs = random.uniform(0.5, 3.0, (60, 2))
    target = evaluate(parse("x**2.3*y", NAMES), inputs)
    return Problem(inputs, target * (1 + noise * random.normal(size=60)), NAMES)


def archive_of(table: Problem, *texts: str) -> ParetoArchive:
    archive = ParetoArchive(table)
    for text in texts:
        archive.offer(Candidate(fitted(table, text), "test"))
    return archive


def fitted(table: Problem, text: str) -> Expression:
    return refit(to_be_fitted(text, NAMES), table.inputs, table.target).expression


def says(nats: dict[str, float]) -> FormNats:
    """A judge that finds forms likely by what is written in them."""

    def judge(formulas: Sequence[Expression]) -> np.ndarray:
        return np.array(
            [
                min(
                    [value for part, value in nats.items() if part in to_text(formula, NAMES)], default=np.inf
                )
                for formula in formulas
            ]
        )

    return judge


def test_a_judge_makes_a_form_more_or_less_usual() -> None:
    table = problem()
    description_length = DescriptionLength(table.rows, table.columns)
    formula = fitted(table, "1.1*cosh(x)*y")
    plain = description_length.length(formula, 0.1)
    for nats, gained in ((1.0, True), (1e3, False)):
        measure = ConditionalDescriptionLength(description_length, says({"cosh": nats}))
        assert measure.length(formula, 0.1) == plain  # not asked yet
        measure.read([formula])
        assert (measure.length(formula, 0.1) < plain) == gained


def test_a_judge_is_asked_about_a_formula_once() -> None:
    asked: list[int] = []

    def judge(formulas: Sequence[Expression]) -> np.ndarray:
        asked.append(len(formulas))
        return np.zeros(len(formulas))

    measure = ConditionalDescriptionLength(DescriptionLength(60, 2), judge)
    measure.read([parse("x", NAMES), parse("x", NAMES), parse("y", NAMES)])
    measure.read([parse("y", NAMES), parse("x*y", NAMES)])
    measure.read([parse("x", NAMES)])
    assert asked == [2, 1]


def test_of_two_ways_to_write_a_function_the_shorter_is_worked_out() -> None:
    table = problem()
    archive = archive_of(table, "1.1*x**2.2*y", "1.1*y*x**2.2", "y*(1.1*x**2.2)", "0.5*x*y + 2.1")
    measure = ConditionalDescriptionLength(DescriptionLength(table.rows, table.columns, FLOOR))
    chosen = finalists(archive, measure)
    losses = [round(entry.loss, 9) for entry in chosen]
    assert len(losses) == len(set(losses))
    lengths = [measure.length(entry.candidate.expression, entry.loss) for entry in chosen]
    assert lengths == sorted(lengths)


def test_without_noise_there_are_no_runners_up() -> None:
    table = problem(0.0)
    archive = archive_of(table, "1.1*x**2.2*y", "1.1*x**2.2*y + 0.01*x", "0.5*x*y + 2.1")
    chosen = finalists(
        archive, ConditionalDescriptionLength(DescriptionLength(table.rows, table.columns, 1e-9))
    )
    assert {entry.candidate.expression for entry in chosen} <= {
        entry.candidate.expression for entry in archive.front()
    }


@pytest.mark.parametrize("likely", ["atan", "tanh"])
def test_a_judge_tells_two_forms_that_fit_alike(likely: str) -> None:
    random = np.random.default_rng(0)
    inputs = random.uniform(0.1, 0.5, (40, 1))
    target = np.tanh(inputs[:, 0]) + 0.003 * random.normal(size=40)
    table = Problem(inputs, target, ("x",))
    archive = ParetoArchive(table)
    for text in ("1.02*atan(0.98*x)", "1.02*tanh(0.98*x)"):
        formula = to_be_fitted(text, ("x",))
        archive.offer(Candidate(refit(formula, inputs, target).expression, "test"))
    judge = says({f"{likely}(": -20.0})
    laws, chosen = finalize(archive, table, FLOOR, float("inf"), form_prior=judge)
    assert likely in to_text(laws[chosen].final, ("x",))


def test_thirds_are_as_usual_as_exponents_that_were_fitted() -> None:
    third, free = (form_nats(text, 2) for text in (power(Fraction(2, 3)), power(0.66)))
    assert third == pytest.approx(free)
    # But what they are has to be said.
    assert exact_nats(power(Fraction(2, 3))) == pytest.approx(np.log(6))
    assert exact_nats(power(Fraction(3, 2))) < exact_nats(power(Fraction(2, 3)))


def power(exponent: float | Fraction) -> Expression:
    return Apply("mul", (Variable(1), Apply("pow", (Variable(0), Number(exponent)))))


class Broken:
    """A judge whose network is out of memory."""

    name = "broken"

    def form_nats(self, problem: Problem, formulas: Sequence[Expression]) -> np.ndarray:
        raise MemoryError("cannot allocate\n 8 GiB")


def test_a_judge_that_fails_costs_its_word_and_is_named() -> None:
    table = problem(0.02)
    asked = ConditionalFormPrior("broken", Broken(), table)
    archive = archive_of(table, "1.1*x**2.2*y", "0.5*x*y + 2.1", "1.3*x*y")
    laws, chosen = finalize(archive, table, FLOOR, float("inf"), form_prior=asked)
    assert np.isfinite([law.length for law in laws]).all()
    assert laws[chosen].loss == min(law.loss for law in laws)
    assert asked.fault is not None and "'broken'" in asked.fault
    assert asked.fault.endswith("(MemoryError: cannot allocate 8 GiB)")


@pytest.mark.parametrize(("noise", "heard"), [(0.02, True), (0.2, False)])
def test_the_form_prior_is_asked_only_where_there_is_little_noise(noise: float, heard: bool) -> None:
    table = problem(noise)
    asked: list[Expression] = []

    def prior(formulas: Sequence[Expression]) -> np.ndarray:
        asked.extend(formulas)
        return np.zeros(len(formulas))

    finalize(archive_of(table, "1.1*x**2.2*y"), table, FLOOR, float("inf"), form_prior=prior)
    assert bool(asked) is heard


def test_the_rows_of_the_test_set_take_part_in_the_choice() -> None:
    random = np.random.default_rng(3)
    inputs = np.column_stack([np.concatenate([random.uniform(1, 1.3, 40), random.uniform(3, 4, 12)])] * 2)
    target = 0.31 * inputs[:, 0] ** 3.1 + 1.9 + 0.03 * random.standard_normal(52)
    table = Problem(inputs[:40], target[:40], NAMES)
    archive = archive_of(table, "0.3*x**3.1 + 1.9", "1.1*x + 1.1")
    alone, position = finalize(archive, table, FLOOR, float("inf"))
    assert "**" not in to_text(alone[position].final, NAMES)
    both = Problem(inputs, target, NAMES)
    laws, position = finalize(archive, table, FLOOR, float("inf"), compared_on=both)
    assert "**" in to_text(laws[position].final, NAMES)
