"""The evolution generator: what it finds, what it obeys, that it repeats itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import (
    Apply,
    Expression,
    Number,
    Symbol,
    Variable,
    complexity,
    evaluate,
    parse,
    to_text,
)
from physdiffuser.expressions.tree import walk
from physdiffuser.generation.evolution import EvolutionGenerator, Mutation, build
from physdiffuser.generation.evolution.blind import VARIATIONS, BlindMutation, Place, variation
from physdiffuser.generation.evolution.mutation import Surroundings
from physdiffuser.generation.evolution.population import Individual
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.units.unit import parse_unit

Array = np.ndarray


def _problem(law: str, ranges: dict[str, tuple[float, float]], rows: int = 200, **rules: object) -> Problem:
    rng = np.random.default_rng(7)
    inputs = np.column_stack([rng.uniform(low, high, rows) for low, high in ranges.values()])
    target = evaluate(parse(law, list(ranges)), inputs)
    return Problem(inputs, target, tuple(ranges), **rules)  # type: ignore[arg-type]


def _search(
    problem: Problem, steps: int, archive: ParetoArchive | None = None, **options: object
) -> ParetoArchive:
    archive = archive or ParetoArchive(problem)
    generator = EvolutionGenerator(**options)  # type: ignore[arg-type]
    for candidate in generator.propose(problem, archive, Budget(steps)):
        archive.offer(candidate)
        if archive.best_loss < 1e-20:
            break
    return archive


def _operators(expression: Expression) -> set[str]:
    return {node.operator for node in walk(expression) if isinstance(node, Apply)}


@pytest.mark.parametrize(
    ("law", "ranges"),
    [
        ("2.3*exp(-0.31*t)*cos(4.7*t + 0.6)", {"t": (0, 8)}),
        ("7.2*S/(2.4 + S)", {"S": (0.5, 10)}),
        ("3.1*m**0.67", {"m": (0.1, 30)}),
        ("a*S*exp(-b*S)", {"a": (1, 5), "S": (0.5, 4), "b": (0.2, 1)}),
        ("4.2*exp(-(x - 2.9)**2/0.19) + 0.8 + 0.12*x", {"x": (0, 6)}),
    ],
)
def test_laws_with_constants_are_found_exactly(law: str, ranges: dict[str, tuple[float, float]]) -> None:
    archive = _search(_problem(law, ranges), 60)
    assert archive.best_loss < 1e-20


def test_si_magnitudes() -> None:
    problem = _problem("6.62607015e-34*f/(1.380649e-23*T)", {"f": (1e12, 1e14), "T": (200.0, 4000.0)})
    archive = _search(problem, 20)
    assert archive.best_loss < 1e-20
    tiny = _problem("3e-19*q**2*B/m", {"q": (1e-19, 5e-19), "B": (1e-3, 1.0), "m": (1e-31, 1e-30)})
    assert _search(tiny, 20).best_loss < 1e-20


def test_noise_and_weights() -> None:
    clean = _problem("7.2*S/(2.4 + S)", {"S": (0.5, 10)})
    rng = np.random.default_rng(3)
    sigma = np.where(np.arange(200) < 100, 0.01, 3.0)
    weights = 1 / sigma**2
    problem = Problem(
        clean.inputs,
        clean.target + sigma * rng.standard_normal(200),
        clean.names,
        weights=weights / weights.mean(),
    )
    archive = _search(problem, 25)
    error = [
        float(np.sqrt(np.mean((evaluate(entry.candidate.expression, clean.inputs) - clean.target) ** 2)))
        for entry in archive.front()
    ]
    assert min(error) < 0.01


def test_the_robust_loss_sees_through_outliers() -> None:
    clean = _problem("2.5*x**1.3 + 1", {"x": (0.5, 5)})
    target = clean.target.copy()
    target[::15] += 40.0
    problem = Problem(clean.inputs, target, clean.names, loss="robust")
    archive = _search(problem, 25)
    good = np.ones(200, dtype=np.bool_)
    good[::15] = False
    errors = [
        float(np.abs(evaluate(entry.candidate.expression, clean.inputs) - clean.target)[good].max())
        for entry in archive.front()
    ]
    assert min(errors) < 0.1


def test_rules_are_obeyed() -> None:
    law = "exp(-x*y) + sin(x)"
    allowed = frozenset({"add", "mul", "div"})
    problem = _problem(law, {"x": (0.5, 3), "y": (0.5, 2)}, operators=allowed, max_complexity=9)
    archive = ParetoArchive(problem)
    proposed = list(EvolutionGenerator().propose(problem, archive, Budget(6)))
    assert proposed
    for candidate in proposed:
        assert _operators(candidate.expression) <= allowed
    for entry in archive.front():
        assert entry.complexity <= 9


def test_units_are_obeyed() -> None:
    metre, second = parse_unit("m").unit, parse_unit("s").unit
    ranges = {"d": (1.0, 9.0), "t": (1.0, 4.0), "v": (0.5, 3.0)}
    problem = _problem(
        "v + 1.7*d/t", ranges, units=(metre, second, metre / second), target_unit=metre / second
    )
    archive = ParetoArchive(problem)
    proposed = []
    for candidate in EvolutionGenerator().propose(problem, archive, Budget(5)):
        proposed.append(candidate.expression)
        archive.offer(candidate)
    assert all(not _adds_unlike(expression) for expression in proposed)
    assert archive.best_loss < 1e-20


def _adds_unlike(expression: Expression) -> bool:
    """Whether two different bare columns are added."""
    return any(
        isinstance(node, Apply)
        and node.operator in ("add", "sub")
        and all(isinstance(argument, Variable) for argument in node.arguments)
        and node.arguments[0] != node.arguments[1]
        for node in walk(expression)
    )


def test_named_constants_are_among_the_leaves() -> None:
    gravity = Symbol("g", 9.80665)
    seen: list[Surroundings] = []

    class Spy(_Oracle):
        def propose(
            self, parents: Sequence[Individual], around: Surroundings, rng: np.random.Generator
        ) -> list[Expression]:
            seen.append(around)
            return []

    problem = _problem("x + 0.123456", {"x": (1, 2)}, constants=(gravity,))
    generator = EvolutionGenerator(mutations=[Spy()])
    parents = [Individual(Variable(0), 1, "1 ", 1.0, 1.0, 0.0, b"", "")] * 2000
    list(generator.propose(problem, ParetoArchive(problem), Budget(2)))
    varied = BlindMutation().propose(parents, seen[0], np.random.default_rng(0))
    assert any(gravity in walk(expression) for expression in varied)


def test_a_blind_variation_is_registered_where_it_is_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VARIATIONS, "_parts", VARIATIONS.parts())
    seen: list[Place] = []

    @variation("double", 1.0)
    def double(place: Place, around: Surroundings, rng: np.random.Generator) -> Expression:
        seen.append(place)
        return place.put(Apply("mul", (Number(2), place.node)))

    problem = _problem("x*sin(1.7*y) + y**2", {"x": (1, 3), "y": (0, 4)}, seed=5)
    list(EvolutionGenerator().propose(problem, ParetoArchive(problem), Budget(2)))
    assert len(seen) > 20
    place = Place(Apply("sin", (Variable(0),)), (0,), Variable(0), Variable(1))
    assert to_text(double(place, *[None] * 2)) == "sin(2*x1)"  # type: ignore[arg-type]


def test_same_seed_same_candidates() -> None:
    problem = _problem("x*sin(1.7*y) + y**2", {"x": (1, 3), "y": (0, 4)}, seed=5)

    def texts(seed_problem: Problem) -> list[str]:
        found = EvolutionGenerator().propose(seed_problem, ParetoArchive(seed_problem), Budget(5))
        return [to_text(candidate.expression) for candidate in found]

    first = texts(problem)
    assert first == texts(problem)
    assert len(first) > 3


def test_budget_is_kept_and_the_run_goes_on_where_it_stopped() -> None:
    problem = _problem("x*sin(1.7*y) + y**2", {"x": (1, 3), "y": (0, 4)})
    archive = ParetoArchive(problem)
    generator = EvolutionGenerator()
    for _ in range(3):
        budget = Budget(2)
        for candidate in generator.propose(problem, archive, budget):
            archive.offer(candidate)
        assert budget.spent == 2
    assert generator.generations == 5
    stopped = Budget(100, cancelled=lambda: True)
    assert list(generator.propose(problem, archive, stopped)) == []


def test_formulas_of_other_generators_are_refined() -> None:
    names = {"x": (0.5, 3.0), "y": (0.2, 2.0)}
    law = "x*exp(-1.37*y)/(1 + 0.21*x*y) + 0.4*sqrt(x)"
    problem = _problem(law, names)
    near = parse("x*exp(-y)/(1 + 0.31725*x*y) + 0.55123*sqrt(x)", list(names))
    archive = ParetoArchive(problem)
    archive.offer(Candidate(near, "enumeration"))
    _search(problem, 20, archive)
    assert archive.best_loss < 1e-8


def test_candidates_carry_a_derivation() -> None:
    problem = _problem("x**2 + 3", {"x": (1, 3)})
    candidates = list(EvolutionGenerator().propose(problem, ParetoArchive(problem), Budget(2)))
    assert candidates
    for candidate in candidates:
        assert candidate.generator == "evolution"
        assert candidate.derivation[0].startswith("evolution: generation ")
        assert complexity(candidate.expression) <= problem.max_complexity


class _Oracle:
    """A variation that knows the answer, as a learned one would."""

    name = "oracle"

    def propose(
        self, parents: Sequence[Individual], around: Surroundings, rng: np.random.Generator
    ) -> list[Expression]:
        assert len(parents) > 0
        return [parse("atan(x)*cosh(log(x)/3) + sinh(x)/tan(x)", ["x"])]


def test_a_learned_variation_plugs_in() -> None:
    oracle: Mutation = _Oracle()
    problem = _problem("atan(x)*cosh(log(x)/3) + sinh(x)/tan(x)", {"x": (0.3, 1.4)})
    archive = _search(problem, 3, mutations=[oracle])
    assert archive.best_loss < 1e-20
    assert "oracle" in archive.front()[-1].candidate.derivation[0]


def test_it_is_a_generator_and_survives_odd_tables() -> None:
    assert isinstance(build(), Generator)
    rng = np.random.default_rng(0)
    constant = Problem(np.full((20, 1), 3.0), np.arange(20.0), ("x",))
    no_columns = Problem(np.empty((20, 0)), np.arange(20.0), ())
    tiny = Problem(rng.uniform(1, 2, (3, 2)), np.array([1.0, 2.0, 3.0]), ("x", "y"))
    flat = Problem(rng.uniform(1, 2, (30, 2)), np.full(30, 2.0), ("x", "y"))
    for problem in (constant, no_columns, tiny, flat):
        for candidate in EvolutionGenerator().propose(problem, ParetoArchive(problem), Budget(3)):
            assert np.isfinite(evaluate(candidate.expression, problem.inputs)).all()
