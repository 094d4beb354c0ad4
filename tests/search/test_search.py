"""The archive, the scheduler, model selection, row splits, and the loop over generators."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import GeneratorSpec
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.data import dataset_from_arrays
from physdiffuser.errors import PluginError
from physdiffuser.expressions import Apply, Number, complexity, evaluate, parse, to_text
from physdiffuser.expressions.tree import substitute, walk
from physdiffuser.noise.precision import DOUBLE, decimal_precision
from physdiffuser.pipeline import solve_dataset
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop
from physdiffuser.search.refinement.rewriting import rounded, small_phases, without_powers, worth_rounding
from physdiffuser.search.sampling import SEARCH_ROWS, split_rows
from physdiffuser.search.scheduler import DEFERRED_TURN, Scheduler
from physdiffuser.search.stopping import POLICY
from physdiffuser.selection.description_length import DescriptionLength, residual_is_noise
from physdiffuser.units.unit import parse_unit

NAMES = ("a", "b")
# Steps of the first turn of enumeration.
# Steps after which a plain law has been accepted.
FIRST_TURN = 12


def problem(noise: float = 0.0, rows: int = 200) -> Problem:
    random = np.random.default_rng(0)
    inputs = random.uniform(1, 3, (rows, 2))
    target = inputs[:, 0] ** 2 * inputs[:, 1] + noise * random.normal(size=rows)
    return Problem(inputs, target, NAMES)


def candidate(text: str) -> Candidate:
    return Candidate(parse(text, NAMES), "test")


class TestArchive:
    def test_a_law_is_told_by_few_constants_that_leave_nothing(self) -> None:
        archive = ParetoArchive(problem())
        archive.offer(candidate("a**2*b + 0.001*a"))
        assert not archive.is_solved
        archive.offer(candidate("a**2*b"))
        assert archive.is_solved

    def test_many_constants_that_leave_nothing_do_not_tell_a_law(self) -> None:
        x = np.linspace(1, 1.2, 40)[:, None]
        smooth = Problem(x, np.log(x[:, 0]) * np.sqrt(x[:, 0]), ("a",))
        archive = ParetoArchive(smooth)
        terms = ""
        for coefficient in reversed(
            np.polynomial.Polynomial.fit(x[:, 0] - 1.1, smooth.target, 8).convert().coef
        ):
            terms = f"{float(coefficient)!r} + (a - 1.1)*({terms})" if terms else f"{float(coefficient)!r}"
        archive.offer(Candidate(parse(terms, ("a",)), "test"))
        assert archive.best_loss < 1e-18
        assert not archive.is_solved

    @settings(max_examples=40, deadline=None)
    @given(st.permutations(["a", "a*b", "a**2*b", "a + b", "2*a*b", "a*b + a", "exp(a)", "a**2"]))
    def test_the_front_does_not_depend_on_the_order_and_improves(self, texts: list[str]) -> None:
        archive = ParetoArchive(problem(0.1))
        for text in texts:
            archive.offer(candidate(text))
        front = archive.front()
        assert [e.complexity for e in front] == sorted(e.complexity for e in front)
        for entry in front:
            assert not any(
                other is not entry
                and other.complexity <= entry.complexity
                and other.loss <= entry.loss
                and other.nats <= entry.nats
                for other in front
            )
        reference = ParetoArchive(problem(0.1))
        for text in sorted(texts):
            reference.offer(candidate(text))
        assert [(e.complexity, e.loss) for e in reference.front()] == [(e.complexity, e.loss) for e in front]

    def test_an_exact_constant_is_not_lost_to_a_fitted_one(self) -> None:
        archive = ParetoArchive(problem(0.1))
        archive.offer(candidate("a**2*b"))
        archive.offer(candidate("a**2.00001234567*b"))
        archive.offer(candidate("a**1.9999876543*b"))
        texts = [to_text(entry.candidate.expression, NAMES) for entry in archive.front()]
        assert "a**2*b" in texts

    def test_all_rows_judge_what_the_rows_of_the_search_leave_open(self) -> None:
        whole = problem(0.5, rows=20_000)
        few = replace(whole, inputs=whole.inputs[:200], target=whole.target[:200] * 1.001, full_problem=whole)
        archive = ParetoArchive(few)
        assert archive.description_length.rows == 20_000
        assert archive.offer(candidate("0.9123456789*a**2*b"))
        (entry,) = archive.front()
        (factor,) = (
            node.value
            for node in walk(entry.candidate.expression)
            if isinstance(node, Number) and not node.exact
        )
        a, b = whole.inputs.T
        wanted = float((a**2 * b * whole.target).sum() / np.square(a**2 * b).sum())
        assert factor == pytest.approx(wanted, rel=1e-9)
        residual = whole.target - wanted * a**2 * b
        assert entry.loss == pytest.approx(residual.var() / whole.target.var(), rel=1e-6)
        assert entry.search_loss != entry.loss

    def test_what_the_rows_of_the_search_refute_is_not_looked_at_again(self) -> None:
        whole = problem(0.1, rows=20_000)
        archive = ParetoArchive(
            replace(whole, inputs=whole.inputs[:500], target=whole.target[:500], full_problem=whole)
        )
        assert archive.offer(candidate("a**2*b"))
        assert not archive.offer(candidate("a*b + exp(a)"))
        assert archive.offer(candidate("a*b"))

    @pytest.mark.parametrize("text", ["log(a - 2)", "1/(a - a)", "exp(exp(exp(a*b*b)))"])
    def test_formulas_that_are_not_finite_are_refused(self, text: str) -> None:
        assert not ParetoArchive(problem()).offer(candidate(text))

    def test_complexity_operators_and_units_are_rules(self) -> None:
        base = problem()
        assert not ParetoArchive(replace(base, max_complexity=4)).offer(candidate("a**2*b"))
        assert not ParetoArchive(replace(base, operators=frozenset({"mul"}))).offer(candidate("a**2*b"))
        metre, second = parse_unit("m").unit, parse_unit("s").unit
        area = parse_unit("m**2*s").unit
        with_units = replace(base, units=(metre, second), target_unit=area)
        assert ParetoArchive(with_units).offer(candidate("a**2*b"))
        assert not ParetoArchive(with_units).offer(candidate("a*b"))

    def test_weights_count(self) -> None:
        base = problem()
        target = base.target.copy()
        target[0] += 50
        weights = np.ones(200)
        weights[0] = 1e-9
        archive = ParetoArchive(replace(base, target=target, weights=weights))
        archive.offer(candidate("a**2*b"))
        assert archive.best_loss < 1e-6

    def test_the_robust_loss_bears_outliers(self) -> None:
        base = problem(0.05)
        target = base.target.copy()
        target[:4] += 200
        right, wrong = candidate("a**2*b"), candidate("4*a*b - 3")
        squared, robust = (
            ParetoArchive(replace(base, target=target, loss=loss)) for loss in ("squared", "robust")
        )
        for archive in (squared, robust):
            archive.offer(right)
            archive.offer(wrong)
        assert robust.best_loss < 0.3 * squared.best_loss


def _length(loss: float, units: int, constants: int, rows: int) -> float:
    return DescriptionLength(rows, 1).total(3.0 * units, constants, loss)


class TestSelection:
    def test_a_longer_formula_must_earn_its_length(self) -> None:
        short = _length(1e-2, 5, 0, 200)
        assert _length(1e-2, 7, 0, 200) > short
        assert _length(0.99e-2, 7, 1, 200) > short
        assert _length(0.5e-2, 7, 1, 200) < short

    def test_below_rounding_the_shorter_formula_wins(self) -> None:
        assert _length(1e-30, 7, 0, 200) < _length(1e-32, 9, 0, 200)

    def test_few_rows_do_not_pay_for_long_formulas(self) -> None:
        # Eight planets: a**1.5 to a part in a thousand, and a formula of 13 units ten times as good.
        assert _length(1e-7, 3, 0, 8) < _length(1e-9, 13, 2, 8)

    def test_white_residuals_are_noise_and_others_are_not(self) -> None:
        random = np.random.default_rng(1)
        inputs = random.uniform(0, 1, (400, 3))
        white = random.normal(size=400)
        assert residual_is_noise(inputs, white)
        assert not residual_is_noise(inputs, white + 1.5 * inputs[:, 1] ** 2)
        assert not residual_is_noise(inputs[:, :1], 0.3 * white + np.sin(30 * inputs[:, 0]))

    def test_a_pattern_in_two_of_five_columns_is_seen(self) -> None:
        random = np.random.default_rng(3)
        inputs = random.uniform(1, 3, (150, 5))
        pattern = np.sin(6 * inputs[:, 1] / inputs[:, 3])
        assert not residual_is_noise(inputs, 0.4 * random.normal(size=150) + pattern)
        assert not residual_is_noise(inputs[:, [1, 3]], 0.4 * random.normal(size=150) + pattern)

    def test_chance_in_many_planes_is_not_taken_for_a_pattern(self) -> None:
        random = np.random.default_rng(4)
        inputs = random.uniform(1, 3, (150, 6))
        assert sum(not residual_is_noise(inputs, random.normal(size=150)) for _ in range(200)) <= 3

    def test_noise_is_rarely_taken_for_a_pattern(self) -> None:
        random = np.random.default_rng(2)
        inputs = random.uniform(0, 1, (150, 4))
        wrong = sum(not residual_is_noise(inputs, random.standard_t(4, 150)) for _ in range(300))
        assert wrong <= 6


class TestPrecision:
    @pytest.mark.parametrize("digits", [2, 3, 5, 8])
    def test_written_digits_are_found(self, digits: int) -> None:
        values = np.random.default_rng(3).uniform(0.01, 1000, 100)
        rounded = np.array([float(f"{value:.{digits - 1}e}") for value in values])
        assert decimal_precision(rounded) == pytest.approx(0.5 * 10.0 ** (1 - digits))

    def test_doubles_are_doubles(self) -> None:
        assert decimal_precision(np.random.default_rng(4).normal(size=100)) == DOUBLE


class TestSplit:
    def test_parts_are_disjoint_and_repeatable(self) -> None:
        inputs = np.random.default_rng(5).normal(size=(5000, 2))
        dataset = dataset_from_arrays(inputs, inputs[:, 0])
        split = split_rows(dataset, 1)
        assert set(split.search) <= set(split.fit)
        assert not set(split.fit) & set(split.test)
        assert len(split.search) == SEARCH_ROWS and len(split.test) == 1000
        again = split_rows(dataset, 1)
        assert all(
            np.array_equal(x, y)
            for x, y in zip(
                (split.search, split.fit, split.test),
                (again.search, again.fit, again.test),
                strict=True,
            )
        )

    def test_extremes_are_searched(self) -> None:
        inputs = np.random.default_rng(6).normal(size=(8000, 2))
        dataset = dataset_from_arrays(inputs, inputs[:, 0] * inputs[:, 1])
        split = split_rows(dataset, 0)
        seen, available = inputs[split.search], inputs[split.fit]
        assert np.array_equal(seen.max(axis=0), available.max(axis=0))
        assert np.array_equal(seen.min(axis=0), available.min(axis=0))

    def test_small_tables_hold_nothing_out(self) -> None:
        inputs = np.random.default_rng(7).normal(size=(12, 1))
        assert split_rows(dataset_from_arrays(inputs, inputs[:, 0] + 1), 0).test.size == 0


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
        told = Problem(inputs, inputs[:, 0] + 0.3 * random.normal(size=200), NAMES)
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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1.0004321*a**1.49971", "1*a**1.5"),
        ("0.7312345*a", "0.7312345*a"),
        ("a*2.003456 + 130.06123", "a*2 + 130.06123"),
        ("a**-1.995678", "a**-2"),
    ],
)
def test_constants_near_half_integers_are_tried_as_such(given: str, expected: str) -> None:
    assert rounded(parse(given, NAMES)) == parse(expected, NAMES)


def test_beside_other_constants_only_exponents_are_rounded() -> None:
    given, expected = "0.7312345*a**1.4997123 + 3.5031234", "0.7312345*a**1.5 + 3.5031234"
    assert worth_rounding(parse(given, NAMES)) == parse(expected, NAMES)
    assert worth_rounding(parse("1.0004321*a**1.4997123", NAMES)) == parse("1*a**1.5", NAMES)


@pytest.mark.parametrize(
    "given",
    [
        "2*sin(a + 10.9956)",
        "cos(3*a - 47.13)*b",
        "sin(b*cos(a + 6.5) - 20.25)",
        "sin(a + 1.5) + cos(b + 11)",
        "a + 9.5",
    ],
)
def test_phases_are_brought_within_half_a_turn(given: str) -> None:
    before = substitute(
        parse(given, NAMES),
        lambda node: Number(float(node.value)) if isinstance(node, Number) and node.value % 1 else None,
    )
    after = small_phases(before)
    inputs = np.random.default_rng(0).uniform(1, 5, (50, len(NAMES)))
    np.testing.assert_allclose(evaluate(after, inputs), evaluate(before, inputs), rtol=1e-9, atol=1e-9)
    fitted = [abs(float(node.value)) for node in walk(after) if isinstance(node, Number) and not node.exact]
    assert max(fitted) <= math.pi or after == before


@pytest.mark.parametrize(
    ("formula", "wanted"),
    [
        ("a**2", "a*a"),
        ("b/a**3", "b/(a*a*a)"),
        ("(a**2 + b)**2", "(a*a + b)*(a*a + b)"),
        ("a**-2", "1/(a*a)"),
        ("a**(1/2) + exp(a**2)", "a**(1/2) + exp(a*a)"),
        ("a**b + a**1.5", "a**b + a**1.5"),
        ("a**7", "a**7"),
    ],
)
def test_whole_powers_are_products_where_powers_may_not_occur(formula: str, wanted: str) -> None:
    assert without_powers(parse(formula, NAMES)) == parse(wanted, NAMES)


@pytest.mark.parametrize(
    ("operators", "formula"),
    [
        ("mul", "a**3"),
        ("add sub mul", "a**2 - b"),
        ("add sub mul div", "a**3 - 2*a*b + 1"),
        ("add sub mul div", "a**2/(1 + b**2)"),
        ("add sub mul div sqrt", "b*sqrt(a**2 + b**2)"),
    ],
)
def test_laws_with_powers_are_found_without_the_operator(operators: str, formula: str) -> None:
    inputs = np.random.default_rng(0).uniform(1, 5, (200, 2))
    law = parse(formula, NAMES)
    allowed = operators.split()
    found = solve_dataset(
        dataset_from_arrays(inputs, evaluate(law, inputs), names=NAMES), operators=allowed, time=30
    )
    assert found.status == "exact" and found.best is not None
    used = {node.operator for node in walk(found.best.expression) if isinstance(node, Apply)}
    assert used <= set(allowed)
    assert found.best.complexity <= complexity(law) + 8
