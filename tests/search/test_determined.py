"""Constants that the rows do not determine are in no formula of the table."""

from __future__ import annotations

import numpy as np
import pytest
from decimals import to_be_fitted

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import evaluate, parse
from physdiffuser.expressions.tree import distinct_constants
from physdiffuser.finalize.constants.determined import with_determined_constants
from physdiffuser.finalize.finalize import finalize
from physdiffuser.fitting import refit
from physdiffuser.fitting.uncertainty import uncertainty
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.description_length import DescriptionLength

NAMES = ("g", "r")


def measured(law: str, seed: int = 1) -> Problem:
    random = np.random.default_rng(seed)
    inputs = random.uniform(0.5, 3.0, (40, 2))
    target = evaluate(parse(law, NAMES), inputs)
    return Problem(inputs, target + 0.1 * target.std() * random.normal(size=40), NAMES)


@pytest.mark.parametrize("deadline", [0.0, float("inf")])
@pytest.mark.parametrize(
    ("law", "offered"),
    [
        ("2*g + 3", ("2.013*g + 3.07", "1000.5 - 400000.5/(g + 400.5)")),
        ("2*g + 3", ("2.013*g + 3.07", "1.031 + 2.05*(g + 1.01)**1.03")),
        ("3*exp(-g)", ("2.91*exp(-1.01*g)", "2.91*exp(-1.01*g) + 0.011*exp(-0.51*r)")),
        ("3*exp(-g)", ("1.13*g", "2.91*(r + 0.476)**0.00011")),
        ("g", ("1.1*g", "1.1*(1.3*g + 1.2*g)")),
    ],
)
def test_no_row_has_a_constant_that_is_smaller_than_its_error(
    law: str, offered: tuple[str, ...], deadline: float
) -> None:
    problem = measured(law)
    archive = ParetoArchive(problem)
    for text in offered:
        fit = refit(to_be_fitted(text, NAMES), problem.inputs, problem.target)
        archive.offer(Candidate(fit.expression, "test"))
    laws, _ = finalize(archive, problem, 1e-22, deadline)
    assert laws
    for one in laws:
        skeleton, values = distinct_constants(one.final)
        if values:
            known = uncertainty(skeleton, np.array(values), problem.inputs, problem.target)
            assert (known.standard_errors < np.abs(values)).all()


def test_a_constant_that_matters_stays_though_zero_is_near() -> None:
    problem = measured("2*g + 3")
    description_length = DescriptionLength(problem.rows, problem.columns)
    formula = refit(to_be_fitted("2.013*g + 3.07", NAMES), problem.inputs, problem.target).expression
    assert with_determined_constants(formula, problem, description_length, lambda: False) == formula
