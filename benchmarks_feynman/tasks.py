"""One problem with its settings: what is run, and the key under which its result is recorded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from benchmarks_feynman.suites import Law

Protocol = Literal["strict", "srbench"]

DEFAULT_ROWS = {"strict": 1_000, "srbench": 10_000}
"""Training rows by protocol. SRBench's 75/25 split is met by drawing a third as many test rows."""

KNOWN_SYSTEM = "physdiffuser"


@dataclass(frozen=True)
class Settings:
    """What is the same for all problems of a run; every field is written into every result.

    Attributes
    ----------
    rows, dummy
        None leaves it to the law's own table, or to the protocol.
    time
        Seconds a problem may take.
    steps
        Step budget, for runs that do not depend on the machine; None for none.
    cores
        CPU cores given to one problem.
    cold
        A fresh `physdiffuser solve` process per problem, its start-up counted, instead of a worker that
        has the package loaded.
    generators
        Names for `solve --generators`; empty for its default.
    snap_peers
        Whether the constants of peers pass through the same snapping.
    """

    protocol: Protocol = "strict"
    rows: int | None = None
    dummy: int | None = None
    time: float = 30.0
    steps: int | None = None
    cores: int = 1
    units: bool = False
    cold: bool = False
    generators: tuple[str, ...] = ()
    snap_peers: bool = False

    def rows_for(self, law: Law) -> int:
        """Training rows of a law's table."""
        return self.rows or law.rows or DEFAULT_ROWS[self.protocol]

    def dummy_for(self, law: Law) -> int:
        """Columns a law's table has and the law does not need."""
        return law.dummy if self.dummy is None else self.dummy


@dataclass(frozen=True)
class Task:
    """One table for one system.

    Attributes
    ----------
    system
        `physdiffuser`, or the name of a peer.
    """

    system: str
    suite: str
    id: str
    seed: int
    noise: float
    settings: Settings

    @property
    def key(self) -> str:
        """Identifies the problem in a result file: equal for equal problems and settings."""
        return task_key(self.document())

    def document(self) -> dict[str, Any]:
        """As plain data, for the result file and for the worker."""
        document = {name: getattr(self, name) for name in ("system", "suite", "id", "seed", "noise")}
        settings = asdict(self.settings)
        settings["generators"] = list(self.settings.generators)
        return {**document, **settings}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Task:
        """The inverse of `document`; other entries are ignored.

        Raises
        ------
        KeyError
            If an entry is missing.
        """
        settings = {field.name: document[field.name] for field in fields(Settings)}
        settings["generators"] = tuple(settings["generators"])
        names = ("system", "suite", "id", "seed", "noise")
        return cls(**{name: document[name] for name in names}, settings=Settings(**settings))


TASK_FIELDS = ("system", "suite", "id", "seed", "noise", *(field.name for field in fields(Settings)))


def task_key(document: dict[str, Any]) -> str:
    """Key of a task's document or of a result, which holds the task's entries.

    Raises
    ------
    KeyError
        If an entry is missing.
    """
    return json.dumps([document[name] for name in TASK_FIELDS])


def make_tasks(
    laws: Sequence[Law],
    systems: Iterable[str],
    seeds: Sequence[int],
    noises: Sequence[float],
    settings: Settings,
) -> list[Task]:
    """Every combination, law by law, so that an interrupted run has all systems on the laws it reached."""
    peers = replace(settings, cold=False, generators=(), steps=None)
    return [
        Task(system, law.suite, law.id, seed, noise, settings if system == KNOWN_SYSTEM else peers)
        for law in laws
        for seed in seeds
        for noise in noises
        for system in systems
    ]
