"""Tables of text: framed by rich where a terminal shows them, aligned columns everywhere else.

Cells are plain text. No markup in them is interpreted, so a column name can neither colour the terminal nor
forge a line.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from physdiffuser.report.text.style import Style, cut, display_width

_GAP = 2
# In a narrow terminal columns are left out until the last one has so much room.
_LEAST_TEXT = 24
_RULE = "    \n    \n -- \n    \n    \n    \n    \n    \n"
"""The box of rich with a rule below the head, in ASCII."""


@dataclass(frozen=True)
class TextTable:
    """Cells of a table.

    Attributes
    ----------
    head, lines
        Cells as text, each line as long as the head.
    left
        Indices of columns whose cells begin at the same place; all others end at the same place.
    chosen
        Index of the line that stands out; None for none.
    dispensable
        Indices of columns that a narrow terminal does without, the first of them first.
    """

    head: Sequence[str]
    lines: Sequence[Sequence[str]]
    left: Collection[int] = ()
    chosen: int | None = None
    dispensable: Sequence[int] = ()


def table_lines(table: TextTable, style: Style) -> list[str]:
    """The table as lines of text, cut at the edge of a terminal.

    Parameters
    ----------
    table
        Its last column may be wider than the terminal: it is cut.
    """
    cells = [list(table.head), *(list(line) for line in table.lines)]
    widths = [max(display_width(line[column]) for line in cells) for column in range(len(table.head))]
    kept = _kept(widths, table, style)
    return (_framed if style.framed else _aligned)(table, kept, widths, style)


def _kept(widths: Sequence[int], table: TextTable, style: Style) -> list[int]:
    """Columns that the terminal has room for."""
    kept = list(range(len(widths)))
    for column in table.dispensable:
        needed = sum(widths[one] for one in kept[:-1]) + _GAP * (len(kept) - 1)
        if style.width is None or needed + min(widths[-1], _LEAST_TEXT) <= style.width:
            break
        kept.remove(column)
    return kept


def _aligned(table: TextTable, kept: list[int], widths: Sequence[int], style: Style) -> list[str]:
    lines = []
    for number, cells in enumerate([table.head, *table.lines], start=-1):
        padded = (_padded(cells[column], widths[column], column in table.left) for column in kept)
        line = cut((" " * _GAP).join(padded).rstrip(), style.width, style.sign("…", "..."))
        lines.append(style.emphasise(line) if number == table.chosen else line)
    return lines


def _padded(cell: str, width: int, left: bool) -> str:
    space = " " * (width - display_width(cell))
    return cell + space if left else space + cell


def _framed(table: TextTable, kept: list[int], widths: Sequence[int], style: Style) -> list[str]:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    used = sum(widths[column] for column in kept[:-1]) + _GAP * (len(kept) - 1)
    last = widths[kept[-1]]
    if style.width is not None:
        last = max(min(last, style.width - used), 1)
    frame = Table(
        box=box.SIMPLE_HEAD if style.unicode else box.Box(_RULE, ascii=True),
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
        header_style="cyan",
        border_style="dim",
    )
    for column in kept:
        frame.add_column(
            Text(table.head[column]),
            justify="left" if column in table.left else "right",
            no_wrap=True,
            width=last if column == kept[-1] else widths[column],
        )
    mark = style.sign("…", "...")
    for number, cells in enumerate(table.lines):
        texts = [*(cells[column] for column in kept[:-1]), cut(cells[kept[-1]], last, mark)]
        frame.add_row(*map(Text, texts), style="bold" if number == table.chosen else "")
    file = io.StringIO()
    console = Console(
        file=file,
        width=used + last + _GAP,
        force_terminal=True,
        color_system="standard" if style.colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        safe_box=False,
        _environ={},
    )
    console.print(frame)
    return [line.rstrip() for line in file.getvalue().splitlines()]
