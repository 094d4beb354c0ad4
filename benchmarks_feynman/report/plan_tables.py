"""The tables of the plans, as Markdown blocks for `docs/benchmarks.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks_feynman.plans import SEEDS, Plan, Stage
from benchmarks_feynman.report.layout import Table
from benchmarks_feynman.report.peer_tables import peers
from benchmarks_feynman.report.plan_parts import (
    Found,
    count,
    law_list,
    provenance,
    right,
    seconds,
    times,
    trust,
)
from benchmarks_feynman.report.render import table_lines
from benchmarks_feynman.report.summary import (
    confident_wrong,
    form,
    good_fit,
    group_by,
    rate,
    recovered,
    srbench,
    strict,
)
from benchmarks_feynman.results import Result
from benchmarks_feynman.tasks import task_key


def block(plan: Plan, results: Sequence[Result], path: Path) -> str:
    """A plan's tables, with the commands, commits, machine and protocol that the results tell."""
    by_key = {task_key(result): result for result in results}
    found = {
        stage.name: [by_key[task.key] for task in stage.tasks() if task.key in by_key]
        for stage in plan.stages
    }
    used = [stage for stage in plan.stages if found[stage.name]]
    if not used:
        return "*Not run yet.*"
    write = {"suites": suites, "targets": targets, "dev": dev, "peers": peers}[plan.name]
    lines = [*provenance(plan, used, found, path), "", *write(plan, found)]
    return "\n".join(lines)


_TIMES = (
    "*recovered*, *strict*, *SRBench rule*, *form*: as above, laws counted, with 95 % bootstrap intervals in "
    "percent. Times: of the tables with the right form."
)


def suites(plan: Plan, found: Found) -> list[str]:
    """Suites by noise, tiers, three seeds, and what was not found."""
    header = (
        "suite",
        "noise",
        "recovered",
        "strict",
        "SRBench rule",
        "form",
        "R2 > 0.999",
        "confidently wrong",
        "median time",
        "90 % time",
    )
    rows, tiers, missed = [], [], []
    for stage in plan.stages:
        results = found[stage.name]
        if not results or stage.name.startswith("seeds"):
            continue
        name = stage.suites[0] + (", cold starts" if stage.settings.cold else "")
        rates = [count(results, criterion) for criterion in (recovered, strict, srbench, form, good_fit)]
        taken = times(results, form)
        wrong = str(len(confident_wrong(results)))
        rows.append((name, f"{stage.noise:g}", *rates, wrong, seconds(taken), seconds(taken, 0.9)))
        for (group,), members in group_by(results, "group").items():
            tiers.append((name, group, f"{stage.noise:g}", count(members, recovered), count(members, form)))
        missed += _missed(name, stage.noise, results)
    lines = ["One seed (0), all laws:", "", *table_lines(Table(header, rows)), "", _TIMES, ""]
    lines += ["By tier:", "", *table_lines(Table(("suite", "tier", "noise", "recovered", "form"), tiers)), ""]
    return [
        *lines,
        *_seeds(plan, found),
        *missed,
        "",
        *trust([one for some in found.values() for one in some]),
    ]


def _missed(name: str, noise: float, results: Sequence[Result]) -> list[str]:
    """The laws that were not found: by numbers without noise, by form with it."""
    criterion = form if noise else recovered
    missing = [result for result in results if not criterion(result)]
    what = "not of the right form" if noise else "not recovered"
    return [f"* {name}, noise {noise:g}, {what}: {law_list(missing)}."]


def _seeds(plan: Plan, found: Found) -> list[str]:
    """Every fourth law with three seeds: is the first seed a lucky one?"""
    rows = []
    for stage in plan.stages:
        more = found[stage.name]
        if not stage.name.startswith("seeds") or not more:
            continue
        laws = {(result["suite"], result["id"]) for result in more}
        first = [
            result
            for other in plan.stages
            if not other.name.startswith("seeds") and other.noise == stage.noise and not other.settings.cold
            for result in found[other.name]
            if (result["suite"], result["id"]) in laws
        ]
        for (suite,), members in group_by([*first, *more], "suite").items():
            for what, criterion in (("recovered", recovered), ("form", form)):
                by_seed = group_by(members, "seed")
                each = [str(sum(map(criterion, by_seed[key]))) for key in sorted(by_seed)]
                row = (suite, f"{stage.noise:g}", what, ", ".join(each), count(members, criterion))
                rows.append(row)
    if not rows:
        return []
    header = ("suite", "noise", "what", "laws by seed 0, 1, 2", "mean over seeds")
    return ["Three seeds on every fourth law:", "", *table_lines(Table(header, rows)), ""]


