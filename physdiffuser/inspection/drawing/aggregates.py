"""Pictures of statistics over a suite: every number with its interval, and random weights beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from physdiffuser.inspection.aggregate import MEMORY_KINDS, LawStatistics
from physdiffuser.inspection.drawing.figures import (
    CONTROL_COLOUR,
    QUIET,
    TRAINED_COLOUR,
    Origin,
    Picture,
    new_figure,
    png_of,
)
from physdiffuser.inspection.statistics import interval, ratio_interval, share_interval
from physdiffuser.inspection.tokens import KINDS

SECTION = "Over the suite"
Three = tuple[float, float, float]
Group = Sequence[LawStatistics]
_PARTS = ("denoiser self", "denoiser cross", "decoder self", "decoder cross")
_NOTE = (
    "Bars are 95 % bootstrap intervals over laws, wide where there are few; grey: the same networks with "
    "random weights."
)


def _dots(
    axes: Any, places: Any, values: Sequence[Three], colour: str, label: str, across: bool = False
) -> None:
    numbers = np.array(values, dtype=np.float64)
    middle, low, high = numbers.T
    error = np.abs(np.stack([middle - low, high - middle]))
    options = {"fmt": "o", "color": colour, "label": label, "markersize": 5, "capsize": 2.5, "linewidth": 1.3}
    if across:
        axes.errorbar(middle, places, xerr=error, **options)
    else:
        axes.errorbar(places, middle, yerr=error, **options)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.22, linewidth=0.6, axis="x" if across else "y")
    axes.tick_params(labelsize=9)


def _text(value: Three) -> str:
    if np.isnan(value[1]):
        return f"{value[0]:.2f} (one law)"
    return f"{value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]"


def _present(found: Group) -> list[str]:
    return [part for part in _PARTS if any(part in one.entropy for one in found)]


def entropies(trained: Group, control: Group) -> dict[str, dict[str, dict[str, Three]]]:
    """Relative entropy by part, tier ("all" too) and "trained" or "random"."""
    groups = [*dict.fromkeys(one.group for one in trained)]
    result: dict[str, dict[str, dict[str, Three]]] = {}
    for part in _present(trained):
        result[part] = {}
        for group in [*groups, "all"]:
            result[part][group] = {
                name: share_interval(
                    np.array([one.entropy[part] for one in found if group in (one.group, "all")])
                )
                for name, found in (("trained", trained), ("random", control))
            }
    return result


def draw_entropies(
    numbers: dict[str, dict[str, dict[str, Three]]], laws: dict[str, int], origin: Origin
) -> Picture:
    """One panel a part, one place a tier; `laws` counts them by tier and in "all"."""
    figure = new_figure(3.1 * len(numbers) + 0.8, 4.2, "How much attention chooses", origin)
    panels = np.atleast_1d(figure.subplots(1, len(numbers), sharey=True))
    for panel, (part, groups) in zip(panels, numbers.items(), strict=True):
        places = np.arange(len(groups))
        for shift, name, colour in ((0.1, "random", CONTROL_COLOUR), (-0.1, "trained", TRAINED_COLOUR)):
            _dots(panel, places + shift, [groups[group][name] for group in groups], colour, name)
        panel.set_xticks(
            places, [f"{group} ({laws[group]})" for group in groups], rotation=35, ha="right", fontsize=9
        )
        panel.set_title(part.replace(" ", ", ") + "-attention", fontsize=10.5)
        panel.set_ylim(0.0, 1.05)
    panels[0].set_ylabel("entropy / largest possible", fontsize=10)
    panels[0].legend(frameon=False, fontsize=9, loc="lower left")
    found = "; ".join(f"{part} {_text(groups['all']['trained'])}" for part, groups in numbers.items())
    control = "; ".join(f"{part} {_text(groups['all']['random'])}" for part, groups in numbers.items())
    return Picture(
        "entropy",
        "Entropy by tier",
        "1: a token attends to everything alike; 0: to one thing. Means over layers, heads and tokens. "
        f"In brackets the number of laws. {_NOTE}",
        f"Over {laws['all']} laws: {found}. Random weights: {control}.",
        png_of(figure, origin.dpi),
        SECTION,
    )


def receipts(trained: Group, control: Group) -> dict[str, dict[str, dict[str, Three]]]:
    """Attention received over the even share, by part, kind of key and "trained" or "random"."""
    result: dict[str, dict[str, dict[str, Three]]] = {}
    for part in _present(trained):
        kinds = KINDS if part.endswith("self") else MEMORY_KINDS
        result[part] = {}
        for index, kind in enumerate(kinds):
            pairs = {
                name: (
                    np.array([one.got[part][index] for one in found]),
                    np.array([one.even[part][index] for one in found]),
                )
                for name, found in (("trained", trained), ("random", control))
            }
            if np.nansum(pairs["trained"][1]) > 0:
                result[part][kind] = {name: ratio_interval(*pair) for name, pair in pairs.items()}
    return result


def draw_receipts(numbers: dict[str, dict[str, dict[str, Three]]], laws: int, origin: Origin) -> Picture:
    """One panel a part, one line a kind of key, 1 for the even share."""
    figure = new_figure(3.4 * len(numbers) + 0.4, 3.9, "Who is attended to", origin)
    panels = np.atleast_1d(figure.subplots(1, len(numbers)))
    for panel, (part, kinds) in zip(panels, numbers.items(), strict=True):
        places = np.arange(len(kinds))[::-1]
        for shift, name, colour in ((-0.12, "random", CONTROL_COLOUR), (0.12, "trained", TRAINED_COLOUR)):
            _dots(panel, places + shift, [kinds[kind][name] for kind in kinds], colour, name, across=True)
        panel.axvline(1.0, color=QUIET, linewidth=0.9, linestyle=":")
        panel.set_yticks(places, list(kinds), fontsize=9.5)
        panel.set_ylim(-0.6, len(kinds) - 0.4)
        panel.set_xlim(left=0.0)
        panel.set_title(part.replace(" ", ", ") + "-attention", fontsize=10.5)
        panel.set_xlabel("attention received / share of keys", fontsize=9.5)
    panels[-1].legend(frameon=False, fontsize=9, loc="upper right")
    found = "; ".join(
        f"{part}: " + ", ".join(f"{kind} {_text(both['trained'])}" for kind, both in kinds.items())
        for part, kinds in numbers.items()
    )
    return Picture(
        "received",
        "Attention received by kind of token",
        "Attention that a kind of token receives, over the share of such tokens among all that could be "
        f"attended to: 1 is what even attention gives. {_NOTE}",
        f"Over {laws} laws. {found}.",
        png_of(figure, origin.dpi),
        SECTION,
    )


def agreements(trained: Group, control: Group) -> dict[str, dict[str, dict[str, list[Three]]]]:
    """By part, baseline ("shuffled", "same distance") and "trained" or "random": each head's surplus."""
    result: dict[str, dict[str, dict[str, list[Three]]]] = {}
    for part in ("denoiser", "decoder"):
        if not any(part in one.tree for one in trained):
            continue
        result[part] = {}
        for baseline, (edge, chance) in (("shuffled", (0, 1)), ("same distance", (2, 3))):
            result[part][baseline] = {}
            for name, found in (("trained", trained), ("random", control)):
                values = np.stack([one.tree[part][edge] - one.tree[part][chance] for one in found])
                result[part][baseline][name] = [interval(head) for head in values.T]
    return result


