"""Sums and their coefficients, written down as formulas."""

from __future__ import annotations

from physdiffuser.arrays import FloatArray
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import ONE, Expression, Number
from physdiffuser.expressions.tree import add, mul
from physdiffuser.library.matches import near_simple
from physdiffuser.transforms.transform import OutputTransform


def combination(coefficients: FloatArray, terms: list[Expression]) -> Expression | None:
    """`c1*t1 + c2*t2 + ...`, without the terms of coefficient 0."""
    result: Expression | None = None
    for coefficient, term in zip(coefficients, terms, strict=True):
        if coefficient == 0:
            continue
        number = near_simple(float(coefficient), 1e-10)
        if term == ONE:
            product: Expression = number
        else:
            product = term if number == Number(1) else mul(number, term)
        result = product if result is None else add(result, product)
    return result


def counted(count: int) -> str:
    """How many terms a sum has, for a derivation."""
    return "one term" if count == 1 else f"a sum of {count} terms"


def candidate_of(
    reduction: Reduction, transform: OutputTransform, inner: Expression, sentence: str
) -> Candidate:
    """The formula of the target around what was found for the transformed target."""
    expression = transform.redo(inner)
    factor = reduction.factor()
    if factor is not None:
        expression = mul(factor, expression)
    return Candidate(expression, "sparse", (*transform.sentences(), sentence))
