"""Expressions: one immutable tree, one operator table, a safe parser and printers."""

from physdiffuser.expressions.complexity import complexity
from physdiffuser.expressions.evaluate import evaluate, value_and_jacobian
from physdiffuser.expressions.operators import OPERATORS, OperatorSpec
from physdiffuser.expressions.parser import ExpressionSyntaxError, parse
from physdiffuser.expressions.prefix import from_prefix, to_prefix
from physdiffuser.expressions.printing.format import to_text
from physdiffuser.expressions.tree import (
    ONE,
    PI,
    ZERO,
    Apply,
    Expression,
    Number,
    Parameter,
    Symbol,
    Variable,
)

__all__ = [
    "ONE",
    "OPERATORS",
    "PI",
    "ZERO",
    "Apply",
    "Expression",
    "ExpressionSyntaxError",
    "Number",
    "OperatorSpec",
    "Parameter",
    "Symbol",
    "Variable",
    "complexity",
    "evaluate",
    "from_prefix",
    "parse",
    "to_prefix",
    "to_text",
    "value_and_jacobian",
]