def counts(values: Sequence[Three]) -> tuple[int, int]:
    """Heads whose interval lies above 0, and below."""
    return sum(low > 0 for _, low, _ in values), sum(high < 0 for _, _, high in values)


def draw_agreements(
    numbers: dict[str, dict[str, dict[str, list[Three]]]], heads: int, laws: int, origin: Origin
) -> Picture:
    """One panel a part and baseline, one place a head."""
    baselines = ("shuffled", "same distance")
    figure = new_figure(6.0 * len(numbers) + 0.6, 6.6, "Does attention follow the expression tree?", origin)
    panels = figure.subplots(2, len(numbers), sharex="col", sharey=True, squeeze=False)
    for column, (part, found) in enumerate(numbers.items()):
        for line, baseline in enumerate(baselines):
            panel = panels[line, column]
            values = found[baseline]["trained"]
            places = np.arange(len(values))
            _dots(panel, places + 0.15, found[baseline]["random"], CONTROL_COLOUR, "random")
            _dots(panel, places - 0.15, values, TRAINED_COLOUR, "trained")
            panel.axhline(0.0, color=QUIET, linewidth=0.9, linestyle=":")
            for border in range(heads, len(values), heads):
                panel.axvline(border - 0.5, color="0.85", linewidth=0.8)
            panel.set_xticks(
                places,
                [f"{place // heads + 1}.{place % heads + 1}" for place in places],
                rotation=90,
                fontsize=8,
            )
        way = "operator to its arguments" if part == "denoiser" else "argument back to its operator"
        panels[0, column].set_title(f"{part}: {way}", fontsize=10.5)
        panels[1, column].set_xlabel("layer.head", fontsize=10)
    panels[0, 0].set_ylabel("weight on the edge −\nshuffled places", fontsize=10)
    panels[1, 0].set_ylabel("weight on the edge −\nother pairs as far apart", fontsize=10)
    panels[0, 0].legend(frameon=False, fontsize=9, ncols=2)
    said = []
    for part, found in numbers.items():
        for baseline in baselines:
            up, down = counts(found[baseline]["trained"])
            control_up, control_down = counts(found[baseline]["random"])
            total = len(found[baseline]["trained"])
            said.append(
                f"{part}, against {baseline}: {up} of {total} heads above 0 and {down} below (random "
                f"weights: {control_up} and {control_down})"
            )
    return Picture(
        "tree",
        "Attention and the expression tree",
        "Attention along the edges of the formula's tree less what a baseline gives. Above, the arguments "
        "are shuffled over the other places of the formula; below, edges are compared with pairs of tokens "
        "equally far apart that are no edges, so that a head which only looks at its neighbour gains "
        f"nothing. {_NOTE}",
        f"Over {laws} laws, intervals of single heads. " + "; ".join(said) + ".",
        png_of(figure, origin.dpi),
        SECTION,
    )


