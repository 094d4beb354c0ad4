"""What each part of the search is worth: development laws with all of it, and without one part at a time.

    python tools/ablate_search.py                              # full, and without each default generator
    python tools/ablate_search.py --arm full --arm +autoregressive --noise 0,0.01,0.1
    python tools/ablate_search.py --arm full --arm search.stopping.POLICY.grace_steps=0
    python tools/ablate_search.py --arm =enumeration,sparse --results runs/ablation.jsonl --table

An arm is `full`; `-NAME` or `+NAME`, the default generators without or with one; `=A,B`, just these;
`-stage:NAME`, `-variation:NAME`, `-family:NAME` or `-transform:NAME`, the search without one part (several
names joined by `|`); or `MODULE.CONSTANT=JSON`, a constant of the package with another value (in the module
that reads it), or `MODULE.RECORD.FIELD=JSON`, a field of a policy record. Several changes in one arm are
joined by `;`. Arms
take turns on each law, so that a machine that slows down slows all alike. Each answer is a line of the
results file; a run that is stopped goes on where it was. A law is *recovered* when the judge says that the
answer is the law, and has its *form* when refitting constants on clean rows makes it so (the measure to read
under noise). Seconds are of the processor: the search and its conclusion, without the judge. *Won / lost*:
laws that an arm has and the first one has not, and the reverse.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks_feynman.judge import judge
from benchmarks_feynman.sampling import sample
from benchmarks_feynman.suites import Law, select
from benchmarks_feynman.systems import own
from benchmarks_feynman.tasks import KNOWN_SYSTEM, Settings, Task
from benchmarks_feynman.worker_process import finish, plain
from physdiffuser.expressions import to_text
from physdiffuser.functions import table as families
from physdiffuser.generation.builtin import DEFAULT_GENERATORS, SPECS
from physdiffuser.generation.enumeration.registry import STAGES
from physdiffuser.generation.evolution.blind import VARIATIONS
from physdiffuser.transforms import transform

_KEPT = ("recovered", "form", "confident_wrong", "complexity", "max_relative_error", "r2_test")


@dataclass(frozen=True)
class Arm:
    """One way to run the search.

    Attributes
    ----------
    name
        As given on the command line.
    generators
        Names, in order.
    constants
        Module, name and value of each constant that is changed; the name is `RECORD.FIELD` for a field.
    parts
        Kind and name of each part that is left out.
    """

    name: str
    generators: tuple[str, ...]
    constants: tuple[tuple[str, str, Any], ...] = ()
    parts: tuple[tuple[str, str], ...] = ()


def parse_arm(text: str) -> Arm:
    """Read an arm; see the top of this file.

    Raises
    ------
    ValueError
        Saying what was not understood.
    """
    generators = list(DEFAULT_GENERATORS)
    constants: list[tuple[str, str, Any]] = []
    parts: list[tuple[str, str]] = []
    for change in (part.strip() for part in text.split(";")):
        name, equals, value = change.partition("=")
        if change == "full":
            continue
        if change.startswith("-") and change[1:] in generators:
            generators.remove(change[1:])
        elif change.startswith("+") and change[1:] not in generators:
            generators.append(change[1:])
        elif change.startswith("="):
            generators = value.split(",")
        elif change.startswith("-") and change[1:].partition(":")[0] in PARTS:
            kind, _, names = change[1:].partition(":")
            parts.extend((kind, one) for one in names.split("|"))
        elif equals and "." in name:
            module, _, constant = name.rpartition(".")
            if module.rpartition(".")[2].isupper():
                module, _, record = module.rpartition(".")
                constant = f"{record}.{constant}"
            constants.append((f"physdiffuser.{module}", constant, json.loads(value)))
        else:
            raise ValueError(f"arm {text!r}: {change!r} is no change; see --help")
    if not generators:
        raise ValueError(f"arm {text!r} leaves no generator")
    return Arm(text, tuple(generators), tuple(constants), tuple(parts))


@contextmanager
def _without_stages(names: Sequence[str]) -> Iterator[None]:
    """The ladders name their stages, so a stage stays registered and accepts nothing."""
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(patch.object(STAGES[name], "accepts", lambda *_: False))
        yield


@contextmanager
def _without_families(names: Sequence[str]) -> Iterator[None]:
    """The table of families is kept in caches, which are emptied before and after."""
    caches = (families.built_in, families.compiled_built_in)
    caches[0]()
    with families.ROWS.without(*names):
        for cached in caches:
            cached.cache_clear()
        yield
    for cached in caches:
        cached.cache_clear()


@contextmanager
def _without_transforms(names: Sequence[str]) -> Iterator[None]:
    """A transform is named by the ids of its steps, `square+inverse`."""
    kept = {
        depth: [
            one for one in transform.known_transforms(2) if one in level and "+".join(one.ids) not in names
        ]
        for depth, level in transform.KNOWN.items()
    }
    with patch.dict(transform.KNOWN, kept):
        yield


PARTS: dict[str, Callable[[Sequence[str]], AbstractContextManager[None]]] = {
    "stage": _without_stages,
    "variation": lambda names: VARIATIONS.without(*names),
    "family": _without_families,
    "transform": _without_transforms,
}


@contextmanager
def changed(arm: Arm) -> Iterator[None]:
    """The arm's generators and constants in place, the old ones back afterwards."""
    specs = tuple(replace(spec, default=spec.name in arm.generators) for spec in SPECS)
    generators = ("physdiffuser.generation.builtin", "SPECS", specs)
    loaded = ("physdiffuser.plugin_system.manager", "_loaded", {})
    with ExitStack() as stack:
        for name, constant, value in (generators, loaded, *arm.constants):
            module = importlib.import_module(name)
            constant, _, field = constant.partition(".")
            if field:
                value = replace(getattr(module, constant), **{field: value})
            stack.callback(setattr, module, constant, getattr(module, constant))
            setattr(module, constant, value)
        for kind in PARTS:
            names = [name for of, name in arm.parts if of == kind]
            if names:
                stack.enter_context(PARTS[kind](names))
        yield


