"""Whether a candidate of a plugin is well formed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from physdiffuser.core.candidate import Candidate
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.parser import MAX_TREE_DEPTH
from physdiffuser.expressions.tree import PI, Apply, Number, Parameter, Symbol, Variable
from physdiffuser.plugin_system.records import describe

if TYPE_CHECKING:
    from physdiffuser.core.problem import Problem

MAX_NODES = 1000
MAX_DERIVATION = 20_000
"""Characters of a derivation."""


def candidate_fault(candidate: object, problem: Problem) -> str | None:
    """What is wrong with a candidate, in words; None if nothing is.

    Its accuracy is not looked at: a formula that is not finite on the rows is merely a bad one.
    """
    if not isinstance(candidate, Candidate):
        return f"it yielded {type(candidate).__name__}, not a Candidate"
    if not isinstance(name := getattr(candidate, "generator", None), str):
        return f"the generator's name is {type(name).__name__}, not a text"
    derivation = candidate.derivation
    if not isinstance(derivation, tuple) or not all(isinstance(step, str) for step in derivation):
        return "the derivation is not a tuple of texts"
    if sum(map(len, derivation)) > MAX_DERIVATION:
        return f"the derivation has more than {MAX_DERIVATION} characters"
    try:
        return _expression_fault(candidate.expression, problem)
    except (TypeError, AttributeError, RecursionError) as error:
        return f"the expression is malformed ({describe(error)})"


def _expression_fault(expression: object, problem: Problem) -> str | None:
    # Counted while it is walked: a tree that shares its parts can have more nodes than anybody could visit.
    nodes = 0
    open_nodes: list[tuple[object, int]] = [(expression, 1)]
    while open_nodes:
        node, level = open_nodes.pop()
        nodes += 1
        if nodes > MAX_NODES:
            return f"the expression has more than {MAX_NODES} nodes"
        if level > MAX_TREE_DEPTH:
            return f"the expression has more than {MAX_TREE_DEPTH} operations in one chain"
        fault = _node_fault(node, problem)
        if fault is not None:
            return fault
        if isinstance(node, Apply):
            open_nodes += [(argument, level + 1) for argument in node.arguments]
    return None


def _node_fault(node: object, problem: Problem) -> str | None:
    match node:
        case Number(value=value):
            if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
                return f"the expression holds a number of type {type(value).__name__}"
            if not _is_finite(value):
                shown = value if isinstance(value, float) else "beyond the range of floating-point numbers"
                return f"the expression holds the number {shown}"
        case Variable(index=index):
            if not isinstance(index, int) or not 0 <= index < problem.columns:
                return f"the expression holds the variable {index}, of {problem.columns}"
        case Symbol(name=name):
            if node != PI and node not in problem.constants:
                return f"the expression holds the unknown constant {name!a}"
        case Apply(operator=operator, arguments=arguments):
            spec = OPERATORS.get(operator)
            if spec is None:
                return f"the expression holds the unknown operator {operator!a}"
            if not isinstance(arguments, tuple) or len(arguments) != spec.arity:
                return f"{operator} has {len(arguments)} arguments, not {spec.arity}"
        case Parameter():
            return "the expression holds a parameter without a value; fit the constants first"
        case _:
            return f"the expression holds a {type(node).__name__}"
    return None


def _is_finite(value: float | Fraction) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
