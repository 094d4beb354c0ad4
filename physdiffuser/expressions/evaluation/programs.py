"""Formulas as flat programs for a stack machine, the form that the loop of `interpreter.py` executes.

A program is bytes: for each step a code and an argument, eight bytes each, arguments before their operator.
The program of a tree is that of its arguments put together, so a child in a search costs only what its parent
did not have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from physdiffuser.expressions.evaluation.kernels import (
    BINARY,
    CODES,
    COLUMN,
    MAX_STACK,
    NUMBER,
    POWERS,
    UNARY,
)
from physdiffuser.expressions.tree import Apply, Expression, Number, Parameter, Symbol, Variable

STEP_BYTES = 16
# The stack is never deeper than there are leaves, at most (steps + 1)/2 but for chains of functions.
_MAX_BYTES = STEP_BYTES * (2 * MAX_STACK - 1)
# Programs remembered: some 30 MB at most.
_REMEMBERED = 50_000

_UNARY_STEPS = {name: struct.pack("<qq", CODES[name], 0) for name in UNARY}
_BINARY_STEPS = {name: struct.pack("<qq", CODES[name], 0) for name in BINARY}
_POWER_STEPS = {exponent: struct.pack("<qq", CODES[name], 0) for exponent, name in POWERS.items()}


def compiler() -> Callable[[Expression], bytes | None]:
    """A function from trees to programs, which remembers what it has translated.

    It returns None for what the machine cannot do: operators it lacks, formulas of more than 127 nodes.

    Raises
    ------
    ValueError
        By the function returned, if an expression has parameters.
    """
    known: dict[Expression, bytes | None] = {}
    columns = [struct.pack("<qq", COLUMN, index) for index in range(16)]
    pack = struct.Struct("<qd").pack

    def program(node: Expression) -> bytes | None:
        if isinstance(node, Variable):
            index = node.index
            return columns[index] if index < 16 else struct.pack("<qq", COLUMN, index)
        if node in known:
            return known[node]
        if not isinstance(node, Apply):
            return leaf(node)
        name = node.operator
        arguments = node.arguments
        result: bytes | None = None
        if len(arguments) == 2:
            first = program(arguments[0])
            if first is not None:
                step = _BINARY_STEPS.get(name)
                if step is not None:
                    second = program(arguments[1])
                    if second is not None:
                        result = first + second + step
                elif name == "pow":
                    step = _power(arguments[1])
                    if step is not None:
                        result = first + step
        else:
            step = _UNARY_STEPS.get(name)
            if step is not None:
                first = program(arguments[0])
                if first is not None:
                    result = first + step
        if result is not None and len(result) > _MAX_BYTES:
            result = None
        if len(known) >= _REMEMBERED:
            known.clear()
        known[node] = result
        return result

    def leaf(node: Number | Symbol | Parameter) -> bytes:
        if isinstance(node, Parameter):
            raise ValueError(f"expression with a parameter, {node}: bind its value first")
        try:
            value = float(node.value)
        except OverflowError:
            # An exact integer beyond the largest double.
            value = float("inf") if node.value >= 0 else float("-inf")
        return pack(NUMBER, value)

    return program


def _power(exponent: Expression) -> bytes | None:
    if isinstance(exponent, Parameter):
        raise ValueError(f"expression with a parameter, {exponent}: bind its value first")
    if not isinstance(exponent, Number) or not -4 <= exponent.value <= 4:
        return None
    return _POWER_STEPS.get(float(exponent.value))
