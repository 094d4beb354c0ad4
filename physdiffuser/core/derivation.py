"""How a law was found, written so that the steps lead from the table to the formula."""

from __future__ import annotations

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import ONE, Apply, Expression, Number, Symbol, to_text
from physdiffuser.expressions.printing.format import Digits
from physdiffuser.expressions.tree import fitted_constants, mul, sub, substitute, variables

DIGITS = 5
# A formula longer than this is no news to a reader inside a sentence.
LONGEST_SHOWN = 160


def readable(expression: Expression) -> Expression:
    """The same formula with `a - b` for `a + (-b)`."""

    def rewrite(node: Expression) -> Expression | None:
        if isinstance(node, Apply) and node.operator == "add":
            left, right = (readable(argument) for argument in node.arguments)
            positive = _negated(right)
            return Apply("add", (left, right)) if positive is None else sub(left, positive)
        return None

    return substitute(expression, rewrite)


def _negated(expression: Expression) -> Expression | None:
    """What a term with a sign in front is the negative of; None when there is no sign."""
    match expression:
        case Number(value=value) if value < 0:
            return Number(-value)
        case Apply(operator="neg", arguments=(inner,)):
            return inner
        case Apply(operator="mul" | "div" as operator, arguments=(first, second)):
            positive = _negated(first)
            if positive is None:
                return None
            return second if operator == "mul" and positive == ONE else Apply(operator, (positive, second))
    return None


def target_symbol(problem: Problem) -> Symbol:
    """The target, to be printed on the left of an equation."""
    return Symbol(problem.target_name, 1.0)


def found_as(left: Expression, right: Expression, problem: Problem, digits: Digits = DIGITS) -> str:
    """`log(p) = 7.24 - 0.997*log(V)`."""
    sides = (to_text(readable(side), problem.names, digits) for side in (left, right))
    return " = ".join(sides)


def divided(target: Expression, *factors: Expression | None) -> Expression:
    """The target over the factors that were taken out."""
    product: Expression | None = None
    for factor in factors:
        if factor is not None:
            product = factor if product is None else mul(product, factor)
    return target if product is None else Apply("div", (target, product))


def _unchanged(change: str) -> bool:
    before, agrees, after = change.partition(" agrees with ")
    return bool(agrees) and before == after


def derivation(
    steps: tuple[str, ...],
    fitted: Expression,
    changes: tuple[str, ...],
    final: Expression,
    problem: Problem,
    digits: Digits = DIGITS,
) -> tuple[str, ...]:
    """The whole way: what the generator did, the fit, what became exact, and the law.

    Parameters
    ----------
    steps
        Of the generator.
    fitted
        The formula with all constants as fitted, before any became exact.
    changes
        Constants that became exact.
    final
        The law.
    problem
        Its rows are those of the fit.
    digits
        Of the constants of the law.
    """
    target = target_symbol(problem)
    # That -0.5 agrees with -0.5 is no news to a reader.
    changes = tuple(change for change in changes if not _unchanged(change))
    if not variables(final):
        return (*steps, f"the mean of {problem.rows:,} rows, as no column explains more", *changes)
    before = found_as(target, fitted, problem)
    after = found_as(target, final, problem, digits)
    made = list(steps)
    worth_a_step = fitted_constants(fitted) > 0 and before != after and len(before) <= LONGEST_SHOWN
    if worth_a_step and not (made and made[-1].endswith(before)):
        made.append(f"constants fitted to {problem.rows:,} rows: {before}")
    made.extend(changes)
    if not (made and made[-1].endswith(after)):
        made.append(f"the law: {after}")
    return tuple(made)
