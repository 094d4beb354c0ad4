"""The answer as a scientist reads it in a terminal.

Text from the table (column names) is escaped, so it can neither colour the terminal nor forge a line;
no markup language is interpreted anywhere.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from physdiffuser.core.solution import Equation, Solution
from physdiffuser.expressions import to_text
from physdiffuser.expressions.definitions import definitions_in
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.tree import variables
from physdiffuser.io.display import counted, visible
from physdiffuser.report.documents.json_document import is_chosen
from physdiffuser.report.text.digits import (
    aligned,
    constant_note,
    in_percent,
    r_squared,
    short,
    shown_digits,
    table_digits,
)
from physdiffuser.report.text.group_table import group_lines, shared_constants
from physdiffuser.report.text.style import Style, cut
from physdiffuser.report.text.suggested import APART, ONE_LAW, suggestion_table
from physdiffuser.report.text.tables import TextTable, table_lines

_LIMIT = 20_000
_LABEL_WIDTH = 11
_VERDICTS = {
    "verified": "verified",
    "different": "not verified: the law shown is not the formula that was fitted",
    "unknown": "not verified: not every check holds",
}


def render(solution: Solution, style: Style | None = None) -> str:
    """The whole report, with a line end at the end.

    Parameters
    ----------
    style
        What the terminal can show; a plain file when not given.
    """
    style = style or Style()
    if solution.best is None:
        return "No formula with finite values was found.\n"
    sections = [
        _pareto(solution, style),
        _headline(solution, solution.best, style),
        _facts(solution, solution.best, style),
        _derivation(solution, solution.best, style),
        _suggestions(solution, style),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _pareto(solution: Solution, style: Style) -> list[str]:
    with_test_rmse = any(row.test_rmse is not None for row in solution.pareto)
    with_probability = any(row.probability is not None for row in solution.pareto)
    optional = [*(["test rmse"] if with_test_rmse else []), *(["probability"] if with_probability else [])]
    head = ["", "row", "complexity", "rmse", *optional, "equation"]
    lines, chosen = [], None
    for number, row in enumerate(solution.pareto, start=1):
        marked = is_chosen(row, solution.best)
        chosen = number - 1 if marked else chosen
        more = [aligned(row.test_rmse)] if with_test_rmse else []
        more += [in_percent(row.probability)] if with_probability else []
        text = visible(to_text(row.expression, solution.names, table_digits(row)), _LIMIT)
        marker = style.sign("▸", ">") if marked else ""
        lines.append([marker, str(number), str(row.complexity), aligned(row.rmse), *more, text])
    last = len(head) - 1
    return table_lines(TextTable(head, lines, {last}, chosen, range(4, last)), style)


def _headline(solution: Solution, best: Equation, style: Style) -> list[str]:
    formula = to_text(best.expression, solution.names, shown_digits(best))
    line = f"{visible(solution.target, 200)} = {visible(formula, _LIMIT)}"
    names = [solution.names[index] for index in sorted(variables(best.expression))]
    used = [
        f"{alias} is the column '{visible(solution.aliases[alias], 200)}'"
        for alias in names
        if alias in solution.aliases
    ]
    return ["  " + style.emphasise(line), *(f"    {text}" for text in used)]


def _facts(solution: Solution, best: Equation, style: Style) -> list[str]:
    latex = to_latex(best.expression, solution.names, shown_digits(best))
    lines = _labelled("LaTeX", [visible(latex, _LIMIT)])
    accuracy = [f"rmse {short(best.rmse)}", f"{style.sign('R²', 'R^2')} {r_squared(best.r2)}"]
    accuracy.append(_largest_error(solution, best))
    rows = f", over {counted(solution.rows, 'row')}" if solution.rows else ""
    exact = "exact: " if solution.status == "exact" else ""
    lines += _labelled("Accuracy", [f"{exact}{', '.join(accuracy)}{rows}"])
    if best.mean_loss is not None:
        lines += _labelled("Loss", [f"{visible(solution.loss)}: mean {short(best.mean_loss)}"])
    if best.reduced_chi_square is not None:
        freedom = counted(best.degrees_of_freedom or 0, "degree") + " of freedom"
        lines += _labelled("Chi-square", [f"{short(best.reduced_chi_square)} reduced, {freedom}"])
    if best.test_rmse is not None:
        rows = f" over {counted(solution.test_rows, 'row')}" if solution.test_rows else ""
        lines += _labelled("Test set", [f"rmse {short(best.test_rmse)}{rows} used by neither search nor fit"])
    checks = [
        line
        for text in best.verification
        for line in _wrapped(visible(text, _LIMIT), style, _LABEL_WIDTH + 2, "- ")
    ]
    coloured = style.good if best.verdict == "verified" else style.doubtful
    lines += _labelled("Verdict", [coloured(_verdict(best)), *checks])
    lines += _probability(solution, best)
    for number, guess in enumerate(solution.guesses):
        fitted = "" if guess.expression is None else f"fitted: {visible(guess.expression, _LIMIT)}"
        shown = [visible(guess.text, _LIMIT), *([fitted] if fitted else []), guess.sentence]
        wrapped = [line for text in shown for line in _wrapped(text, style, _LABEL_WIDTH + 2, "")]
        lines += _labelled("Guesses" if number == 0 else "", wrapped)
    for number, one in enumerate(solution.constraints):
        shown = _wrapped(f"{visible(one.text, _LIMIT)}: {one.sentence}", style, _LABEL_WIDTH + 2, "")
        lines += _labelled("Must hold" if number == 0 else "", shown)
    if solution.template is not None:
        lines += _labelled("Functions", _functions(solution, style))
    if solution.groups is not None:
        table = group_lines(solution, best, style.indented(_LABEL_WIDTH + 2))
        lines += _labelled("Groups", [shared_constants(solution, best), *table])
    own = {one.head: visible(one.text, _LIMIT) for one in definitions_in([best.expression])}
    lines += _labelled("Operators", [f"{head} = {text}" for head, text in own.items()]) if own else []
    constants = _constants(best)
    if constants:
        lines += _labelled("Constants", constants)
    return [_with_coloured_label(line, style) for line in lines]


def _with_coloured_label(line: str, style: Style) -> str:
    label = line[2 : 2 + _LABEL_WIDTH].rstrip()
    return f"  {style.label(label)}{line[2 + len(label) :]}" if label else line


def _functions(solution: Solution, style: Style) -> list[str]:
    """The unknown functions of a template, and its constants."""
    parts = solution.template
    assert parts is not None  # the caller has looked
    texts = [f"in the template {visible(parts.text, _LIMIT)}"]
    texts += [f"{name} = {visible(text, _LIMIT)}" for name, text in parts.headings().items()]
    texts += [f"{name} = {short(value)}" for name, value in parts.constants.items()]
    texts += [f"{name} = {text}" for name, text in parts.group_constants.items()]
    return [line for text in texts for line in _wrapped(text, style, _LABEL_WIDTH + 2, "")]


def _probability(solution: Solution, best: Equation) -> list[str]:
    """How probable this law is, the other rows together, and none of them; nothing for an exact law."""
    if best.probability is None or solution.none_of_these is None or solution.status == "exact":
        return []
    others = max(1.0 - best.probability - solution.none_of_these, 0.0)
    shares = [f"{in_percent(best.probability)} this law"]
    if len(solution.pareto) > 1:
        shares.append(f"{in_percent(others)} another row")
    shares.append(f"{in_percent(solution.none_of_these)} none of these")
    return _labelled("Odds", [", ".join(shares)])


def _verdict(best: Equation) -> str:
    """The verdict, and why a law is not verified."""
    if best.verdict == "unknown" and not variables(best.expression):
        return "not verified: the answer is a constant, not a law"
    if best.verdict_reason and best.verdict != "verified":
        return f"not verified: {visible(best.verdict_reason, _LIMIT)}"
    return _VERDICTS[best.verdict]


def _largest_error(solution: Solution, best: Equation) -> str:
    """In the target's own unit where it changes its sign: a share of almost nothing says nothing."""
    points = solution.fit_points
    if points is not None and points.truth.size and points.truth.min() <= 0 <= points.truth.max():
        with np.errstate(all="ignore"):
            return f"largest error {short(float(np.abs(points.truth - points.prediction).max()))}"
    share = best.max_relative_error
    return (
        f"largest error {short(100 * share)} %"
        if 1e-6 < share < 10
        else f"largest relative error {short(share)}"
    )


