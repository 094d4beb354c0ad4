"""The tables of the plan `peers`: systems side by side on the same tables."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from benchmarks_feynman.plans import PEERS, Plan
from benchmarks_feynman.report.layout import Table
from benchmarks_feynman.report.plan_parts import (
    Found,
    count,
    law_list,
    own,
    right,
    seconds,
    times,
    trust,
    whole,
)
from benchmarks_feynman.report.render import table_lines
from benchmarks_feynman.report.summary import failed, form, good_fit, overran, recovered, srbench, strict
from benchmarks_feynman.results import Result
from benchmarks_feynman.tasks import KNOWN_SYSTEM


def peers(plan: Plan, found: Found) -> list[str]:
    """Rates with and without snapping, times and lengths on what both solve, endings."""
    lines: list[str] = []
    for noise in sorted({stage.noise for stage in plan.stages}):
        results = [one for stage in plan.stages if stage.noise == noise for one in found[stage.name]]
        if results:
            lines += [f"Noise {noise:g}:", "", *_rates(results), "", *_pairs(results, noise), ""]
    everything = [one for some in found.values() for one in some]
    return [*lines, *_endings(everything), "", *trust([one for one in everything if own(one)])]


def _rates(results: Sequence[Result]) -> list[str]:
    header = (
        "system",
        "recovered",
        "strict",
        "SRBench rule",
        "form",
        "R2 > 0.999",
        "median time, all",
        "median complexity (law's)",
    )
    by_system = {
        system: [one for one in results if one["system"] == system] for system in (KNOWN_SYSTEM, *PEERS)
    }
    common = set.intersection(*({one["id"] for one in some} for some in by_system.values() if some))
    rows = []
    for system, everything in by_system.items():
        answers = [one for one in everything if one["id"] in common]
        if not answers:
            continue
        variants = (
            [(system, False)]
            if system == KNOWN_SYSTEM
            else [(f"{system}, as answered", True), (f"{system}, snapped", False)]
        )
        for name, unsnapped in variants:
            seen = [whole(one, unsnapped) for one in answers]
            rates = [count(seen, criterion) for criterion in (recovered, strict, srbench, form, good_fit)]
            rows.append((name, *rates, seconds(times(seen, lambda _: True)), _lengths(seen)))
    counts = ", ".join(f"{system} {len(some)}" for system, some in by_system.items())
    text = f"The {len(common)} laws that all systems with results have run (laws run: {counts})."
    return [
        f"{text} Our time is by the wall, that of peers by the processor.",
        "",
        *table_lines(Table(header, rows)),
    ]


def _lengths(results: Sequence[Result]) -> str:
    pairs = [(one["complexity"], one["truth_complexity"]) for one in results if one["complexity"]]
    if not pairs:
        return "-"
    return f"{median(length for length, _ in pairs):g} ({median(law for _, law in pairs):g})"


def _pairs(results: Sequence[Result], noise: float) -> list[str]:
    """What both solve: by numbers or symbols after snapping, without noise; by form with it."""
    solved = form if noise else right
    mine = {one["id"]: one for one in results if own(one)}
    header = (
        "peer",
        "both",
        "only physdiffuser",
        "only the peer",
        "times faster, to the answer",
        "times faster, to the first exact fit",
        "complexity of ours / theirs snapped / as answered",
    )
    rows = []
    for system in PEERS:
        answers = [one for one in results if one["system"] == system and one["id"] in mine]
        if not answers:
            continue
        both = [(mine[one["id"]], one) for one in answers if solved(one) and solved(mine[one["id"]])]
        ours = sum(solved(mine[one["id"]]) and not solved(one) for one in answers)
        theirs = [one for one in answers if solved(one) and not solved(mine[one["id"]])]
        to_answer = [one["seconds"] / our["seconds"] for our, one in both]
        first = [
            (one["details"]["first_exact_seconds"]) / our["seconds"]
            for our, one in both
            if "first_exact_seconds" in one["details"]
        ]
        lengths = [
            median(values)
            for values in (
                [our["complexity"] for our, _ in both],
                [one["complexity"] for _, one in both],
                [whole(one, True)["complexity"] for _, one in both],
            )
            if values
        ]
        rows.append(
            (
                system,
                str(len(both)),
                str(ours),
                str(len(theirs)) + (f" ({law_list(theirs)})" if theirs else ""),
                _ratios(to_answer),
                _ratios(first),
                " / ".join(f"{length:g}" for length in lengths) or "-",
            )
        )
    if not rows:
        return []
    return [
        "On the laws that both solve"
        + (" (right form)" if noise else " (SRBench rule or exact numbers, theirs snapped)")
        + ", medians; in parentheses the smallest and the largest:",
        "",
        *table_lines(Table(header, rows)),
    ]


def _ratios(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{np.median(values):.3g} ({min(values):.2g}-{max(values):.3g}, {len(values)} laws)"


def _endings(results: Sequence[Result]) -> list[str]:
    """How many runs of each peer were killed at the limit, crashed, or came late."""
    lines = []
    for system in PEERS:
        answers = [one for one in results if one["system"] == system]
        if not answers:
            continue
        killed = [one for one in answers if one["status"] == "timeout"]
        other = [one for one in answers if failed(one) and one["status"] != "timeout"]
        late = [one for one in answers if overran(one) and one["status"] != "timeout"]
        lines.append(
            f"* {system}: of {len(answers)} runs {len(killed)} killed at the limit ({law_list(killed)}), "
            f"{len(other)} ended in an error ({law_list(other)}), {len(late)} more than two seconds late."
        )
    return lines
