"""Which formulas count as rivals of a law: those known when it was found, after a fixed amount of work."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from physdiffuser.core.archive import Entry
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import ONE, Expression, Number, Variable, parse, to_text
from physdiffuser.expressions.tree import add, mul, power
from physdiffuser.finalize.evidence.figures import law_evidence, rivals
from physdiffuser.finalize.finalize import Law
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop

NAMES = ("x",)
X = Variable(0)


def problem() -> Problem:
    rng = np.random.default_rng(0)
    x = rng.uniform(1.0, 2.0, 60)
    return Problem(x[:, None], 3.1 * x**2 + 0.2 * rng.standard_normal(60), NAMES)


def law(factor: float = 3.1) -> Candidate:
    return Candidate(mul(Number(factor), power(X, Number(2))), "test")


def rival(shift: float, by: Expression = ONE) -> Candidate:
    return Candidate(add(mul(Number(3.1), power(X, Number(2))), mul(Number(shift), by)), "test")


def rivals_of(archive: ParetoArchive) -> int:
    (entry,) = [one for one in archive.front() if one.candidate == law()]
    form = entry.candidate.expression
    return law_evidence(Law(entry, form, form, entry.loss, entry.loss, ()), archive).rivals


def test_formulas_found_later_are_no_rivals() -> None:
    archive = ParetoArchive(problem())
    archive.offer(law())
    archive.note_competitors()
    archive.offer(rival(0.05))
    assert rivals_of(archive) == 0
    archive.note_competitors()
    assert rivals_of(archive) == 1


def test_the_law_with_other_constants_is_no_rival() -> None:
    archive = ParetoArchive(problem())
    for candidate in (law(), law(3.15), Candidate(mul(Number(3), power(X, Number(2))), "test")):
        archive.offer(candidate)
    assert len(archive.competitors) > 1
    assert rivals_of(archive) == 0


@pytest.mark.parametrize(("agreeing", "constants"), [(0, 1), (1, 0), (2, 0)])
def test_constants_that_agree_with_special_values_do_not_count(agreeing: int, constants: int) -> None:
    archive = ParetoArchive(problem())
    archive.offer(law())
    (entry,) = archive.front()
    form = entry.candidate.expression
    known = law_evidence(Law(entry, form, form, entry.loss, entry.loss, ()), archive, agreeing)
    assert known.constants == constants


class Known:
    """An archive with given formulas and the nats by which each is longer than the first."""

    def __init__(self, formulas: dict[str, float]) -> None:
        self.problem = problem()
        self.competitors = tuple(
            Entry(Candidate(parse(text, NAMES), "test"), 5, nats, constants=1)
            for text, nats in formulas.items()
        )

    def length(self, entry: Entry) -> float:
        """The nats given."""
        return entry.loss


def texts_of(formulas: dict[str, float]) -> list[str]:
    archive = Known(formulas)
    found = rivals(archive.competitors[0], cast(ParetoArchive, archive))
    return [to_text(entry.candidate.expression, NAMES) for entry in found]


def test_one_function_in_several_forms_is_one_rival() -> None:
    forms = ("4.1e0*exp(0.7e0*x) - 5e0", "4.1e0*exp(x*7/10) - 5", "(4.1e0 - 5e0*exp(-0.7e0*x))*exp(0.7e0*x)")
    assert len(texts_of({"3.1e0*x**2": 0.0} | dict.fromkeys(forms, 2.0))) == 1


def test_a_rival_is_longer_by_less_than_ten_nats_or_shorter() -> None:
    others = {"3e0*x**2 + 0.2e0": 9.9, "3e0*x**2.1 + 0.2e0*x": 10.1, "3.3e0*x**1.9": -2.0}
    assert texts_of({"3.1e0*x**2": 0.0} | others) == ["3.3*x**1.9", "3*x**2 + 0.2"]


def test_what_predicts_the_same_within_a_tenth_of_the_residuals_is_no_rival() -> None:
    """The residuals are 0.2."""
    others = {"3.1e0*x**2 + 0.01e0*x": 1.0, "3.1e0*x**2 + 0.05e0*x": 1.0}
    assert texts_of({"3.1e0*x**2": 0.0} | others) == ["3.1*x**2 + 0.05*x"]


class Stub:
    """Offers one candidate at each step."""

    warning = None

    def __init__(self, found: dict[int, Candidate]) -> None:
        self.found, self.step = found, 0

    def propose(self, problem, archive, budget):  # type: ignore[no-untyped-def]
        """One candidate a step, a number where there is none."""
        while not budget.exhausted:
            yield self.found.get(self.step, Candidate(Number(1.0 + self.step), "test"))
            self.step += 1
            budget.spend()


@pytest.mark.parametrize(
    ("found", "noted"),
    [({3: law()}, [40]), ({3: Candidate(X, "test"), 60: law()}, [40, 60])],
    ids=["law known", "found later"],
)
def test_the_search_notes_rivals_after_40_steps_and_with_each_better_law(
    found: dict[int, Candidate], noted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = Stub(found)
    loop = SearchLoop(problem(), {"stub": stub})
    steps: list[int] = []
    monkeypatch.setattr(loop.archive, "note_competitors", lambda: steps.append(stub.step))
    monkeypatch.setattr(loop.stopping, "settled", lambda *_: False)
    loop.run(80, float("inf"))
    # Later ones are noted at the end of the turn.
    assert [min(steps), len(steps)] == [40, len(noted)]
    assert all(step >= least for step, least in zip(steps, noted, strict=True))
