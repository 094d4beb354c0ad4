"""Pictures of the encoder: inducing points, pooling, memory, and what they read of the table."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.inspection.attention_reads import (
    effective_rows,
    focus,
    most_relevant_pair,
    over_rows,
    reliance,
)
from physdiffuser.inspection.drawing.figures import (
    SIGNED_MAP,
    Origin,
    Picture,
    Side,
    around_one,
    bar,
    even_bar,
    heat,
    label_axis,
    mosaic,
    new_figure,
    plain,
    png_of,
    relative,
)
from physdiffuser.inspection.session import Showing, pooled_name
from physdiffuser.inspection.tokens import pretty

SECTION = "Encoder"
_CLOSE = 6
_CELL = 0.094
"""Inches that a cell needs for a name beside it."""


def by_place(weights: FloatArray) -> IndexArray:
    """An order of readers, (heads, readers, rows): from those that look at the first rows on."""
    mean = weights.mean(axis=0)
    return np.argsort(mean @ np.arange(mean.shape[1]) / mean.sum(axis=1), kind="stable")


def _heads(count: int) -> list[str]:
    return [f"head {head + 1}" for head in range(count)]


def induced_blocks(showing: Showing, origin: Origin) -> list[Picture]:
    """For every block and head: inducing points from rows, and rows from inducing points."""
    gather, spread = showing.encoder_weights("gather"), showing.encoder_weights("spread")
    found = []
    for layer in range(len(gather)):
        order = by_place(gather[layer])
        upper = relative(gather[layer])[:, order]
        lower = relative(spread[layer])[..., order].transpose(0, 2, 1)
        heads, points, rows = upper.shape
        figure = new_figure(
            2.1 * heads + 1.4, 5.8, f"Induced attention, block {layer + 1} of {len(gather)}", origin
        )
        panels = figure.subplots(2, 1)
        below = f"rows of the table, by rising {plain(pretty(showing.subject.target_name), 20)} →"
        for panel, values, what, title in (
            (panels[0], upper, "points ← rows", ""),
            (panels[1], lower, "rows ← points", below),
        ):
            image = mosaic(
                panel, values[None], lines=[f"{what}\ninducing point"], columns=_heads(heads),
                left=Side(), below=Side(title=title), **around_one(values),
            )  # fmt: skip
            even_bar(figure, image, panel)
        seen = effective_rows(gather[layer])
        uneven = 0.5 * np.abs(lower / points - 1.0 / points).sum(axis=1).mean()
        found.append(
            Picture(
                name=f"encoder-block-{layer + 1}",
                title=f"Block {layer + 1}: rows and inducing points",
                caption=(
                    f"Above, what each of the {points} inducing points takes from the {rows} rows (each "
                    "line sums to 1); below, what each row takes back from them (each column sums to 1). "
                    "Rows stand by rising target, inducing points by where they look. White is what "
                    f"attending to all alike would give. On the way back {uneven:.1%} of the weight is "
                    "uneven."
                ),
                alt=(
                    f"Heat maps for {heads} heads. An inducing point attends to {np.median(seen):.0f} of "
                    f"{rows} rows in the median over points and heads (exponential of the entropy), at "
                    f"{seen.min():.0f} where it is choosiest. On the way back {uneven:.0%} of a row's "
                    "attention differs from an even one."
                ),
                png=png_of(figure, origin.dpi),
                section=SECTION,
            )
        )
    return found


def pooling(showing: Showing, origin: Origin) -> Picture:
    """What each memory vector takes from the rows."""
    weights = showing.encoder_weights("pooling")[0]
    order = by_place(weights)
    values = relative(weights)[:, order]
    heads, vectors, rows = values.shape
    figure = new_figure(2.1 * heads + 1.4, 3.6, "Pooling: memory vectors ← rows", origin)
    axes = figure.subplots()
    below = f"rows of the table, by rising {plain(pretty(showing.subject.target_name), 20)} →"
    image = mosaic(
        axes, values[None], lines=["memory vector"], columns=_heads(heads),
        left=Side([pooled_name(index) for index in order]), below=Side(title=below), **around_one(values),
    )  # fmt: skip
    even_bar(figure, image, axes)
    seen = effective_rows(weights)
    return Picture(
        name="encoder-pooling",
        title="Pooling by multihead attention",
        caption=(
            f"What each of the {vectors} memory vectors, all that the generators get of single rows, takes "
            "from the rows. Each line sums to 1; white is what attending to all alike would give."
        ),
        alt=(
            f"Heat maps for {heads} heads. A memory vector attends to {np.median(seen):.0f} of {rows} rows "
            f"in the median, between {seen.min():.0f} and {seen.max():.0f}."
        ),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )


def mixing(showing: Showing, origin: Origin) -> Picture | None:
    """How the memory attends to itself, or None where the encoder has no such layer."""
    if not showing.has("mixing"):
        return None
    kept, names = showing.keys
    weights = showing.encoder_weights("mixing")[..., kept, :][..., kept]
    values = relative(weights)
    layers, heads = values.shape[:2]
    side = max(2.0, _CELL * len(kept))
    figure = new_figure(1.08 * side * heads + 1.6, 1.08 * side * layers + 1.2, "Memory ← memory", origin)
    memory = showing.networks.model.config.encoder.memory
    labels = [
        pretty(name) if index >= memory or index in (0, memory - 1) else ""
        for index, name in zip(kept, names, strict=True)
    ]
    axes = figure.subplots()
    image = mosaic(
        axes, values, lines=[f"layer {layer + 1}" for layer in range(layers)], columns=_heads(heads),
        left=Side(labels, 6.0), below=Side(labels, 6.0, rotation=90), **around_one(values),
    )  # fmt: skip
    even_bar(figure, image, axes)
    summaries = [position for position, index in enumerate(kept) if index >= memory]
    received = weights[..., summaries].sum(axis=-1).mean()
    return Picture(
        name="encoder-memory",
        title="Memory among itself",
        caption=(
            f"The memory holds {memory} pooled vectors (#1 to #{memory}) and one summary for each column "
            "and for the table. Each line is a token that attends, each column of cells a token attended to."
        ),
        alt=(
            f"Heat maps for {layers} layers of {heads} heads. Summaries of columns and table receive "
            f"{received:.0%} of all attention and are {len(summaries)} of {len(kept)} tokens."
        ),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )


def readers(
    showing: Showing, origin: Origin, kind: str = "gather"
) -> tuple[Picture, dict[str, list[list[float]]]]:
    """Which columns and which rows each inducing point (or slice) reads; also the numbers, by layer."""
    noun = "inducing point" if kind == "gather" else "slice"
    distributions = over_rows(showing, showing.encoder_weights(kind))
    hangs = reliance(showing, kind)
    where = focus(distributions, showing.values).mean(axis=1)
    layers, _, columns = hangs.shape
    width = 0.62 * columns + 1.6
    figure = new_figure(
        max(8.6, 2 * width + 1.0), 2.9 * layers + 1.2, f"What each {noun} reads of the table", origin
    )
    panels = figure.subplots(layers, 2, squeeze=False)
    top = max(0.1, float(hangs.max()))
    reach = max(0.25, float(np.quantile(np.abs(where), 0.995)))
    for layer in range(layers):
        order = np.argsort(-hangs[layer].max(axis=1), kind="stable")
        left = heat(panels[layer, 0], hangs[layer][order], vmin=0.0, vmax=top, cmap="viridis")
        right = heat(panels[layer, 1], where[layer][order], vmin=-reach, vmax=reach, cmap=SIGNED_MAP)
        for panel in panels[layer]:
            label_axis(
                panel.xaxis,
                [pretty(name) for name in showing.labels],
                size=9.5,
                rotation=0 if columns < 7 else 45,
            )
            label_axis(panel.yaxis, [str(index + 1) for index in order], size=5.5)
            panel.axvline(columns - 1.5, color="black", linewidth=0.8)
        panels[layer, 0].set_ylabel(f"layer {layer + 1}: {noun}", fontsize=9)
        bar(figure, left, panels[layer, 0], "attention moved")
        bar(figure, right, panels[layer, 1], "rows read: mean, in sd")
    panels[0, 0].set_title("columns that decide which rows are read", fontsize=10)
    panels[0, 1].set_title("where these rows lie along each column", fontsize=10)
    shares = {name: hangs[:, :, index].mean() for index, name in enumerate(showing.labels)}
    ranking = sorted(shares, key=lambda name: -shares[name])
    picture = Picture(
        name="encoder-reads",
        title=f"Which columns and rows each {noun} reads",
        caption=(
            "Left: one column at a time is shuffled over the rows and the table is read again; the colour "
            f"says what share of the attention of the {noun} goes to other rows then (0: the column has no "
            "part in the choice). Right: the mean of each column over the rows read, weighted with the "
            "attention, in standard deviations from the mean of all rows. The target is the last column."
        ),
        alt=(
            "Two heat maps a layer. Averaged over layers and "
            + noun
            + "s, shuffling moves this share of the attention: "
            + ", ".join(f"{name} {shares[name]:.2f}" for name in ranking)
            + "."
        ),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )
    return picture, {"reliance": hangs.mean(axis=1).tolist()}


def close_up(showing: Showing, origin: Origin, pair: tuple[int, int] | None) -> Picture:
    """Choosy inducing points of the last block that differ: their rows on two columns of the table."""
    weights = over_rows(showing, showing.encoder_weights("gather"))[-1]
    first, second = pair or most_relevant_pair(showing)
    rows = effective_rows(weights)
    chosen = _unlike(weights, rows)
    values = relative(weights)
    figure = new_figure(10.5, 6.6, "Rows read by choosy points of the last block", origin)
    panels = figure.subplots(2, 3, sharex=True, sharey=True)
    colours = around_one(np.stack([values[place] for place in chosen]))
    top = float(colours["norm"].vmax)
    for panel, (head, point) in zip(panels.flat, chosen, strict=False):
        strength = values[head, point]
        rank = np.argsort(strength, kind="stable")
        dots = panel.scatter(
            showing.values[rank, first],
            showing.values[rank, second],
            c=strength[rank],
            s=16 + 60 * np.minimum(strength[rank] / top, 1.0),
            edgecolors="0.45",
            linewidths=0.4,
            **colours,
        )
        panel.set_title(f"point {point + 1}, head {head + 1}: {about(rows[head, point])}", fontsize=10)
        panel.tick_params(labelsize=8.5)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[-1]:
        panel.set_xlabel(plain(pretty(showing.labels[first]), 30), fontsize=11)
    for panel in panels[:, 0]:
        panel.set_ylabel(plain(pretty(showing.labels[second]), 30), fontsize=11)
    even_bar(figure, dots, panels)
    return Picture(
        name="encoder-rows",
        title="Choosy points, row by row",
        caption=(
            f"Each dot is a row of the table, drawn on {showing.labels[first]} and "
            f"{showing.labels[second]}; red and large: the point takes more than an even share of it. The "
            "choosiest point comes first, then those among the choosy that differ most from the ones "
            "before."
        ),
        alt=(
            "Scatter plots. "
            + "; ".join(
                f"point {point + 1} attends to {about(rows[head, point])} of {weights.shape[-1]}"
                for head, point in chosen
            )
            + "."
        ),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )


def about(rows: float) -> str:
    """A number of rows in words."""
    count = round(rows)
    return f"about {count} row{'' if count == 1 else 's'}"


def _unlike(weights: FloatArray, rows: FloatArray) -> list[tuple[int, int]]:
    """(head, reader) of the choosiest reader, then of choosy ones far from those taken, readers once each."""
    heads, readers = rows.shape
    choosy = [(h, r) for h in range(heads) for r in range(readers) if rows[h, r] <= np.median(rows)]
    taken = [min(choosy, key=lambda place: float(rows[place]))]
    while len(taken) < min(_CLOSE, readers):
        left = [place for place in choosy if place[1] not in {reader for _, reader in taken}]
        if not left:
            break
        far = [min(float(np.abs(weights[place] - weights[other]).sum()) for other in taken) for place in left]
        taken.append(left[int(np.argmax(far))])
    return taken