def own_columns(trained: Group, control: Group) -> dict[str, dict[str, list[Three]]]:
    """By part and "trained" or "random", for each layer: weight on the variable's column over the others'."""
    result: dict[str, dict[str, list[Three]]] = {}
    for part in ("denoiser", "decoder"):
        if not any(part in one.own_column for one in trained):
            continue
        result[part] = {}
        for name, found in (("trained", trained), ("random", control)):
            values = np.stack([one.own_column[part] for one in found if part in one.own_column])
            result[part][name] = [ratio_interval(*values[:, :, layer].T) for layer in range(values.shape[2])]
    return result


def draw_own_columns(numbers: dict[str, dict[str, list[Three]]], laws: int, origin: Origin) -> Picture:
    """One panel a part, one place a layer."""
    figure = new_figure(
        4.2 * len(numbers) + 0.6, 4.0, "Before it writes a variable, it attends to its column", origin
    )
    panels = np.atleast_1d(figure.subplots(1, len(numbers), sharey=True))
    for panel, (part, found) in zip(panels, numbers.items(), strict=True):
        places = np.arange(len(found["trained"]))
        _dots(panel, places + 0.07, found["random"], CONTROL_COLOUR, "random")
        _dots(panel, places - 0.07, found["trained"], TRAINED_COLOUR, "trained")
        panel.axhline(1.0, color=QUIET, linewidth=0.9, linestyle=":")
        panel.set_xticks(places, [f"layer {place + 1}" for place in places])
        panel.set_title(part, fontsize=10.5)
    panels[0].set_ylim(bottom=0.0)
    panels[0].set_ylabel("weight on that column /\nmean weight on another", fontsize=10)
    panels[0].legend(frameon=False, fontsize=9)
    said = "; ".join(
        f"{part}, by layer: " + ", ".join(_text(value) for value in found["trained"])
        for part, found in numbers.items()
    )
    return Picture(
        "own-column",
        "Cross-attention and the variable to be written",
        "Cross-attention at the places where a variable of the law is to be written, on the summary of its "
        f"column over that on the other columns (1: no preference), averaged over heads. {_NOTE}",
        f"Over {laws} laws with two columns or more. {said}.",
        png_of(figure, origin.dpi),
        SECTION,
    )


def orders(trained: Group, control: Group) -> dict[str, dict[str, Three]]:
    """By kind of token and "trained" or "random": share of the steps after which it is in place."""
    result: dict[str, dict[str, Three]] = {}
    for kind in ("binary", "unary", "variable", "constant"):
        both = {
            name: np.array([one.order.get(kind, np.nan) for one in found], dtype=np.float64)
            for name, found in (("trained", trained), ("random", control))
        }
        if np.isfinite(both["trained"]).sum() > 1:
            result[kind] = {name: share_interval(values) for name, values in both.items()}
    return result


def draw_orders(numbers: dict[str, dict[str, Three]], laws: int, origin: Origin) -> Picture:
    """One place a kind of token."""
    figure = new_figure(6.6, 4.2, "What is decided first", origin)
    axes = figure.subplots()
    places = np.arange(len(numbers))
    for shift, name, colour in ((0.06, "random", CONTROL_COLOUR), (-0.06, "trained", TRAINED_COLOUR)):
        _dots(axes, places + shift, [numbers[kind][name] for kind in numbers], colour, name)
    axes.set_xticks(places, list(numbers), fontsize=10)
    axes.set_ylim(0.0, 1.0)
    axes.set_ylabel("share of the steps after which it stands", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    said = "; ".join(f"{kind} {_text(both['trained'])}" for kind, both in numbers.items())
    return Picture(
        "order",
        "Order in which tokens are resolved",
        "Mean share of the refinement steps after which tokens of a kind are in place for good (lower: "
        f"earlier), in windows that ended in a formula. {_NOTE} Random networks hardly ever write a "
        "formula, so theirs are taken from all windows.",
        f"Over {laws} laws: {said}.",
        png_of(figure, origin.dpi),
        SECTION,
    )