def run(arm: Arm, law: Law, noise: float, seed: int, settings: Settings) -> dict[str, Any]:
    """Solve and judge one law; the line for the results file."""
    # The arm's generators are the default ones meanwhile, so that deferred ones stay deferred.
    task = Task(KNOWN_SYSTEM, law.suite, law.id, seed, noise, settings)
    rows, dummy = settings.rows_for(law), settings.dummy_for(law)
    table = sample(law, rows=rows, seed=seed, noise=noise, dummy=dummy)
    began, used = time.perf_counter(), time.process_time()
    with changed(arm):
        answer = own.solve(table, task, None)
    cpu, wall = time.process_time() - used, time.perf_counter() - began
    verdict = judge(law, answer.expression, seed=seed, dummy=dummy, test_rows=rows // 3 + 1)
    verdict = finish(law, verdict | {"status": answer.status})
    return {
        **key(arm, law, noise, seed, settings),
        **{name: verdict[name] for name in _KEPT},
        "status": answer.status,
        "expression": None if answer.expression is None else to_text(answer.expression, table.names),
        "generator": answer.details.get("generator"),
        "steps_used": {
            name[len("steps_") :]: int(value)
            for name, value in answer.details.get("timing", {}).items()
            if name.startswith("steps_")
        },
        "cpu_seconds": round(cpu, 3),
        "seconds": round(wall, 3),
    }


def key(arm: Arm, law: Law, noise: float, seed: int, settings: Settings) -> dict[str, Any]:
    """What tells one run from another; `rows` only where they are not the law's own."""
    found = {
        "arm": arm.name, "suite": law.suite, "law": law.id, "noise": noise, "seed": seed,
        "steps": settings.steps, "time": settings.time,
    }  # fmt: skip
    return found if settings.rows is None else {**found, "rows": settings.rows}


def table(records: Sequence[dict[str, Any]]) -> str:
    """Recovery and time by arm and noise, as Markdown; of the laws that all arms have run."""
    lines = [
        "| arm | noise | laws | recovered | form | won / lost | median CPU s | CPU s in all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    arms = list(dict.fromkeys(record["arm"] for record in records))
    for noise in sorted({record["noise"] for record in records}):
        of = {
            arm: {(r["law"], r["seed"]): r for r in records if r["arm"] == arm and r["noise"] == noise}
            for arm in arms
        }
        common = set.intersection(*(set(found) for found in of.values()))
        measure = "form" if noise else "recovered"
        first = {law for law in common if of[arms[0]][law][measure]}
        for arm in arms:
            mine = [of[arm][law] for law in sorted(common)]
            good = {law for law in common if of[arm][law][measure]}
            times = [record["cpu_seconds"] for record in mine] or [0.0]
            lines.append(
                f"| `{arm}` | {noise:g} | {len(mine)} | {sum(r['recovered'] for r in mine)} "
                f"| {sum(r['form'] for r in mine)} | {len(good - first)} / {len(first - good)} "
                f"| {statistics.median(times):.1f} | {sum(times):.0f} |"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the arms and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--arm", action="append", default=[], help="may be given several times")
    parser.add_argument("--suite", default="dev")
    parser.add_argument("--every", type=int, default=6, help="take every n-th law")
    parser.add_argument("--only", default="", help="ids of laws, instead of every n-th")
    parser.add_argument("--noise", default="0", help="levels, with commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=60, help="of the search; 0 for no limit but the time")
    parser.add_argument("--rows", type=int, help="of a table; the law's own, or 1,000, when not given")
    parser.add_argument("--time", type=float, default=600.0, help="seconds a law, the backstop")
    parser.add_argument("--results", type=Path, default=Path("runs/ablate-search.jsonl"))
    parser.add_argument(
        "--table", action="store_true", help="run nothing, print the table of the results file"
    )
    chosen = parser.parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
    try:
        arms = [parse_arm(text) for text in chosen.arm or ("full", *(f"-{g}" for g in DEFAULT_GENERATORS))]
    except ValueError as error:
        parser.error(str(error))
    records = _read(chosen.results)
    if not chosen.table:
        own.prepare(Settings())
        laws = select((chosen.suite,), tuple(filter(None, chosen.only.split(","))), chosen.every)
        settings = Settings(time=chosen.time, steps=chosen.steps or None, rows=chosen.rows)
        chosen.results.parent.mkdir(parents=True, exist_ok=True)
        for noise in map(float, chosen.noise.split(",")):
            for law in laws:
                for arm in arms:
                    wanted = key(arm, law, noise, chosen.seed, settings)
                    if any(all(r.get(name) == value for name, value in wanted.items()) for r in records):
                        continue
                    record = plain(run(arm, law, noise, chosen.seed, settings))
                    with chosen.results.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps(record, allow_nan=False) + "\n")
                        stream.flush()
                        os.fsync(stream.fileno())
                    records.append(record)
                    mark = "recovered" if record["recovered"] else "form" if record["form"] else "-"
                    print(
                        f"{noise:g} {law.id} {arm.name}: {mark}, {record['cpu_seconds']} s", file=sys.stderr
                    )
    records = [record for record in records if record.get("rows") == chosen.rows]
    if chosen.arm:
        records = [record for record in records if record["arm"] in chosen.arm]
    print(table(records) if records else "no results")


def _joined(arguments: Sequence[str]) -> list[str]:
    """`--arm -evolution` as one word: argparse takes what begins with a dash for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--arm":
            joined[-1] = f"--arm={argument}"
        else:
            joined.append(argument)
    return joined


def _read(path: Path) -> list[dict[str, Any]]:
    """Records of a results file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(json.loads(line))
        except ValueError:
            continue
    return records


if __name__ == "__main__":
    main()
