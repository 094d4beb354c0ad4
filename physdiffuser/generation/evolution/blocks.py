"""Ready-made building blocks: small expressions with their values, distinct up to scale and offset.

Ratios, differences, products, norms and their functions are what physical formulas are made of, and
functions with a constant inside (`exp(-c*x)`, `cos(c*x)`, `x**c`, `1/(x + c)`) come on a grid of constants
that spans each column's range; fitting refines the one that is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import combinations, permutations

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.expressions import Expression, Variable, evaluate, parse
from physdiffuser.expressions.batch import Evaluator
from physdiffuser.expressions.tree import call, div, mul, with_columns
from physdiffuser.functions.blocks import with_constants
from physdiffuser.generation.evolution.profile import profile


class Blocks:
    """The library.

    Attributes
    ----------
    expressions
        From simple to complex.
    complexity
        Shape (blocks,).
    values
        Shape (blocks, rows), float32, standardised to mean 0 and size 1 over the rows.
    """

    def __init__(
        self,
        inputs: FloatArray,
        columns: list[int],
        allowed: frozenset[str],
        limit: int,
        balanced: Callable[[Expression], bool],
    ) -> None:
        self._inputs = inputs
        found: list[tuple[int, Expression]] = []
        seen: set[bytes] = set()
        kept: list[FloatArray] = []
        evaluator = Evaluator(inputs)
        rows = inputs.shape[0]
        probes = spread_places(rows, 12)
        for level in _levels(inputs, columns, allowed):
            if len(found) >= limit:
                break
            profiled = ((profile(one, allowed), one) for one in level if balanced(one))
            proposals = sorted(
                ((kind[0], one) for kind, one in profiled if kind is not None), key=lambda pair: pair[0]
            )
            for start in range(0, len(proposals), 512):
                if len(found) >= limit:
                    break
                part = proposals[start : start + 512]
                with np.errstate(all="ignore"):
                    values = evaluator([one for _, one in part])
                    values /= np.abs(values).max(axis=1, keepdims=True)
                    values -= values.mean(axis=1, keepdims=True)
                    size = np.sqrt(np.einsum("nr,nr->n", values, values) / rows)
                    values /= size[:, None]
                    sign = np.sign(values[:, probes[:1]])
                    codes = np.nan_to_num(np.round(values[:, probes] * sign * 1e6), nan=9e9).astype(np.int64)
                good = np.isfinite(values).all(axis=1) & (size > 1e-10)
                for row in np.flatnonzero(good):
                    code = codes[row].tobytes()
                    if code not in seen and len(found) < limit:
                        seen.add(code)
                        found.append(part[row])
                        kept.append(values[row].astype(np.float32))
        order = sorted(range(len(found)), key=lambda index: found[index][0])
        self.expressions = [found[index][1] for index in order]
        self.complexity = np.array([found[index][0] for index in order], dtype=np.float64)
        shape = (len(found), rows)
        self.values = np.array([kept[index] for index in order], dtype=np.float32).reshape(shape)
        self.squares = self.values**2
        # Blocks are drawn at random with odds that halve every three units of complexity.
        odds = 0.5 ** (self.complexity / 3.0)
        self._cumulative = np.cumsum(odds / odds.sum()) if len(found) else odds

    def __len__(self) -> int:
        return len(self.expressions)

    def column(self, position: int) -> FloatArray:
        """Values of one block in double precision, shape (rows,), not standardised."""
        return evaluate(self.expressions[position], self._inputs)

    def draw(self, rng: np.random.Generator) -> Expression:
        """A random block, simple ones more often."""
        position = int(np.searchsorted(self._cumulative, rng.random()))
        return self.expressions[min(position, len(self.expressions) - 1)]


# Formulas of the columns x, y and z.
_OF_ONE = (
    "x**2, sqrt(x), 1/x, x**3, 1/x**2, 1/sqrt(x), x**4, x*sqrt(x), 1/x**3,"
    "exp(x), log(x), sin(x), cos(x), tanh(x), tan(x), asin(x), acos(x), atan(x), abs(x), sinh(x), cosh(x),"
    "sin(x)**2, cos(x)**2, log(x)**2, sqrt(1 - x**2), sqrt(1 + x**2), 1/(1 + x), 1/(1 - x), 1/(1 - x**2),"
    "1/(1 + x**2), x/(exp(x) - 1), 1/(exp(x) - 1), 1/(exp(x) + 1), exp(-x), exp(-x**2), log(1 + x),"
    "log(1 - x), x*log(x), x*exp(-x)"
)
_OF_TWO = (
    "x*y, x/y, y/x, x + y, x - y, x*y**2, x**2*y, x/y**2, y/x**2, (x/y)**2, (y/x)**2, (x - y)**2, 1/(x*y),"
    "1/(x + y), 1/(x - y), (x*y)**2, x*y/(x + y), (x - y)/(x + y), x/(x + y), x*sqrt(y), y*sqrt(x)"
)
_NORMS = (
    "x**y, y**x, x**2 + y**2, x**2 - y**2, sqrt(x**2 + y**2), sqrt(x**2 - y**2), sqrt(y**2 - x**2),"
    "1/(x**2 + y**2), 1/(x**2 - y**2),"
    "sqrt(1 - (x/y)**2), 1/sqrt(1 - (x/y)**2), 1 - (x/y)**2, 1/(1 - (x/y)**2), sqrt(1 + (x/y)**2),"
    "exp(-(x/y)**2),"
    "sqrt(1 - (y/x)**2), 1/sqrt(1 - (y/x)**2), 1 - (y/x)**2, 1/(1 - (y/x)**2), sqrt(1 + (y/x)**2),"
    "exp(-(y/x)**2),"
    "1 + x/y, 1/(1 + x/y), 1 - x/y, 1/(1 - x/y), 1/(exp(x/y) - 1), exp(-(x/y)),"
    "1 + y/x, 1/(1 + y/x), 1 - y/x, 1/(1 - y/x), 1/(exp(y/x) - 1), exp(-(y/x)),"
    "1 + x*y, 1 - x*y, 1/(1 + x*y), 1/(1 - x*y), exp(-(x*y)), x*sin(y), x*cos(y), y*sin(x), y*cos(x),"
    "x*exp(-y), y*exp(-x), x*log(y), y*log(x)"
)
_OF_THREE = "x*y*z, x*y/z, z/(x*y), z*(x + y), z*(x - y), z/(x - y), z/(x + y), (x - y)/z, z + x*y, z - x*y"
_FUNCTIONS_OF_THREE = (
    "exp(x*y/z), exp(-(x*y/z)), sqrt(x*y/z), exp(z/(x*y)), exp(-(z/(x*y))), sqrt(z/(x*y)),"
    "exp(x*y*z), exp(-(x*y*z)), sqrt(x*y*z)"
)
_PAIRWISE_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "tanh")


@cache
def _templates(text: str) -> tuple[Expression, ...]:
    """Formulas of x, y and z, separated by commas."""
    return tuple(parse(one, ("x", "y", "z")) for one in text.split(","))


def _levels(inputs: FloatArray, columns: list[int], allowed: frozenset[str]) -> Iterator[list[Expression]]:
    """Blocks in the order in which they are wanted when the limit cuts the list."""

    def filled(text: str, places: Iterable[Sequence[int]]) -> list[Expression]:
        return [with_columns(template, chosen) for chosen in places for template in _templates(text)]

    yield [Variable(index) for index in columns]
    yield filled(_OF_ONE, zip(columns, strict=True))
    curved = {index: with_constants(index, inputs[:, index]) for index in columns}
    yield [block for index in columns for block in curved[index]]
    pairs = list(combinations(columns, 2))
    basic = filled(_OF_TWO, pairs)
    yield basic
    yield filled(_NORMS, pairs)
    yield [call(name, block) for block in basic for name in _PAIRWISE_FUNCTIONS if name in allowed]
    triples = [(*pair, third) for pair in pairs for third in columns if third not in pair]
    yield filled(_OF_THREE, triples)
    yield filled(_FUNCTIONS_OF_THREE, triples)
    yield filled("(x/y)**z", permutations(columns, 3))
    yield [
        block
        for left, right in permutations(columns, 2)
        for middle in curved[left]
        for block in (
            mul(middle, Variable(right)),
            div(Variable(right), middle),
            div(middle, Variable(right)),
        )
    ]
