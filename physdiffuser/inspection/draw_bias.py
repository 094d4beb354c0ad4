"""Pictures of biased attention: the bias, what it changes, and what was learned of it."""

from __future__ import annotations

import numpy as np

from physdiffuser.inspection.biases import Bias, layers_of
from physdiffuser.inspection.draw import (
    SIGNED_MAP,
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


def pictures(showing: Showing, origin: Origin) -> list[Picture]:
    """All pictures of biases; none where the encoder's attention has no bias."""
    layers = layers_of(showing)
    if not layers:
        return []
    found = [matrices(showing, one, layer, len(layers), origin) for layer, one in enumerate(layers)]
    return [*found, learned(layers, origin)]


def matrices(showing: Showing, one: Bias, layer: int, count: int, origin: Origin) -> Picture:
    """Bias, weights with it and weights without it, for each head."""
    order = np.ix_(np.arange(len(one.bias)), showing.order, showing.order)
    bias, biased, free = one.bias[order], one.with_bias[order], one.without[order]
    heads = len(bias)
    figure = new_figure(
        2.0 * heads + 1.9, 7.4, f"Biased attention ({one.form}), layer {layer + 1} of {count}", origin
    )
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
        name=f"bias-{layer + 1}",
        title=f"Layer {layer + 1}: the bias and what it changes",
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


def learned(layers: list[Bias], origin: Origin) -> Picture:
    """Strength, gate, and share of the attention moved, for each layer and head."""
    series = {"attention moved by the bias": [one.moved for one in layers]}
    if all(one.alpha is not None for one in layers):
        series["alpha, strength of the barrier"] = [one.alpha for one in layers if one.alpha is not None]
    if all(one.beta is not None for one in layers):
        series["beta, gate"] = [one.beta for one in layers if one.beta is not None]
    figure = new_figure(4.2 * len(series) + 0.6, 3.8, "What was learned of the bias", origin)
    panels = np.atleast_1d(figure.subplots(1, len(series)))
    heads = len(layers[0].moved)
    for panel, (name, values) in zip(panels, series.items(), strict=True):
        for layer, numbers in enumerate(values):
            places = np.arange(heads) + (layer - (len(layers) - 1) / 2) * 0.8 / len(layers)
            panel.bar(places, numbers, width=0.75 / len(layers), label=f"layer {layer + 1}")
        panel.set_title(name, fontsize=10.5)
        panel.set_xticks(range(heads), [f"head {head + 1}" for head in range(heads)], fontsize=9)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=9)
        panel.axhline(0.0, color="0.4", linewidth=0.6)
    if len(layers) > 1:
        panels[0].legend(frameon=False, fontsize=9)
    gate = "" if "beta, gate" in series else " These weights have no gate (beta)."
    strength = "" if any("alpha" in name for name in series) else " The relative form has no alpha."
    return Picture(
        name="bias-learned",
        title="Learned strength",
        caption=(
            "Share of the attention that the bias moves (mean total-variation distance between weights with "
            f"and without it), and its learned parameters, by layer and head.{gate}{strength}"
        ),
        alt="; ".join(
            f"{name}: " + " / ".join(", ".join(f"{value:.2f}" for value in numbers) for numbers in values)
            for name, values in series.items()
        )
        + ".",
        png=png_of(figure, origin.dpi),
        section=SECTION,
    )
