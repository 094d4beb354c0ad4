"""The loop over generators: turns, ends, failures, and generators that wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from small_problems import NAMES, candidate, problem

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.errors import PluginError
from physdiffuser.expressions import Expression, Number, evaluate, parse
from physdiffuser.expressions.tree import substitute
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop
from physdiffuser.search.scheduler import DEFERRED_TURN, Scheduler
from physdiffuser.search.stopping import POLICY
from physdiffuser.search.timing import TimeLimit

# Steps of the first turn of enumeration.
# Steps after which a plain law has been accepted.
FIRST_TURN = 12


class Scripted:
    """A generator that proposes given formulas, one a step."""

    def __init__(self, name: str, texts: list[str]) -> None:
        self.name = name
        self.texts = list(texts)
        self.calls = 0

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        self.calls += 1
        while self.texts:
            yield candidate(self.texts.pop(0))
            if not budget.spend():
                return


class Broken(Scripted):
    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        raise self.error
        yield

    error: Exception = ZeroDivisionError("a bug in it")


class TestLoop:
    def test_the_law_ends_the_search(self) -> None:
        generator = Scripted("one", ["a", "a*b", "a**2*b", *["a + b"] * 500])
        result = SearchLoop(problem(), {"one": generator}).run(None, float("inf"))
        assert result.settled and result.archive.best_loss < 1e-20
        assert result.steps["one"] < 40

    def test_a_broken_generator_is_switched_off_and_named(self) -> None:
        generators = {"bad": Broken("bad", []), "good": Scripted("good", ["a**2*b"])}
        result = SearchLoop(problem(), generators).run(None, float("inf"))
        assert result.archive.best_loss < 1e-20
        assert len(result.warnings) == 1 and "bad" in result.warnings[0]

    def test_a_plugin_error_is_passed_on_as_a_warning(self) -> None:
        bad = Broken("bad", [])
        bad.error = PluginError("plugin package x: generator 'bad' hangs")
        result = SearchLoop(problem(), {"bad": bad, "good": Scripted("good", ["a*b"])}).run(5, float("inf"))
        assert result.warnings == ("plugin package x: generator 'bad' hangs",)

    def test_steps_are_kept_to(self) -> None:
        generator = Scripted("one", ["a"] * 1000)
        result = SearchLoop(problem(0.1), {"one": generator}).run(25, float("inf"))
        assert sum(result.steps.values()) == 25

    def test_cancelling_and_deadlines_stop_it(self) -> None:
        generator = Scripted("one", ["a"] * 1000)
        assert (
            SearchLoop(problem(), {"one": generator}, cancelled=lambda: True).run(None, 1e9).steps["one"] == 0
        )
        now = iter(np.arange(0, 1000, 0.1))
        loop = SearchLoop(problem(0.1), {"one": generator}, clock=lambda: float(next(now)))
        assert loop.run(None, 2.0).steps["one"] <= 20

    def test_noise_settles_a_search_after_a_grace(self) -> None:
        generator = Scripted("one", ["a**2*b", *["a + b"] * 5000])
        result = SearchLoop(problem(0.05), {"one": generator}).run(None, float("inf"))
        assert result.settled and 4 < result.steps["one"] < 1000

    def test_a_plain_law_ends_even_a_long_turn(self) -> None:
        generator = Scripted("enumeration", ["a", "b", "a*b", "a**2*b", *["a + b"] * 5000])
        result = SearchLoop(problem(0.05), {"enumeration": generator}).run(None, float("inf"))
        assert result.settled and result.steps["enumeration"] < FIRST_TURN

    def test_few_rows_of_many_digits_do_not_end_a_turn(self) -> None:
        few = problem(0.05, rows=12)
        texts = ["a", "b", "a*b", "a**2*b", *["a + b"] * 5000]
        steps = []
        for tolerance in (1e-10, 1e-4):
            generator = Scripted("enumeration", texts)
            steps.append(
                SearchLoop(few, {"enumeration": generator}, tolerance=tolerance).run(None, 1e9).steps
            )
        assert steps[0]["enumeration"] > FIRST_TURN > steps[1]["enumeration"]

    def test_what_leaves_most_of_the_target_over_ends_nothing_early(self) -> None:
        random = np.random.default_rng(2)
        inputs = random.uniform(1, 3, (200, 2))
        table = Problem(inputs, inputs[:, 0] + random.normal(size=200), NAMES)
        told = Problem(inputs, inputs[:, 0] + 0.08 * random.normal(size=200), NAMES)
        steps = []
        for some in (table, told):
            generator = Scripted("one", ["a", *["a + b"] * 5000])
            steps.append(SearchLoop(some, {"one": generator}).run(None, float("inf")).steps["one"])
        assert steps[0] >= POLICY.unexplained_steps > steps[1]

    def test_what_leaves_a_pattern_ends_nothing(self) -> None:
        generator = Scripted("enumeration", ["a*b", *["a + b"] * 5000])
        result = SearchLoop(problem(0.05), {"enumeration": generator}).run(100, float("inf"))
        assert not result.settled and result.steps["enumeration"] == 100


def test_a_refiner_that_waits_is_asked_after_the_deferred_generators() -> None:
    order: list[str] = []

    class Noted(Scripted):
        def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
            order.append(self.name)
            yield from super().propose(problem, archive, budget)

    specs = [
        GeneratorSpec("late", Scripted, role="refiner", after_deferred=True),
        GeneratorSpec("early", Scripted, role="refiner"),
        GeneratorSpec("network", Scripted, role="deferred"),
    ]
    generators = {
        "one": Noted("one", ["a*b", *["a"] * 100]),
        "late": Noted("late", ["a"]),
        "early": Noted("early", ["a"]),
        "network": Noted("network", ["a + b"]),
    }
    loop = SearchLoop(
        problem(0.05), generators, deferred=("network",), refiners=("late", "early"), specs=specs
    )
    loop.run(200, float("inf"))
    assert "early" in order and order.index("network") < order.index("late")


def test_the_scheduler_tries_all_and_prefers_what_pays() -> None:
    scheduler = Scheduler(["good", "poor"])
    turns = {"good": 0, "poor": 0}
    for _ in range(60):
        chosen = scheduler.next()
        assert chosen is not None
        name, steps = chosen
        turns[name] += 1
        scheduler.record(name, steps, 50.0 if name == "good" else 0.0)
    assert turns["good"] > turns["poor"] > 0
    scheduler.finish("good")
    refiners = scheduler.next()
    assert refiners is not None and refiners[0] == "poor"
    scheduler.finish("poor")
    assert scheduler.next() is None


def test_late_generators_wait_until_they_are_admitted_and_then_come_next() -> None:
    scheduler = Scheduler(["enumeration", "slow"], {"slow"})
    for _ in range(30):
        turn = scheduler.next()
        assert turn is not None and turn[0] == "enumeration"
        scheduler.record(*turn, 0.0)
    assert scheduler.admit() and not scheduler.steps["slow"]
    assert scheduler.next() == ("slow", DEFERRED_TURN)
    scheduler.record("slow", DEFERRED_TURN, 0.0)
    assert not scheduler.admit()
    scheduler.finish("enumeration")
    turn = scheduler.next()
    assert turn is not None and turn[0] == "slow" and turn[1] < DEFERRED_TURN


class _Proposes:
    """A generator that proposes one formula a step, then nothing more."""

    def __init__(self, name: str, *formulas: str) -> None:
        self.name, self.left = name, list(formulas)

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        while self.left:
            yield candidate(self.left.pop(0))
            if not budget.spend():
                return


@pytest.mark.parametrize(("noise", "asked"), [(0.0, False), (0.05, True)])
def test_late_generators_are_asked_before_noise_is_believed(noise: float, asked: bool) -> None:
    deferred = _Proposes("late", "3*a*b", "3*a")
    quick = _Proposes("quick", "a**2*b", *(f"a*b + {i}" for i in range(2, 60)))
    loop = SearchLoop(problem(noise), {"quick": quick, "late": deferred}, deferred={"late"})
    # As if the law were a long one, and others were near.
    loop.stopping.is_certain = lambda best: False  # type: ignore[method-assign]
    result = loop.run(None, float("inf"))
    assert result.settled and bool(result.steps["late"]) is asked


def test_late_generators_are_not_asked_about_a_long_law_without_rivals() -> None:
    generators = {"quick": _Proposes("quick", "a**2*b", *["a"] * 60), "late": _Proposes("late", "3*a*b")}
    loop = SearchLoop(problem(0.05), generators, deferred={"late"})
    loop.stopping.policy = replace(POLICY, certain_nats=0.0)
    result = loop.run(None, float("inf"))
    assert result.settled and loop.stopping.is_certain(loop.best) and not result.steps["late"]


def test_a_freed_constant_makes_no_other_law() -> None:
    """`b*a**2.001` is near `b*a**2` with each number of rows, and does not delay the end."""
    generators = {"quick": _Proposes("quick", "a**2*b", "a**2.0003*b", *["a"] * 60)}
    loop = SearchLoop(problem(0.05), generators)
    result = loop.run(None, float("inf"))
    assert result.settled and loop.stopping.is_certain(loop.best)


def test_late_generators_are_not_asked_about_a_short_law_far_better_than_all_simpler_ones() -> None:
    generators = {"quick": _Proposes("quick", "a**2*b", *["a"] * 60), "late": _Proposes("late", "3*a*b")}
    loop = SearchLoop(problem(0.05), generators, deferred={"late"})
    result = loop.run(None, float("inf"))
    assert result.settled and loop.stopping.is_certain(loop.best) and not result.steps["late"]


def test_late_generators_are_not_asked_where_there_is_no_time_for_them() -> None:
    quick = _Proposes("quick", "a**2*b", *(f"a*b + {i}" for i in range(2, 60)))
    generators = {"quick": quick, "late": _Proposes("late", "3*a*b", "3*a")}
    loop = SearchLoop(problem(0.05), generators, deferred={"late"}, clock=lambda: 0.0)
    result = loop.run(None, POLICY.deferred_seconds / 2)
    assert result.settled and not result.steps["late"]


def _with_fitted_constants() -> tuple[Problem, Candidate]:
    """A noisy table, and its law with three constants that are no special values."""

    def fitted(node: Expression) -> Expression | None:
        return Number(float(node.value)) if isinstance(node, Number) else None

    law = substitute(parse("2.7134*exp(0.3127*a)*b**1.7231", NAMES), fitted)
    rows = problem()
    noise = 0.05 * np.random.default_rng(1).normal(size=rows.rows)
    return replace(rows, target=evaluate(law, rows.inputs) + noise), Candidate(law, "earlier")


@pytest.mark.parametrize(("earlier", "fewest", "most"), [(0, 42, 60), (200, POLICY.again_steps, 20)])
def test_steps_of_earlier_searches_count_for_the_formulas_known_from_them(
    earlier: int, fewest: int, most: int
) -> None:
    noisy, law = _with_fitted_constants()
    loop = SearchLoop(noisy, {"quick": _Proposes("quick", *["a"] * 200)}, earlier_steps=earlier)
    result = loop.run(None, float("inf"), [law])
    assert result.settled and fewest <= loop.spent <= most


def test_a_better_formula_has_to_stand_as_long_after_earlier_searches() -> None:
    noisy, law = _with_fitted_constants()
    quick = _Proposes("quick", "a", *["a"] * 200)
    loop = SearchLoop(noisy, {"quick": quick}, earlier_steps=200)
    loop.run(5, float("inf"), [candidate("a*b")])
    result = loop.run(None, float("inf"), [law])
    assert result.settled and loop.spent >= 5 + 42


def test_deferred_generators_are_asked_once_for_a_table() -> None:
    limit = TimeLimit(None, 0.0)
    limit.comparing = True
    generators = {"quick": _Proposes("quick", *["a"] * 90), "late": _Proposes("late", "3*a*b")}
    loop = SearchLoop(problem(0.05), generators, deferred={"late"}, limit=limit, earlier_steps=50)
    loop.stopping.is_certain = lambda best: False  # type: ignore[method-assign]
    result = loop.run(None, float("inf"), [candidate("a**2*b")])
    assert result.settled and not result.steps.get("late")
