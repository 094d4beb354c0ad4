"""Kinds of match: the terms of each, and the formula built from them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, Number, evaluate, parse
from physdiffuser.expressions.tree import add, mul
from physdiffuser.library.matches import Match, Product, ScaledSum, ShiftedProduct, Single, Sum, candidates
from physdiffuser.transforms.output_transforms import INVERSE, SQUARE
from physdiffuser.transforms.transform import OutputTransform

NAMES = ("a", "b", "c")
A, B, D = (parse(text, NAMES) for text in ("sqrt(a)", "exp(-b)", "a*b"))
KINDS: list[tuple[Callable[..., Match], tuple[Expression, ...], list[str]]] = [
    (Single, (B,), ["1", "exp(-b)"]),
    (Product, (A, B), ["sqrt(a)", "sqrt(a)*exp(-b)"]),
    (Sum, (A, B), ["1", "sqrt(a)", "exp(-b)"]),
    (ShiftedProduct, (A, B, D), ["sqrt(a)", "sqrt(a)*exp(-b)", "a*b"]),
    (ScaledSum, (A, B, D), ["a*b", "a*b*exp(-b)", "a*b*sqrt(a)"]),
]
COEFFICIENTS = (2.3, 0.4, 0.7)


@pytest.mark.parametrize("prefactor", [None, parse("a/b", NAMES)], ids=["", "prefactor"])
@pytest.mark.parametrize("steps", [(), (INVERSE,), (SQUARE, INVERSE)], ids=["", "reciprocal", "two steps"])
@pytest.mark.parametrize(("kind", "trees", "terms"), KINDS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_formula_of_a_kind_is_built_and_found_again(
    kind: Callable[..., Match],
    trees: tuple[Expression, ...],
    terms: list[str],
    steps: tuple[object, ...],
    prefactor: Expression | None,
) -> None:
    inputs = np.random.default_rng(0).uniform(1.0, 3.0, (60, 3))
    # y = c**2 * prefactor * T(t), and t a function of a and b.
    reduction = Reduction.of_columns([(2, 2)], [0, 1])  # type: ignore[list-item]
    transform = OutputTransform(steps)  # type: ignore[arg-type]
    match = kind(reduction, transform, 7, *trees, prefactor=prefactor)
    made = match.terms(inputs)
    inner: Expression = Number(0)
    for coefficient, term, text in zip(COEFFICIENTS, made, terms, strict=False):
        np.testing.assert_allclose(term.values, evaluate(parse(text, NAMES), inputs))
        np.testing.assert_allclose(evaluate(term.tree, inputs), term.values)
        inner = add(inner, mul(Number(coefficient), term.tree))
    assert len(made) == len(terms)
    values = sum(coefficient * term.values for coefficient, term in zip(COEFFICIENTS, made, strict=False))
    law = match.build(inner)
    target = evaluate(law, inputs)
    outside = inputs[:, 2] ** 2 * (1.0 if prefactor is None else inputs[:, 0] / inputs[:, 1])
    transformed = transform.undo(target / outside)
    assert transformed is not None
    np.testing.assert_allclose(transformed[0], values)
    first, *others = candidates(match, Problem(inputs, target, NAMES), 1e-9)
    np.testing.assert_allclose(evaluate(first.expression, inputs), target)
    assert first.derivation[-1].startswith(match.sentence)
    # Without the first term it is another formula, which does not fit.
    assert others and all(np.ptp(evaluate(one.expression, inputs) - target) > 1e-3 for one in others)


def test_a_negligible_term_is_left_out() -> None:
    inputs = np.random.default_rng(1).uniform(1.0, 3.0, (60, 3))
    target = evaluate(parse("3*exp(-b)", NAMES), inputs) + 1e-12
    match = Sum(Reduction.of_columns((), [0, 1]), OutputTransform(()), 3, A, B)
    found = candidates(match, Problem(inputs, target, NAMES), 1e-9)
    assert found[0].expression == mul(Number(3), B)


def test_nothing_is_built_where_the_transform_cannot_be_undone() -> None:
    inputs = np.random.default_rng(1).uniform(1.0, 3.0, (60, 3))
    match = Single(Reduction.of_columns((), [0, 1]), OutputTransform((INVERSE,)), 3, B)
    assert candidates(match, Problem(inputs, np.zeros(60), NAMES), 1e-9) == []
