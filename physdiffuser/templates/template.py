"""A formula with unknown functions, such as `exp(-x/L)*f(t, x) + g(y)`: reading it, and putting forms in."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from physdiffuser.errors import UsageError
from physdiffuser.expressions import OPERATORS, Apply, Expression, ExpressionSyntaxError, Variable
from physdiffuser.expressions.parser import FUNCTIONS, known_names, parse_with
from physdiffuser.expressions.tree import parameter_count, substitute, variables, walk, with_parameters
from physdiffuser.io.display import visible
from physdiffuser.search.refinement.guesses import FreeNames
from physdiffuser.verification.calculus import derivative, integral

MAX_LENGTH, MAX_FUNCTIONS, MAX_CALLS, MAX_CONSTANTS = 2_000, 4, 12, 12
# `D(f(x), x)` and `I(f(x), x)`.
DERIVATIVE, INTEGRAL = "D", "I"
ALL_COLUMNS = "..."


@dataclass(frozen=True)
class Call:
    """An unknown function of some arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Calculus:
    """The derivative or the integral of a part of the template by a column."""

    kind: Literal["D", "I"]
    of: Expression
    by: int


@dataclass(frozen=True)
class UnknownFunction:
    """A function that the search is to find.

    Attributes
    ----------
    name
        As in the template.
    arguments
        Names of its arguments: those of the columns in its first call, or `u1`, `u2`, ...
    """

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """A formula with unknown functions.

    Attributes
    ----------
    text
        As the user wrote it.
    columns
        Aliases of the columns: the variables of `skeleton`.
    skeleton
        The formula. Its parameters are the free constants; variables beyond the columns stand for `parts`.
    parts
        Calls of unknown functions, derivatives and integrals. Inner ones come before those that hold them.
    functions
        In order of appearance.
    constants
        Names of the free constants.
    """

    text: str
    columns: tuple[str, ...]
    skeleton: Expression
    parts: tuple[Call | Calculus, ...]
    functions: tuple[UnknownFunction, ...]
    constants: tuple[str, ...]

    def calls(self, function: str) -> list[tuple[int, Call]]:
        """The calls of a function, each with the variable that stands for it."""
        first = len(self.columns)
        return [
            (first + place, part)
            for place, part in enumerate(self.parts)
            if isinstance(part, Call) and part.function == function
        ]

    @property
    def has_repeated_functions(self) -> bool:
        """Whether a function occurs with different arguments, so that its constants occur more than once."""
        return any(len(self.calls(one.name)) > 1 for one in self.functions)

    @property
    def operators(self) -> frozenset[str]:
        """Keys of the operators in it."""
        within = [one for part in self.parts for one in _formulas(part)]
        nodes = itertools.chain.from_iterable(map(walk, (self.skeleton, *within)))
        return frozenset(node.operator for node in nodes if isinstance(node, Apply))

    def compose(self, forms: Mapping[str, Expression]) -> Expression | None:
        """The complete formula.

        Parameters
        ----------
        forms
            For each function a formula of its arguments, which are the variables 0, 1, ...; their constants
            are parameters, numbered from 0 in each.

        Returns
        -------
        A formula of the columns. Its parameters are the free constants of the template and then those of the
        forms, in order of the functions. None where a derivative or an integral has no formula.
        """
        values = self.values(forms)
        return None if values is None else self.filled(self.skeleton, values)

    def values(self, forms: Mapping[str, Expression]) -> list[Expression] | None:
        """What each of the parts is, with these forms; parameters as in `compose`."""
        places = self.constants_of(forms)
        shifted = {
            name: with_parameters(form, range(places[name].start, places[name].stop))
            for name, form in forms.items()
        }
        values: list[Expression] = []
        for part in self.parts:
            made = self._value(part, shifted, values)
            if made is None:
                return None
            values.append(made)
        return values

    def constants_of(self, forms: Mapping[str, Expression]) -> dict[str, slice]:
        """Which parameters of the composed formula are those of each form."""
        places: dict[str, slice] = {}
        offset = len(self.constants)
        for function in self.functions:
            count = parameter_count(forms[function.name])
            places[function.name] = slice(offset, offset + count)
            offset += count
        return places

    def _value(
        self, part: Call | Calculus, forms: Mapping[str, Expression], values: Sequence[Expression]
    ) -> Expression | None:
        if isinstance(part, Call):
            arguments = [self.filled(argument, values) for argument in part.arguments]

            def put(node: Expression) -> Expression | None:
                return arguments[node.index] if isinstance(node, Variable) else None

            return substitute(forms[part.function], put)
        operation = derivative if part.kind == DERIVATIVE else integral
        return operation(self.filled(part.of, values), part.by)

    def filled(self, expression: Expression, values: Sequence[Expression]) -> Expression:
        """An expression with values in place of the variables that stand for parts."""
        first = len(self.columns)

        def put(node: Expression) -> Expression | None:
            if isinstance(node, Variable) and node.index >= first:
                return values[node.index - first]
            return None

        return substitute(expression, put)


def _formulas(part: Call | Calculus) -> tuple[Expression, ...]:
    return part.arguments if isinstance(part, Call) else (part.of,)


