"""Pictures of physics-slice attention: assignment, masses, attention among slices, cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.inspection.attention_reads import most_relevant_pair
from physdiffuser.inspection.drawing.figures import (
    QUIET,
    Origin,
    Picture,
    Side,
    around_one,
    bar,
    even_bar,
    mosaic,
    new_figure,
    plain,
    png_of,
    relative,
)
from physdiffuser.inspection.drawing.slices_compared import (
    NEARLY_EVEN,
    SECTION,
    Colour,
    colours,
    compared,
    prices,
)
from physdiffuser.inspection.session import Showing
from physdiffuser.inspection.slices import COST_ROWS, Slices, layers_of
from physdiffuser.inspection.tokens import pretty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

_MAX_SHOWN, _MIN_MASS = 8, 0.01


def pictures(
    showing: Showing, origin: Origin, pair: tuple[int, int] | None, others: Sequence[Showing] = ()
) -> tuple[list[Picture], dict[str, object]]:
    """All pictures of slices and the seconds they cost; none where the encoder's attention has no slices.

    Parameters
    ----------
    showing, origin
        The encoder that is looked at, and what its pictures say of it.
    pair
        Columns on which rows are drawn; the two most relevant when None.
    others
        Encoders with other numbers of slices, shown the same rows.
    """
    if not layers_of(showing):
        return [], {}
    pair = pair or most_relevant_pair(showing)
    found = [compared(showing, others, origin, pair)] if others else []
    for one in (showing, *others):
        layers = layers_of(one)
        name = "slices" if one is showing else f"slices-{layers[0].masses.shape[1]}"
        seen = origin if one is showing else replace(origin, weights=one.networks.label)
        found += [
            assignment(one, slices, layer, len(layers), seen, pair, f"{name}-rows-{layer + 1}")
            for layer, slices in enumerate(layers)
        ]
        found.append(among(layers, seen, f"{name}-attention"))
    drawn, seconds = prices((showing, *others), origin)
    return [*found, drawn], {"slices_seconds": {"rows": COST_ROWS, **seconds}}


def assignment(
    showing: Showing, one: Slices, layer: int, count: int, origin: Origin, pair: tuple[int, int], name: str
) -> Picture:
    """The heaviest slices of the head that separates rows most: how much of each row is in each."""
    rows = one.assignment[:, showing.order]
    heads, number, slices = rows.shape
    head = one.most_selective_head
    ranking = np.argsort(-one.masses[head], kind="stable")
    heavy = ranking[: min(_MAX_SHOWN, max(2, int((one.masses[head] >= _MIN_MASS).sum())))]
    hard = rows[head].argmax(axis=1)
    across = 3
    down = -(-(len(heavy) + 1) // across)
    title = f"Rows in slices, layer {layer + 1} of {count}, head {head + 1}: M = {slices}"
    figure = new_figure(3.1 * across + 0.9, 2.7 * down + 1.0, title, origin)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    first, second = pair
    places = showing.values[:, first], showing.values[:, second]
    shades = colours(slices)
    shade = {int(member): shades[position] for position, member in enumerate(ranking)}
    for panel in panels.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=8)
        panel.set_visible(False)
    used, *others = panels.flat[: len(heavy) + 1]
    used.set_visible(True)
    colour = [shade[int(member)] for member in hard]
    used.scatter(*places, c=colour, s=26, edgecolors="0.3", linewidths=0.3)
    used.set_title(f"heaviest slice of each row ({len(set(hard.tolist()))} in use)", fontsize=9.5)
    for panel, member in zip(others, heavy.tolist(), strict=True):
        panel.set_visible(True)
        dots = _share_of_rows(panel, places, rows[head, :, member], float(rows[head].max()), shade[member])
        panel.set_title(f"slice {member + 1}: mass {one.masses[head, member]:.0%}", fontsize=9.5)
    # The lowest panel of each column, which need not stand in the last line.
    for panel in panels.flat[max(0, len(heavy) + 1 - across) : len(heavy) + 1]:
        panel.set_xlabel(plain(pretty(showing.labels[first]), 30), fontsize=10.5)
        panel.tick_params(labelbottom=True)
    for panel in panels[:, 0]:
        panel.set_ylabel(plain(pretty(showing.labels[second]), 30), fontsize=10.5)
    bar(figure, dots, panels, "share of the row in the slice")
    sure = rows.max(axis=2).mean(axis=1)
    return Picture(
        name=name,
        title=f"M = {slices}, layer {layer + 1}: which rows are in which slice",
        caption=(
            f"Each dot is a row of the table, drawn on {showing.labels[first]} and "
            f"{showing.labels[second]}. First, the slice that holds most of each row; then, for the "
            f"heaviest slices, how much of each row it holds. Of {heads} heads the one whose assignment "
            "differs most between rows."
        ),
        alt=(
            f"Scatter plots of {number} rows in {slices} slices. The largest share of a row in one slice is "
            f"{sure[head]:.2f} in the mean (even: {1 / slices:.2f}); by head "
            + ", ".join(f"{value:.2f}" for value in sure)
            + ". Masses of the slices drawn: "
            + ", ".join(f"{one.masses[head, member]:.0%}" for member in heavy)
            + "."
        ),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )


def _share_of_rows(
    axes: Axes, places: tuple[FloatArray, FloatArray], shares: FloatArray, most: float, shade: Colour
) -> PathCollection:
    """The rows on two columns, coloured by their share in one slice; a mark in the slice's own colour."""
    rank = np.argsort(shares, kind="stable")
    dots = axes.scatter(
        places[0][rank], places[1][rank], c=shares[rank], s=26, cmap="magma_r", vmin=0.0,
        vmax=max(1e-6, most), edgecolors="0.5", linewidths=0.3,
    )  # fmt: skip
    # Not the title in that colour: the light ones could not be read.
    axes.plot(
        0.0, 1.055, marker="s", markersize=8, color=shade, markeredgecolor="0.4",
        markeredgewidth=0.4, transform=axes.transAxes, clip_on=False,
    )  # fmt: skip
    return dots


