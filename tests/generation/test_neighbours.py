"""The generator of neighbours: formulas that are nearly right are made right."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import Expression, Number, evaluate, parse
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import mul, substitute
from physdiffuser.fitting import refit
from physdiffuser.generation.neighbours import NeighbourGenerator, build
from physdiffuser.generation.neighbours.building_blocks import BuildingBlocks
from physdiffuser.generation.neighbours.insertions import changes, insertions
from physdiffuser.generation.neighbours.removals import as_meant, removals
from physdiffuser.generation.neighbours.replacements import Replacements
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop

NAMES = ("a", "b", "d")
INPUTS = np.random.default_rng(3).uniform(1.0, 4.0, (150, 3)) * (4, 4, 1)


def problem(law: str, noise: float = 0.01, **rules: object) -> Problem:
    exact = evaluate(parse(law, NAMES), INPUTS)
    error = noise * np.sqrt(np.mean(exact**2)) * np.random.default_rng(4).normal(size=len(exact))
    return Problem(INPUTS, exact + error, NAMES, **rules)  # type: ignore[arg-type]


def loose(formula: str) -> Expression:
    """A formula with its decimals as fitted constants."""
    return substitute(
        parse(formula, NAMES),
        lambda node: Number(float(node.value)) if isinstance(node, Number) and node.value % 1 else None,
    )


def varied(problem: Problem, formula: str, rounds: int = 3) -> ParetoArchive:
    archive = ParetoArchive(problem)
    archive.offer(Candidate(loose(formula), "test"))
    generator = build()
    for _ in range(rounds):
        for candidate in generator.propose(problem, archive, Budget(1000)):
            assert candidate.generator == "neighbours"
            archive.offer(candidate)
    return archive


@pytest.mark.parametrize(
    ("law", "nearly"),
    [
        ("a*b/(a + b - d)", "a*b/(a + b) + 0.29*d"),  # a part taken from one place to another
        ("a/(1 + b*d)", "1.01*a/(b*d)"),
        ("a*b**2", "0.9*a*b**2 + 0.5*d"),  # a part too many
        ("a*cos(b)/d", "1.01*a*sin(b)/d"),  # another function
        ("sqrt(a**2 + b**2 + d**2)", "sqrt(a**2 + b**2) + 0.5"),
        ("a/sqrt(b)", "1.1*a*b**-0.58"),  # an exponent that laws have
    ],
)
def test_a_formula_that_is_nearly_right_becomes_right(law: str, nearly: str) -> None:
    task = problem(law)
    archive = varied(task, nearly)
    best = min(archive.front(), key=archive.length)
    assert canonical(best.candidate.expression) == canonical(parse(law, NAMES))


@pytest.mark.parametrize(
    ("law", "nearly", "noise"),
    [
        # The exponent is n*log(1 + r), of which the middle of the formula says nothing but its values.
        ("(a*d + b)*(1 + d)**a", "(a*d + b)*exp(0.5*a*d)", 0.0),
        ("a - (a - b)/(a/b + 1/(1 + d))", "a - (a - b)/(a/b + 1.01 - d**0.256)", 0.001),
        ("b*exp(-0.8*d) + a*(1 + b)", "b*(0.4 - 0.1*d) + a*(1 + b)", 0.001),
    ],
)
@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e20])
def test_what_stands_in_a_place_is_found_from_the_values_that_it_should_have(
    law: str, nearly: str, noise: float, unit: float
) -> None:
    exact = unit * evaluate(parse(law, NAMES), INPUTS)
    error = noise * exact * np.random.default_rng(4).normal(size=len(exact))
    task = Problem(INPUTS, exact + error, NAMES)
    start = mul(Number(unit), loose(nearly))
    residual = task.target - evaluate(start, task.inputs)
    proposed = Replacements(task).of(start, residual, most=24)
    found = [refit(changed, task.inputs, task.target).expression for changed in proposed]
    left = [float(np.mean((exact - evaluate(one, task.inputs)) ** 2)) for one in found]
    assert min(left) < (3e-4 * max(noise, 1e-6)) * float(np.mean(exact**2))
    assert len({canonical(one) for one in proposed}) == len(proposed)


@pytest.mark.parametrize("columns", [1, 60])
def test_there_is_something_in_stock_for_any_table(columns: int) -> None:
    inputs = np.random.default_rng(0).uniform(1.0, 4.0, (200, columns))
    task = Problem(inputs, inputs[:, 0] ** 2, tuple(f"x{index}" for index in range(columns)))
    building_blocks = BuildingBlocks(inputs, task)
    assert np.isfinite(building_blocks.values).all() and (np.diff(building_blocks.nats) >= 0.0).all()
    for entry in (0, len(building_blocks.nats) // 2, len(building_blocks.nats) - 1):
        np.testing.assert_allclose(
            building_blocks.column(entry), evaluate(building_blocks.expression(entry), inputs), rtol=1e-9
        )


def test_columns_that_say_nothing_have_no_replacements() -> None:
    task = Problem(np.zeros((30, 1)), np.random.default_rng(0).normal(size=30), ("a",))
    assert Replacements(task).of(parse("a + 1", ("a",)), task.target - 1.0, most=5) == []


def test_constants_that_are_nearly_integers_are_taken_as_meant() -> None:
    formula = loose("0.9986*(a*d + 2.02*b)*exp(0.53*d) - 1.0018*b")
    assert canonical(as_meant(formula)) == canonical(loose("(a*d + 2*b)*exp(0.53*d) - b"))


def test_each_entry_is_looked_at_once() -> None:
    task = problem("a*b/(a + b - d)", noise=0.0)
    archive = ParetoArchive(task)
    archive.offer(Candidate(parse("a*b", NAMES), "test"))
    generator = NeighbourGenerator()
    assert isinstance(generator, Generator)
    assert list(generator.propose(task, archive, Budget(1000)))
    assert not list(generator.propose(task, archive, Budget(1000)))


def test_it_keeps_to_its_budget_and_to_the_operators() -> None:
    task = problem("a*b/(a + b - d)", operators=frozenset({"add", "mul", "div"}))
    archive = ParetoArchive(task)
    archive.offer(Candidate(loose("0.5*a*b/(a + 0.3*b)"), "test"))
    budget = Budget(1)
    proposed = list(NeighbourGenerator().propose(task, archive, budget))
    # A piece of work in hand is finished.
    assert 1 <= budget.spent <= 3 and proposed
    assert all(task.allows(candidate.expression) for candidate in proposed)


def test_a_score_test_foretells_what_a_fit_gains() -> None:
    """For a change that enters linearly first order is all there is: the fit must agree."""
    task = problem("2*a + 0.01*b*d")
    formula = refit(loose("2.0*a + 0.1"), task.inputs, task.target).expression
    residual = task.target - evaluate(formula, task.inputs)
    (best,) = insertions(formula, task.inputs, residual, None, most=1, price=3.0)
    after = task.target - evaluate(refit(best, task.inputs, task.target).expression, task.inputs)
    for change in changes(task.inputs):
        other = change.make(formula, 0.0)
        fitted = refit(other, task.inputs, task.target).expression
        left = task.target - evaluate(fitted, task.inputs)
        if change.units <= 4 and fitted != formula:
            assert after @ after <= (left @ left) * (1 + 1e-6)


def test_removals_leave_one_thing_out_each() -> None:
    found = {canonical(form) for form in removals(loose("1.03*a + b**2.04/d"))}
    for expected in (
        "a + b**2.04/d",
        "1.03*a + b**2/d",
        "1.03*a",
        "b**2.04/d",
        "1.03*a + b/d",
        "1.03*a + 1/d",
    ):
        assert canonical(loose(expected)) in found
    assert canonical(loose("1.03*a + b**2.04/d")) not in found


class _Once:
    name = "once"

    def __init__(self, formula: str) -> None:
        self.formula = formula

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget):  # type: ignore[no-untyped-def]
        yield Candidate(loose(self.formula), self.name)
        while budget.spend():
            pass


def test_followers_are_asked_before_noise_is_believed() -> None:
    task = problem("a*b/(a + b - d)")
    generators = {"once": _Once("a*b/(a + b) + 0.29*d"), "neighbours": build()}
    result = SearchLoop(task, generators, refiners={"neighbours"}).run(400, float("inf"))
    best = min(result.archive.front(), key=result.archive.length)
    assert best.candidate.generator == "neighbours"
    assert canonical(best.candidate.expression) == canonical(parse("a*b/(a + b - d)", NAMES))
    assert result.steps["neighbours"] > 0 and result.settled


def test_followers_alone_vary_what_there_is() -> None:
    task = problem("2*a + b*d", noise=0.0)
    start = Candidate(Number(float(task.target.mean())), "constant")
    result = SearchLoop(task, {"neighbours": build()}, refiners={"neighbours"}).run(
        None, float("inf"), [start]
    )
    assert result.archive.best_loss < 1e-20
