"""The plans behind `docs/benchmarks.md`: which laws, noise, rows, seeds, time and systems, in stages.

A stage is what one `physdiffuser evaluate` command runs; `Stage.command` is that command. Stages stand in the
order in which they are worth having, so that a plan that is stopped has the most important ones.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from benchmarks_feynman.suites import select
from benchmarks_feynman.tasks import KNOWN_SYSTEM, Settings, Task, make_tasks
from physdiffuser.errors import UsageError

PEERS = ("pyoperon", "gplearn", "pyeggp")
_MORE_SEEDS = (1, 2)
_FEW = 4  # three seeds and the peers: every fourth law
SEEDS = "-seeds"  # ends the name of a stage that repeats another with more seeds


@dataclass(frozen=True)
class Stage:
    """One command's worth of tables.

    Attributes
    ----------
    every
        Every n-th law of each suite.
    optional
        Run only when asked for by name.
    """

    name: str
    suites: tuple[str, ...]
    settings: Settings
    noise: float = 0.0
    seeds: tuple[int, ...] = (0,)
    every: int = 1
    systems: tuple[str, ...] = (KNOWN_SYSTEM,)
    optional: bool = False

    def tasks(self, share: int = 1) -> list[Task]:
        """The stage's problems, or those of every `share`-th of its laws."""
        laws = select(self.suites, every=self.every * share)
        return make_tasks(laws, self.systems, self.seeds, [self.noise], self.settings)

    def command(self, results: str, share: int = 1) -> str:
        """The `physdiffuser evaluate` command that runs the same problems."""
        settings = self.settings
        words = [f"physdiffuser evaluate --suite {','.join(self.suites)} --noise {self.noise:g}"]
        if self.every * share > 1:
            words.append(f"--every {self.every * share}")
        if self.seeds != (0,):
            words.append(f"--seed {','.join(map(str, self.seeds))}")
        if settings.protocol != "strict":
            words.append(f"--protocol {settings.protocol}")
        if settings.rows is not None:
            words.append(f"--rows {settings.rows}")
        if settings.dummy is not None:
            words.append(f"--dummy {settings.dummy}")
        words.append(f"--time {settings.time:g} --cores {settings.cores}")
        words += [f"--{name}" for name in ("units", "cold") if getattr(settings, name)]
        peers = [system for system in self.systems if system != KNOWN_SYSTEM]
        if peers:
            words.append(f"--peers {','.join(peers)}")
        if KNOWN_SYSTEM not in self.systems:
            words.append("--peers-only")
        if settings.snap_peers:
            words.append("--snap-peers")
        return " ".join([*words, f"--resume --results {results}"])


@dataclass(frozen=True)
class Plan:
    """Stages whose results are in one file, `NAME.jsonl`, and whose tables are one block of the document."""

    name: str
    stages: tuple[Stage, ...] = field(repr=False)

    def choose(self, names: Iterable[str]) -> list[Stage]:
        """Stages by name, in the plan's order; without names all that are not optional.

        Raises
        ------
        UsageError
            If there is no such stage; the message names those there are.
        """
        wanted = list(names)
        known = [stage.name for stage in self.stages]
        for name in wanted:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {close[0]}? " if close else ""
                raise UsageError(f"plan {self.name} has no stage {name!a}; {hint}it has {', '.join(known)}")
        return [stage for stage in self.stages if (stage.name in wanted if wanted else not stage.optional)]

    def with_time(self, seconds: float | None) -> Plan:
        """The plan with another time limit; as it is where None."""
        if seconds is None:
            return self
        stages = (replace(stage, settings=replace(stage.settings, time=seconds)) for stage in self.stages)
        return Plan(self.name, tuple(stages))


def find_plan(name: str) -> Plan:
    """A plan by name.

    Raises
    ------
    UsageError
        If there is none; the message names those there are.
    """
    if name not in PLANS:
        raise UsageError(f"unknown plan {name!a}; choose one of {', '.join(PLANS)}")
    return PLANS[name]


def _suites() -> Plan:
    settings = Settings(time=30.0)
    names = ("fsred", "tiers", "ood")
    stages = [
        Stage(f"{suite}-{noise:g}", (suite,), settings, noise) for noise in (0.0, 0.01) for suite in names
    ]
    stages += [
        Stage(f"seeds-{noise:g}", names, settings, noise, seeds=_MORE_SEEDS, every=_FEW)
        for noise in (0.0, 0.01)
    ]
    cold = replace(settings, cold=True)
    return Plan("suites", (*stages, Stage("cold", ("fsred",), cold, optional=True)))


def _peers() -> Plan:
    settings = Settings(time=30.0, snap_peers=True)

    return Plan(
        "peers",
        tuple(
            Stage(
                f"{'own' if system == KNOWN_SYSTEM else system}-{noise:g}",
                ("fsred",),
                settings,
                noise,
                every=_FEW,
                systems=(system,),
            )
            for noise in (0.0, 0.01)
            for system in (*PEERS, KNOWN_SYSTEM)
        ),
    )


def _targets() -> Plan:
    settings = Settings(protocol="srbench", time=60.0, cores=2)

    def stage(name: str, noise: float = 0.0, **changes: object) -> Stage:
        return Stage(name, ("fsred",), replace(settings, **changes), noise)  # type: ignore[arg-type]

    stages = [stage(f"noise-{noise:g}", noise) for noise in (0.0, 0.001, 0.01, 0.1)]
    stages += [
        stage("units", units=True),
        stage("rows-100", rows=100),
        stage("noise-0.1-rows-1000", 0.1, rows=1000),
        stage("dummies-3", dummy=3),
    ]
    stages += [
        replace(one, name=f"{one.name}{SEEDS}", seeds=_MORE_SEEDS, every=_FEW, optional=True)
        for one in stages
    ]
    return Plan("targets", tuple(stages))


def _dev() -> Plan:
    settings = Settings(time=20.0)
    return Plan(
        "dev", tuple(Stage(f"noise-{noise:g}", ("dev",), settings, noise) for noise in (0.0, 0.01, 0.1))
    )


PLANS = {plan.name: plan for plan in (_suites(), _peers(), _targets(), _dev())}
