"""What `solve` may say of a formula: does the final form follow from the fit, and does it hold?

No truth is known here. *verified* means that every check passes: the final formula is the fitted one with its
constants set to special values (shown symbolically); it holds on the test set and at the boundary of the
table, where a formula that only interpolates fails first; and the further checks of the caller, such as the
probability of the law (`physdiffuser.verification.checks`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.expressions import PI, Apply, Expression, Number, Symbol, evaluate
from physdiffuser.expressions.tree import Variable, free_constants, substitute, variables, walk
from physdiffuser.fitting.accuracy import agrees
from physdiffuser.verification.checks import Check, CheckState
from physdiffuser.verification.constants import Polish, exact_floats, has_floats, polish
from physdiffuser.verification.equivalence import Verdict, equivalent, put_exact
from physdiffuser.verification.row_checks import (
    Errors,
    check_boundary,
    check_test_set,
    left_out,
    left_out_sentence,
    percent,
)

_PROVED: dict[Verdict, CheckState] = {"verified": "passed", "different": "failed", "unknown": "open"}
_UNPROVED: dict[Verdict, str] = {
    "verified": "",
    "different": "the law shown is not the formula that was fitted",
    "unknown": "it is not proved that the law shown is the formula that was fitted",
}
# A change of the constants below this says that the fit was already there.
_LITTLE = 0.05


@dataclass(frozen=True)
class Verification:
    """The verdict and the checks behind it.

    Attributes
    ----------
    verdict
        *verified* if every check passed; *different* if the final formula has been shown not to be
        the fitted one; else *unknown*.
    sentences
        One per check, for the user.
    reason
        Why the law is not verified; empty if it is.
    states
        How each of the checks came out.
    """

    verdict: Verdict
    sentences: tuple[str, ...]
    reason: str = ""
    states: tuple[CheckState, ...] = ()


def verify(
    fitted: Expression,
    final: Expression,
    inputs: FloatArray,
    target: FloatArray,
    train_rows: IndexArray,
    test_rows: IndexArray,
    *,
    names: Sequence[str] | None = None,
    weights: FloatArray | None = None,
    further: Sequence[Check] = (),
    seconds: float = 10.0,
    columns: int | None = None,
    left_out_ratio: float | None = None,
) -> Verification:
    """Check a formula against the fit it came from and against the table.

    More than eight parameters: the formula, the split table, and the facts that each check needs.

    Parameters
    ----------
    fitted
        The formula as fitted: floats are fitted constants.
    final
        The formula with exact constants where they were snapped, simplified.
    inputs, target
        The table: shapes (rows, columns) and (rows,).
    train_rows, test_rows
        Positions of the rows that search and fit have seen, and of those they have not.
    names
        Names of the columns, for the sentences.
    weights
        Shape (rows,), positive: errors count by their roots, as in the fit.
    further
        Checks that were made elsewhere.
    seconds
        Limit of the symbolic check.
    columns
        So many of the first columns were measured; the others hold constants of groups. None: all of them.
    left_out_ratio
        Error of rows predicted without themselves over that of the fit; None to derive it from `final`.
    """
    ranges = [(float(column.min()), float(column.max())) for column in inputs.T]
    symbolic, sentence = _symbolic(fitted, final, ranges, seconds)
    algebra = Check(_PROVED[symbolic], sentence, _UNPROVED[symbolic])
    prediction = evaluate(final, inputs)
    errors = Errors(prediction, target, train_rows, weights)
    errors.exact = agrees(final, inputs, target, prediction)
    tested = check_test_set(errors, test_rows)
    if not test_rows.size:
        known = None if left_out_ratio is None else left_out_sentence(left_out_ratio)
        tested = replace(tested, sentence=known or left_out(errors, final, inputs) or tested.sentence)
    measured = range(inputs.shape[1] if columns is None else columns)
    boundary = check_boundary(errors, inputs, sorted(variables(final) & set(measured)), names)
    checks = [algebra, tested, boundary, *further]
    # What speaks against the law comes before what could not be looked at.
    missed = sorted((check for check in checks if check.state != "passed"), key=lambda one: one.state)
    verdict: Verdict = "unknown" if missed and symbolic == "verified" else symbolic
    return Verification(
        verdict,
        tuple(check.sentence for check in checks),
        missed[0].reason if missed else "",
        tuple(check.state for check in checks),
    )


# ---- symbolically ----


def _symbolic(
    fitted: Expression,
    final: Expression,
    ranges: list[tuple[float, float]],
    seconds: float,
) -> tuple[Verdict, str]:
    deadline = time.monotonic() + seconds
    if fitted == final:
        return "verified", "algebra: the law is the fitted formula as it stands"
    if not has_floats(fitted):
        verdict = equivalent(fitted, final, ranges, seconds=seconds)
        return verdict, _said(verdict, "the formula that was found")
    skeleton, start = free_constants(fitted)
    # Which exact constants the data allow was decided by the fit's confidence intervals: here they
    # are only to be found again, however far they lie from where the fit ended.
    found = _found_again(skeleton, start, exact_floats(final), ranges, deadline)
    if found is None:
        return (
            "unknown",
            "algebra: not decided, the law and the fitted formula share too few points with a value",
        )
    if not found.met:
        verdict = equivalent(fitted, final, ranges, seconds=max(0.0, deadline - time.monotonic()))
        return verdict, _said(verdict, "the fitted formula")
    moves = [
        abs(float(new) - old) / (abs(old) or 1.0) for new, old in zip(found.constants, start, strict=True)
    ]
    by_algebra = _by_algebra(skeleton, found, final, ranges, deadline)
    whose = "its constant" if len(moves) == 1 else f"its {len(moves)} constants"
    if by_algebra in (None, "unknown"):
        # More points than constants: two formulas that are not the same do not agree at all of them.
        said = f"with {whose} set, law and fitted formula agree to 40 digits at random points"
        return "verified", f"algebra: {said}"
    # Constants that hang together move far and change little: a number would mislead.
    little = f", none moved by more than {percent(max(moves))}" if max(moves) < _LITTLE else ""
    with_moves = f"the fitted formula with {whose} set to what is shown{little}"
    return by_algebra, _said(by_algebra, with_moves)


def _by_algebra(
    skeleton: Expression,
    found: Polish,
    final: Expression,
    ranges: list[tuple[float, float]],
    deadline: float,
) -> Verdict | None:
    """Whether the skeleton with exact constants is the law; None when a constant has no exact form.

    Constants with many digits have no short quotients, and make algebra slow. Where they are in the way the
    same formulas with round numbers in their place are compared.
    """
    verdict: Verdict | None = None
    for shown in (final, _with_round_constants(final)):
        if shown is not final:
            again = polish(skeleton, [float(value) for value in found.constants], shown, ranges)
            if again is None or not again.met:
                break
            found = again
        exact = put_exact(skeleton, found, _named_products(shown))
        if exact is not None:
            left = max(0.0, deadline - time.monotonic())
            verdict = equivalent(exact, shown, ranges, seconds=left / 2)
            if verdict != "unknown":
                break
    return verdict


def _named_products(expression: Expression) -> list[Expression]:
    """The largest parts without columns that hold a named constant."""
    leaves = [node for node in walk(expression) if not isinstance(node, Apply)]
    if not any(isinstance(leaf, Variable) for leaf in leaves):
        named = any(isinstance(leaf, Symbol) and leaf != PI for leaf in leaves)
        return [expression] if named else []
    parts = expression.arguments if isinstance(expression, Apply) else ()
    return list(dict.fromkeys(found for part in parts for found in _named_products(part)))


def _with_round_constants(expression: Expression) -> Expression:
    def rewrite(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not node.exact:
            return Number(Fraction(f"{node.value:.3g}"))
        return None

    return substitute(expression, rewrite)


def _found_again(
    skeleton: Expression,
    start: Sequence[float],
    formula: Expression,
    ranges: list[tuple[float, float]],
    deadline: float,
) -> Polish | None:
    """`polish` from the fit and, where that does not meet, with each constant at zero in turn.

    A constant that the fit could not tell from zero may have ended far from it, and the others with it.
    """
    found = polish(skeleton, start, formula, ranges)
    if found is None or found.met:
        return found
    for index in range(len(start)):
        if time.monotonic() > deadline:
            break
        again = polish(skeleton, [*start[:index], 0.0, *start[index + 1 :]], formula, ranges)
        if again is not None and again.met:
            return again
    return found


def _said(verdict: Verdict, what: str) -> str:
    match verdict:
        case "verified":
            return f"algebra: the law equals {what}"
        case "different":
            return f"algebra: the law differs from {what}"
        case "unknown":
            return f"algebra: not decided whether the law equals {what}"
