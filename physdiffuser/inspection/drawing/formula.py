"""Pictures of the generators: attention over a formula and its table, and the way to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch, Rectangle

from physdiffuser.arrays import FloatArray
from physdiffuser.inspection.capture import Capture
from physdiffuser.inspection.drawing.figures import (
    INK,
    KIND_COLOURS,
    KIND_INK,
    QUIET,
    WARNING,
    Origin,
    Picture,
    Side,
    bar,
    heat,
    mosaic,
    new_figure,
    plain,
    png_of,
)
from physdiffuser.inspection.session import Showing
from physdiffuser.inspection.tokens import KINDS, kind_of, pretty, shown_formula, shown_tokens
from physdiffuser.inspection.trajectories import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_KIND_NAMES = {
    "variable": "variables",
    "constant": "constants",
    "binary": "binary operators",
    "unary": "unary operators",
}


def attention_grid(
    showing: Showing,
    heard: Capture,
    part: str,
    kind: str,
    tokens: Sequence[str],
    origin: Origin,
) -> Picture:
    """One panel for each layer and head.

    Parameters
    ----------
    part
        "denoiser" or "decoder".
    kind
        "self" or "cross".
    """
    weights = heard.weights(part, kind)[:, 0].double().numpy()
    queries = shown_tokens(tokens, showing.reading, showing.subject.names)
    keys = queries
    names = [pretty(key) for key in keys]
    if kind == "cross":
        kept, keys = showing.keys
        weights = weights[..., kept]
        names = thinned(keys, showing.networks.model.config.encoder.memory)
    layers, heads, length, width = weights.shape
    causal = part == "decoder" and kind == "self"
    hidden = np.triu(np.ones((length, width), dtype=np.bool_), 1) if causal else None
    what = "itself" if kind == "self" else "the table's memory"
    # A cell must stay tall and wide enough for its token.
    cell = 0.105 if max(length, width) > 14 else 0.125
    panel_width, panel_height = max(1.6, cell * width), max(1.2, cell * length)
    title = f"{part.capitalize()}: the formula attends to {what}"
    figure = new_figure(1.08 * panel_width * heads + 2.2, 1.08 * panel_height * layers + 1.6, title, origin)
    seen = weights if hidden is None else weights[..., ~hidden]
    top = min(1.0, max(0.2, float(np.quantile(seen, 0.995))))
    axes = figure.subplots()
    image = mosaic(
        axes, weights, lines=[f"layer {layer + 1}" for layer in range(layers)],
        columns=[f"head {head + 1}" for head in range(heads)], left=Side(queries),
        below=Side(names, 8.0, rotation=90), hidden=hidden, vmin=0.0, vmax=top,
    )  # fmt: skip
    bar(figure, image, axes, "attention weight")
    spread = _entropy(weights, causal)
    future = " The future, which the decoder must not see, is blue-grey." if causal else ""
    nothing = " A dot is a mask." if "<mask>" in tokens else ""
    return Picture(
        name=f"{part}-{kind}",
        title=f"{part.capitalize()}, {kind}-attention",
        caption=(
            "Each line is a token of the formula that attends, each column what it attends to; lines sum to "
            f"1.{nothing}{future}"
            + (
                " #1, #2, ... are pooled memory vectors; then summaries of columns and table."
                if kind == "cross"
                else ""
            )
        ),
        alt=(
            f"Heat maps for {layers} layers of {heads} heads over the tokens {' '.join(queries)}. Mean "
            "entropy over its largest possible value by layer: "
            f"{', '.join(f'{value:.2f}' for value in spread)}; the largest weight is {weights.max():.2f}."
        ),
        png=png_of(figure, origin.dpi),
        section=part.capitalize(),
    )


def thinned(keys: Sequence[str], pooled: int) -> list[str]:
    """Names of what is attended to; of the pooled vectors, which come first, the first and every fifth."""
    return [
        pretty(key) if place >= pooled or place == 0 or place % 5 == 4 else ""
        for place, key in enumerate(keys)
    ]


def _entropy(weights: FloatArray, causal: bool) -> list[float]:
    from physdiffuser.inspection.statistics import relative_entropy

    return [float(np.nanmean(relative_entropy(layer, causal))) for layer in weights]


def trajectory(showing: Showing, path: Trajectory, origin: Origin) -> Picture:
    """What stands where after every step, above how sure the network was."""
    names = showing.networks.model.vocabulary.tokens
    steps, places = path.confidence.shape
    words = [
        shown_tokens([names[token] for token in state], showing.reading, showing.subject.names)
        for state in path.states
    ]
    kinds = [[kind_of(names[token]) for token in state] for state in path.states]
    formula = "a formula"
    if path.written is not None:
        formula = shown_formula(
            [names[token] for token in path.written], showing.reading, showing.subject.names
        )
    title = f"From all masks to {plain(formula, 60)}" + (" (repaired)" if path.projected else "")
    size = max(0.42 * (steps + 1) + 2.3, 8.5), max(0.205 * places * 2 + 2.4, 6.0)
    figure = new_figure(*size, title, origin)
    upper, lower = figure.subplots(2, 1, sharex=True)
    _draw_tokens(upper, path, words, kinds)
    image = _draw_confidence(lower, path)
    for axes, label in ((upper, "what stands there"), (lower, "how sure")):
        axes.set_ylim(places - 0.5, -0.5)
        axes.set_xlim(-0.5, steps + 0.5)
        axes.set_ylabel(f"{label}\nplace in the formula", fontsize=9.5)
        axes.set_yticks(range(places), [str(place + 1) for place in range(places)], fontsize=7)
        axes.tick_params(labelsize=7.5, length=2)
    upper.tick_params(labelbottom=False)
    lower.set_xticks(range(steps + 1), ["start", *[str(step) for step in range(1, steps + 1)]], fontsize=7.5)
    lower.set_xlabel("step", fontsize=10)
    bar(figure, image, [lower], "probability")
    again = int(path.remasked.sum())
    order = path.resolved()
    first = [
        words[-1][place] for place in np.argsort(order, kind="stable") if kinds[-1][place] not in ("special",)
    ]
    return Picture(
        name="trajectory",
        title="A refinement trajectory",
        caption=(
            "Above: the window after every step, from all masks (grey) to the formula, read downwards in "
            "prefix order (operator, then its arguments). Below: the probability of the likeliest token at "
            "each mask; a frame marks the step that put a token there, which keeps its value, paler, from "
            "then on. "
            + (f"Crosses: {again} tokens that were taken back." if again else "No token was taken back.")
            + (
                " The last state is no formula; the likeliest one near it was taken."
                if path.projected
                else ""
            )
        ),
        alt=(
            f"{places} places filled in {steps} steps. Formula tokens in the order in which they were "
            f"filled for good: {', '.join(first)}. Tokens taken back: {again}."
        ),
        png=png_of(figure, origin.dpi),
        section="Refinement",
    )


def _draw_tokens(axes: Axes, path: Trajectory, words: list[list[str]], kinds: list[list[str]]) -> None:
    """A cell for each place and step, in the colour of its kind of token; crosses where it was taken back."""
    for step, state in enumerate(kinds):
        for place, kind in enumerate(state):
            word, fresh = words[step][place], step > 0 and path.revealed[step - 1, place]
            axes.add_patch(_cell(step, place, facecolor=KIND_COLOURS[kind], edgecolor="white", linewidth=0.6))
            if kind != "masked":
                # A token keeps its colour; its name is written large where it appears, and small afterwards.
                axes.text(
                    step, place, plain(word, 8), ha="center", va="center", color=KIND_INK[kind],
                    fontsize=(8.0 if len(word) < 5 else 6.0), fontweight="bold" if fresh else "normal",
                    alpha=1.0 if fresh else 0.6,
                )  # fmt: skip
            if step > 0 and path.remasked[step - 1, place]:
                axes.plot(step, place, marker="x", color=WARNING, markersize=6, markeredgewidth=1.6)
    handles = [Patch(facecolor=KIND_COLOURS[kind], edgecolor="0.6", linewidth=0.4) for kind in KINDS]
    if path.remasked.any():
        axes.plot([], [], "x", color=WARNING, markersize=6, markeredgewidth=1.6, label="masked again")
    extra, labels = axes.get_legend_handles_labels()
    axes.legend(
        [*handles, *extra], [*KINDS, *labels], ncols=7, fontsize=8, frameon=False,
        loc="lower center", bbox_to_anchor=(0.5, 1.0), handlelength=1.2, columnspacing=1.2,
    )  # fmt: skip


def _draw_confidence(axes: Axes, path: Trajectory) -> AxesImage:
    """Probabilities by place and step; a frame marks the step that filled a place."""
    steps, places = path.confidence.shape
    # In a frame of steps + 1 columns, so that both panels share one axis; nothing was asked before step 1.
    sure = np.full((places, steps + 1), np.nan)
    sure[:, 1:] = path.confidence.T
    # What stands was decided before: only what a step still has to say is drawn in full.
    decided = np.ones_like(sure)
    decided[:, 2:] = np.where(path.states[0, 0] != path.states[1:-1].T, 0.4, 1.0)
    image = heat(axes, np.ma.masked_invalid(sure), alpha=decided, vmin=0.0, vmax=1.0, cmap="viridis")
    for step, place in zip(*np.nonzero(path.revealed), strict=True):
        for colour, width in (("white", 1.6), (INK, 0.7)):
            axes.add_patch(_cell(step + 1, place, fill=False, edgecolor=colour, linewidth=width))
    return image


def _cell(step: int, place: int, **options: Any) -> Rectangle:
    return Rectangle((step - 0.5, place - 0.5), 1.0, 1.0, **options)


def resolution_order(found: dict[str, list[float]], total: int, origin: Origin) -> Picture:
    """Share of the tokens of each kind that are in place, over the steps."""
    figure = new_figure(7.6, 4.6, "What is decided first", origin)
    axes = figure.subplots()
    medians = {}
    for kind in ("constant", "variable", "binary", "unary"):
        steps = np.sort(found.get(kind, []))
        if not steps.size:
            continue
        medians[kind] = float(np.median(steps))
        axes.step(
            np.concatenate([[0.0], steps, [1.0]]),
            np.concatenate([[0.0], np.arange(1, len(steps) + 1) / len(steps), [1.0]]),
            where="post", color=KIND_COLOURS[kind], linewidth=2.2,
            label=f"{_KIND_NAMES[kind]} ({len(steps)})",
        )  # fmt: skip
    axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, linestyle=":")
    axes.set_xlabel("share of the steps taken", fontsize=10)
    axes.set_ylabel("share of these tokens in place", fontsize=10)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if medians:
        axes.legend(frameon=False, fontsize=9.5, loc="upper left")
    ranking = sorted(medians, key=lambda kind: medians[kind])
    return Picture(
        name="resolution-order",
        title="What is decided first",
        caption=(
            f"Of {total} windows that ended in a formula: the share of operators, variables and constants "
            "that had been put in place for good, over the steps. A line to the upper left is decided "
            "early. One table only: its tokens depend on each other, so no interval is drawn; --suite gives "
            "intervals."
        ),
        alt=(
            "Medians of the share of steps after which tokens stand: "
            + (
                ", ".join(f"{_KIND_NAMES[kind]} {medians[kind]:.2f}" for kind in ranking)
                or "no window ended in a formula"
            )
            + "."
        ),
        png=png_of(figure, origin.dpi),
        section="Refinement",
    )
