"""What linear least squares can restore is taken away, and put back as parameters."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.expressions import Expression, Parameter, evaluate, parse, to_prefix, to_text
from physdiffuser.expressions.tree import bind, parameter_count, substitute
from physdiffuser.fitting import fit_constants
from physdiffuser.models.tokens.skeleton import (
    collected,
    with_linear_coefficients,
    without_linear_coefficients,
)
from physdiffuser.models.tokens.vocabulary import Vocabulary, complete

NAMES = ("a", "b", "c")


def formula(text: str) -> Expression:
    """Read a formula; the name k stands for a constant placeholder."""
    parsed = parse(text, (*NAMES, "k"))
    place = len(NAMES)
    return substitute(parsed, lambda node: Parameter(0) if getattr(node, "index", None) == place else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2*pi*sqrt(a/b)", "sqrt(a/b)"),
        ("sqrt(2*a/b)", "sqrt(a/b)"),
        ("-a/(4*pi*b)", "a/b"),
        ("3*a - 2*b", "a + b"),
        ("2*(a - 3*b)", "a + b"),
        ("a + 2*a", "a"),
        ("(3*a)**2", "a**2"),
        ("a*(1 - b)", "a*(1 - b)"),
        ("sqrt(-a)", "sqrt(-a)"),
        ("sqrt(-2*a)", "sqrt(-2*a)"),
        ("exp(2*a)", "exp(2*a)"),
        ("5", "1"),
        ("k*a", "a"),
        ("a + k", "a + 1"),
    ],
)
def test_bare(text: str, expected: str) -> None:
    assert to_text(without_linear_coefficients(formula(text)), NAMES) == expected


@pytest.mark.parametrize(
    "text", ["2*pi*sqrt(a/b)", "3*a - 2*b", "a*(1 - b)/c", "1.7*exp(-a) + 4", "0.3*a**2*b"]
)
def test_the_numbers_come_back_by_fitting(text: str) -> None:
    law = formula(text)
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 3.0, (60, 3))
    target = evaluate(law, inputs)
    skeleton = with_linear_coefficients(without_linear_coefficients(law))
    fit = fit_constants(skeleton, inputs, target)
    np.testing.assert_allclose(evaluate(fit.expression, inputs), target, rtol=1e-9)


def test_dressing_numbers_parameters_in_order() -> None:
    skeleton = with_linear_coefficients(without_linear_coefficients(formula("a*exp(k*b) + c + 1")))
    assert parameter_count(skeleton) == 4
    tokens = to_prefix(skeleton)
    assert tokens.count("C") == 4
    found = [node.index for node in _parameters(skeleton)]
    assert sorted(set(found)) == [0, 1, 2, 3]


def _parameters(expression: Expression) -> list[Parameter]:
    from physdiffuser.expressions.tree import walk

    return [node for node in walk(expression) if isinstance(node, Parameter)]


@pytest.mark.parametrize(
    "text",
    ["2*(3*a)/(4*b)", "sqrt(4*a)*2*b", "-(2*a) + exp(2*(3*b))", "(2*a)**-2*c", "0.5*(2*a)", "sqrt(-a)*2"],
)
def test_collected_keeps_the_value(text: str) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(0.5, 2.0, (20, 3)) * (-1.0 if "sqrt(-a)" in text else 1.0)
    law = formula(text)
    np.testing.assert_allclose(evaluate(collected(law), inputs), evaluate(law, inputs), rtol=1e-12)


def test_collected_has_one_number_a_product() -> None:
    text = to_text(collected(formula("2*(3*a)/(4*b)")), NAMES)
    assert text == "1.5*(a/b)"
    assert to_text(collected(bind(formula("0.5*(2*a)"), ())), NAMES) == "a"


def test_vocabulary_reads_and_writes_prefix() -> None:
    vocabulary = Vocabulary()
    tokens = ["mul", "x1", "sin", "div", "x2", "C"]
    ids = vocabulary.encode(tokens)
    assert vocabulary.decode([*ids, vocabulary.ids["<eos>"], ids[0]]) == tokens
    assert complete(tokens) and not complete(tokens[:-1]) and not complete([*tokens, "x1"])
    with pytest.raises(ValueError, match="'gamma' is not in the vocabulary"):
        vocabulary.encode(["gamma"])
    with pytest.raises(ValueError, match="occurs twice"):
        Vocabulary((*vocabulary.tokens, "x1"))
