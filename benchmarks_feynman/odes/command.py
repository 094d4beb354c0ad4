"""What `evaluate` does with a suite of differential equations: run, write results, print rates."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks_feynman.odes.suites import (
    OWN,
    PEERS,
    OdeSettings,
    OdeSystem,
    heading,
    judged,
    load_systems,
    rates,
    run_system,
    sample,
)
from benchmarks_feynman.systems import require
from physdiffuser.cli.process import messages
from physdiffuser.errors import UsageError

if TYPE_CHECKING:
    from benchmarks_feynman.odes.sindy import PeerSystem


def evaluate_odes(
    suite: str,
    settings: OdeSettings,
    results: Path | None,
    *,
    only: tuple[str, ...] = (),
    every: int = 1,
    solvers: tuple[str, ...] = (OWN,),
    as_json: bool,
    quiet: bool,
) -> list[dict[str, Any]]:
    """Run a suite and print its rates; the result file has one line of JSON for each answer.

    Raises
    ------
    UsageError
        If a system or a peer does not exist.
    PluginError
        If a peer is not installed.
    """
    for solver in solvers:
        if solver not in (OWN, *PEERS):
            raise UsageError(f"--peers {solver!a}: for differential equations there is {', '.join(PEERS)}")
        if solver != OWN:
            require(solver, solver)
    from tqdm import tqdm

    systems = load_systems(suite, only, every)
    found: list[dict[str, Any]] = []
    for result in tqdm(
        run_suite(systems, settings, solvers),
        total=len(systems) * len(solvers),
        unit="system",
        disable=True if quiet else None,
    ):
        found.append(result)
        if results is not None:
            from physdiffuser.io.atomic import write_text_atomic

            write_text_atomic(results, "".join(json.dumps(one) + "\n" for one in found))
    counted = [{"system": name, **rates([one for one in found if one["system"] == name])} for name in solvers]
    if as_json:
        rows = [{"suite": suite, **one} for one in counted]
        messages.output(json.dumps({"schema": 1, "rates": rows}, indent=1) + "\n")
        return counted
    messages.output(
        f"{suite}, noise {settings.noise:g}, dropped {settings.dropped:g}, fitted on {settings.fitted}:\n"
        + "".join(_line(one) for one in counted)
    )
    return counted


def _line(counted: dict[str, Any]) -> str:
    generalised = "" if counted["generalisation"] is None else f"  generalisation {counted['generalisation']}"
    median = counted["median_seconds"]
    return (
        f"{counted['system']}: {counted['systems']} systems, symbolic {counted['symbolic']}  reconstruction "
        f"{counted['reconstruction']}{generalised}  verified {counted['verified']} (wrong "
        f"{counted['verified_wrong']})  failed {counted['failed']}  median "
        f"{'-' if median is None else f'{median:.1f} s'}\n"
    )


def run_peer(system: OdeSystem, settings: OdeSettings, peer: str) -> dict[str, Any]:
    """Let a peer search one system; its answer is judged by the same rules."""
    from physdiffuser.expressions import to_text

    result = heading(system, settings, peer)
    started, processor = time.monotonic(), time.process_time()
    found = _answer_of(peer, system, settings) if system.order == 1 else None
    result["seconds"] = time.monotonic() - started
    result["processor_seconds"] = time.process_time() - processor
    if found is None:
        return result | {"error": "no model", "symbolic": False, "verified": False, "r2": [None, None]}
    result["equations"] = [to_text(one, [*system.names, "t"], digits=6) for one in found.expressions]
    return result | {"verified": False} | judged(system, found, settings)


def _answer_of(peer: str, system: OdeSystem, settings: OdeSettings) -> PeerSystem | None:
    from benchmarks_feynman.odes import operon, sindy

    table, noisy = sample(system, settings), settings.noise > 0.0
    if peer == "pysindy":
        return sindy.solve(table, system.names, noisy)
    return operon.solve(table, system.names, noisy, settings.seconds, settings.seed)


def run_suite(
    systems: Sequence[OdeSystem], settings: OdeSettings, solvers: Sequence[str] = (OWN,)
) -> Iterator[dict[str, Any]]:
    """Results, one after the other: of each system the answers of all solvers."""
    for system in systems:
        for solver in solvers:
            own = solver == OWN
            yield run_system(system, settings) if own else run_peer(system, settings, solver)
