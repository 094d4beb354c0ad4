"""Derivatives, integrals and limits of formulas by sympy, in a process that can be killed."""

from __future__ import annotations

from functools import lru_cache

from physdiffuser.expressions import Expression, Parameter, Symbol, Variable, from_prefix, to_prefix
from physdiffuser.expressions.tree import PI, substitute, walk
from physdiffuser.verification.patience import allowed
from physdiffuser.verification.worker import shared_worker

# Seconds for one formula; the process may have to be started first.
DERIVATIVE_SECONDS, INTEGRAL_SECONDS = 2.0, 2.0
# Parameters and named constants travel as variables beyond any column.
_PARAMETERS, _SYMBOLS = 10_000, 20_000


def derivative(expression: Expression, column: int) -> Expression | None:
    """The derivative by a column; None where it has no formula in the operators."""
    return _ask("derivative", expression, column, allowed(DERIVATIVE_SECONDS))


def integral(expression: Expression, column: int) -> Expression | None:
    """An integral over a column, without a constant of integration; None where sympy finds none."""
    return _ask("integral", expression, column, allowed(INTEGRAL_SECONDS))


def limit(expression: Expression, column: int, towards: float) -> Expression | None:
    """The limit as a column goes to plus or minus infinity; None where sympy finds none."""
    return _ask("limit" if towards > 0 else "limit_below", expression, column, allowed(INTEGRAL_SECONDS))


@lru_cache(maxsize=2_000)
def _ask(kind: str, expression: Expression, column: int, seconds: float) -> Expression | None:
    symbols = sorted(
        {node for node in walk(expression) if isinstance(node, Symbol) and node != PI},
        key=lambda symbol: symbol.name,
    )

    def sent(node: Expression) -> Expression | None:
        if isinstance(node, Parameter):
            return Variable(_PARAMETERS + node.index)
        if isinstance(node, Symbol) and node != PI:
            return Variable(_SYMBOLS + symbols.index(node))
        return None

    def received(node: Expression) -> Expression | None:
        if not isinstance(node, Variable) or node.index < _PARAMETERS:
            return None
        return (
            symbols[node.index - _SYMBOLS] if node.index >= _SYMBOLS else Parameter(node.index - _PARAMETERS)
        )

    worker = shared_worker()
    job = {"kind": kind, "expression": to_prefix(substitute(expression, sent)), "by": column}
    answer = worker.run(job, seconds + allowed(worker.starting()))
    if answer is None or "form" not in answer:
        return None
    return substitute(from_prefix([str(token) for token in answer["form"]]), received)
