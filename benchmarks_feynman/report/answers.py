"""Sections that list single answers: what was not recovered, and what speaks against the numbers."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks_feynman.report.layout import Section, Table, formula_text, number_text, seconds_text
from benchmarks_feynman.report.summary import (
    confident_wrong,
    disagreements,
    exact_numbers,
    failed,
    form,
    overran,
    recovered,
    undecided,
)
from benchmarks_feynman.results import Result
from physdiffuser.io.display import counted


def failures(results: Sequence[Result]) -> Section:
    """What was not recovered, truth and answer side by side."""
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
                str(result["group"]),
                result["id"],
                f"{result['noise']:g}",
                result["truth"],
                formula_text(answer),
                result["status"] + (", form right" if form(result) else ""),
                number_text(result["r2_test"], 6),
                f"{number_text(result['complexity'])} / {result['truth_complexity']}",
                seconds_text(result["seconds"]),
            )
        )
    header = (
        "system",
        "suite",
        "group",
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
        [
            f"{len(rows)} of {counted(len(results), 'table')}, truth and answer side by side. Fitted "
            "constants have five digits here; the results file has all."
        ],
        [Table(header, rows, frozenset({"truth", "answer"}))] if rows else [],
    )


def listing(results: list[Result]) -> Table:
    """Answers beside the truth, with what the judge measured."""
    header = (
        "system",
        "suite",
        "group",
        "id",
        "noise",
        "truth",
        "answer",
        "largest relative error",
        "strict",
    )
    rows = [
        (
            result["system"],
            result["suite"],
            str(result["group"]),
            result["id"],
            f"{result['noise']:g}",
            result["truth"],
            formula_text(str(result["expression"])),
            number_text(result["max_relative_error"]),
            result["strict"],
        )
        for result in results
    ]
    return Table(header, rows, frozenset({"truth", "answer"}))


def trust(results: Sequence[Result]) -> Section:
    """Wrong claims, checks without a verdict, disagreements, crashes, lateness."""
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
    tables = [listing(found) for found in (wrong, split) if found]
    return Section("How far to trust these numbers", paragraphs, tables)
