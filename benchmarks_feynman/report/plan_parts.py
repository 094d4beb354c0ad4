"""What the tables of all plans share: where the results come from, and cells made of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks_feynman.plans import Plan, Stage
from benchmarks_feynman.report.summary import (
    confident_wrong,
    disagreements,
    failed,
    overran,
    rate,
    recovered,
    srbench,
    undecided,
)
from benchmarks_feynman.results import Result
from benchmarks_feynman.tasks import KNOWN_SYSTEM

Criterion = Callable[[Result], bool]
Found = dict[str, list[Result]]
"""Results by stage."""


def provenance(plan: Plan, used: Sequence[Stage], found: Found, path: Path) -> list[str]:
    """Commands, commits, machine, dates, and how busy the machine was."""
    results = [result for stage in used for result in found[stage.name]]
    lines = [f"    python -m benchmarks_feynman.campaign --plan {plan.name}", ""]
    lines += ["Its stages, as commands of their own, and how many of their tables have results:", ""]
    for stage in used:
        lines.append(f"    {stage.command(path.name)}    # {len(found[stage.name])} of {len(stage.tasks())}")
    commits = Counter(str(result["commit"] or "unknown") for result in results)
    named = ", ".join(
        f"`{name}`" + (f" ({count})" if len(commits) > 1 else "") for name, count in commits.most_common()
    )
    several = "The lines come from several commits (tables each): " if len(commits) > 1 else "Commit "
    changed = "; `+` marks a source tree with changes" if any(name.endswith("+") for name in commits) else ""
    machines = {
        f"{machine['processor']}, {machine['cpus']} CPUs, Python {machine['python']}, "
        f"numpy {machine['numpy']}"
        for result in results
        if (machine := result.get("machine"))
    }
    days = sorted({str(result["finished"])[:10] for result in results})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    lines += [
        "",
        f"{several}{named}{changed}. {'; '.join(sorted(machines)) or 'Machine unknown'}; {when}."
        f"{_busy(results)}",
    ]
    ended = Counter(str(result["status"]) for result in results if failed(result))
    if ended:
        names = ", ".join(f"{count} {status}" for status, count in ended.items())
        laws = law_list(result for result in results if failed(result))
        lines += ["", f"Ended without an answer: {names} ({laws})."]
    return lines


def _busy(results: Sequence[Result]) -> str:
    """Processor time against wall time of one-core answers: low where other work shared the machine."""
    pairs = [
        (result["cpu_seconds"], result["details"].get("wall_seconds", result["seconds"]))
        for result in results
        if result["cores"] == 1 and not result["cold"] and result.get("cpu_seconds") and result["seconds"]
    ]
    if not pairs:
        return ""
    share = sum(cpu for cpu, _ in pairs) / sum(wall for _, wall in pairs)
    return f" The solving processes were on a processor for {100 * min(share, 1.0):.0f} % of their time."


def law_list(results: Iterable[Result], *, suite: bool = False) -> str:
    """Ids in order, each once; with the suite before them where asked for."""
    names = [f"{result['suite']} {result['id']}" if suite else str(result["id"]) for result in results]
    return ", ".join(dict.fromkeys(names)) or "none"


def seconds(values: Sequence[float], share: float = 0.5) -> str:
    """A quantile of times as text."""
    return f"{np.quantile(values, share):.2f} s" if len(values) else "-"


def times(results: Iterable[Result], criterion: Criterion) -> list[float]:
    """Wall times of the tables that meet a criterion."""
    return [result["seconds"] for result in results if criterion(result) and result["seconds"] is not None]


def count(results: Sequence[Result], criterion: Criterion) -> str:
    """Such as `117/120, 97.5 % (94-100)`."""
    measured = rate(results, criterion)
    return f"{measured.hits:g}/{measured.laws}, {measured.text}" if measured.laws else "-"


def trust(results: Sequence[Result]) -> list[str]:
    """What called itself exact and was not, and where the judge's two ways do not agree."""
    wrong, split = confident_wrong(results), disagreements(results)
    unsure, late = sum(map(undecided, results)), sum(map(overran, results))
    return [
        f"Of all {len(results)} tables: {len(wrong)} confidently wrong ({law_list(wrong, suite=True)}), "
        f"{len(split)} on which numbers and symbols disagree ({law_list(split, suite=True)}), "
        f"{unsure} without a symbolic verdict, {late} more than two seconds late."
    ]


def right(result: Result) -> bool:
    """Right by SRBench's rule, or exact in numbers where the symbolic check came to no verdict."""
    return srbench(result) or recovered(result)


def own(result: Result) -> bool:
    """Whether physdiffuser itself answered."""
    return bool(result["system"] == KNOWN_SYSTEM)


def whole(result: Result, unsnapped: bool) -> dict[str, Any]:
    """A peer's result; with `unsnapped`, with its verdicts before its constants were snapped."""
    return {**result, **result["unsnapped"]} if unsnapped and "unsnapped" in result else result
