"""What the page asks of a search, checked, and the command line that does the same."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from physdiffuser.errors import UsageError
from physdiffuser.io.display import visible
from physdiffuser.io.safe_yaml import load_yaml
from physdiffuser.options import DEFAULT_SECONDS

MOST_SECONDS = 24 * 3600.0
_WORDS_OF_DELIMITERS = {"\t": "tab", " ": "space"}

Name = Annotated[str, StringConstraints(max_length=1_000)]
Formula = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Reading(_Strict):
    """How the table is written; None where it is found out."""

    encoding: Name | None = None
    delimiter: Literal[",", ";", "\t", " "] | None = None
    header: bool | None = None
    thousands: Name | None = None
    units_row: bool = False


class Settings(_Strict):
    """The options of a search that the page offers; their meaning is that of `solve`."""

    reading: Reading = Reading()
    target: Name | None = None
    inputs: tuple[Name, ...] | None = None
    groups: tuple[Name, ...] = ()
    weights: Name | None = None
    errors: Name | None = None
    units: dict[Name, Name] = {}
    constants: Name = ""
    guesses: tuple[Formula, ...] = Field(default=(), max_length=100)
    template: Annotated[str, StringConstraints(max_length=2_000)] = ""
    constraints: Annotated[str, StringConstraints(max_length=20_000)] = ""
    time: float = Field(default=DEFAULT_SECONDS, gt=0, le=MOST_SECONDS, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0, lt=2**63)

    def words(self, table: str, units: Path | None, constraints: Path | None = None) -> list[str]:
        """The words of `solve` for a table, and for the files that hold units and constraints, if any."""
        words = ["solve", table if not table.startswith("-") else f"./{table}"]
        for option, value in (
            ("--target", self.target),
            ("--inputs", None if self.inputs is None else _listed(self.inputs)),
            ("--weights", self.weights),
            ("--errors", self.errors),
            ("--units", None if units is None else str(units)),
            ("--constants", self.constants or None),
            ("--template", self.template or None),
            ("--constraints", None if constraints is None else str(constraints)),
            *(("--group", name) for name in self.groups),
            *(("--guess", formula) for formula in self.guesses),
        ):
            if value is not None:
                words += [option, value] if not value.startswith("-") else [f"{option}={value}"]
        if self.time != DEFAULT_SECONDS:
            words += ["--time", f"{self.time:g}"]
        if self.seed:
            words += ["--seed", str(self.seed)]
        return words + self._reading_words()

    def _reading_words(self) -> list[str]:
        reading, words = self.reading, []
        if reading.units_row:
            words.append("--units-row")
        if reading.header is not None:
            words.append("--header" if reading.header else "--no-header")
        delimiter = reading.delimiter
        for option, value in (
            ("--encoding", reading.encoding),
            ("--delimiter", _WORDS_OF_DELIMITERS.get(delimiter or "", delimiter)),
            ("--thousands", reading.thousands),
        ):
            if value is not None:
                words.append(f"{option}={value}")
        return words

    def keywords(self) -> dict[str, Any]:
        """The arguments of `physdiffuser.solve` that differ from its defaults."""
        given = {
            name: value for name, value in self.reading.model_dump().items() if value not in (None, False)
        }
        if self.reading.header is False:
            given["header"] = False
        search = {
            "target": self.target,
            "inputs": None if self.inputs is None else list(self.inputs),
            "groups": list(self.groups),
            "weights": self.weights,
            "errors": self.errors,
            "units": dict(self.units),
            "constants": self.constants,
            "initial": list(self.guesses),
            "template": self.template,
            "constraints": constraint_list(self.constraints),
        }
        given |= {name: value for name, value in search.items() if value}
        return given | {"time": self.time, "seed": self.seed}


def checked(settings: Settings) -> Settings:
    """The settings, if none of them could make the command line read a file.

    Raises
    ------
    UsageError
        If a guess begins with `@`, by which the command line means a file of formulas.
    """
    for formula in settings.guesses:
        if formula.lstrip().startswith("@"):
            raise UsageError(f"guess '{visible(formula)}': a formula does not begin with @")
    return settings


def constraint_list(text: str) -> Any:
    """The constraints that are written in YAML, as `solve` takes them; None without any.

    Raises
    ------
    UsageError
        If it is no YAML.
    """
    return load_yaml(text, "the constraints") if text.strip() else None


def reason_of(error: ValidationError) -> str:
    """The first thing that is wrong with what the page has sent."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the request"
    return f"{visible(place, 100)}: {first['msg']}"


def _listed(names: tuple[str, ...]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()
