"""Ready-made building blocks: small expressions with their values, distinct up to scale and offset.

Ratios, differences, products, norms and their functions are what physical formulas are made of, and
functions with a constant inside (`exp(-c*x)`, `cos(c*x)`, `x**c`, `1/(x + c)`) come on a grid of constants
that spans each column's range; fitting refines the one that is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from physdiffuser.arrays import FloatArray, spread_places
from physdiffuser.expressions import ONE, Apply, Expression, Number, Variable, evaluate
from physdiffuser.expressions.batch import Evaluator
from physdiffuser.expressions.tree import add, call, div, mul, power, sub
from physdiffuser.functions.blocks import with_constants
from physdiffuser.generation.evolution.profile import profile

TWO = Number(2)
_FUNCTIONS = ("exp", "log", "sin", "cos", "tanh", "tan", "asin", "acos", "atan", "abs", "sinh", "cosh")
_PAIRWISE_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "tanh")


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


def _levels(inputs: FloatArray, columns: list[int], allowed: frozenset[str]) -> Iterator[list[Expression]]:
    """Blocks in the order in which they are wanted when the limit cuts the list."""
    single = [Variable(index) for index in columns]
    yield list[Expression](single)
    yield [block for one in single for block in _of_one(one)]
    curved = {index: with_constants(index, inputs[:, index]) for index in columns}
    yield [block for index in columns for block in curved[index]]
    pairs = [(left, right) for position, left in enumerate(single) for right in single[position + 1 :]]
    basic = [block for left, right in pairs for block in _of_two(left, right)]
    yield basic
    yield [block for left, right in pairs for block in _norms(left, right)]
    yield [call(name, block) for block in basic for name in _PAIRWISE_FUNCTIONS if name in allowed]
    yield [
        block
        for left, right in pairs
        for third in single
        if third not in (left, right)
        for block in (
            mul(mul(left, right), third),
            div(mul(left, right), third),
            div(third, mul(left, right)),
            mul(third, add(left, right)),
            mul(third, sub(left, right)),
            div(third, sub(left, right)),
            div(third, add(left, right)),
            div(sub(left, right), third),
            add(third, mul(left, right)),
            sub(third, mul(left, right)),
        )
    ]
    triples = [
        triple
        for left, right in pairs
        for third in single
        if third not in (left, right)
        for triple in (
            div(mul(left, right), third),
            div(third, mul(left, right)),
            mul(mul(left, right), third),
        )
    ]
    yield [
        block
        for triple in triples
        for block in (call("exp", triple), call("exp", Apply("neg", (triple,))), call("sqrt", triple))
    ]
    yield [
        power(div(left, right), third)
        for left in single
        for right in single
        for third in single
        if len({left, right, third}) == 3
    ]
    yield [
        block
        for left in single
        for right in single
        if left != right
        for middle in curved[left.index]
        for block in (mul(middle, right), div(right, middle), div(middle, right))
    ]


def _of_one(one: Expression) -> list[Expression]:
    squared = power(one, TWO)
    root = call("sqrt", one)
    blocks: list[Expression] = [
        squared,
        root,
        div(ONE, one),
        power(one, Number(3)),
        div(ONE, squared),
        div(ONE, root),
    ]
    blocks += [power(one, Number(4)), mul(one, root), div(ONE, power(one, Number(3)))]
    blocks += [call(name, one) for name in _FUNCTIONS]
    blocks += [power(call(name, one), TWO) for name in ("sin", "cos", "log")]
    blocks += [
        call("sqrt", sub(ONE, squared)),
        call("sqrt", add(ONE, squared)),
        div(ONE, add(ONE, one)),
        div(ONE, sub(ONE, one)),
        div(ONE, sub(ONE, squared)),
        div(ONE, add(ONE, squared)),
        div(one, sub(call("exp", one), ONE)),
        div(ONE, sub(call("exp", one), ONE)),
        div(ONE, add(call("exp", one), ONE)),
        call("exp", Apply("neg", (one,))),
        call("exp", Apply("neg", (squared,))),
        call("log", add(ONE, one)),
        call("log", sub(ONE, one)),
        mul(one, call("log", one)),
        mul(one, call("exp", Apply("neg", (one,)))),
    ]
    return blocks


def _of_two(left: Expression, right: Expression) -> list[Expression]:
    return [
        mul(left, right),
        div(left, right),
        div(right, left),
        add(left, right),
        sub(left, right),
        mul(left, power(right, TWO)),
        mul(power(left, TWO), right),
        div(left, power(right, TWO)),
        div(right, power(left, TWO)),
        power(div(left, right), TWO),
        power(div(right, left), TWO),
        power(sub(left, right), TWO),
        div(ONE, mul(left, right)),
        div(ONE, add(left, right)),
        div(ONE, sub(left, right)),
        power(mul(left, right), TWO),
        div(mul(left, right), add(left, right)),
        div(sub(left, right), add(left, right)),
        div(left, add(left, right)),
        mul(left, call("sqrt", right)),
        mul(right, call("sqrt", left)),
    ]


def _norms(left: Expression, right: Expression) -> list[Expression]:
    squares = (power(left, TWO), power(right, TWO))
    powers: list[Expression] = [power(left, right), power(right, left)]
    ratio = power(div(left, right), TWO)
    other = power(div(right, left), TWO)
    blocks = [
        *powers,
        add(*squares),
        sub(*squares),
        call("sqrt", add(*squares)),
        call("sqrt", sub(*squares)),
        call("sqrt", sub(squares[1], squares[0])),
        div(ONE, add(*squares)),
        div(ONE, sub(*squares)),
    ]
    for one in (ratio, other):
        blocks += [
            call("sqrt", sub(ONE, one)),
            div(ONE, call("sqrt", sub(ONE, one))),
            sub(ONE, one),
            div(ONE, sub(ONE, one)),
            call("sqrt", add(ONE, one)),
            call("exp", Apply("neg", (one,))),
        ]
    for quotient in (div(left, right), div(right, left)):
        blocks += [
            add(ONE, quotient),
            div(ONE, add(ONE, quotient)),
            sub(ONE, quotient),
            div(ONE, sub(ONE, quotient)),
            div(ONE, sub(call("exp", quotient), ONE)),
            call("exp", Apply("neg", (quotient,))),
        ]
    product = mul(left, right)
    blocks += [
        add(ONE, product),
        sub(ONE, product),
        div(ONE, add(ONE, product)),
        div(ONE, sub(ONE, product)),
        call("exp", Apply("neg", (product,))),
        mul(left, call("sin", right)),
        mul(left, call("cos", right)),
        mul(right, call("sin", left)),
        mul(right, call("cos", left)),
        mul(left, call("exp", Apply("neg", (right,)))),
        mul(right, call("exp", Apply("neg", (left,)))),
        mul(left, call("log", right)),
        mul(right, call("log", left)),
    ]
    return blocks
