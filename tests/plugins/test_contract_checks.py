"""The contract checks pass what is right and name what is wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.expressions import OPERATORS, Number, Parameter, Variable
from physdiffuser.specs import GeneratorSpec
from physdiffuser.testing import ContractError, check_generator, check_operator


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_of_the_table_keeps_the_contract(name: str) -> None:
    assert check_operator(OPERATORS[name])


def changes_its_argument(argument: Any) -> Any:
    argument *= 2.0
    return argument


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arity": 3}, "arity is 3"),
        ({"complexity": 0}, "complexity is 0"),
        ({"derivatives": ()}, "0 derivatives"),
        ({"evaluate": lambda x: x.sum() * np.ones_like(x)}, "not elementwise"),
        ({"evaluate": lambda x: x.astype(np.float32)}, "float32"),
        ({"evaluate": lambda x: x[:3]}, "shape"),
        ({"evaluate": changes_its_argument}, "changes its arguments"),
        ({"evaluate": lambda x: x + np.random.default_rng().normal(size=x.shape)}, "not deterministic"),
        ({"evaluate": lambda x: np.full_like(x, np.nan)}, "no finite values"),
        ({"derivatives": (lambda x, value: np.full_like(x, 2.0),)}, "central differences"),
        ({"degree": 2}, "degree 2"),
        ({"degree": Fraction(1, 3)}, "degree 1/3"),
        ({"sympy": "sin"}, "sympy must be a function"),
    ],
)
def test_a_wrong_operator_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_operator(replace(OPERATORS["sin"], **change))


class Sample:
    """A generator that does one thing, as told."""

    name = "sample"

    def __init__(self, behaviour: str = "good") -> None:
        self.behaviour = behaviour

    def propose(self, problem: Any, archive: Any, budget: Any) -> Any:
        rng = np.random.default_rng() if self.behaviour == "random" else problem.generator(1)
        if self.behaviour == "mutates":
            problem.inputs[:] = 0.0
        while True:
            expression: Any = Number(float(rng.normal()))
            if self.behaviour == "parameter":
                expression = Parameter(0)
            if self.behaviour == "column":
                expression = Variable(7)
            if self.behaviour == "text":
                expression = "x1"
            name = "other" if self.behaviour == "name" else self.name
            yield Candidate(expression, name)
            more = budget.spend()
            if not more and self.behaviour != "endless":
                return


def test_a_good_generator_passes() -> None:
    assert "20 candidates" in check_generator(GeneratorSpec("sample", Sample))[0]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("mutates", "changes the problem's arrays"),
        ("parameter", "parameter without a value"),
        ("column", "variable 7, of 2"),
        ("text", "holds a str"),
        ("name", "'other', not 'sample'"),
        ("random", "same seed"),
        ("endless", "stop when spend"),
    ],
)
def test_a_wrong_generator_is_named(behaviour: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_generator(GeneratorSpec("sample", Sample, {"behaviour": behaviour}))


def test_the_name_must_be_the_registered_one() -> None:
    with pytest.raises(ContractError, match="registered as 'another'"):
        check_generator(GeneratorSpec("another", Sample))
