"""What a report says, as sections of text, tables and plots; how it looks is up to the renderers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks_feynman.report import plots
from benchmarks_feynman.report.answers import failures, trust
from benchmarks_feynman.report.layout import Section, Table, labels, number_text, seconds_text
from benchmarks_feynman.report.measured import measured_section
from benchmarks_feynman.report.summary import (
    GOOD_R2,
    form,
    good_fit,
    group_by,
    median_seconds,
    operator_groups,
    rate,
    recovered,
    srbench,
    strict,
)
from benchmarks_feynman.results import Result
from benchmarks_feynman.suites import MEASURED, published
from physdiffuser.io.display import counted


def sections(results: Sequence[Result]) -> list[Section]:
    """The whole report; at least one result is needed."""
    measured = [result for result in results if result["suite"] == MEASURED]
    drawn = [result for result in results if result["suite"] != MEASURED]
    if not measured:
        return _of_drawn_tables(drawn)
    parts = [measured_section(measured), _settings(measured)]
    return [*_of_drawn_tables(drawn), *parts] if drawn else parts


def _of_drawn_tables(results: Sequence[Result]) -> list[Section]:
    return [
        _rates(results),
        _settings(results),
        _by_group(results),
        _errors(results),
        _times(results),
        _published(results),
        failures(results),
        trust(results),
    ]


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
        rows.append((*labels(key), str(len(group)), *measured, seconds_text(median_seconds(group))))
    return Section(
        "Rates",
        [
            "Each problem is a table drawn from a known law. A law is *recovered* when the answer is shown "
            "symbolically to equal it, or agrees with it to nine digits on 1,000 fresh rows and beyond their "
            "ranges. *strict* counts only the symbolic proof, with no free offset or factor. The *SRBench "
            "rule* rounds constants to three digits and allows a constant offset or factor. *form* asks "
            "whether the answer is exact once its own constants are refitted to clean rows: under noise, "
            "constants cannot be exact, but the structure can. *R2 > 0.999* says how well the answer fits, "
            "whatever it looks like.",
            "In parentheses: 95 % bootstrap interval over laws, in percent; a single law has none. Suites "
            "overlap, so their rates are never added up.",
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
            machines[key].add(
                f"{machine['processor']}, {counted(machine['cpus'], 'CPU')}, Python {machine['python']}"
            )
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
        rows.append(
            (label, *(f"{cell.text}, {counted(cell.laws, 'law')}" if cell.laws else "-" for cell in cells))
        )
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


def _quantile(values: Iterable[float | None], share: float = 0.5) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.quantile(known, share)) if known else None


def _errors(results: Sequence[Result]) -> Section:
    header = (
        "system",
        "suite",
        "noise",
        "protocol",
        "1 - R2, test rows",
        "largest relative error",
        "1 - R2, outside the ranges",
        "R2 > 0.999 outside",
        "tree distance",
        "complexity / law's",
    )
    rows = []
    for key, group in group_by(results, "system", "suite", "noise", "protocol").items():
        outside = [one for one in group if one["r2_extrapolated"] is not None]
        lengths = [one["complexity"] / one["truth_complexity"] for one in group if one["complexity"]]
        medians = (
            _quantile(1 - one["r2_test"] for one in group if one["r2_test"] is not None),
            _quantile(one["max_relative_error"] for one in group),
            _quantile(1 - one["r2_extrapolated"] for one in outside),
        )
        good = sum(one["r2_extrapolated"] > GOOD_R2 for one in outside)
        sizes = (_quantile(one["tree_distance"] for one in group), _quantile(lengths))
        rows.append(
            (
                *labels(key),
                *(number_text(value, 2) for value in medians),
                f"{good} of {len(outside)}",
                *(number_text(value, 3) for value in sizes),
            )
        )
    return Section(
        "Errors and sizes",
        [
            "Medians over tables. Errors are taken on clean rows that no system has seen: within the ranges, "
            "and outside (each range half as wide again on both sides). The tree distance is that of the "
            "canonical forms, 0 for the law itself and 1 for nothing like it (Matsubara et al. 2022)."
        ],
        [Table(header, rows)],
    )


def _times(results: Sequence[Result]) -> Section:
    header = ("system", "suite", "noise", "protocol", "recovered", "25 %", "median", "75 %", "90 %")
    rows = []
    for key, group in group_by(results, "system", "suite", "noise", "protocol").items():
        seconds = [one["seconds"] for one in group if recovered(one)]
        parts = (seconds_text(_quantile(seconds, share)) for share in (0.25, 0.5, 0.75, 0.9))
        rows.append((*labels(key), str(len(seconds)), *parts))
    return Section(
        "Time to solution",
        ["Share of all tables recovered within the time on the axis; below, quantiles over the recovered."],
        [Table(header, rows)],
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
                f"{suite}, {counted(laws, 'law')}",
                f"{noise:g}",
                f"strict {exact.text}; SRBench rule {loose.text}",
                f"{first['time']:g} s on {counted(first['cores'], 'core')}; {protocol} protocol",
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
