"""The shortest form of a formula that can be found, sympy's included."""

from __future__ import annotations

from collections.abc import Sequence

from physdiffuser.expressions import Expression, complexity, from_prefix, to_prefix, to_text
from physdiffuser.expressions.definitions import expanded
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import Parameter, Symbol, variables, walk
from physdiffuser.verification.numeric import Range, sample_outcomes
from physdiffuser.verification.worker import SymbolicWorker, shared_worker

# Below this, sympy has never been seen to beat `arrange`.
_WORTH_SYMPY = 10
_POINTS = 8


def simplify(
    expression: Expression,
    *,
    positive: frozenset[int] = frozenset(),
    ranges: Sequence[Range] | None = None,
    seconds: float = 10.0,
    worker: SymbolicWorker | None = None,
) -> Expression:
    """The least complex of the formula, its arrangement and the arrangements of what sympy makes of it.

    Forms are offered, not believed: each must have the formula's value at random points to 40 digits.

    Parameters
    ----------
    expression
        The tree, without parameters.
    positive
        Columns that are never negative.
    ranges
        Where values are compared; by default (0.5, 3) for positive columns and (-3, 3) for others.
    seconds
        Limit for sympy, which is not asked when it is 0 or the formula is short. When sympy does
        not finish in time the result is the best of the other forms.
    """
    known = variables(expression)
    columns = 1 + max(known, default=-1)
    if ranges is None:
        ranges = [(0.5, 3.0) if index in positive else (-3.0, 3.0) for index in range(columns)]
    candidates = [arrange(expression, positive=positive)]
    candidates += [
        arrange(form, positive=positive) for form in _from_sympy(candidates[0], positive, seconds, worker)
    ]
    same = [form for form in candidates if _same_values(form, expression, ranges)]
    return min([*same, expression], key=lambda form: (complexity(form), form != candidates[0], to_text(form)))


def _same_values(form: Expression, expression: Expression, ranges: Sequence[Range]) -> bool:
    agreed, differed = sample_outcomes(form, expression, ranges, wanted=_POINTS)
    return agreed >= _POINTS // 2 and not differed


def _from_sympy(
    expression: Expression, positive: frozenset[int], seconds: float, worker: SymbolicWorker | None
) -> list[Expression]:
    if seconds <= 0.0 or complexity(expression) < _WORTH_SYMPY:
        return []
    if any(isinstance(node, Parameter) for node in walk(expression)):
        return []
    if expanded(expression) is not expression:
        return []  # sympy would take apart what the user wants to see as one node
    named = {node.name: node.value for node in walk(expression) if isinstance(node, Symbol)}
    named.pop("pi", None)
    if named:
        # The worker knows no constants but pi: what a user's constant is worth is not needed here,
        # but its name could be taken for a variable's.
        return []
    answer = (worker or shared_worker()).run(
        {"kind": "simplify", "expression": to_prefix(expression), "positive": sorted(positive)}, seconds
    )
    forms = answer.get("forms", []) if answer is not None else []
    return [from_prefix([str(token) for token in form]) for form in forms]
