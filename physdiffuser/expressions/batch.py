"""Values of many expressions on many rows: the hot path of the search.

There is one numpy call per distinct subtree, into buffers that stay in cache; measurements are in
docs/evaluation.md. What is gained over evaluating one expression after the other:

* a subtree that occurs several times, in one expression or in many, is evaluated once;
* no memory is allocated: values live in one block that is reused and fits the cache;
* rows beyond `BLOCK_ROWS` are worked through in blocks: the calls are recorded on the first block and
  replayed on the others, so the trees are walked once;
* the result is that of `evaluate`, bit for bit, in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions.evaluate import evaluate
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.simplification import trigonometry
from physdiffuser.expressions.tree import Apply, Expression, Number, Symbol, Variable

FloatArray = npt.NDArray[np.floating[Any]]
Call = tuple[Callable[..., Any], tuple[FloatArray, ...]]

BLOCK_ROWS = 2048
# Values of distinct subtrees held at once. A quarter of a usual last-level cache: larger is slower
# per call (0.64 µs against 0.39 for 1,000 rows), smaller forgets common subtrees.
CACHE_BYTES = 8 << 20
# However many rows: an expression of ordinary size must fit.
MIN_SLOTS = 256

# Operators whose numpy form writes into a given buffer.
_DIRECT: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "abs": np.abs,
}


class _Full(Exception):
    """The block of buffers is used up."""


class _Generic:
    """An operator that returns a new array, as those of plugins do, made to write into a buffer."""

    __slots__ = ("evaluate",)

    def __init__(self, operator: str) -> None:
        self.evaluate = OPERATORS[operator].evaluate

    def __call__(self, *arrays: FloatArray) -> None:
        *arguments, out = arrays
        out[...] = self.evaluate(*arguments)


class Evaluator:
    """Evaluates expressions on one table and remembers the values of their subtrees between calls.

    Parameters
    ----------
    inputs
        Shape (rows, columns).
    dtype
        `float64` or `float32`.
    cache_bytes
        Memory for the values of subtrees. When it is used up everything is forgotten and the cache
        starts anew. Tables of more than `BLOCK_ROWS` rows remember only within a call.
    """

    def __init__(
        self,
        inputs: npt.NDArray[np.float64],
        dtype: npt.DTypeLike = np.float64,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self.rows = int(inputs.shape[0])
        self.dtype = np.dtype(dtype)
        self._forgotten = 0
        width = min(max(self.rows, 1), BLOCK_ROWS)
        self._inputs = inputs
        self._blocked = self.rows > width
        self._columns: list[FloatArray] = [np.empty(width, self.dtype) for _ in range(inputs.shape[1])]
        self._load(0, width)
        capacity = max(cache_bytes // (width * self.dtype.itemsize), MIN_SLOTS)
        # Pages are touched, and so cost memory, only when used.
        self._slots: list[FloatArray] = list(np.empty((capacity, width), self.dtype))[::-1]
        self._free = self._slots.copy()
        self._seen: dict[Expression, FloatArray] = {}
        self._program: list[Call] | None = [] if self._blocked else None
        self._value = self._walker()

    @property
    def nodes(self) -> int:
        """Operators evaluated so far, each distinct subtree once."""
        return self._forgotten + len(self._slots) - len(self._free)

    def __call__(self, expressions: Sequence[Expression], out: FloatArray | None = None) -> FloatArray:
        """Values, shape (expressions, rows), written into `out` when given; nan or inf outside the domain.

        A caller in a loop saves the system's work for fresh memory by passing the same `out`.

        Raises
        ------
        ValueError
            If an expression has parameters.
        """
        values = np.empty((len(expressions), self.rows), self.dtype) if out is None else out
        with np.errstate(all="ignore"):
            if self._blocked:
                self._by_blocks(expressions, values)
            else:
                for row, expression in enumerate(expressions):
                    values[row] = self._root(expression)
        return values

    def _root(self, expression: Expression) -> FloatArray:
        try:
            return self._value(expression)
        except _Full:
            self._forget()
        try:
            return self._value(expression)
        except _Full:
            # Larger than the whole cache: rare enough for the plain way.
            self._forget()
            return evaluate(expression, self._inputs).astype(self.dtype)

    def _forget(self) -> None:
        self._forgotten = self.nodes
        self._seen.clear()
        self._free[:] = self._slots

    def _by_blocks(self, expressions: Sequence[Expression], values: FloatArray) -> None:
        """Record the calls for as many expressions as fit, run them on every block of rows, go on."""
        width = self._slots[0].size
        start = 0
        while start < len(expressions):
            self._forget()
            self._load(0, width)
            self._program = []
            roots: list[FloatArray] = []
            for expression in expressions[start:]:
                try:
                    roots.append(self._value(expression))
                except _Full:
                    break
            if not roots:
                values[start] = evaluate(expressions[start], self._inputs)
                start += 1
                continue
            program = self._program
            for low in range(0, self.rows, width):
                high = min(low + width, self.rows)
                if low:
                    self._load(low, high)
                    for operator, arrays in program:
                        operator(*arrays)
                for index, root in enumerate(roots, start):
                    values[index, low:high] = root if root.ndim == 0 else root[: high - low]
            start += len(roots)
        self._forget()

    def _load(self, low: int, high: int) -> None:
        for index, column in enumerate(self._columns):
            column[: high - low] = self._inputs[low:high, index]
            # The tail of the last block is computed and not read; any ordinary number will do.
            column[high - low :] = 1.0

    def _walker(self) -> Callable[[Expression], FloatArray]:
        """The function that evaluates a tree.

        A closure, since looking its tables up on the object at every node costs a fifth of the time.
        """
        columns, seen, take = self._columns, self._seen, self._free.pop
        known = self._seen.get
        operators: dict[str, Callable[..., Any]] = {}
        dtype = self.dtype

        def value_of(node: Expression) -> FloatArray:
            value = known(node)
            if value is not None:
                return value
            if type(node) is not Apply:
                return leaf(node)
            name = node.operator
            operator = operators.get(name)
            if operator is None:
                operator = operators[name] = self._find(name)
            if len(node.arguments) == 2:
                left, right = node.arguments
                first = columns[left.index] if type(left) is Variable else value_of(left)
                second = columns[right.index] if type(right) is Variable else value_of(right)
                if first.ndim == 0 and second.ndim == 0:
                    return constant(node, first, second)
                try:
                    value = take()
                except IndexError:
                    raise _Full from None
                operator(first, second, value)
            else:
                (left,) = node.arguments
                first = columns[left.index] if type(left) is Variable else value_of(left)
                if first.ndim == 0:
                    return constant(node, first)
                try:
                    value = take()
                except IndexError:
                    raise _Full from None
                operator(first, value)
            seen[node] = value
            return value

        def leaf(node: Expression) -> FloatArray:
            if isinstance(node, Variable):
                return columns[node.index]
            if not isinstance(node, Number | Symbol):
                raise ValueError(f"expression with a parameter, {node}: bind its value first")
            value = seen[node] = np.array(float(node.value), dtype)
            return value

        def constant(node: Apply, *arguments: FloatArray) -> FloatArray:
            # As `evaluate` does it, on scalars.
            scalars = [argument[()] for argument in arguments]
            value = seen[node] = np.asarray(OPERATORS[node.operator].evaluate(*scalars), dtype)
            return value

        return value_of

    def _find(self, name: str) -> Callable[..., Any]:
        operator = _DIRECT.get(name) or (_power if name == "pow" else _Generic(name))
        if self._program is None:
            return operator

        def record(*arrays: FloatArray) -> None:
            assert self._program is not None
            self._program.append((operator, arrays))
            operator(*arrays)

        return record


def _power(base: FloatArray, exponent: FloatArray, out: FloatArray) -> None:
    """`OPERATORS["pow"]`, without new arrays for the common exponents."""
    if exponent.ndim == 0:
        match float(exponent):
            case 2.0:
                np.multiply(base, base, out)
                return
            case 3.0:
                np.multiply(base, base, out)
                np.multiply(out, base, out)
                return
            case 4.0:
                np.multiply(base, base, out)
                np.multiply(out, out, out)
                return
            case -1.0:
                np.divide(1.0, base, out)
                return
            case -2.0:
                np.multiply(base, base, out)
                np.divide(1.0, out, out)
                return
            case 0.5:
                np.sqrt(base, out)
                return
            case 1.5:
                np.sqrt(base, out)
                np.multiply(base, out, out)
                return
            case -0.5:
                np.sqrt(base, out)
                np.divide(1.0, out, out)
                return
    np.power(base, exponent, out)
