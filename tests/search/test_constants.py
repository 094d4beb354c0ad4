"""The list of constants of a formula."""

from __future__ import annotations

import numpy as np

from physdiffuser.core.problem import Problem
from physdiffuser.core.solution import Equation
from physdiffuser.expressions import Number, Variable, evaluate
from physdiffuser.expressions.tree import add, call, distinct_constants, div, mul
from physdiffuser.finalize.scoring import constants_of
from physdiffuser.report.predictions import prediction_interval


def test_a_constant_that_stands_twice_is_listed_once_with_the_error_it_has_in_both_places() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 5.0, (40, 1))
    shift, rate = Number(0.731), Number(-0.482)
    # c/(exp(b*x) + c)
    law = div(shift, add(call("exp", mul(rate, Variable(0))), shift))
    skeleton, values = distinct_constants(law)
    assert values == (0.731, -0.482)
    assert len(set(map(str, (skeleton.arguments[0], skeleton.arguments[1].arguments[1])))) == 1  # type: ignore[union-attr]
    target = evaluate(law, x) + 0.01 * rng.normal(size=40)
    problem = Problem(x, target, ("x",))
    constants, covariance, freedom = constants_of(law, problem)
    assert [one.value for one in constants] == [0.731, -0.482]
    assert covariance is not None and len(covariance) == 2
    assert freedom == 38
    # Alone, the numerator and the denominator determine it much less well.
    low, high = constants[0].low, constants[0].high
    assert low is not None and high is not None and (high - low) < 0.2
    equation = Equation(
        law, "", "", 9, 0.01, 0.9, 0.1, constants=constants, covariance=covariance, degrees_of_freedom=freedom
    )
    below, above = prediction_interval(equation, x)
    assert ((below < evaluate(law, x)) & (evaluate(law, x) < above)).all()
    assert (above - below).max() < 0.03
