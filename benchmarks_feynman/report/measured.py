"""The section on measured tables: each answer beside the law of its field."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks_feynman.measured_tables import measured_table
from benchmarks_feynman.report.layout import Section, Table, formula_text, number_text
from benchmarks_feynman.report.summary import group_by, measured_summary
from benchmarks_feynman.results import Result

_EXPLANATION = (
    "Tables of measurements. An answer is *as good* as the law of the field if it describes the table in no "
    "more nats than that law does, each under the noise model that suits it best and with its constants "
    "fitted, up to one nat, or if it is the same function. *left out* compares errors on rows that the fit "
    "has not seen, under the weights of the law. Every number printed about an answer is a *claim*, and is "
    "computed again from the table by code that shares nothing with the program; *unknown* are errors under "
    "weights that are not printed. Computed tables are listed and not counted."
)


def measured_section(results: Sequence[Result]) -> Section:
    """Counts by system, and a line for each table."""
    header = (
        "system",
        "tables",
        "as good",
        "the same law",
        "left out as good",
        "verified",
        "verified and worse",
        "claims",
        "false",
        "unknown",
    )
    rows = []
    for (system,), group in group_by(results, "system").items():
        found = measured_summary(group)
        rows.append((system, *(str(found[name]) for name in found)))
    return Section(
        "Measured tables",
        [_EXPLANATION],
        [Table(header, rows), _worse(results), _all(results)],
    )


def _line(result: Result) -> tuple[str, ...]:
    score = result.get("measured") or {}
    law, answer = score.get("law") or {}, score.get("answer") or {}
    false = [name for name, truth in score.get("claims", {}).items() if truth == "false"]
    judged = "identical" if score.get("identical") else "as good" if score.get("as_good") else "worse"
    reason = str(result.get("judge_error") or result.get("error") or "no answer").splitlines()[0][:120]
    return (
        result["system"],
        result["id"] + ("" if score.get("kind") == "measured" else " (computed)"),
        str(measured_table(result["id"]).rows),
        result["truth"],
        formula_text(answer.get("expression") or result["expression"] or reason),
        judged if score else "not scored",
        number_text(score.get("length_difference"), 3),
        f"{number_text(answer.get('left_out_rmse'), 3)} / {number_text(law.get('left_out_rmse'), 3)}",
        f"{number_text(answer.get('complexity'))} / {number_text(law.get('complexity'))}",
        f"{answer.get('noise_model', '-')} / {law.get('noise_model', '-')}",
        str(score.get("verdict")),
        ", ".join(false) or "-",
    )


_HEADER = (
    "system",
    "table",
    "rows",
    "law of the field",
    "answer",
    "judged",
    "nats longer",
    "left-out error / law's",
    "complexity / law's",
    "noise model / law's",
    "verdict",
    "false claims",
)


def _worse(results: Sequence[Result]) -> Table:
    rows = [_line(result) for result in results if not result["recovered"]]
    return Table(_HEADER, rows, frozenset({"law of the field", "answer"}))


def _all(results: Sequence[Result]) -> Table:
    rows = [_line(result) for result in results if result["recovered"]]
    return Table(_HEADER, rows, frozenset({"law of the field", "answer"}))
