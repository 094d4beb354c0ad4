"""What all pictures share: size, fonts, colours, the line that says from which weights they come."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.io.display import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage


DPI = 300
WEIGHTS_MAP, SIGNED_MAP = "magma_r", "RdBu_r"
INK, QUIET, WARNING = "#1a1a1a", "#6b6b6b", "#b3001b"
TRAINED_COLOUR, CONTROL_COLOUR = "#0b5394", "#9a9a9a"
KIND_COLOURS = {
    "masked": "#e3e3e3",
    "binary": "#0072b2",
    "unary": "#56b4e9",
    "variable": "#009e73",
    "constant": "#e69f00",
    "special": "#cc79a7",
}
"""Colours of kinds of tokens, after Okabe and Ito: distinguishable with any colour vision."""
KIND_INK = dict.fromkeys(KIND_COLOURS, "black") | {"binary": "white", "variable": "white"}


@dataclass(frozen=True)
class Picture:
    """A finished picture.

    Attributes
    ----------
    name
        File name without `.png`.
    title
        Heading on the page.
    caption
        What is drawn and how to read it.
    alt
        What a reader who cannot see it should know.
    png
        The bytes of the file.
    section
        Heading on the page under which it stands.
    """

    name: str
    title: str
    caption: str
    alt: str
    png: bytes
    section: str = ""


@dataclass(frozen=True)
class Origin:
    """What every picture says of itself.

    Attributes
    ----------
    weights
        Which weights.
    subject
        Which table.
    trained
        Whether the weights are trained; if not, every picture says so in red.
    dpi
        Of the files.
    """

    weights: str
    subject: str
    trained: bool
    dpi: int = DPI


def plain(text: str, limit: int = 60) -> str:
    """Text that matplotlib draws as it stands: a `$` would start mathematics."""
    return visible(text, limit).replace("$", r"\$")


def new_figure(width: float, height: float, title: str, origin: Origin) -> Figure:
    """A figure of that many inches, with its title and the line about its origin."""
    from matplotlib.figure import Figure

    # No pyplot: no global state, no window system, safe beside a program that plots.
    figure = Figure(figsize=(width, height), layout="constrained")
    engine = figure.get_layout_engine()
    assert engine is not None
    lines = _origin_lines(origin, letters=int(13.5 * width))
    bottom = (0.18 + 0.12 * len(lines)) / height
    engine.set(rect=(0.0, bottom, 1.0, 1.0 - bottom))  # type: ignore[call-arg]
    warning = "" if origin.trained else "UNTRAINED NETWORK: "
    colour = INK if origin.trained else WARNING
    # A bold letter is about 0.68 of its size wide; a long title is set smaller rather than cut.
    size = min(12.5, 72 * 0.97 * width / (0.68 * max(1, len(warning + title))))
    figure.suptitle(warning + title, fontsize=size, color=colour, fontweight="bold")
    figure.text(
        0.995, 0.06 / height, "\n".join(lines), ha="right", fontsize=7,
        color=QUIET if origin.trained else WARNING,
    )  # fmt: skip
    return figure


def _origin_lines(origin: Origin, letters: int) -> list[str]:
    """Where a picture comes from, in one line if there is room; never cut: it is what tells weights apart."""
    table, weights = visible(origin.subject, 110), visible(origin.weights, 300)
    whole = f"{table} · {weights}"
    lines = [whole] if len(whole) <= letters else [*wrap(table, letters), *wrap(weights, letters)]
    return [plain(line, 300) for line in lines]


def png_of(figure: Figure, dpi: int) -> bytes:
    """The bytes of a PNG file; equal for equal figures."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None})
    return stream.getvalue()


def heat(axes: Axes, values: FloatArray, **options: Any) -> AxesImage:
    """A heat map with square corners and no interpolation."""
    options = {"cmap": WEIGHTS_MAP, "aspect": "auto", "interpolation": "nearest", **options}
    image = axes.imshow(values, **options)
    axes.tick_params(length=2, labelsize=7.5, width=0.5)
    for spine in axes.spines.values():
        spine.set_linewidth(0.5)
    return image


@dataclass(frozen=True)
class Side:
    """One side of the panels of a mosaic.

    Attributes
    ----------
    labels
        Names of the cells; numbers when None.
    size, rotation
        Of the names.
    title
        Of the whole side.
    """

    labels: Sequence[str] | None = None
    size: float = 7.0
    rotation: float = 0.0
    title: str = ""


