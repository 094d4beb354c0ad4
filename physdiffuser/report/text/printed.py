"""With how many digits a formula is printed, so that the printed text has the printed error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from physdiffuser.core.solution import Equation
from physdiffuser.errors import PhysdiffuserError
from physdiffuser.expressions import PI, Expression, Symbol, parse, to_text
from physdiffuser.expressions.definitions import defined, definitions_in
from physdiffuser.expressions.printing.format import Digits
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import walk
from physdiffuser.report.text.digits import ALL_DIGITS, TABLE_DIGITS, shown_digits

ErrorOf = Callable[[Expression, int], float]
"""Root mean square error of a formula on every n-th row."""

# Of a large table so many rows are looked at. A shortened formula changes their error about as much as that
# of all rows: it may do so by this fraction of what it takes to print another error.
_SAMPLE_ROWS, _CAUTION = 20_000, 10.0


def with_printed_digits(equation: Equation, names: Sequence[str], error_of: ErrorOf, rows: int) -> Equation:
    """The equation with the fewest digits with which its printed text has its error.

    Parameters
    ----------
    equation
        With its constants, their intervals and its `rmse`.
    error_of
        Root mean square error of a formula on every n-th row.
    """
    if not math.isfinite(equation.rmse) or all(constant.is_set for constant in equation.constants):
        return equation
    step = max(1, rows // _SAMPLE_ROWS)
    sample = error_of(equation.expression, step) if step > 1 else equation.rmse
    margin = _margin(equation.rmse) / _CAUTION

    def holds(digits: Digits) -> bool:
        formula = read_back(equation.expression, names, digits)
        if formula is None:
            return False
        error = error_of(formula, step)
        return same_error(error, sample) if step == 1 else abs(error - sample) < margin * sample

    table = next((count for count in range(TABLE_DIGITS, ALL_DIGITS) if holds(count)), ALL_DIGITS)
    made = replace(equation, table_digits=table)
    for more in range(ALL_DIGITS):
        made = replace(made, extra_digits=more)
        if holds(shown_digits(made)):
            break
    return with_printed_latex(made, names)


def with_printed_latex(equation: Equation, names: Sequence[str]) -> Equation:
    """The equation whose LaTeX has the digits of its printed text."""
    return replace(equation, latex=to_latex(equation.expression, names, shown_digits(equation)))


def read_back(expression: Expression, names: Sequence[str], digits: Digits | None) -> Expression | None:
    """The formula as a reader has it, from its printed text; None if the text is no formula."""
    known = {
        node.name: float(node.value) for node in walk(expression) if isinstance(node, Symbol) and node != PI
    }
    try:
        with defined(definitions_in([expression])):
            return parse(to_text(expression, names, digits), names, known)
    except PhysdiffuserError:
        return None


def same_error(one: float, other: float) -> bool:
    """Whether two errors are printed alike."""
    return f"{one:.3g}" == f"{other:.3g}"


def _margin(error: float) -> float:
    """By which share an error may change before other digits of it are printed."""
    # Of errors near the smallest double the unit of the third digit is no number.
    if error <= 1e-300:
        return 0.0
    digits = error / 10.0 ** (math.floor(math.log10(error)) - 2)
    return (0.5 - abs(digits - round(digits))) / digits
