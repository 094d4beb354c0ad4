"""Text to tree: an own small grammar, so that nothing from outside is ever evaluated.

    sum     := product (("+" | "-") product)*
    product := sign (("*" | "/") sign)*
    sign    := ("+" | "-") sign | power
    power   := atom ("**" sign)?          (right associative; "^" is read as "**")
    atom    := number | name | name "(" sum ("," sum)* ")" | "(" sum ")"

Length, depth and the size of numbers are limited, so a hostile formula costs microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from fractions import Fraction
from types import MappingProxyType

from physdiffuser.errors import UsageError
from physdiffuser.expressions.operators import OPERATORS, SPELLINGS, OperatorSpec
from physdiffuser.expressions.tree import PI, Apply, Expression, Number, Symbol, Variable

# Operators that the user has defined: key in the operator table, by name.
FUNCTIONS: ContextVar[Mapping[str, str]] = ContextVar("FUNCTIONS", default=MappingProxyType({}))

MAX_LENGTH = 20_000
MAX_DEPTH = 100
# Depth of the tree: a sum of a hundred terms is a hundred deep.
MAX_TREE_DEPTH = 200
# Half of what a double holds: longer ones are more likely a mistake than a constant.
MAX_INTEGER_DIGITS = 155
# A decimal this short is taken to be meant exactly (0.5 is a half); a longer one is a measurement.
MAX_EXACT_DECIMALS = 4

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|[-+*/^(),]))"
)


OtherFunction = Callable[[str, tuple[Expression, ...]], Expression | None]
"""What a call of a function that is no operator stands for; None if it is not known.

