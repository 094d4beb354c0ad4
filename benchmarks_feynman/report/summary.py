"""Rates of a set of results: overall, by noise, by tier, by number of variables, by operator."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks_feynman.metrics import bootstrap_interval
from benchmarks_feynman.results import Result
from benchmarks_feynman.suites import MEASURED

GOOD_R2 = 0.999
LEFT_OUT_SLACK = 1.05
OVERRUN = 2.0


def recovered(result: Result) -> bool:
    """Verified as the law, or exact in numbers on fresh rows."""
    return bool(result["recovered"])


def strict(result: Result) -> bool:
    """Shown symbolically to equal the law, no free offset or factor."""
    return bool(result["strict"] == "verified")


def srbench(result: Result) -> bool:
    """Right by SRBench's rule."""
    return bool(result["srbench"] == "verified")


def exact_numbers(result: Result) -> bool:
    """Relative error below 1e-9 on fresh rows."""
    return bool(result["exact_numbers"])


def form(result: Result) -> bool:
    """The law's structure: exact once its own constants are refitted to clean rows."""
    return bool(result["form"]) or recovered(result)


def good_fit(result: Result) -> bool:
    """R2 above 0.999 on clean test rows, whatever the formula."""
    return (result["r2_test"] or 0.0) > GOOD_R2


@dataclass(frozen=True)
class Rate:
    """A share of laws with its 95 % bootstrap interval; tables of one law with several seeds average."""

    hits: float
    laws: int
    low: float
    high: float

    @property
    def text(self) -> str:
        """Such as `71.0 % (62-80)`; one law has no interval."""
        if not self.laws:
            return "none run"
        if self.laws == 1:
            return f"{100 * self.hits:.1f} %"
        return f"{100 * self.hits / self.laws:.1f} % ({100 * self.low:.0f}-{100 * self.high:.0f})"


def rate(results: Iterable[Result], criterion: Callable[[Result], bool]) -> Rate:
    """Share of laws that meet a criterion."""
    by_law: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for result in results:
        by_law[result["suite"], result["id"]].append(criterion(result))
    shares = [statistics.fmean(hits) for hits in by_law.values()]
    low, high = bootstrap_interval(shares) or (0.0, 1.0)
    return Rate(sum(shares), len(shares), low, high)


def group_by(results: Iterable[Result], *entries: str) -> dict[tuple[Any, ...], list[Result]]:
    """Results by the values of some entries, in order of those values."""
    groups: dict[tuple[Any, ...], list[Result]] = defaultdict(list)
    for result in results:
        groups[tuple(result[entry] for entry in entries)].append(result)
    return groups


def operator_groups(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results by operator of the true formula; a law counts under each it has."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        for operator in result["operators"]:
            groups[operator].append(result)
    return dict(sorted(groups.items()))


def median_seconds(results: Iterable[Result]) -> float | None:
    """Median wall time of the recovered ones."""
    seconds = [result["seconds"] for result in results if recovered(result) and result["seconds"] is not None]
    return statistics.median(seconds) if seconds else None


def failed(result: Result) -> bool:
    """Whether the system crashed, was killed or raised an error."""
    return result["status"] in ("error", "crashed", "timeout")


def undecided(result: Result) -> bool:
    """Whether the symbolic check came to no verdict."""
    return bool(result["strict"] == "unknown") and not failed(result)


def overran(result: Result) -> bool:
    """Whether an answer came more than two seconds after its time, or not at all because of that."""
    late = result["seconds"] is not None and result["seconds"] > result["time"] + OVERRUN
    return bool(late or result["status"] == "timeout")


def confident_wrong(results: Iterable[Result]) -> list[Result]:
    """Answers that called themselves exact and are another law."""
    return [result for result in results if result["confident_wrong"]]


def disagreements(results: Iterable[Result]) -> list[Result]:
    """Answers on which numbers and symbols do not agree."""
    return [result for result in results if result["disagreement"]]


def as_document(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The overall rates as plain data, one entry per system, suite, noise and protocol."""
    entries = []
    for (system, suite, noise, protocol), group in group_by(
        results, "system", "suite", "noise", "protocol"
    ).items():
        entry: dict[str, Any] = {
            "system": system,
            "suite": suite,
            "noise": noise,
            "protocol": protocol,
            "laws": len({result["id"] for result in group}),
            "tables": len(group),
        }
        for name, criterion in CRITERIA.items():
            measured = rate(group, criterion)
            entry[name] = {
                "hits": measured.hits,
                "percent": 100 * measured.hits / measured.laws,
                "low": 100 * measured.low,
                "high": 100 * measured.high,
            }
        if suite == MEASURED:
            entry["measured"] = measured_summary(group)
        entry["median_seconds_recovered"] = median_seconds(group)
        entry["confident_wrong"] = len(confident_wrong(group))
        entry["undecided"] = sum(map(undecided, group))
        entry["failed"] = sum(map(failed, group))
        entry["overran"] = sum(map(overran, group))
        entry["disagreements"] = len(disagreements(group))
        entries.append(entry)
    return entries


def measured_summary(results: Sequence[Result]) -> dict[str, Any]:
    """Counts over the tables that were measured; computed ones are left out."""
    scores = [result.get("measured") or {} for result in results]
    scores = [score for score in scores if score.get("kind", "measured") == "measured"]
    claims = [truth for score in scores for truth in score.get("claims", {}).values()]
    return {
        "tables": len(scores),
        "as_good": sum(bool(score.get("as_good")) for score in scores),
        "identical": sum(bool(score.get("identical")) for score in scores),
        "left_out_as_good": sum(map(left_out_as_good, scores)),
        "verified": sum(score.get("verdict") == "verified" for score in scores),
        "verified_worse": sum(
            score.get("verdict") == "verified" and not score["as_good"] for score in scores
        ),
        "claims": len(claims),
        "claims_false": claims.count("false"),
        "claims_unknown": claims.count("unknown"),
    }


def left_out_as_good(score: dict[str, Any]) -> bool:
    """Whether the error on rows left out is at most that of the law of the field, up to 5 %."""
    answer = score.get("answer") or {}
    error, limit = answer.get("left_out_rmse"), (score.get("law") or {}).get("left_out_rmse")
    return error is not None and limit is not None and error <= LEFT_OUT_SLACK * limit


CRITERIA: dict[str, Callable[[Result], bool]] = {
    "recovered": recovered,
    "exact_numbers": exact_numbers,
    "strict": strict,
    "srbench": srbench,
    "form": form,
    "r2_above_0.999": good_fit,
}
