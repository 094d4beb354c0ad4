"""The sampled tables as CSV files, for other tools."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path

from benchmarks_feynman.sampling import Table, dummy_names, sample
from benchmarks_feynman.suites import Law
from benchmarks_feynman.tasks import Settings
from physdiffuser.errors import FileError
from physdiffuser.io.atomic import write_text_atomic


def table_csv(table: Table) -> str:
    """The table as CSV text, the target last; numbers with every digit needed to read them back."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*table.names, table.output])
    for row, target in zip(table.inputs.tolist(), table.target.tolist(), strict=True):
        writer.writerow([*map(repr, row), repr(target)])
    return stream.getvalue()


def units_of(law: Law, dummy: int = 0) -> dict[str, str] | None:
    """Unit by column name including the columns the law does not need; None unless all are known."""
    units = law.units
    if units is None:
        return None
    return {**units, **dict.fromkeys(dummy_names(law, dummy), "1")}


def make_folder(folder: Path) -> None:
    """Create a folder for output.

    Raises
    ------
    FileError
        If that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"cannot create the folder {str(folder)!a}: {error.strerror}; choose another"
        ) from error


def export(laws: Iterable[Law], folder: Path, settings: Settings, seed: int, noise: float) -> int:
    """Write a table per law, with units where asked for, and `laws.csv` with the truths.

    Parameters
    ----------
    laws
        What to write.
    folder
        Receives `SUITE/ID.csv`, with `settings.units` also `SUITE/ID.units.json`, and `laws.csv`: suite,
        id, file, truth, rows, seed, noise and the SHA-256 of the table.

    Returns
    -------
    int
        Number of tables written.
    """
    make_folder(folder)
    index = io.StringIO()
    writer = csv.writer(index, lineterminator="\n")
    writer.writerow(["suite", "id", "file", "target", "truth", "rows", "seed", "noise", "sha256"])
    written = 0
    for law in laws:
        rows, dummy = settings.rows_for(law), settings.dummy_for(law)
        table = sample(law, rows=rows, seed=seed, noise=noise, dummy=dummy)
        text = table_csv(table)
        make_folder(folder / law.suite)
        name = f"{law.suite}/{law.id}.csv"
        write_text_atomic(folder / name, text)
        units = units_of(law, dummy) if settings.units else None
        if units is not None:
            write_text_atomic(folder / law.suite / f"{law.id}.units.json", json.dumps(units, indent=1) + "\n")
        digest = hashlib.sha256(text.encode()).hexdigest()
        writer.writerow([law.suite, law.id, name, law.output, law.text, rows, seed, noise, digest])
        written += 1
    write_text_atomic(folder / "laws.csv", index.getvalue())
    return written