A `ValueError` says what is wrong with the call.
"""


class ExpressionSyntaxError(UsageError):
    """A formula that does not follow the grammar."""


class _Parser:
    def __init__(
        self, text: str, names: Mapping[str, Expression], other: OtherFunction | None = None
    ) -> None:
        self.text = text
        self.names = names
        self.other = other
        self.tokens = self._tokenise(text)
        self.position = 0

    def _tokenise(self, text: str) -> list[tuple[str, str, int]]:
        tokens: list[tuple[str, str, int]] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                start = at + len(text[at:]) - len(text[at:].lstrip())
                raise self._error(f"unexpected character {text[start]!a}", start)
            tokens.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            at = match.end()
        tokens.append(("end", "", end))
        return tokens

    def _error(self, what: str, at: int) -> ExpressionSyntaxError:
        excerpt = ascii(self.text[max(0, at - 20) : at + 20])
        return ExpressionSyntaxError(f"formula, character {at + 1}: {what}, near {excerpt}")

    def _accept(self, *signs: str) -> str | None:
        kind, value, _ = self.tokens[self.position]
        if kind == "sign" and value in signs:
            self.position += 1
            return value
        return None

    def parse(self) -> Expression:
        expression = self._sum(0)
        kind, value, at = self.tokens[self.position]
        if kind != "end":
            raise self._error(f"unexpected {value!a}", at)
        if _deeper_than(expression, MAX_TREE_DEPTH):
            raise ExpressionSyntaxError(
                f"formula with more than {MAX_TREE_DEPTH} operations in one chain; split it or shorten it"
            )
        return expression

    def _sum(self, depth: int) -> Expression:
        expression = self._product(depth)
        while sign := self._accept("+", "-"):
            expression = Apply("add" if sign == "+" else "sub", (expression, self._product(depth)))
        return expression

    def _product(self, depth: int) -> Expression:
        expression = self._sign(depth)
        while sign := self._accept("*", "/"):
            expression = Apply("mul" if sign == "*" else "div", (expression, self._sign(depth)))
        return expression

    def _sign(self, depth: int) -> Expression:
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels", self.tokens[self.position][2])
        if self._accept("-"):
            argument = self._sign(depth + 1)
            # "-2" is a number, "-2**2" is the negative of a power: only a bare number folds.
            return Number(-argument.value) if isinstance(argument, Number) else Apply("neg", (argument,))
        if self._accept("+"):
            return self._sign(depth + 1)
        base = self._atom(depth)
        if self._accept("**", "^"):
            return Apply("pow", (base, self._sign(depth + 1)))
        return base

    def _atom(self, depth: int) -> Expression:
        kind, value, at = self.tokens[self.position]
        self.position += 1
        if kind == "number":
            return self._number(value, at)
        if kind == "name":
            return self._name(value, at, depth)
        if (kind, value) == ("sign", "("):
            expression = self._sum(depth + 1)
            if not self._accept(")"):
                raise self._error("missing ')'", self.tokens[self.position][2])
            return expression
        raise self._error("the formula ends too early" if kind == "end" else f"unexpected {value!a}", at)

    def _number(self, text: str, at: int) -> Expression:
        if text.isdigit():
            if len(text) > MAX_INTEGER_DIGITS:
                raise self._error(f"an integer of more than {MAX_INTEGER_DIGITS} digits", at)
            return Number(int(text))
        mantissa = text.lower().split("e")[0]
        if "e" not in text.lower() and len(mantissa.partition(".")[2]) <= MAX_EXACT_DECIMALS:
            fraction = Fraction(text)
            return Number(int(fraction) if fraction.denominator == 1 else fraction)
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise self._error("a number too large for double precision", at)
        return Number(number)

    def _name(self, name: str, at: int, depth: int) -> Expression:
        if self.tokens[self.position][1] == "(" and self.tokens[self.position][0] == "sign":
            return self._call(name, at, depth)
        expression = self.names.get(name)
        if expression is None:
            some = " ".join(sorted(self.names)[:20])
            raise self._error(f"unknown name {name!a}; known are {some}", at)
        return expression

    def _call(self, name: str, at: int, depth: int) -> Expression:
        operator = _function(name)
        if operator is None and self.other is None:
            known = sorted({*FUNCTIONS.get(), *filter(_function, OPERATORS)})
            raise self._error(f"unknown function {name!a}; known are {' '.join(known)}", at)
        self.position += 1
        arguments = [self._sum(depth + 1)]
        while self._accept(","):
            arguments.append(self._sum(depth + 1))
        if not self._accept(")"):
            raise self._error("missing ')'", self.tokens[self.position][2])
        if operator is None:
            return self._other_call(name, tuple(arguments), at)
        if len(arguments) != operator.arity:
            count = "one argument" if operator.arity == 1 else f"{operator.arity} arguments"
            raise self._error(f"{name} takes {count}, not {len(arguments)}", at)
        return Apply(operator.name, tuple(arguments))

    def _other_call(self, name: str, arguments: tuple[Expression, ...], at: int) -> Expression:
        assert self.other is not None
        try:
            found = self.other(name, arguments)
        except ValueError as error:
            raise self._error(str(error), at) from None
        if found is None:
            raise self._error(f"unknown function {name!a}", at)
        return found


def _function(name: str) -> OperatorSpec | None:
    """The function of that name that may be called here."""
    own = FUNCTIONS.get().get(name)
    if own is not None:
        return OPERATORS[own]
    found = OPERATORS.get(SPELLINGS.get(name, name))
    usable = found is not None and found.infix is None and found.name != "neg" and found.definition is None
    return found if usable else None


def free_names(text: str) -> tuple[str, ...]:
    """Names in a formula that are neither functions nor `pi`, in order of appearance.

    Raises
    ------
    ExpressionSyntaxError
        If the text cannot be divided into numbers, names and signs.
    """
    tokens = _Parser(text[:MAX_LENGTH], {}).tokens
    called = [following[1] == "(" for following in tokens[1:]] + [False]
    names = (
        value
        for (kind, value, _), call in zip(tokens, called, strict=True)
        if kind == "name" and value != "pi" and not call
    )
    return tuple(dict.fromkeys(names))


def _deeper_than(expression: Expression, limit: int) -> bool:
    """Whether a tree is deeper than the recursive functions on trees can be trusted with."""
    level = [expression]
    for _ in range(limit):
        level = [part for node in level if isinstance(node, Apply) for part in node.arguments]
        if not level:
            return False
    return True


def parse(text: str, names: Sequence[str], constants: Mapping[str, float] | None = None) -> Expression:
    """Read a formula.

    Parameters
    ----------
    text
        The formula, with Python operators (`**`, or `^`) and the functions of the operator table.
    names
        Names of the variables, in column order.
    constants
        Further named constants and their values. `pi` is always known.

    Raises
    ------
    ExpressionSyntaxError
        With the position, if the text does not follow the grammar or its limits.
    """
    return parse_with(text, known_names(names, constants))


def parse_with(text: str, known: Mapping[str, Expression], other: OtherFunction | None = None) -> Expression:
    """Read a formula whose names, and functions that are no operators, stand for the given expressions.

    Raises as `parse` does.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionSyntaxError(f"formula of {len(text)} characters; at most {MAX_LENGTH} are read")
    return _Parser(text, known, other).parse()


def known_names(names: Sequence[str], constants: Mapping[str, float] | None = None) -> dict[str, Expression]:
    """What the names of a formula stand for: `pi`, known constants, and the columns in their order."""
    known: dict[str, Expression] = {"pi": PI}
    known.update({name: Symbol(name, float(value)) for name, value in (constants or {}).items()})
    known.update({name: Variable(index) for index, name in enumerate(names)})
    return known
