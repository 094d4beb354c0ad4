"""The same rows with different numbers of slices: assignment, masses, attention, cost side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.inspection.capture import Place
from physdiffuser.inspection.drawing.figures import (
    QUIET,
    Origin,
    Picture,
    around_one,
    even_bar,
    heat,
    new_figure,
    plain,
    png_of,
    relative,
)
from physdiffuser.inspection.session import Showing
from physdiffuser.inspection.slices import COST_ROWS, cost, layers_of
from physdiffuser.inspection.tokens import pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

SECTION = "Slices"
NEARLY_EVEN = 0.005
"""Share of the attention below which a map of it is as good as blank, and says so."""
Colour = tuple[float, float, float, float]


def colours(count: int) -> list[Colour]:
    """Colours of slices, the heaviest first: those easily distinguished, then lighter ones, then grey."""
    from matplotlib import colormaps

    pairs = [colormaps["tab20"](index) for index in range(20)]
    found = [*pairs[0:14:2], *pairs[16::2], *pairs[1:14:2], *pairs[17::2]]
    return [*found, *[(0.75, 0.75, 0.75, 1.0)] * (count - len(found))][:count]


def compared(showing: Showing, others: Sequence[Showing], origin: Origin, pair: tuple[int, int]) -> Picture:
    """One line for each number of slices: every row as a pie of its slices, masses, attention."""
    every = sorted((showing, *others), key=_count)
    figure = new_figure(10.4, 2.9 * len(every) + 1.0, "The same rows in few and in many slices", origin)
    panels = figure.subplots(len(every), 3, width_ratios=[1.5, 1.0, 1.0], squeeze=False)
    firsts = [layers_of(one)[0] for one in every]
    heads = [one.most_selective_head for one in firsts]
    maps = [relative(one.attention[head]) for one, head in zip(firsts, heads, strict=True)]
    scale = around_one(np.concatenate([values.ravel() for values in maps]))
    said = []
    for line, (one, slices, head, values) in enumerate(zip(every, firsts, heads, maps, strict=True)):
        order = np.argsort(-slices.masses[head], kind="stable")
        masses = slices.masses[head, order]
        shades = colours(len(order))
        pies, bars, among = panels[line]
        rows = slices.assignment[head][one.order][:, order]
        _pies(pies, one.values[:, pair[0]], one.values[:, pair[1]], rows, shades)
        pies.set_ylabel(plain(pretty(one.labels[pair[1]]), 30), fontsize=10.5)
        weights = f"{one.networks.tables:,} tables · {one.networks.digest or one.networks.source}"
        pies.set_title(f"M = {len(order)}", fontsize=11, fontweight="bold", loc="left")
        pies.set_title(f"head {head + 1} · {weights}", fontsize=7.5, color=QUIET, loc="right")
        bars.bar(np.arange(len(order)), masses, width=0.85, color=shades, edgecolor="0.4", linewidth=0.3)
        bars.axhline(1.0 / len(order), color=QUIET, linewidth=0.8, linestyle=":")
        bars.set_xticks([])
        bars.set_ylabel("mass", fontsize=9)
        bars.set_title("slices, heaviest first", fontsize=9)
        uneven = float(0.5 * np.abs(values - 1.0).mean())
        image = _attention_map(among, values[np.ix_(order, order)], uneven, scale)
        for panel in (pies, bars):
            panel.spines[["top", "right"]].set_visible(False)
            panel.tick_params(labelsize=8)
        largest = rows.max(axis=1).mean()
        said.append(
            f"M = {len(order)}: the largest share of a row in one slice is {largest:.2f} in the mean (even: "
            f"{1 / len(order):.2f}), the heaviest slice holds {masses[0]:.0%}, {uneven:.2%} of the attention "
            "among slices is uneven"
        )
    panels[-1, 0].set_xlabel(plain(pretty(showing.labels[pair[0]]), 30), fontsize=10.5)
    panels[-1, 2].set_xlabel("slice attended to", fontsize=9)
    even_bar(figure, image, list(panels[:, 2]))
    numbers = ", ".join(str(_count(one)) for one in every)
    return Picture(
        name="slices-compared",
        title=f"The same rows with M = {numbers} slices",
        caption=(
            "Each line is an encoder of its own, taught alike, and shows the first layer's head whose "
            "assignment differs most between rows. Left, every row of the table is a pie of the slices it is "
            f"in, drawn on {showing.labels[pair[0]]} and {showing.labels[pair[1]]}; then the share of all "
            "rows in each slice (dotted: even), in the same colours; then how much slices attend to each "
            "other."
        ),
        alt="; ".join(said) + ".",
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )


def _attention_map(axes: Axes, values: FloatArray, uneven: float, scale: dict[str, Any]) -> AxesImage:
    """How much each slice attends to each other; says so where the map is as good as blank."""
    image = heat(axes, values, **scale)
    ticks = np.arange(0, len(values), max(1, len(values) // 4))
    axes.set_xticks(ticks, [str(tick + 1) for tick in ticks])
    axes.set_yticks(ticks, [str(tick + 1) for tick in ticks])
    axes.set_ylabel("slice attends", fontsize=9)
    axes.set_title(f"{uneven:.2%} of the weight is uneven", fontsize=9)
    if uneven < NEARLY_EVEN:
        axes.text(
            0.5, 0.5, "to all alike", fontsize=10, color=QUIET, ha="center", va="center",
            transform=axes.transAxes,
        )  # fmt: skip
    axes.set_aspect("equal")
    return image


def _count(showing: Showing) -> int:
    return int(layers_of(showing)[0].masses.shape[1])


def _pies(axes: Axes, across: FloatArray, up: FloatArray, shares: FloatArray, shades: list[Colour]) -> None:
    """A pie for each row; its wedges are what it has of each slice."""
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path
    from matplotlib.transforms import IdentityTransform

    ends = 360.0 * np.cumsum(shares, axis=1) / shares.sum(axis=1, keepdims=True)
    starts = np.concatenate([np.zeros((len(ends), 1)), ends[:, :-1]], axis=1)
    whole = [
        [Path.wedge(start, end) for start, end in zip(*both, strict=True)]
        for both in zip(starts, ends, strict=True)
    ]
    axes.scatter(across, up, s=115, facecolors="none", edgecolors="0.4", linewidths=0.5, zorder=1)
    for row, wedges in enumerate(whole):
        pie = PathCollection(
            wedges, sizes=[28.0], facecolors=shades, edgecolors="none", zorder=2,
            offsets=[(across[row], up[row])], offset_transform=axes.transData,
        )  # fmt: skip
        pie.set_transform(IdentityTransform())  # sizes are points on paper, wherever the row lies
        axes.add_collection(pie, autolim=False)


def prices(showings: Sequence[Showing], origin: Origin) -> tuple[Picture, dict[str, list[float]]]:
    """Measured seconds of the first layers and of standard attention of their size, drawn and as they are."""
    from matplotlib import colormaps

    layers = {
        f"physics-slice, M = {_count(one)}": one.heard.last(Place("encoder", "rows", 0))
        for one in sorted(showings, key=_count)
    }
    found = cost(layers, COST_ROWS)
    figure = new_figure(7.2, 4.8, "Cost of one layer on one thread", origin)
    axes = figure.subplots()
    shades = [*colormaps["Blues"](np.linspace(0.95, 0.4, len(layers))[::-1]), "#d1793b"]
    for (name, seconds), colour in zip(found.items(), shades, strict=True):
        axes.loglog(
            COST_ROWS, [1e3 * value for value in seconds], "o-", color=colour, label=name, linewidth=2
        )
    axes.set_xticks(COST_ROWS, [f"{rows:,}" for rows in COST_ROWS], fontsize=9)
    axes.minorticks_off()
    axes.set_xlabel("rows", fontsize=10)
    axes.set_ylabel("CPU milliseconds a forward pass", fontsize=10)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=10)
    said = "; ".join(
        f"{name}: " + ", ".join(f"{1e3 * value:.2f}" for value in seconds) for name, seconds in found.items()
    )
    picture = Picture(
        name="slices-cost",
        title="What it costs, beside standard attention",
        caption=(
            "CPU time of one forward pass of this layer, without asking for weights, and of full standard "
            "self-attention of the same width and heads over the same rows; the fastest of several passes, "
            "measured when this page was made."
        ),
        alt=f"Milliseconds for {', '.join(f'{rows:,}' for rows in COST_ROWS)} rows. {said}.",
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )
    return picture, found
