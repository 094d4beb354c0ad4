"""What the page keeps in a run folder beside the files of `solve`: table, settings, what the user marked."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from physdiffuser.app.settings import Settings
from physdiffuser.io.atomic import write_text_atomic

RECORD_NAME = "app.json"
UNITS_NAME = "units.json"
CONSTRAINTS_NAME = "constraints.yaml"
MESSAGES_NAME = "messages.txt"
MOST_MARKS = 100
_MOST_BYTES = 1_000_000


class Marks(BaseModel):
    """What the user has marked in a run: formulas to keep in view, and a row to be taken as the law."""

    model_config = ConfigDict(frozen=True)

    pins: tuple[str, ...] = Field(default=(), max_length=20)
    selected: int | None = None


class Record(BaseModel):
    """A run of the page.

    Attributes
    ----------
    table, table_name
        Path of the table, and its name for the user.
    earlier
        The run that this one continues.
    marks
        The present marks last, those before it as far as they can be undone.
    """

    model_config = ConfigDict(frozen=True)

    table: str
    table_name: str
    settings: Settings
    earlier: str | None = None
    marks: tuple[Marks, ...] = (Marks(),)

    def marked(self, marks: Marks) -> Record:
        """The record after a change of the marks."""
        return self.model_copy(update={"marks": (*self.marks, marks)[-MOST_MARKS:]})

    def undone(self) -> Record:
        """The record without the last change of the marks."""
        return self.model_copy(update={"marks": self.marks[:-1] or (Marks(),)})

    def words(self, folder: Path) -> list[str]:
        """The command line of the run, without `--out`."""
        here = Path(os.path.relpath(folder))
        units = here / UNITS_NAME if self.settings.units else None
        constraints = here / CONSTRAINTS_NAME if self.settings.constraints.strip() else None
        return self.settings.words(self.table, units, constraints)

    def save(self, folder: Path) -> None:
        """Write it, and the files that its command line names, into a run folder."""
        if self.settings.units:
            write_text_atomic(folder / UNITS_NAME, json.dumps(self.settings.units) + "\n")
        if self.settings.constraints.strip():
            write_text_atomic(folder / CONSTRAINTS_NAME, self.settings.constraints.rstrip() + "\n")
        write_text_atomic(folder / RECORD_NAME, self.model_dump_json() + "\n")


def load_record(folder: Path) -> Record | None:
    """The record in a run folder; None where there is none, or none that can be read."""
    path = folder / RECORD_NAME
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        return Record.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
