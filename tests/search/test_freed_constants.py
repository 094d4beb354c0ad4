"""Numbers that a generator has chosen are fitted again; the form of a formula stays."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.data import dataset_from_arrays
from physdiffuser.expressions import parse, to_text
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.pipeline import solve_dataset


@pytest.mark.parametrize(
    ("text", "freed"),
    [
        ("2*x**2/(1 + y)", "2.0*x**2/(1 + y)"),
        ("pi*x", "3.142*x"),
        ("4*pi/3*x**3", "4.189*x**3"),
        ("x**(2/3)", "x**0.6667"),
        ("x**1.5 + y**2", "x**1.5 + y**2"),
        ("-x/y", "-x/y"),
        ("sqrt(1 - x**2)", "sqrt(1 - x**2)"),
        ("1.7e0*x + 2", "1.7*x + 2.0"),
    ],
)
def test_what_is_form_and_what_is_a_number(text: str, freed: str) -> None:
    found = to_text(with_freed_constants(parse(text, ["x", "y"])), ["x", "y"], digits=4)
    assert found.replace("2.0", "2") == freed.replace("2.0", "2")


def test_named_constants_stay() -> None:
    law = parse("G*x/y**2", ["x", "y"], {"G": 6.674e-11})
    assert with_freed_constants(law) == law


def test_a_number_that_the_data_contradict_is_not_kept() -> None:
    # A factor of 1.73 is no square root of three where the rows say 1.73 with an error of 0.01.
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, (40, 1))
    target = 1.73 * x[:, 0] ** 2 * (1 + 0.02 * rng.standard_normal(40))
    best = solve_dataset(dataset_from_arrays(x, target, names=["v"]), steps=60).best
    assert best is not None
    (constant,) = best.constants
    assert not constant.exact
    assert constant.low is not None and constant.low < 1.73 < (constant.high or 0.0)
