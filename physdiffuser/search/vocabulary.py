"""What a user says of operators: definitions, complexities and forbidden nestings."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.errors import PluginError, UsageError
from physdiffuser.expressions import OPERATORS
from physdiffuser.expressions.complexity import Costs, costing
from physdiffuser.expressions.definitions import Definition, defined, key_of, read_definitions
from physdiffuser.expressions.operators import SPELLINGS
from physdiffuser.io.display import visible

if TYPE_CHECKING:
    from physdiffuser.data.dataset import Dataset
    from physdiffuser.options import OperatorChoice, SolveOptions
    from physdiffuser.plugin_system.manager import Plugins

CONSTANT = "constant"
"""In `complexity`: the numbers of a formula, unless a column has that name."""
MAX_COMPLEXITY = 1000

_SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "**": "pow", "^": "pow"}
_NESTING = re.compile(r"\s*(\S+?)\s*\(\s*(\S+?)\s*\)\s*")


def definitions(operators: OperatorChoice) -> tuple[Definition, ...]:
    """The operators that the user defines among those that may occur.

    Raises
    ------
    UsageError
        If a definition cannot be read.
    """
    if operators is None:
        return ()
    return read_definitions(
        operators if isinstance(operators, Mapping) else [text for text in operators if "=" in text]
    )


def allowed_operators(operators: OperatorChoice, loaded: Plugins) -> frozenset[str]:
    """Keys of the operators that may occur.

    Raises
    ------
    UsageError
        If a name is unknown, or a definition cannot be read.
    PluginError
        If the operator is of a plugin that failed.
    """
    own = {key_of(one) for one in definitions(operators)}
    named = () if operators is None or isinstance(operators, Mapping) else operators
    plain = [name for name in named if "=" not in name]
    if not plain:
        return frozenset({name for name, spec in OPERATORS.items() if spec.definition is None} | own)
    return frozenset({_key(name, {}, loaded) for name in plain} | own)


@contextmanager
def vocabulary(options: SolveOptions, dataset: Dataset, loaded: Plugins) -> Iterator[None]:
    """The definitions and the complexities of a run are in force within the block.

    Raises
    ------
    UsageError
        If an option cannot be read.
    """
    own = definitions(options.operators)
    clash = [one.name for one in own if one.name in dataset.names]
    if clash:
        raise UsageError(f"operator {clash[0]!a}: the table has a column of that name; choose another one")
    with defined(own), costing(_costs(options, dataset, loaded)):
        yield


def forbidden_nestings(options: SolveOptions, loaded: Plugins) -> frozenset[tuple[str, str]]:
    """Pairs of keys of operators, the outer one first.

    Raises
    ------
    UsageError
        If one is not written like `sin(sin)`, or an operator is unknown.
    """
    if isinstance(options.forbid, str):
        raise UsageError(f"forbid={options.forbid!r}: must be a list of nestings, such as ['sin(sin)']")
    keys = {one.name: key_of(one) for one in definitions(options.operators)}
    found = set()
    for text in options.forbid:
        match = _NESTING.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise UsageError(
                f"--forbid '{visible(str(text))}': write the outer operator and the one that may not stand "
                "inside it, as in sin(sin) or exp(log)"
            )
        try:
            outer, inner = (_key(name, keys, loaded) for name in match.groups())
        except UsageError as error:
            raise UsageError(f"--forbid '{visible(text)}': {error}") from None
        found.add((outer, inner))
    return frozenset(found)


def parse_complexity(given: str | Mapping[str, int] | None) -> dict[str, int]:
    """Complexities by name of an operator or a column.

    Parameters
    ----------
    given
        `exp=3,x=2` or a mapping.

    Raises
    ------
    UsageError
        If one is no whole number from 1 to `MAX_COMPLEXITY`, or a name is given twice.
    """
    if given is None:
        return {}
    if isinstance(given, str):
        pairs: list[tuple[str, object]] = []
        for part in filter(None, map(str.strip, given.split(","))):
            name, _, text = part.rpartition("=")
            pairs.append((name, int(text) if text.strip().isdecimal() else text))
    else:
        pairs = [(str(name), value) for name, value in given.items()]
    found: dict[str, int] = {}
    for name, value in pairs:
        name = name.strip()
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not name or not whole or not 1 <= int(value) <= MAX_COMPLEXITY:  # type: ignore[call-overload]
            raise UsageError(
                f"--complexity '{visible(name)}={visible(str(value))}': write a name and a whole number from "
                f"1 to {MAX_COMPLEXITY}, as in exp=3"
            )
        if name in found:
            raise UsageError(f"--complexity: '{visible(name)}' is given twice")
        found[name] = int(value)  # type: ignore[call-overload]  # it is whole
    return found


def _costs(options: SolveOptions, dataset: Dataset, loaded: Plugins) -> Costs | None:
    given = parse_complexity(options.complexity)
    if not given:
        return None
    keys = {one.name: key_of(one) for one in definitions(options.operators)}
    places = {
        name: index for index, column in enumerate(dataset.columns) for name in (column.name, column.alias)
    }
    operators: dict[str, int] = {}
    columns: dict[int, int] = {}
    constant = None
    for name, value in given.items():
        if name in places:
            columns[places[name]] = value
        elif name == CONSTANT:
            constant = value
        else:
            try:
                operators[_key(name, keys, loaded)] = value
            except UsageError:
                known = [*places, *map(str, keys), *_operator_names()]
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"; did you mean {near[0]!a}?" if near else f". Columns are {', '.join(places)}"
                raise UsageError(
                    f"--complexity: '{visible(name)}' is neither an operator nor a column{hint}"
                ) from None
    return Costs(operators, columns, constant)


def _operator_names() -> list[str]:
    return [name for name, spec in OPERATORS.items() if spec.definition is None]


def _key(name: str, own: Mapping[str, str], loaded: Plugins) -> str:
    """Key of the operator of that name."""
    name = _SIGNS.get(name, SPELLINGS.get(name, name))
    known = _operator_names()
    if name in own:
        return own[name]
    if name in known:
        return name
    for failure in loaded.failures:
        if name in failure.names:
            raise PluginError(f"operator {name!r} cannot be used: {failure.warning}")
    near = difflib.get_close_matches(name, [*own, *known], n=1)
    hint = f"; did you mean {near[0]}?" if near else "."
    failed = f". These plugins failed: {'; '.join(loaded.warnings)}" if loaded.failures else ""
    if not near:
        hint = "; a definition has the form name(x)=formula."
    raise UsageError(f"unknown operator {name!a}{hint} Known are {' '.join([*known, *own])}{failed}")
