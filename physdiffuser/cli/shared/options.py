"""Types of option values, each with an error that says what to write instead."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from physdiffuser.io.display import visible

if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]  # older releases of click have no type argument at run time
else:
    _ParamType = click.ParamType

_MAX_BYTES = 1_000_000

Function = TypeVar("Function", bound=Callable[..., Any])

_DELIMITERS = {"tab": "\t", r"\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "whitespace": " "}


class FiniteNumber(_ParamType):
    """A float that is a number and lies within limits.

    Parameters
    ----------
    above
        The value must be greater than this.
    least
        The value must be at least this.
    """

    name = "number"

    def __init__(self, *, above: float | None = None, least: float | None = None) -> None:
        self.above = above
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Text to float."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"'{visible(str(value))}' is not a number.", param, ctx)
        if not math.isfinite(number):
            self.fail(f"'{visible(str(value))}' is not a finite number.", param, ctx)
        if self.above is not None and not number > self.above:
            self.fail(f"{number:g} is not greater than {self.above:g}.", param, ctx)
        if self.least is not None and not number >= self.least:
            self.fail(f"{number:g} is less than {self.least:g}.", param, ctx)
        return number


class WholeNumber(_ParamType):
    """An integer of at least `least`, and at most `most`."""

    name = "number"

    def __init__(self, least: int, most: int = 2**63 - 1) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Text to int."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"'{visible(str(value))}' is not a whole number.", param, ctx)
        if not self.least <= number <= self.most:
            self.fail(f"{number} is not between {self.least} and {self.most}.", param, ctx)
        return number


class Names(_ParamType):
    """A comma-separated list of names; a name that holds a comma is written in double quotes."""

    name = "a,b,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Text to a tuple of names."""
        if isinstance(value, tuple):
            return value
        try:
            rows = list(csv.reader([value], skipinitialspace=True, strict=True))
        except csv.Error as error:
            self.fail(f"'{visible(value)}' is no list of names ({error}).", param, ctx)
        names = tuple(name.strip() for row in rows for name in row)
        if not names or not all(names):
            self.fail(f"'{visible(value)}' has an empty name; write a,b,c.", param, ctx)
        for name in names:
            if names.count(name) > 1:
                self.fail(f"'{visible(name)}' is named twice.", param, ctx)
        return names


class Formulas(_ParamType):
    """A formula, or `@file`: one on each line of a text file; empty lines and those with # are left out."""

    name = "formula"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        """Text to a tuple of formulas."""
        if isinstance(value, tuple):
            return value
        if not value.startswith("@"):
            return (value,)
        from pathlib import Path

        from physdiffuser.io.small_files import read_text

        text = read_text(Path(value[1:]), _MAX_BYTES, "a list of formulas")
        lines = [line.strip() for line in text.splitlines()]
        formulas = tuple(line for line in lines if line and not line.startswith("#"))
        if not formulas:
            self.fail(
                f"the file '{visible(value[1:])}' holds no formula; write one on each line.", param, ctx
            )
        return formulas


class InitialState(_ParamType):
    """`x=1,y=0`: a number for each name; a pair that holds a comma is written in double quotes."""

    name = "x=1,y=0"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Text to numbers by name."""
        state: dict[str, float] = {}
        for pair in Names().convert(value, param, ctx):
            name, equals, number = pair.rpartition("=")
            if not equals or not name.strip():
                self.fail(f"'{visible(pair)}' is no pair of name and number; write x=1.", param, ctx)
            if name.strip() in state:
                self.fail(f"'{visible(name)}' is given twice.", param, ctx)
            state[name.strip()] = FiniteNumber().convert(number, param, ctx)
        return state


class Delimiter(_ParamType):
    """One character, or the name of one."""

    name = "character"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        r"""`tab`, `\t`, `comma`, ... or the character itself."""
        delimiter = _DELIMITERS.get(value.lower(), value)
        if len(delimiter) != 1:
            self.fail(f"'{visible(value)}' is not one character; write , or ; or tab or space.", param, ctx)
        return str(delimiter)


class SectionedCommand(click.Command):
    """A command whose help shows its options under titles.

    Parameters
    ----------
    sections
        The title that stands above an option, by the option's name.
    """

    def __init__(self, *arguments: Any, sections: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, in the order in which the command declares them."""
        parts: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for parameter in self.get_params(ctx):
            title = self.sections.get(parameter.name or "", title)
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                parts.setdefault(title, []).append(record)
        for title, records in parts.items():
            with formatter.section(title):
                formatter.write_dl(records)


def table_options(function: Function) -> Function:
    """The options that say how a table is written, shared by every command that reads one."""
    for option in reversed(
        [
            click.option("--units-row", is_flag=True, help="The row below the header holds units."),
            click.option("--encoding", metavar="NAME", help="Encoding of a text table, such as latin-1."),
            click.option(
                "--delimiter",
                type=Delimiter(),
                metavar="CHARACTER",
                help="What separates cells: , ; tab ...",
            ),
            click.option(
                "--header/--no-header",
                "header",
                default=None,
                help="Whether the first row holds names; found out by default.",
            ),
            click.option("--thousands", metavar="CHARACTER", help="What groups digits, as in 1,234."),
        ]
    ):
        function = option(function)
    return function
