"""Rates as `evaluate` prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks_feynman.report.summary import as_document
from physdiffuser.cli.process import messages

if TYPE_CHECKING:
    from benchmarks_feynman.results import Result


def print_rates(found: list[Result], as_json: bool) -> None:
    """The rates of each system, suite and noise level, as text or as one JSON document."""
    entries = as_document(found)
    if as_json:
        messages.output(json.dumps({"schema": 1, "rates": entries}, indent=1) + "\n")
        return
    for entry in entries:
        if "measured" in entry:
            _print_measured(entry)
            continue
        rates = "  ".join(
            f"{name} {entry[name]['hits']:g}/{entry['laws']} ({entry[name]['percent']:.1f} %)"
            for name in ("recovered", "strict", "srbench", "form", "r2_above_0.999")
        )
        median = entry["median_seconds_recovered"]
        time = "-" if median is None else f"{median:.2f} s"
        messages.output(f"{entry['system']} on {entry['suite']}, noise {entry['noise']:g}: {rates}\n")
        messages.output(
            f"  median time of the recovered {time}; confidently wrong {entry['confident_wrong']}, undecided "
            f"{entry['undecided']}, failed {entry['failed']}, late {entry['overran']}, "
            f"disagreements {entry['disagreements']}\n"
        )


def _print_measured(entry: dict[str, Any]) -> None:
    found = entry["measured"]
    count = found["tables"] or 1
    messages.output(
        f"{entry['system']} on measured: as good as the law of the field "
        f"{found['as_good']}/{found['tables']} ({100 * found['as_good'] / count:.1f} %), "
        f"the same law {found['identical']}, "
        f"as good on rows left out {found['left_out_as_good']}\n"
    )
    messages.output(
        f"  verified {found['verified']}, of these worse {found['verified_worse']}; "
        f"claims {found['claims']}, false {found['claims_false']}, unknown {found['claims_unknown']}; "
        f"failed {entry['failed']}\n"
    )
