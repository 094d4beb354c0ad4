"""Operators that a user defines by a formula, `sinc(x) = sin(x)/x`: one node, expanded on export.

A definition is a row of the operator table like any other (`OperatorSpec`). Its values and derivatives are
those of the formula, which is read by the parser of this package and never run as code. Two definitions
under one name can exist in a process, as in two notebooks: the second is stored under a key that is no
identifier, and is shown by its name. `defined` says which of them a name stands for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import UsageError
from physdiffuser.expressions import tree
from physdiffuser.expressions.operators import OPERATORS, SPELLINGS, OperatorSpec
from physdiffuser.expressions.parser import FUNCTIONS, ExpressionSyntaxError, free_names, parse
from physdiffuser.expressions.tree import Apply, Expression, Number, Symbol, Variable, substitute, variables
from physdiffuser.io.display import visible

COMPLEXITY = 3
MAX_ARGUMENTS = 2
# Between a name and the number of a later definition under that name.
_MARK = "'"
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Definition:
    """An operator as a formula of its arguments.

    Attributes
    ----------
    name
        What formulas call it.
    arguments
        Names of its one or two arguments.
    text
        The formula, as written.
    body
        The formula, with arguments as variables, and only operators that ship or are a plugin's.
    parity
        1 if `f(-x)` is `f(x)`, -1 if it is `-f(x)`, else 0.
    """

    name: str
    arguments: tuple[str, ...]
    text: str
    body: Expression
    parity: int = 0

    @property
    def head(self) -> str:
        """Name and arguments, `sinc(x)`."""
        return f"{self.name}({', '.join(self.arguments)})"


def read_definitions(given: Mapping[str, str] | Sequence[str]) -> tuple[Definition, ...]:
    """Read definitions; later ones may use earlier ones.

    Parameters
    ----------
    given
        `{"sinc": "sin(x)/x"}`, `{"sinc(x)": "sin(x)/x"}`, or `["sinc(x)=sin(x)/x"]`. Without arguments
        in its name, the names in the formula are the arguments, in order of appearance.

    Raises
    ------
    UsageError
        If one cannot be read, or a name is taken.
    """
    pairs = given.items() if isinstance(given, Mapping) else (_halves(text) for text in given)
    found: dict[str, Definition] = {}
    for head, text in pairs:
        with defined(tuple(found.values())):
            made = _read(str(head).strip(), text)
        if made.name in found:
            raise UsageError(f"operator {made.name!a} is defined twice")
        found[made.name] = made
    return tuple(found.values())


def _halves(text: str) -> tuple[str, str]:
    head, equals, body = text.partition("=")
    if not equals:
        raise UsageError(f"operator '{visible(text)}': write a definition as 'sinc(x)=sin(x)/x'")
    return head, body


def _read(head: str, text: object) -> Definition:
    name, bracket, rest = head.partition("(")
    name = name.strip()
    where = f"operator '{visible(head)}'"
    if not name.isidentifier():
        raise UsageError(f"{where}: '{visible(name)}' is no name; write 'sinc(x)=sin(x)/x'")
    if name in SPELLINGS or name == "pi" or (name in OPERATORS and OPERATORS[name].definition is None):
        raise UsageError(f"{where}: {name} exists already; choose another name")
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"{where}: the formula is missing; write 'sinc(x)=sin(x)/x'")
    text = text.strip()
    try:
        arguments = _arguments(rest, where) if bracket else free_names(text)
        body = expanded(parse(text, arguments))
    except ExpressionSyntaxError as error:
        raise UsageError(f"{where}: {error}") from None
    if not 1 <= len(arguments) <= MAX_ARGUMENTS:
        raise UsageError(f"{where}: {len(arguments)} arguments; an operator has one or two")
    unused = [argument for place, argument in enumerate(arguments) if place not in variables(body)]
    if unused:
        raise UsageError(f"{where}: the argument {unused[0]!a} does not occur in '{visible(text)}'")
    return Definition(name, tuple(arguments), text, body, _parity(body) if len(arguments) == 1 else 0)


def _parity(body: Expression) -> int:
    from physdiffuser.expressions.simplification.canonical import canonical

    negative = tree.call("neg", Variable(0))
    mirrored = canonical(substitute(body, lambda node: negative if node == Variable(0) else None))
    if mirrored == canonical(body):
        return 1
    return -1 if mirrored == canonical(tree.call("neg", body)) else 0


def _arguments(rest: str, where: str) -> tuple[str, ...]:
    inside, bracket, after = rest.partition(")")
    names = tuple(part.strip() for part in inside.split(","))
    if not bracket or after.strip():
        raise UsageError(f"{where}: write the arguments in brackets, as in 'sinc(x)=sin(x)/x'")
    for name in names:
        if not name.isidentifier() or name in OPERATORS or name in SPELLINGS or name == "pi":
            raise UsageError(f"{where}: the argument '{visible(name)}' is no name, or that of a function")
    if len(set(names)) < len(names):
        raise UsageError(f"{where}: two arguments have the same name")
    return names


def key_of(definition: Definition) -> str:
    """Key of the definition in the operator table, where it is put unless it is there already."""
    with _LOCK:
        number, key = 1, definition.name
        while (known := OPERATORS.get(key)) is not None and known.definition != definition:
            number += 1
            key = f"{definition.name}{_MARK}{number}"
        if known is None:
            OPERATORS[key] = _spec(key, definition)
            tree.RESTORED_BY[key] = (_restored, definition)
    return key


@contextmanager
def defined(definitions: Sequence[Definition]) -> Iterator[None]:
    """The parser knows these definitions, and no others, in this thread within the block."""
    token = FUNCTIONS.set({one.name: key_of(one) for one in definitions})
    try:
        yield
    finally:
        FUNCTIONS.reset(token)


def definitions_in(expressions: Sequence[Expression]) -> tuple[Definition, ...]:
    """The definitions that occur, by name."""
    operators = {node.operator for one in expressions for node in tree.walk(one) if isinstance(node, Apply)}
    found = (OPERATORS[operator].definition for operator in operators)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.name))


def expanded(expression: Expression) -> Expression:
    """The formula with the body of each definition in place of its node."""

    def replace(node: Expression) -> Expression | None:
        definition = OPERATORS[node.operator].definition if isinstance(node, Apply) else None
        if definition is None or not isinstance(node, Apply):
            return None
        arguments = [expanded(argument) for argument in node.arguments]
        return substitute(
            definition.body, lambda part: arguments[part.index] if isinstance(part, Variable) else None
        )

    return substitute(expression, replace)


def _restored(definition: Definition, arguments: tuple[Expression, ...]) -> Apply:
    """A node as it was in another process, which knew the definition."""
    return Apply(key_of(definition), arguments)


def _spec(key: str, definition: Definition) -> OperatorSpec:
    places = range(len(definition.arguments))
    return OperatorSpec(
        key,
        len(definition.arguments),
        COMPLEXITY,
        partial(_evaluate, definition.body),
        tuple(partial(_derivative, definition.body, place) for place in places),
        partial(_sympy, definition.body),
        domain=f"that of {definition.text}",
        definition=definition,
    )


def _evaluate(body: Expression, *arguments: FloatArray) -> FloatArray:
    shape = np.broadcast_shapes(*(np.shape(argument) for argument in arguments))
    value = _dual(body, arguments, -1)[0]
    return value if np.shape(value) == shape else np.array(np.broadcast_to(value, shape))


def _derivative(body: Expression, place: int, *arguments: FloatArray) -> FloatArray:
    # The last one is the value, which no formula here needs.
    slope = _dual(body, arguments[:-1], place)[1]
    return np.array(np.broadcast_to(np.float64(0.0) if slope is None else slope, np.shape(arguments[-1])))


def _dual(
    node: Expression, arguments: Sequence[FloatArray], place: int
) -> tuple[FloatArray, FloatArray | None]:
    """Value, and derivative by one argument; None where it does not occur."""
    match node:
        case Variable(index=index):
            return arguments[index], np.ones(()) if index == place else None
        case Number(value=constant) | Symbol(value=constant):
            return np.asarray(float(constant)), None
        case Apply(operator=operator, arguments=inner):
            spec = OPERATORS[operator]
            parts = [_dual(part, arguments, place) for part in inner]
            values = [value for value, _ in parts]
            value = spec.evaluate(*values)
            total: FloatArray | None = None
            for (_, slope), derivative in zip(parts, spec.derivatives, strict=True):
                if slope is not None:
                    term = derivative(*values, value) * slope
                    total = term if total is None else total + term
            return value, total
    raise TypeError(f"a definition holds a {type(node).__name__}")


def _sympy(body: Expression, *arguments: Any) -> Any:
    from physdiffuser.expressions.sympy_bridge import to_sympy

    def visit(node: Expression) -> Any:
        match node:
            case Variable(index=index):
                return arguments[index]
            case Apply(operator=operator, arguments=inner):
                return OPERATORS[operator].sympy(*(visit(part) for part in inner))
        return to_sympy(node)

    return visit(body)
