"""What `evaluate` does with a suite of differential equations: run, write results, print rates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks_feynman.odes.suites import OdeSettings, load_systems, rates, run_suite
from physdiffuser.cli.process import messages


def evaluate_odes(
    suite: str,
    only: tuple[str, ...],
    every: int,
    settings: OdeSettings,
    results: Path | None,
    *,
    as_json: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Run a suite and print its rates; the result file has one line of JSON for each system."""
    from tqdm import tqdm

    systems = load_systems(suite, only, every)
    found: list[dict[str, Any]] = []
    for result in tqdm(
        run_suite(systems, settings), total=len(systems), unit="system", disable=True if quiet else None
    ):
        found.append(result)
        if results is not None:
            from physdiffuser.io.atomic import write_text_atomic

            write_text_atomic(results, "".join(json.dumps(one) + "\n" for one in found))
    counted = rates(found)
    if as_json:
        messages.output(json.dumps({"schema": 1, "rates": [{"suite": suite, **counted}]}, indent=1) + "\n")
        return counted
    generalised = "" if counted["generalisation"] is None else f"  generalisation {counted['generalisation']}"
    median = counted["median_seconds"]
    messages.output(
        f"{suite}, noise {settings.noise:g}, dropped {settings.dropped:g}, fitted on {settings.fitted}: "
        f"{counted['systems']} systems, symbolic {counted['symbolic']}  reconstruction "
        f"{counted['reconstruction']}{generalised}  verified {counted['verified']} (wrong "
        f"{counted['verified_wrong']})  failed {counted['failed']}  median "
        f"{'-' if median is None else f'{median:.1f} s'}\n"
    )
    return counted
