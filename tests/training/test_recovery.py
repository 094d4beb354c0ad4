"""The measurement of recovery: what counts, and its interval."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks_feynman.suites import load_suite
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import parse
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.training.recovery import agrees, attempt, interval

LAW = next(law for law in load_suite("fsred") if law.id == "I.12.2")


class Oracle:
    """A generator that says what it is told to."""

    name = "oracle"

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    def propose(self, problem: Problem, archive: ParetoArchive, budget: Budget) -> Iterator[Candidate]:
        for text in self.texts:
            yield Candidate(parse(text, problem.names), self.name)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_the_law_counts_and_others_do_not(noise: float) -> None:
    law, near = LAW.text, "0.0796*q1*q2/(epsilon*r**2.02)"
    right = attempt(LAW, Oracle(near, law), rows=50, noise=noise, seed=0)
    assert right.recovered and right.candidates == 2
    wrong = attempt(LAW, Oracle("q1*q2/epsilon", "q1 + q2*r"), rows=50, noise=noise, seed=0)
    assert not wrong.recovered and wrong.expression
    assert not attempt(LAW, Oracle(), rows=50, noise=noise, seed=0).recovered


def test_under_noise_a_fitted_constant_may_be_off() -> None:
    fitted = "0.07991234567*q1*q2/(epsilon*r**2)"
    assert attempt(LAW, Oracle(fitted), rows=50, noise=0.1, seed=0).recovered
    assert not attempt(LAW, Oracle(fitted), rows=50, noise=0.0, seed=0).recovered


def test_laws_kept_out_of_training_are_marked() -> None:
    long = next(law for law in load_suite("fsred") if law.id == "I.9.18")
    assert attempt(long, Oracle(), rows=20, noise=0.0, seed=0).excluded
    short = next(law for law in load_suite("fsred") if law.id == "I.29.4")
    assert not attempt(short, Oracle(), rows=20, noise=0.0, seed=0).excluded


def test_agreement_is_to_rounding() -> None:
    inputs = np.linspace(1.0, 2.0, 20)[:, None]
    target = inputs[:, 0] ** 2
    assert agrees(parse("x*x", ["x"]), inputs, target)
    assert not agrees(parse("x**2.0001", ["x"]), inputs, target)
    assert not agrees(parse("log(-x)", ["x"]), inputs, target)


def test_interval_holds_the_rate() -> None:
    low, high = interval([True] * 30 + [False] * 30)
    assert 0.3 < low < 0.5 < high < 0.7
    assert interval([False] * 10) == (0.0, 0.0)
