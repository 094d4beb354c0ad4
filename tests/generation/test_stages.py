"""Stages of the enumeration: registered where they are defined, run by ladders that are data."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import Work
from physdiffuser.expressions import Variable, evaluate, parse
from physdiffuser.generation.enumeration import generator
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.generator import EnumerationGenerator
from physdiffuser.generation.enumeration.ladders import CLEAN, LADDERS, NOISY, Ladder, Ladders, Row
from physdiffuser.generation.enumeration.registry import STAGES, Size, Stage, register
from physdiffuser.reduction.analysis import SharedAnalysis
from physdiffuser.reduction.proposed_reductions import ProposedReductions
from physdiffuser.search.archive import ParetoArchive

NAMES = ("a", "b")
FIRST, SECOND, BOTH = (Reduction.of_columns((), columns) for columns in ([0], [1], [0, 1]))

NEW_STAGE = '''
"""Squares of the first feature."""

from physdiffuser.core.candidate import Candidate
from physdiffuser.expressions import Number
from physdiffuser.expressions.tree import power
from physdiffuser.generation.enumeration.registry import Stage, register


@register
class Powers(Stage):
    """`y = u**n` with n up to `Size.entries`."""

    name = "powers of the first feature"

    def accepts(self, problem, reduction):
        return len(reduction.features) == 2

    def run(self, context, size, reduction):
        for exponent in range(1, size.entries + 1):
            formula = power(reduction.features[0], Number(exponent))
            yield Candidate(formula, "enumeration", (f"raised to the power {exponent}",))
        yield 0.5
'''


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages that a test registers are gone after it."""
    monkeypatch.setattr(STAGES, "_parts", STAGES.parts())


def problem(noise: float = 0.0, formula: str = "sin(3*a)*b + exp(cos(2*a*b))") -> Problem:
    random = np.random.default_rng(0)
    inputs = random.uniform(1.0, 3.0, (200, 2))
    target = evaluate(parse(formula, NAMES), inputs)
    return Problem(inputs, target + noise * random.normal(size=200), NAMES)


def proposed(ladders: Ladders, archive: ParetoArchive) -> list[Candidate]:
    """What the generator proposes with other ladders."""
    found = []
    with np.errstate(all="ignore"):
        for candidate in EnumerationGenerator(ladders=ladders).propose(
            archive.problem, archive, Budget(100_000)
        ):
            archive.offer(candidate)
            found.append(candidate)
    return found


class Recorder(Stage):
    """Notes what it is run on, and proposes nothing."""

    name = "recorder"
    runs: list[tuple[int, Reduction]]

    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        Recorder.runs.append((size.entries, reduction))
        yield 0.01


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Reduction]]:
    """The runs of the recorder, with known reductions, one more by data collapse, and none proposed."""
    monkeypatch.setattr(generator, "plausible", lambda problem, reductions: list(reductions))
    monkeypatch.setattr(ProposedReductions, "take", lambda self, archive, every: [])
    monkeypatch.setattr(SharedAnalysis, "later", _collapsed)
    Recorder.runs = []
    register(Recorder)
    return Recorder.runs


def _collapsed(self: object) -> Generator[float, None, tuple[Reduction, ...]]:
    yield 0.1
    return (SECOND, FIRST)


def test_a_stage_in_one_new_file_runs(tmp_path: Path) -> None:
    path = tmp_path / "powers.py"
    path.write_text(NEW_STAGE)
    spec = importlib.util.spec_from_file_location("powers_of_the_first_feature", path)
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    ladder = Ladder((), (Row("powers of the first feature", Size(7)),))
    found = proposed(Ladders(ladder, ladder, ()), ParetoArchive(problem()))
    derivations = [candidate.derivation[-1] for candidate in found]
    assert [text for text in derivations if text.startswith("raised")] == [
        f"raised to the power {exponent}" for exponent in range(1, 8)
    ]


def test_every_row_names_a_stage_and_every_stage_has_a_row() -> None:
    rows = [*CLEAN.first, *CLEAN.later, *NOISY.first, *NOISY.later, *LADDERS.proposed]
    assert {STAGES[row.stage].name for row in rows} == set(STAGES.parts())
    assert not any(STAGES[row.stage].exact for row in (*NOISY.first, *NOISY.later, *LADDERS.proposed))


def test_an_unknown_or_doubled_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="no enumeration stage is named 'sum'; there are curves, exact"):
        STAGES["sum"]
    with pytest.raises(ValueError, match="already an enumeration stage named 'sums'"):
        register(type("Again", (Recorder,), {"name": "sums"}))