def among(layers: list[Slices], origin: Origin, name: str) -> Picture:
    """Masses of the slices, and how slices attend to each other, for each layer and head."""
    heads, slices = layers[0].masses.shape
    figure = new_figure(
        1.9 * heads + 1.8, 3.0 * len(layers) + 1.4, f"Slices among themselves: M = {slices}", origin
    )
    panels = figure.subplots(2 * len(layers), 1, height_ratios=[1.0, 2.2] * len(layers), squeeze=False)[:, 0]
    said = []
    for layer, one in enumerate(layers):
        order = np.argsort(-one.masses, axis=1, kind="stable")
        masses = np.take_along_axis(one.masses, order, axis=1)
        weights = np.stack([one.attention[head][np.ix_(order[head], order[head])] for head in range(heads)])
        axes, gap = panels[2 * layer], max(1, round(slices / 14))
        for head in range(heads):
            axes.bar(np.arange(slices) + head * (slices + gap), masses[head], width=0.85, color="#0b5394")
        axes.axhline(1.0 / slices, color=QUIET, linewidth=0.8, linestyle=":")
        axes.set_xlim(-0.5, heads * (slices + gap) - gap - 0.5)
        axes.set_xticks([])
        axes.set_ylabel(f"layer {layer + 1}\nmass", fontsize=9)
        axes.tick_params(labelsize=7.5)
        axes.spines[["top", "right"]].set_visible(False)
        values = relative(weights)
        uneven = 0.5 * np.abs(weights - 1.0 / slices).sum(axis=-1).mean()
        image = mosaic(
            panels[2 * layer + 1], values[None], lines=["slice attends"],
            columns=[f"head {head + 1}" for head in range(heads)], left=Side(),
            below=Side(title=f"slice attended to, heaviest first → ({uneven:.2%} of the weight is uneven)"),
            **around_one(values),
        )  # fmt: skip
        even_bar(figure, image, panels[2 * layer + 1])
        if uneven < NEARLY_EVEN:
            panels[2 * layer + 1].text(
                0.5, 0.5, "every slice attends to all slices alike", fontsize=11, color=QUIET,
                ha="center", va="center", transform=panels[2 * layer + 1].transAxes,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85},
            )  # fmt: skip
        filled = np.exp(-(masses * np.log(np.maximum(masses, 1e-30))).sum(axis=1))
        said.append(
            f"layer {layer + 1}: effectively {filled.mean():.1f} of {slices} slices are filled, the "
            f"heaviest holds {masses.max():.0%}"
        )
    return Picture(
        name=name,
        title=f"M = {slices}: masses of slices, and attention among them",
        caption=(
            "Bars: the share of all rows that each slice holds, heaviest first; dotted, an even share. "
            "Maps: how much each slice attends to each other one; white is even attention."
        ),
        alt="; ".join(said).capitalize() + ".",
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )
