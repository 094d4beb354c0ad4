"""Plots as SVG text, to stand inside a page."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks_feynman.report.summary import group_by, rate, recovered
from benchmarks_feynman.results import Result

_SIZE = (7.0, 4.0)
_INK, _LINE, _PAPER = "#1b2430", "#cfd6df", "#ffffff"
_SERIES = {"#1f4e79": "seen", "#b3541e": "test", "#a01c3c": "law", "#1a6b3a": "good", "#7a5300": "open"}


def _styled(draw: Callable[[Sequence[Result]], str]) -> Callable[[Sequence[Result]], str]:
    """Draw in the colours of the report."""

    @functools.wraps(draw)
    def styled(results: Sequence[Result]) -> str:
        from matplotlib import rc_context

        # The salt makes the ids inside the picture repeatable.
        settings: dict[Any, Any] = {"svg.hashsalt": "evaluate", "svg.fonttype": "none"}
        settings |= dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), _INK)
        settings |= {"axes.edgecolor": _INK, "grid.color": _LINE, "axes.facecolor": "none"}
        settings |= {"savefig.facecolor": _PAPER, "axes.prop_cycle": f"cycler('color', {list(_SERIES)})"}
        with rc_context(settings):
            return draw(results)

    return styled


def inline(svg: str) -> str:
    """A plot for a page, whose colours it takes, light or dark."""
    names = {_INK: "ink", _LINE: "line", **_SERIES}
    for colour, name in names.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg.replace(f"fill: {_PAPER}", "fill: none")


def _svg(figure: Any) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    text = stream.getvalue()
    # The XML declaration and doctype have no place inside an HTML page.
    return text[text.index("<svg") :]


def _axes() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE)
    return figure, figure.add_subplot()


def _legend(axes: Any) -> None:
    """Above the axes, where it hides nothing."""
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=8, frameon=False)


@_styled
def time_curves(results: Sequence[Result]) -> str:
    """Share of tables recovered within a time, a curve per system and noise."""
    from matplotlib.ticker import LogLocator

    figure, axes = _axes()
    for (system, noise), group in group_by(results, "system", "noise").items():
        seconds = sorted(
            result["seconds"] for result in group if recovered(result) and result["seconds"] is not None
        )
        shares = [100 * (place + 1) / len(group) for place in range(len(seconds))]
        label = f"{system}, noise {noise:g}"
        if seconds:
            last = max(result["time"] for result in group)
            times, heights = [seconds[0], *seconds, max(last, seconds[-1])], [0.0, *shares, shares[-1]]
            axes.step(times, heights, where="post", label=label)
        else:
            axes.plot([], [], label=f"{label} (none)")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.set_xlabel("wall time per table (s)")
    axes.set_ylabel("recovered (%)")
    axes.set_ylim(0, 102)
    axes.grid()
    _legend(axes)
    return _svg(figure)


@_styled
def rate_bars(results: Sequence[Result]) -> str:
    """Recovered laws by group and noise, with 95 % intervals."""
    figure, axes = _axes()
    groups = list(group_by(results, "suite", "group"))
    series = list(group_by(results, "system", "noise").items())
    width = 0.8 / max(1, len(series))
    for place, ((system, noise), members) in enumerate(series):
        by_group = group_by(members, "suite", "group")
        heights, below, above, at = [], [], [], []
        for position, name in enumerate(groups):
            measured = rate(by_group.get(name, []), recovered)
            if measured.laws:
                share = measured.hits / measured.laws
                at.append(position + (place - (len(series) - 1) / 2) * width)
                heights.append(100 * share)
                one = measured.laws == 1  # which has no interval
                below.append(0.0 if one else 100 * max(0.0, share - measured.low))
                above.append(0.0 if one else 100 * max(0.0, measured.high - share))
        label = f"{system}, noise {noise:g}"
        axes.bar(at, heights, width * 0.95, yerr=[below, above], capsize=2, label=label, ecolor=_INK)
    axes.set_xticks(range(len(groups)), [f"{suite}\n{group}" for suite, group in groups], fontsize=8)
    axes.set_ylabel("recovered (%)")
    axes.set_ylim(0, 105)
    _legend(axes)
    return _svg(figure)
