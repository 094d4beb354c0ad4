"""Random trees for property tests."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from physdiffuser.expressions import PI, Apply, Expression, Number, Variable

COLUMNS = 3
BINARY = ("add", "sub", "mul", "div")
UNARY = (
    *("neg", "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan"),
    *("sinh", "cosh", "tanh", "abs"),
)

variables = st.integers(0, COLUMNS - 1).map(Variable)
whole_numbers = st.integers(-4, 12).map(Number)
fractions = st.sampled_from([Fraction(1, 2), Fraction(3, 2), Fraction(-1, 3), Fraction(5, 7), Fraction(1, 4)])
# Measured constants: decimals of four places or less would read back as exact.
floats = st.floats(0.01, 100.0).filter(lambda value: len(repr(value).partition(".")[2]) > 4).map(Number)
exact_leaves = st.one_of(variables, variables, variables, whole_numbers, fractions.map(Number), st.just(PI))
exponents = st.one_of(
    st.integers(-3, 4).map(Number),
    st.sampled_from([Fraction(1, 2), Fraction(-1, 2), Fraction(3, 2), Fraction(1, 3), Fraction(2, 3)]).map(
        Number
    ),
)


def _extend(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.tuples(st.sampled_from(BINARY), children, children).map(lambda t: Apply(t[0], (t[1], t[2]))),
        st.tuples(st.sampled_from(BINARY), children, children).map(lambda t: Apply(t[0], (t[1], t[2]))),
        st.tuples(st.sampled_from(UNARY), children).map(lambda t: Apply(t[0], (t[1],))),
        st.tuples(children, exponents).map(lambda t: Apply("pow", t)),
        st.tuples(children, children).map(lambda t: Apply("pow", t)),
    )


def trees(
    leaves: st.SearchStrategy[Expression] = exact_leaves, size: int = 12
) -> st.SearchStrategy[Expression]:
    """Trees of up to `size` leaves over all operators."""
    return st.recursive(leaves, _extend, max_leaves=size)


exact_trees = trees()
fitted_trees = trees(st.one_of(exact_leaves, floats))