def _constants(best: Equation) -> list[str]:
    rows = [(visible(one.name), visible(one.text), visible(constant_note(one))) for one in best.constants]
    if not rows:
        return []
    name_width, value_width = (max(len(row[part]) for row in rows) for part in (0, 1))
    lines = [f"{name:<{name_width}} = {value:<{value_width}} {note}".rstrip() for name, value, note in rows]
    if any(one.sigma is not None and not one.exact for one in best.constants):
        lines.append("(in brackets: the standard error of the last digits)")
    return lines


def _derivation(solution: Solution, best: Equation, style: Style) -> list[str]:
    steps = best.derivation or solution.derivation
    if not steps:
        return []
    width = len(str(len(steps)))
    return [
        f"  {style.label('How it was found')}",
        *(
            f"    {line}"
            for number, step in enumerate(steps, start=1)
            for line in _wrapped(visible(step, _LIMIT), style, 4, f"{number:>{width}}. ")
        ),
    ]


def _suggestions(solution: Solution, style: Style) -> list[str]:
    """What to measure next, with what each of the remaining laws predicts there."""
    found = solution.next_measurements
    if found is None:
        return []
    title = f"  {style.label('What to measure next')}"
    if not found.points:
        return [title, *(f"    {line}" for line in _wrapped(ONE_LAW, style, 4, ""))]
    table = suggestion_table(solution, found)
    mark, inner = style.sign("…", "..."), style.indented(4)
    lines = table_lines(TextTable(table.header, table.lines), inner)
    laws = [f"law {number}: {text}" + (f" ({row})" if row else "") for number, text, row in table.laws]
    more = [f"further laws that the table does not exclude: {table.more}"] if table.more else []
    before = [cut(text, inner.width, mark) for text in [*laws, *more]]
    return [title, *(f"    {line}" for line in [*before, *lines, cut(f"({APART})", inner.width, mark)])]


def _wrapped(text: str, style: Style, margin: int, bullet: str) -> list[str]:
    """A sentence on as many lines as the terminal needs, hanging under its bullet."""
    if style.width is None:
        return [bullet + text]
    return textwrap.wrap(
        text,
        max(style.width - margin, 30),
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _labelled(label: str, lines: Sequence[str]) -> list[str]:
    first, *rest = lines
    return [f"  {label:<{_LABEL_WIDTH}}{first}", *(" " * (_LABEL_WIDTH + 2) + line for line in rest)]
