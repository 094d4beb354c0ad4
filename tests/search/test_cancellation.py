"""Formulas whose large terms cancel are no candidates."""

from __future__ import annotations

import numpy as np
import pytest
from decimals import to_be_fitted

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, evaluate, parse, to_text
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.loop import SearchLoop
from physdiffuser.search.refinement.limiting_forms import limiting_form
from physdiffuser.selection.cancellation import cancels, largest_cancellation

RNG = np.random.default_rng(0)
PRESSURE = RNG.uniform(1.0, 100.0, (200, 1))
PAIRS = [
    "1880000.5*log(p + 35.46) - 1880000.5*log(p + 35.46001)",
    "1880000.5*log((p + 35.46)/(p + 35.46001))",
    "1880000.5*sqrt(p + 35.46) - 1880000.5*sqrt(p + 35.4601)",
]


def problem() -> Problem:
    """A hyperbola with one per cent of noise."""
    target = 18.8 / (PRESSURE[:, 0] + 35.46) * (1 + 0.01 * np.random.default_rng(1).normal(size=200))
    return Problem(PRESSURE, target, ("p",))


@pytest.mark.parametrize("pair", PAIRS)
def test_a_cancelling_pair_is_no_candidate(pair: str) -> None:
    archive = ParetoArchive(problem())
    assert archive.offer(Candidate(parse("0.5", ("p",)), "test"))
    assert not archive.offer(Candidate(to_be_fitted(pair, ("p",)), "test"))
    assert len(archive.front()) == 1 and not archive.near()


@pytest.mark.parametrize("pair", PAIRS)
def test_its_limit_takes_its_place(pair: str) -> None:
    formula = to_be_fitted(pair, ("p",))
    limit = limiting_form(formula, PRESSURE)
    assert limit is not None
    before, after = evaluate(formula, PRESSURE), evaluate(limit, PRESSURE)
    assert np.abs(before - after).max() < 1e-3 * np.abs(before).max()
    assert largest_cancellation(arrange(limit), PRESSURE) < 100 < largest_cancellation(formula, PRESSURE)


def test_the_search_offers_the_limit() -> None:
    loop = SearchLoop(problem(), {})
    loop.run(1, float("inf"), [Candidate(to_be_fitted(PAIRS[0], ("p",)), "test")])
    texts = [to_text(entry.candidate.expression, ("p",), 4) for entry in loop.archive.front()]
    assert any("(p + " in text and "log" not in text for text in texts), texts


@pytest.mark.parametrize(
    ("law", "low", "high", "loss"),
    [
        ("-20000.5 + 10.2*p", 1950.0, 2020.0, 1e-2),
        ("-1000000.5 + 1.0002*p", 1e6, 1e6 + 1, 1e-2),
        ("273.15 + p", 1.0, 100.0, 1e-2),
        ("2.31*exp(-0.3*p) - 2.1*exp(-0.4*p)", 1.0, 10.0, 1e-2),
        ("9.81 - 9.81*cos(p)", 0.01, 0.02, 1e-22),
        ("log(1 + p)", 1e-4, 2e-4, 1e-2),
    ],
)
def test_what_the_rows_determine_is_kept(law: str, low: float, high: float, loss: float) -> None:
    inputs = RNG.uniform(low, high, (200, 1))
    formula: Expression = to_be_fitted(law, ("p",))
    assert not cancels(formula, inputs, loss)