def mosaic(
    axes: Axes,
    values: FloatArray,
    *,
    lines: Sequence[str],
    columns: Sequence[str],
    left: Side,
    below: Side,
    hidden: BoolArray | None = None,
    **options: Any,
) -> AxesImage:
    """Many heat maps of equal size as one image: twenty panels for the price of one.

    Parameters
    ----------
    values
        (lines, columns, height, width).
    left, below
        What the cells of a panel are.
    hidden
        (height, width), True where there is nothing to show.
    options
        Of `heat`.
    """
    from matplotlib.patches import Rectangle

    down, across, height, width = values.shape
    # The gap is about as wide one way as the other, whatever a cell's shape.
    gap_y, gap_x = max(1, round(height / 14)), max(1, round(width / 14))
    whole = np.full((down * (height + gap_y) - gap_y, across * (width + gap_x) - gap_x), np.nan)
    tops = [line * (height + gap_y) for line in range(down)]
    starts = [column * (width + gap_x) for column in range(across)]
    for line, top in enumerate(tops):
        for column, start in enumerate(starts):
            panel = values[line, column]
            whole[top : top + height, start : start + width] = (
                panel if hidden is None else np.where(hidden, np.nan, panel)
            )
            corner = (start - 0.5, top - 0.5)
            back = "#d6dde6" if hidden is not None else "white"
            axes.add_patch(Rectangle(corner, width, height, facecolor=back, edgecolor="none", zorder=0))
            frame = Rectangle(corner, width, height, fill=False, edgecolor="0.3", linewidth=0.5, zorder=3)
            axes.add_patch(frame)
            frame.set_clip_on(False)  # after add_patch, which sets it
    image = heat(axes, np.ma.masked_invalid(whole), zorder=1, **options)
    axes.spines[:].set_visible(False)
    _name_cells(axes.yaxis, left, tops, height)
    _name_cells(axes.xaxis, below, starts, width)
    for start, name in zip(starts, columns, strict=True):
        axes.annotate(
            name, (start + width / 2 - 0.5, -0.5), xytext=(0, 4), textcoords="offset points", ha="center",
            va="bottom", fontsize=10, annotation_clip=False,
        )  # fmt: skip
    longest = max((len(plain(label, 14)) for label in left.labels), default=0) if left.labels else 2
    room = 14 + 0.66 * left.size * longest + 6 * max(name.count("\n") for name in lines)
    for top, name in zip(tops, lines, strict=True):
        axes.annotate(
            name, (-0.5, top + height / 2 - 0.5), xytext=(-room, 0), textcoords="offset points",
            ha="center", va="center", rotation=90, fontsize=10, annotation_clip=False,
        )  # fmt: skip
    axes.set_xlabel(below.title, fontsize=10)
    return image


def _name_cells(axis: Any, side: Side, starts: Sequence[int], count: int) -> None:
    if side.labels is None:
        marks = list(range(0, count, max(1, 5 * round(count / 25))))
        names = [str(mark + 1) for mark in marks]
    else:
        marks = [mark for mark in range(count) if side.labels[mark]]
        names = [plain(side.labels[mark], 14) for mark in marks]
    places = [start + mark for start in starts for mark in marks]
    axis.set_ticks(places, names * len(starts), fontsize=side.size, rotation=side.rotation)
    for label in axis.get_ticklabels():
        if len(label.get_text()) == 1:  # there is room, and ^ on its side would be <
            label.set_rotation(0.0)


def relative(weights: FloatArray) -> FloatArray:
    """Weights as multiples of what each would be if all keys were attended to alike."""
    result: FloatArray = weights * weights.shape[-1]
    return result


def around_one(values: FloatArray) -> dict[str, Any]:
    """Colours of weights relative to even ones: white for 1, red above, blue below.

    The scale ends where all but the largest half percent are.
    """
    from matplotlib.colors import TwoSlopeNorm

    top = max(2.0, float(np.quantile(values, 0.995)))
    return {"cmap": SIGNED_MAP, "norm": TwoSlopeNorm(1.0, 0.0, top)}


def label_axis(axis: Any, labels: Sequence[str], rotation: float = 0.0, size: float = 7.0) -> None:
    """Name the cells of a heat map along one axis."""
    axis.set_ticks(range(len(labels)), [plain(one, 14) for one in labels], rotation=rotation, fontsize=size)


def bar(figure: Figure, image: Any, axes: Any, label: str, ticks: Sequence[float] | None = None) -> None:
    """A colour bar beside a group of panels."""
    found = figure.colorbar(image, ax=axes, shrink=0.8, pad=0.01, aspect=28, ticks=ticks)
    found.set_label(label, fontsize=9)
    found.ax.tick_params(labelsize=7.5, length=2)
    found.outline.set_linewidth(0.5)


def even_bar(figure: Figure, image: Any, axes: Any) -> None:
    """The colour bar of `around_one`."""
    top = float(image.norm.vmax)
    above = np.unique(np.round(np.linspace(1.0, top, 4), 0 if top > 4 else 1))
    bar(figure, image, axes, "weight / even weight", [0.0, 0.5, *above.tolist()])