class _Reader:
    """Collects the calls of unknown functions while a template is parsed."""

    def __init__(self, columns: Sequence[str], known: Mapping[str, Expression]) -> None:
        self.columns, self.known = tuple(columns), known
        self.parts: list[Call | Calculus] = []
        self.functions: dict[str, UnknownFunction] = {}

    def __call__(self, name: str, arguments: tuple[Expression, ...]) -> Expression:
        if name in (DERIVATIVE, INTEGRAL):
            return self._calculus("D" if name == DERIVATIVE else "I", arguments)
        if name in self.columns:
            shown = visible(name)
            raise ValueError(f"'{shown}' is a column, no function; for a product write {shown}*(...)")
        if name in self.known:
            raise ValueError(f"'{visible(name)}' is a known constant, no function")
        # Earlier searches of the process may have left operators that their users had defined.
        if name in FUNCTIONS.get() or (name in OPERATORS and OPERATORS[name].definition is None):
            raise ValueError(f"'{visible(name)}' is the name of an operator")
        seen = self.functions.get(name)
        if seen is None:
            if len(self.functions) == MAX_FUNCTIONS:
                raise ValueError(f"a template may have {MAX_FUNCTIONS} unknown functions at most")
            self.functions[name] = UnknownFunction(name, self._names(arguments))
        elif len(seen.arguments) != len(arguments):
            raise ValueError(
                f"{name} has {len(arguments)} arguments here and {len(seen.arguments)} before; "
                "a function has the same number everywhere"
            )
        return self._stand_in(Call(name, arguments))

    def _calculus(self, kind: Literal["D", "I"], arguments: tuple[Expression, ...]) -> Expression:
        what = f"{kind}(..., x)"
        if len(arguments) != 2:
            raise ValueError(f"{what} takes a formula and the name of a column")
        of, by = arguments
        if not isinstance(by, Variable) or by.index >= len(self.columns):
            raise ValueError(f"the second argument of {what} must be a column")
        return self._stand_in(Calculus(kind, of, by.index))

    def _stand_in(self, part: Call | Calculus) -> Expression:
        if part in self.parts:
            return Variable(len(self.columns) + self.parts.index(part))
        if len(self.parts) == MAX_CALLS:
            raise ValueError(f"a template may have {MAX_CALLS} calls of functions at most")
        self.parts.append(part)
        return Variable(len(self.columns) + len(self.parts) - 1)

    def _names(self, arguments: tuple[Expression, ...]) -> tuple[str, ...]:
        columns = [
            one.index for one in arguments if isinstance(one, Variable) and one.index < len(self.columns)
        ]
        if len(columns) == len(arguments) == len(set(columns)):
            return tuple(self.columns[index] for index in columns)
        return ("u",) if len(arguments) == 1 else tuple(f"u{place + 1}" for place in range(len(arguments)))


def read_template(
    text: str, names: Sequence[str], constants: Mapping[str, float], target: str | None = None
) -> Template:
    """Parse a template.

    Parameters
    ----------
    text
        The formula. Functions that are no operators are unknown functions; `...` stands for all columns;
        names that are neither columns nor known constants are free constants.
    names
        Aliases of the columns.
    constants
        Known constants and their values.
    target
        Alias of the target, which cannot occur.

    Raises
    ------
    UsageError
        With the position of the error, if it cannot be used.
    """
    shown = visible(text, 60)
    if len(text) > MAX_LENGTH:
        raise UsageError(f"template '{shown}': {len(text)} characters; at most {MAX_LENGTH} are read")
    known = known_names(names, constants)
    free = FreeNames(known)
    reader = _Reader(names, known)
    try:
        skeleton = parse_with(text.replace(ALL_COLUMNS, ", ".join(names)), free, reader)
    except ExpressionSyntaxError as error:
        raise UsageError(f"template '{shown}': {error}") from None
    if target is not None and target in (*free.free, *reader.functions):
        raise UsageError(f"template '{shown}': '{visible(target)}' is the target; write its formula alone")
    if not reader.functions:
        raise UsageError(
            f"template '{shown}': no unknown function, such as f({', '.join(names[:2])}); "
            "a formula with free constants alone is a guess (--guess)"
        )
    for name in reader.functions:
        calls = [part for part in reader.parts if isinstance(part, Call) and part.function == name]
        if not any(variables(one) for call in calls for one in call.arguments):
            raise UsageError(
                f"template '{shown}': {visible(name)} has no column among its arguments; the columns are "
                f"{', '.join(map(visible, names))}"
            )
    both = sorted(set(free.free) & set(reader.functions))
    if both:
        raise UsageError(
            f"template '{shown}': '{visible(both[0])}' is a function and a constant; name them apart"
        )
    if len(free.free) > MAX_CONSTANTS:
        raise UsageError(
            f"template '{shown}': {len(free.free)} constants; {MAX_CONSTANTS} at most are fitted"
        )
    return Template(
        text, tuple(names), skeleton, tuple(reader.parts), tuple(reader.functions.values()), tuple(free.free)
    )


def known_part(text: str, names: Sequence[str], constants: Mapping[str, float]) -> str:
    """The template of a known part: `known + f(...)`, or `(factor)*f(...)` for one that begins with `*`.

    Raises
    ------
    UsageError
        With the position of the error, if it is no formula, or holds unknown functions.
    """
    part = text.strip()
    factor = part.startswith("*") and not part.startswith("**")
    part = part[1:].strip() if factor else part
    known = known_names(names, constants)
    reader = _Reader(names, known)
    try:
        parse_with(part, FreeNames(known), reader)
    except ExpressionSyntaxError as error:
        raise UsageError(f"known part '{visible(part, 60)}': {error}") from None
    if reader.functions:
        unknown = visible(next(iter(reader.functions)))
        raise UsageError(
            f"known part '{visible(part, 60)}': '{unknown}' is no known function; "
            "a formula with unknown ones is a template (--template)"
        )
    return f"({part}){'*' if factor else ' + '}f({ALL_COLUMNS})"
