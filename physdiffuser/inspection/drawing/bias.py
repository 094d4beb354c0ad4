"""Pictures of biased attention: the bias, what it changes, and what was learned of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.inspection.biases import Bias, layers_of
from physdiffuser.inspection.drawing.figures import (
    SIGNED_MAP,
    WARNING,
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
from physdiffuser.inspection.session import Showing
from physdiffuser.inspection.tokens import pretty

SECTION = "Bias"
_ALPHA, _BETA = "alpha, strength of the barrier", "beta, gate"


def pictures(showing: Showing, origin: Origin, others: Sequence[Showing] = ()) -> list[Picture]:
    """All pictures of biases; none where the encoder's attention has no bias.

    Parameters
    ----------
    showing, origin
        The encoder that is looked at, and what its pictures say of it.
    others
        Encoders with another bias, shown the same rows.
    """
    found: list[Picture] = []
    for one in (showing, *others):
        layers = layers_of(one)
        if layers:
            beside = "" if one is showing or one.networks.folder is None else f"{one.networks.folder.name}-"
            seen = origin if one is showing else replace(origin, weights=one.networks.label)
            found += [
                matrices(one, bias, layer, len(layers), seen, f"bias-{beside}{layer + 1}")
                for layer, bias in enumerate(layers)
            ]
            found.append(learned(layers, seen, f"bias-{beside}learned"))
    return found


def matrices(showing: Showing, one: Bias, layer: int, count: int, origin: Origin, name: str) -> Picture:
    """Bias, weights with it and weights without it, for each head."""
    order = np.ix_(np.arange(len(one.bias)), showing.order, showing.order)
    bias, biased, free = one.bias[order], one.with_bias[order], one.without[order]
    heads = len(bias)
    form = one.form if one.beta is None else f"{one.form} with a gate"
    title = f"Biased attention ({form}), layer {layer + 1} of {count}"
    figure = new_figure(2.0 * heads + 1.9, 7.4, title, origin)
    panels = figure.subplots(3, 1)
    names = [f"head {head + 1}" for head in range(heads)]
    reach = max(1e-6, float(np.quantile(np.abs(bias), 0.995)))
    image = mosaic(
        panels[0], bias[None], lines=["bias\non the logit"], columns=names, left=Side(), below=Side(),
        vmin=-reach, vmax=reach, cmap=SIGNED_MAP,
    )  # fmt: skip
    bar(figure, image, panels[0], "bias")
    both = around_one(relative(np.stack([biased, free])))
    for panel, values, line in (
        (panels[1], biased, "weights\nwith bias"),
        (panels[2], free, "weights\nwithout"),
    ):
        below = f"row attended to, by rising {plain(pretty(showing.subject.target_name), 20)} →"
        image = mosaic(
            panel, relative(values)[None], lines=[line], columns=names, left=Side(),
            below=Side(title=below if panel is panels[2] else ""), **both,
        )  # fmt: skip
        even_bar(figure, image, panel)
    return Picture(
        name=name,
        title=f"Layer {layer + 1}: the bias ({form}) and what it changes",
        caption=(
            "Rows stand by rising target both ways. Above, what is added to the logits before the softmax; "
            "then the attention weights, and what they would be for the same vectors without the bias. "
            "White is even attention."
        ),
        alt=(
            f"Heat maps for {heads} heads. The bias moves this share of the attention, by head: "
            + ", ".join(f"{value:.0%}" for value in one.moved)
            + f". It lies between {bias.min():.2f} and {bias.max():.2f}."
        ),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )


def learned(layers: list[Bias], origin: Origin, name: str) -> Picture:
    """Strength, gate, and share of the attention moved, for each layer and head."""
    series = {"attention moved by the bias": [one.moved for one in layers]}
    if all(one.alpha is not None for one in layers):
        series[_ALPHA] = [one.alpha for one in layers if one.alpha is not None]
    if all(one.beta is not None for one in layers):
        series[_BETA] = [one.beta for one in layers if one.beta is not None]
    figure = new_figure(4.2 * len(series) + 0.6, 3.8, "What was learned of the bias", origin)
    panels = np.atleast_1d(figure.subplots(1, len(series)))
    heads = len(layers[0].moved)
    began = {_ALPHA: layers[0].began, _BETA: 0.0}
    for panel, (what, values) in zip(panels, series.items(), strict=True):
        for layer, numbers in enumerate(values):
            places = np.arange(heads) + (layer - (len(layers) - 1) / 2) * 0.8 / len(layers)
            label = f"layer {layer + 1}" if len(layers) > 1 else None
            panel.bar(places, numbers, width=0.75 / len(layers), color=f"C{layer}", label=label)
        panel.set_title(what, fontsize=10.5)
        if what in began:
            panel.axhline(began[what], color=WARNING, linewidth=1.2, linestyle="--", label="at the start")
            panel.margins(y=0.25)
            for head, value in enumerate(values[0] if len(values) == 1 else ()):
                panel.annotate(
                    f"{value:.3f}", (head, value), xytext=(0, 5 if value >= 0 else -12), fontsize=8,
                    textcoords="offset points", ha="center",
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
                )  # fmt: skip
        panel.set_xticks(range(heads), [str(head + 1) for head in range(heads)], fontsize=9)
        panel.set_xlabel("head")
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=9)
        panel.axhline(0.0, color="0.4", linewidth=0.6)
    if len(layers) > 1 or _ALPHA in series:
        panels[-1].legend(frameon=False, fontsize=9, loc="upper right", ncols=2)
    gate = "" if _BETA in series else " These weights have no gate (beta)."
    strength = "" if _ALPHA in series else " The relative form has no alpha."
    return Picture(
        name=name,
        title="Learned strength" if _BETA not in series else "Learned strength and gate",
        caption=(
            "Share of the attention that the bias moves (mean total-variation distance between weights with "
            f"and without it), and its learned parameters, by layer and head; dashed, where they began."
            f"{gate}{strength}"
        ),
        alt="; ".join(
            f"{what}: " + " / ".join(", ".join(f"{value:.3f}" for value in numbers) for numbers in values)
            for what, values in series.items()
        )
        + (f"; alpha began at {layers[0].began:.3f}." if _ALPHA in series else "."),
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )
