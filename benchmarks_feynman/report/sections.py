"""What a report says, as sections of text, tables and plots; how it looks is up to the renderers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks_feynman.report import plots
from benchmarks_feynman.report.summary import (
    confident_wrong,
    disagreements,
    exact_numbers,
    failed,
    form,
    good_fit,
    group_by,
    median_seconds,
    operator_groups,
    overran,
    rate,
    recovered,
    srbench,
    strict,
    undecided,
)
from benchmarks_feynman.results import Result
from benchmarks_feynman.suites import published


@dataclass(frozen=True)
class Table:
    """Cells as text. Columns named in `code` hold formulas."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    code: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, tables and plots (name, SVG)."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[tuple[str, str]] = field(default_factory=list)


def sections(results: Sequence[Result]) -> list[Section]:
    """The whole report; at least one result is needed."""
    return [
        _rates(results),
        _settings(results),
        _by_group(results),
        _times(results),
        _published(results),
        _failures(results),
        _trust(results),
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _number(value: float | None, digits: int = 4) -> str:
    return "-" if value is None else f"{value:.{digits}g}"


def _label(result_group: tuple[Any, ...]) -> tuple[str, str, str, str]:
    system, suite, noise, protocol = result_group
    return system, suite, f"{noise:g}", protocol


def _rates(results: Sequence[Result]) -> Section:
    header = (
        "system",
        "suite",
        "noise",
        "protocol",
        "tables",
        "recovered",
        "strict",
        "SRBench rule",
        "form",
        "R2 > 0.999",
        "median time of recovered",
    )
    rows = []
    for key, group in group_by(results, "system", "suite", "noise", "protocol").items():
        criteria = (recovered, strict, srbench, form, good_fit)
        measured = [rate(group, criterion).text for criterion in criteria]
        rows.append((*_label(key), str(len(group)), *measured, _seconds(median_seconds(group))))
    return Section(
        "Rates",
        [
            "Each problem is a table drawn from a known law. A law is *recovered* when the answer is shown "
            "symbolically to equal it, or agrees with it to nine digits on 1,000 fresh rows. *strict* "
            "counts only the symbolic proof, with no free offset or factor. The *SRBench rule* rounds "
            "constants to three digits and allows a constant offset or factor. *form* asks whether the "
            "answer is exact once its own constants are refitted to clean rows: under noise, constants "
            "cannot be exact, but the structure can. *R2 > 0.999* says how well the answer fits, "
            "whatever it looks like.",
            "In parentheses: 95 % bootstrap interval over laws, in percent. Suites overlap, so their rates "
            "are never added up.",
        ],
        [Table(header, rows)],
    )


_SETTING_ENTRIES = ("rows", "dummy", "time", "steps", "cores", "units", "cold", "generators", "snap_peers")


def _setting(entry: str, value: Any) -> str:
    if value is None:
        return "protocol's" if entry in ("rows", "dummy") else "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(value) or "default"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _settings(results: Sequence[Result]) -> Section:
    header = ("system", *_SETTING_ENTRIES, "seeds", "commit", "machine")
    seeds: dict[tuple[str, ...], set[int]] = defaultdict(set)
    machines: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for result in results:
        settings = (_setting(entry, result[entry]) for entry in _SETTING_ENTRIES)
        key = (result["system"], *settings, str(result["commit"] or "?"))
        seeds[key].add(result["seed"])
        if machine := result.get("machine"):
            machines[key].add(f"{machine['processor']}, {machine['cpus']} CPUs, Python {machine['python']}")
    rows = [
        (*key[:-1], ",".join(map(str, sorted(found))), key[-1], "; ".join(sorted(machines[key])) or "?")
        for key, found in seeds.items()
    ]
    return Section(
        "Protocol",
        [
            "Rows are drawn uniformly in the ranges recorded with the suite (log-uniformly where it says "
            "so); noise is Gaussian with a standard deviation of that share of the root mean square of the "
            "target, on the training target only. Rows left to the protocol are 1,000 (`strict`) or 10,000 "
            "(`srbench`), and the law's own in the development set. Test rows are a third as many, clean. "
            "*cold* times a fresh `physdiffuser solve` process, start-up included; otherwise a process "
            "that has the package loaded.",
        ],
        [Table(header, rows)],
    )


def _breakdown(results: Sequence[Result], name: str, groups: dict[str, list[Result]]) -> Table:
    series = list(group_by(results, "system", "noise"))
    header = (name, *(f"{system}, noise {noise:g}" for system, noise in series))
    rows = []
    for label, members in groups.items():
        split = group_by(members, "system", "noise")
        cells = [rate(split.get(key, []), recovered) for key in series]
        rows.append((label, *(f"{cell.text}, {cell.laws} laws" if cell.laws else "-" for cell in cells)))
    return Table(header, rows)


def _by_group(results: Sequence[Result]) -> Section:
    by_tier = group_by(results, "suite", "group")
    tiers = {f"{suite} {group}": found for (suite, group), found in by_tier.items()}
    count = group_by(results, "variables")
    variables = {str(key[0]): count[key] for key in sorted(count)}
    return Section(
        "Recovered, by kind of law",
        [],
        [
            _breakdown(results, "group", tiers),
            _breakdown(results, "variables", variables),
            _breakdown(results, "operator in the law", operator_groups(results)),
        ],
        [("Recovered by group", plots.rate_bars(results))],
    )


def _times(results: Sequence[Result]) -> Section:
    return Section(
        "Time to solution",
        ["Share of all tables recovered within the time on the axis."],
        [],
        [("Time to solution", plots.time_curves(results))],
    )


def _published(results: Sequence[Result]) -> Section:
    rows = [
        (
            entry["system"],
            entry["problems"],
            entry["noise"],
            f"{entry['exact_recovery_percent']} %",
            entry["budget"],
            entry["uses_units"],
            entry["source"],
        )
        for entry in published()
    ]
    measured = []
    for (system, suite, noise, protocol), group in group_by(
        results, "system", "suite", "noise", "protocol"
    ).items():
        laws = len({result["id"] for result in group})
        first = group[0]
        exact, loose = rate(group, strict), rate(group, srbench)
        measured.append(
            (
                f"{system} (measured here)",
                f"{suite}, {laws} laws",
                f"{noise:g}",
                f"strict {exact.text}; SRBench rule {loose.text}",
                f"{first['time']:g} s on {first['cores']} core(s); {protocol} protocol",
                "yes" if first["units"] else "no",
                "this report",
            )
        )
    header = ("system", "problems", "noise", "exact recovery", "budget and protocol", "units", "source")
    return Section(
        "Beside published rates",
        [
            "Protocols differ: budgets from seconds to hours, other sets of laws, units given or not. "
            "A number is to be read with the budget beside it. *digitised*: read off a figure, half a point "
            "either way."
        ],
        [Table(header, [*measured, *rows])],
    )


def _failures(results: Sequence[Result]) -> Section:
    rows = []
    for result in results:
        if recovered(result):
            continue
        answer = result["expression"]
        if answer is None:
            answer = str(result.get("error") or "no answer").splitlines()[0][:200]
        rows.append(
            (
                result["system"],
                result["suite"],
                result["id"],
                f"{result['noise']:g}",
                result["truth"],
                answer,
                result["status"] + (", form right" if form(result) else ""),
                _number(result["r2_test"], 6),
                f"{_number(result['complexity'])} / {result['truth_complexity']}",
                _seconds(result["seconds"]),
            )
        )
    header = (
        "system",
        "suite",
        "id",
        "noise",
        "truth",
        "answer",
        "status",
        "R2",
        "complexity / truth",
        "time",
    )
    return Section(
        "Not recovered",
        [f"{len(rows)} of {len(results)} tables, truth and answer side by side."],
        [Table(header, rows, frozenset({"truth", "answer"}))] if rows else [],
    )


def _listing(results: list[Result]) -> Table:
    header = ("system", "suite", "id", "noise", "truth", "answer", "largest relative error", "strict")
    rows = [
        (
            result["system"],
            result["suite"],
            result["id"],
            f"{result['noise']:g}",
            result["truth"],
            str(result["expression"]),
            _number(result["max_relative_error"]),
            result["strict"],
        )
        for result in results
    ]
    return Table(header, rows, frozenset({"truth", "answer"}))


def _trust(results: Sequence[Result]) -> Section:
    wrong, split = confident_wrong(results), disagreements(results)
    unknown = [result for result in results if undecided(result)]
    numeric = sum(exact_numbers(result) for result in unknown)
    paragraphs = [
        f"Answers that called themselves exact and are another law: {len(wrong)}.",
        f"Symbolic checks without a verdict: {len(unknown)}, of which {numeric} exact in numbers. A check "
        "that ran out of time never counts as right.",
        f"Numbers and symbols disagree on {len(split)} answers.",
        f"Problems that crashed, were killed or raised an error: {sum(map(failed, results))}.",
        f"Answers more than two seconds late, or stopped for it: {sum(map(overran, results))}.",
    ]
    tables = [_listing(found) for found in (wrong, split) if found]
    return Section("How far to trust these numbers", paragraphs, tables)