# (least number of laws of 120, median seconds or None) by stage; the numbers the project set itself.
TARGETS: dict[str, tuple[int, float | None]] = {
    "noise-0": (112, 2.0),
    "noise-0.001": (105, 10.0),
    "noise-0.01": (95, 20.0),
    "noise-0.1": (75, 30.0),
    "units": (118, 1.0),
    "rows-100": (100, None),
    "noise-0.1-rows-1000": (65, None),
    "dummies-3": (108, None),
}
_ALL = 120


def targets(plan: Plan, found: Found) -> list[str]:
    """Targets beside what was measured, and the laws that were missed."""
    header = (
        "task",
        "target",
        "measured",
        "strict",
        "form",
        "median time",
        "target",
        "90 % time",
        "confidently wrong",
    )
    rows, missed = [], []
    for stage in plan.stages:
        results = found[stage.name]
        if not results or stage.name not in TARGETS:
            continue
        least, limit = TARGETS[stage.name]
        measured, taken = rate(results, right), times(results, right)
        run = "" if measured.laws == _ALL else f" run ({100 * measured.hits / measured.laws:.0f} %)"
        rows.append(
            (
                _task_name(stage),
                f"{least} of {_ALL}",
                f"{measured.hits:g} of {measured.laws}{run}, "
                f"{100 * measured.low:.0f}-{100 * measured.high:.0f} %",
                f"{sum(map(strict, results))}",
                f"{sum(map(form, results))}",
                seconds(taken),
                "-" if limit is None else f"{limit:g} s",
                seconds(taken, 0.9),
                str(len(confident_wrong(results))),
            )
        )
        missed.append(
            f"* {_task_name(stage)}: {law_list(result for result in results if not right(result))}."
        )
    settings = plan.stages[0].settings
    lines = [
        f"SRBench's protocol: 10,000 rows unless said, {settings.time:g} s and {settings.cores} cores a "
        "table, seed 0, no units unless said. *measured* counts SRBench's rule, or numbers exact to 1e-9 "
        "where the symbolic check came to no verdict, with the 95 % bootstrap interval; times are those "
        "of the counted.",
        "",
        *table_lines(Table(header, rows)),
        "",
        *_target_seeds(plan, found),
        "Missed:",
        "",
        *missed,
        "",
    ]
    return [*lines, *trust([one for some in found.values() for one in some])]


def _target_seeds(plan: Plan, found: Found) -> list[str]:
    rows = []
    for stage in plan.stages:
        more = found[stage.name]
        first = found.get(stage.name.removesuffix(SEEDS), [])
        if stage.name in TARGETS or not more:
            continue
        laws = {result["id"] for result in more}
        members = [*(result for result in first if result["id"] in laws), *more]
        by_seed = group_by(members, "seed")
        each = ", ".join(str(sum(map(right, by_seed[key]))) for key in sorted(by_seed))
        taken = times(members, right)
        rows.append((_task_name(stage), each, count(members, right), seconds(taken)))
    if not rows:
        return []
    header = ("task", "laws by seed 0, 1, 2", "mean over seeds", "median time")
    return ["Three seeds on every fourth law:", "", *table_lines(Table(header, rows)), ""]


def _task_name(stage: Stage) -> str:
    settings = stage.settings
    parts = [f"noise {stage.noise:g}"]
    if settings.units:
        parts.append("with units")
    if settings.rows is not None:
        parts.append(f"{settings.rows:,} rows")
    if settings.dummy:
        parts.append(f"{settings.dummy} columns added")
    return ", ".join(parts)


def dev(plan: Plan, found: Found) -> list[str]:
    """Rates by what makes the tables hard."""
    from benchmarks_feynman.suites import load_suite

    tags = {law.id: law.tags for law in load_suite("dev")}
    stages = [stage for stage in plan.stages if found[stage.name]]
    header = [
        "tables",
        *(f"noise {stage.noise:g}: {what}" for stage in stages for what in ("form", "recovered")),
    ]
    names = ["all", *sorted({tag for some in tags.values() for tag in some})]
    rows = []
    for name in names:
        cells = [name]
        for stage in stages:
            members = [one for one in found[stage.name] if name == "all" or name in tags[one["id"]]]
            cells += [count(members, form), count(members, recovered)]
        rows.append(tuple(cells))
    lines = [
        f"{plan.stages[0].settings.time:g} s and one core a table, each with the rows, columns, outliers and "
        "noise of its own. Under noise constants cannot be exact, so *form* is what counts there.",
        "",
        *table_lines(Table(tuple(header), rows)),
        "",
    ]
    for stage in stages:
        results = found[stage.name]
        taken = times(results, form)
        missing = re.sub(r"\bdev_", "", law_list(one for one in results if not form(one)))
        fits = f"R2 above 0.999 on {sum(map(good_fit, results))} of {len(results)}"
        lines.append(
            f"* Noise {stage.noise:g}: {fits}, median time of the right ones {seconds(taken)}. "
            f"Not of the right form: dev_{missing}."
        )
    return [*lines, "", *trust([one for some in found.values() for one in some])]