def test_the_first_rows_run_again_on_what_data_collapse_finds(runs: list[tuple[int, Reduction]]) -> None:
    ladder = Ladder((Row("recorder", Size(1)), Row("recorder", Size(2))), (Row("recorder", Size(3)),))
    archive = ParetoArchive(problem())
    proposed(Ladders(ladder, ladder, ()), archive)
    known = [one for one in archive.analysis.first.reductions if one.features]
    new = [one for one in (SECOND, FIRST) if one not in known]
    assert new
    first = [(size, one) for size in (1, 2) for one in known]
    again = [(size, one) for size in (1, 2) for one in new]
    assert runs == [*first, *again, *((3, one) for one in (*new, *known))]


def test_a_row_is_for_reductions_with_some_numbers_of_features() -> None:
    three = Reduction((), (Variable(0), Variable(1), Variable(2)))
    every = [FIRST, BOTH, SECOND, three, Reduction.of_columns((), [2])]
    assert Row("sums", Size()).suited(every) == every
    assert Row("sums", Size(), at_least=2).suited(every) == [BOTH, three]
    assert Row("sums", Size(), at_most=2).suited(every) == [FIRST, BOTH, SECOND, every[-1]]
    # Of reductions with one feature the first two.
    assert Row("sums", Size(), at_most=1).suited(every) == [FIRST, SECOND]


def test_exact_rows_come_last_where_numbers_are_coarse() -> None:
    last = CLEAN.exact_last()
    assert last.first == ()
    rows = [*CLEAN.first, *CLEAN.later]
    assert sorted(rows, key=lambda row: row.exact) == list(last.later)


def test_a_stage_runs_only_on_what_it_accepts(runs: list[tuple[int, Reduction]]) -> None:
    @register
    class Picky(Recorder):
        name = "picky"

        def accepts(self, problem: Problem, reduction: Reduction) -> bool:
            return reduction == BOTH

    ladder = Ladder((), (Row("picky", Size(1)),))
    proposed(Ladders(ladder, ladder, ()), ParetoArchive(problem()))
    assert runs == [(1, BOTH)]


def test_the_ladder_ends_where_the_law_is_found(runs: list[tuple[int, Reduction]]) -> None:
    law = parse("sin(3*a)*b + exp(cos(2*a*b))", NAMES)

    @register
    class Oracle(Stage):
        name = "oracle"

        def run(self, context: Context, size: Size, reduction: Reduction) -> Iterator[Candidate | float]:
            yield Candidate(law, "enumeration", ("knew it",))
            yield 0.01

    ladder = Ladder((Row("recorder", Size(1), 2), Row("oracle", Size(), 2)), (Row("recorder", Size(2)),))
    archive = ParetoArchive(problem())
    proposed(Ladders(ladder, ladder, ()), archive)
    assert archive.is_solved
    assert runs == [(1, BOTH)]


def test_exact_stages_are_left_out_once_only_noise_is_left(runs: list[tuple[int, Reduction]]) -> None:
    @register
    class Exact(Recorder):
        name = "exact recorder"
        exact = True

    ladder = Ladder((), (Row("exact recorder", Size(1)), Row("recorder", Size(2))))
    # A line explains all but the noise.
    proposed(Ladders(ladder, ladder, ()), ParetoArchive(problem(0.05, "2*a + 3*b")))
    assert runs and {size for size, _ in runs} == {2}


def test_exact_stages_come_last_where_an_earlier_search_tried_them(runs: list[tuple[int, Reduction]]) -> None:
    @register
    class Exact(Recorder):
        name = "exact recorder"
        exact = True

    ladder = Ladder((Row("exact recorder", Size(1), 2),), (Row("recorder", Size(2), 2),))
    for again, sizes in ((False, [1, 2]), (True, [2, 1])):
        runs.clear()
        tried = replace(problem(), exact_tried=again)
        proposed(Ladders(ladder, ladder, ()), ParetoArchive(tried))
        assert list(dict.fromkeys(size for size, _ in runs)) == sizes


def test_reductions_that_formulas_propose_have_rows_of_their_own(
    runs: list[tuple[int, Reduction]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they have no features; only once formulas are worth reading."""
    constant = Reduction.of_columns([(0, 1)], [])  # type: ignore[list-item]
    waiting = [constant]

    def take(self: object, archive: Archive, every: list[Reduction]) -> list[Reduction]:
        return [waiting.pop()] if waiting else []

    monkeypatch.setattr(ProposedReductions, "take", take)
    ladder = Ladder((), (Row("recorder", Size(1)),))
    one_more = (Row("recorder", Size(9, average=True), at_least=5),)
    proposed(Ladders(ladder, ladder, one_more), ParetoArchive(problem()))
    assert waiting and (9, constant) not in runs
    proposed(Ladders(ladder, ladder, one_more), ParetoArchive(problem(0.05, "2*a + 3*b")))
    assert not waiting and (9, constant) in runs
