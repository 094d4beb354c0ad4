"""The usual laws of one input with up to three constants, and of several inputs together, as skeletons.

A line, a power law, an exponential on a level, a saturation: what most measured curves are fitted with first.
"""

from __future__ import annotations

from functools import lru_cache, reduce

from physdiffuser.expressions import Apply, Expression, Parameter, Variable, parse
from physdiffuser.expressions.tree import add, call, mul, power, substitute, walk

# Each line holds one law, and other ways to write it where an operator is not allowed.
# Logarithms and fitted exponents are for positive inputs only.
_ANY_SIGN: tuple[tuple[str, ...], ...] = (
    ("a*x",),
    ("a + b*x",),
    ("a + b*x + c*x**2", "a + b*x + c*(x*x)"),
    ("a*x**2", "a*(x*x)"),
    ("a + b*x**2", "a + b*(x*x)"),
    ("a/x",),
    ("a + b/x",),
    ("a/x**2", "a/(x*x)"),
    ("a/(b + x)",),
    ("a*x/(b + x)", "a/(1 + b/x)"),
    ("a + b/(x + c)",),
    ("a*exp(b*x)", "a*b**x"),
    ("a + b*exp(c*x)", "a + b*c**x"),
    ("a*2**x",),
    ("a + b*2**x",),
    ("a*10**x",),
    ("a + b*10**x",),
    ("a*(1 - exp(b*x))", "a + a*(-1)*exp(b*x)"),
    ("a*exp(b/x)",),
    ("a/(1 + b*exp(c*x))", "a/(1 + b*c**x)"),
    ("a*tanh(b*x)",),
    ("a*exp(b*x**2)", "a*exp(b*(x*x))"),
    ("a*exp(b*(x + c)**2)", "a*exp(b*((x + c)*(x + c)))"),
    ("a/(b + x**2)", "a/(b + x*x)"),
    ("a/(b + (x + c)**2)", "a/(b + (x + c)*(x + c))"),
    ("a*x**2/(b + x**2)", "a*(x*x)/(b + x*x)"),
    ("a*log(1 + b*x)",),
)
_POSITIVE: tuple[tuple[str, ...], ...] = (
    ("a*x**b", "exp(a + b*log(x))"),
    ("a + b*x**c", "a + b*exp(c*log(x))"),
    ("a*sqrt(x)", "a*x**(1/2)", "a*exp(log(x)/2)"),
    ("a + b*sqrt(x)", "a + b*x**(1/2)", "a + b*exp(log(x)/2)"),
    ("a*log(x)",),
    ("a + b*log(x)",),
)
_PLACES = {1: 0, 2: 1, 3: 2}


@lru_cache(maxsize=256)
def _skeleton(text: str) -> Expression:
    """The tree of a law with the constants a, b, c as parameters."""

    def replace(node: Expression) -> Expression | None:
        return Parameter(_PLACES[node.index]) if isinstance(node, Variable) and node.index else None

    return substitute(parse(text, ("x", "a", "b", "c")), replace)


def standard_forms(columns: int, positive: frozenset[int], operators: frozenset[str]) -> list[Expression]:
    """Skeletons that only hold the given operators, those with few constants first.

    Parameters
    ----------
    columns
        Number of inputs. Of several inputs there are a linear function, a product of powers and an
        exponential of a linear function.
    positive
        The inputs that are positive in all rows.
    operators
        Names of the operators that may occur.
    """
    if columns == 1:
        rows = _ANY_SIGN + (_POSITIVE if 0 in positive else ())
        choices = [[_skeleton(text) for text in row] for row in rows]
    else:
        choices = _of_several(columns, positive)
    found = []
    for ways in choices:
        allowed = [way for way in ways if _operators(way) <= operators]
        found.extend(allowed[:1])
    return found


def _operators(skeleton: Expression) -> frozenset[str]:
    return frozenset(node.operator for node in walk(skeleton) if isinstance(node, Apply))


def _of_several(columns: int, positive: frozenset[int]) -> list[list[Expression]]:
    linear = reduce(add, (mul(Parameter(index + 1), Variable(index)) for index in range(columns)))
    forms: list[list[Expression]] = [
        [add(Parameter(0), linear)],
        [mul(Parameter(0), call("exp", linear))],
    ]
    if len(positive) == columns:
        powers = reduce(mul, (power(Variable(index), Parameter(index + 1)) for index in range(columns)))
        forms.append([mul(Parameter(0), powers)])
    return forms
