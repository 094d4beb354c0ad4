"""Suggested measurements as a table of text, for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass

from physdiffuser.core.solution import Solution
from physdiffuser.core.solution_parts.next_measurements import NextMeasurements
from physdiffuser.expressions import to_text
from physdiffuser.io.display import visible
from physdiffuser.report.text.digits import TABLE_DIGITS, short

# Laws with a column of their own; more are counted.
SHOWN_LAWS = 4
APART = "apart: standard errors between the two laws that differ most"
ONE_LAW = "no second law remains that the table does not exclude: there is nothing to tell apart"


@dataclass(frozen=True)
class SuggestionTable:
    """Text of a table.

    Attributes
    ----------
    laws
        Number, formula and row of the Pareto table of each law that has a column.
    more
        How many laws remain beside these.
    header, lines
        Of the table of measurements.
    """

    laws: tuple[tuple[str, str, str], ...]
    more: int
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]


def suggestion_table(solution: Solution, found: NextMeasurements) -> SuggestionTable:
    """The suggested measurements with what each law predicts, standard errors behind a plus and minus."""
    used = varied_columns(found)
    shown = shown_laws(found)
    laws = tuple(
        (
            str(number),
            visible(to_text(found.laws[place], solution.names, TABLE_DIGITS), 500),
            "" if found.rows[place] is None else f"row {found.rows[place]}",
        )
        for number, place in enumerate(shown, 1)
    )
    header = (
        *(visible(solution.columns[column], 40) for column in used),
        *(f"law {number}" for number in range(1, len(shown) + 1)),
        "noise",
        "apart",
    )
    lines = tuple(
        (
            *(short(point.inputs[column], 4) for column in used),
            *(short(point.values[place], 4) for place in shown),
            short(point.noise, 2),
            short(point.separation, 2),
        )
        for point in found.points
    )
    return SuggestionTable(laws, len(found.laws) - len(shown), header, lines)


def varied_columns(found: NextMeasurements) -> list[int]:
    """Columns with a range: those that no law uses are varied too."""
    return [column for column, (low, high) in enumerate(found.ranges) if high > low]


def shown_laws(found: NextMeasurements) -> list[int]:
    """The chosen law and those that the points tell apart first."""
    order = [0, *(place for point in found.points for place in point.between), *range(len(found.laws))]
    return list(dict.fromkeys(order))[:SHOWN_LAWS]
