"""Geometry of the page's charts: where ticks, points and lines stand. The template draws them.

Charts are SVG made here and not by a plotting library: text stays text, colours follow the page, and a
hundred points cost a hundred bytes each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.report.text.digits import short

WIDTH, HEIGHT = 420, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 14, 12, 46
_MOST_TICKS = 6
# Pixels of a letter of a tick on a narrow screen.
_LETTER = 7.8


@dataclass(frozen=True)
class Layer:
    """Marks of one kind: an SVG path, and the class that gives it its colour."""

    kind: str
    path: str
    label: str = ""


@dataclass(frozen=True)
class Spot:
    """A point that can be chosen: its place, and the row of the Pareto table it stands for."""

    x: float
    y: float
    row: int
    chosen: bool
    label: str


@dataclass(frozen=True)
class Chart:
    """A chart ready to be drawn.

    Attributes
    ----------
    title, description
        For those who do not see it.
    frame
        Left, top, right and bottom of the plotting area, in pixels.
    x_ticks, y_ticks
        Place in pixels, and label.
    """

    title: str
    description: str
    x_label: str
    y_label: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    layers: Sequence[Layer]
    spots: Sequence[Spot] = ()
    width: int = WIDTH
    height: int = HEIGHT
    frame: tuple[float, float, float, float] = field(default=(_LEFT, _TOP, WIDTH - _RIGHT, HEIGHT - _BOTTOM))

    @property
    def y_label_place(self) -> float:
        """Where the label of the vertical axis stands, in pixels: left of its ticks, also of long ones."""
        longest = max((len(label) for _, label in self.y_ticks), default=0)
        return min(13.0, self.frame[0] - 17.0 - _LETTER * longest)

    @property
    def legend(self) -> list[Layer]:
        """Layers that have a name."""
        return [layer for layer in self.layers if layer.label]


@dataclass(frozen=True)
class Axis:
    """From values to pixels along one axis.

    Parameters
    ----------
    log
        Whether decades are equally long.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, values: FloatArray) -> FloatArray:
        """Pixels, shape as `values`; values beyond the ends stand at the ends."""
        with np.errstate(all="ignore"):
            if self.log:
                share = np.log(values / self.low) / math.log(self.high / self.low)
            else:
                # Halves first: the difference of two large doubles may overflow.
                share = (values / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        share = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
        placed: FloatArray = np.round(self.start + share * (self.end - self.start), 1)
        return placed

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Places and labels of round numbers."""
        values = _decades(self.low, self.high) if self.log else _round_numbers(self.low, self.high)
        places = self.place(np.array(values, dtype=float))
        return [(float(place), _label(value)) for place, value in zip(places, values, strict=True)]


def axis_for(
    values: FloatArray,
    start: float,
    end: float,
    *,
    log: bool = False,
    zero: bool = False,
    decades: float = 2.0,
) -> Axis:
    """An axis that holds all finite values with a margin.

    Parameters
    ----------
    values
        Any shape; what is not finite is left out.
    log
        Decades, if all values are positive and more than `decades` apart.
    zero
        Symmetric about zero.
    """
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Axis(0.0, 1.0, start, end)
    low, high = float(finite.min()), float(finite.max())
    if zero:
        high = max(abs(low), abs(high)) or 1.0
        low = -high
    if log and low > 0 and math.log10(high) - math.log10(low) > decades:
        margin = (high / low) ** 0.04 if high / low < math.inf else 10.0
        return Axis(low / margin or low, min(high * margin, 1.7e308), start, end, log=True)
    span = high / 2 - low / 2
    # Values that differ by rounding alone are one value.
    margin = 0.08 * span if span > 1e-9 * abs(low) else abs(low) * 0.1 or 1.0
    return Axis(max(low - margin, -8e307), min(high + margin, 8e307), start, end)


def axes(
    x: FloatArray, y: FloatArray, *, log: tuple[bool, bool] = (False, False), zero: bool = False
) -> tuple[Axis, Axis]:
    """Both axes of a chart of the usual size; `zero` makes the vertical one symmetric."""
    horizontal = axis_for(x, _LEFT, WIDTH - _RIGHT, log=log[0])
    return horizontal, axis_for(y, HEIGHT - _BOTTOM, _TOP, log=log[1], zero=zero)


def chart_on(
    pair: tuple[Axis, Axis], labels: tuple[str, str], title: str, description: str, layers: Sequence[Layer]
) -> Chart:
    """A chart of the usual size on two axes of `axes`."""
    x, y = pair
    return Chart(title, description, *labels, x.ticks, y.ticks, layers)


def points_path(x: Axis, y: Axis, xs: FloatArray, ys: FloatArray) -> str:
    """Dots: lines of no length with round ends. Rows that are not finite are left out."""
    kept = np.isfinite(xs) & np.isfinite(ys)
    places = np.stack([x.place(xs[kept]), y.place(ys[kept])], axis=1)
    return "".join(f"M{across:g} {down:g}h0" for across, down in places)


def line_path(x: Axis, y: Axis, xs: FloatArray, ys: FloatArray) -> str:
    """A line, broken where a value is not finite or lies outside the axis."""
    kept = np.isfinite(ys) & (ys >= y.low) & (ys <= y.high)
    places = np.stack([x.place(xs), y.place(ys)], axis=1)
    parts, drawing = [], False
    for inside, (across, down) in zip(kept, places, strict=True):
        if inside:
            parts.append(f"{'L' if drawing else 'M'}{across:g} {down:g}")
        drawing = bool(inside)
    return "".join(parts)


def band_path(left: float, right: float) -> str:
    """A rectangle over the whole height of a chart of the usual size, between two places."""
    return f"M{left:g} {_TOP:g}H{right:g}V{HEIGHT - _BOTTOM:g}H{left:g}Z"


def _round_numbers(low: float, high: float) -> list[float]:
    span = high / 2 - low / 2
    if not 0 < span < math.inf:
        return []
    step = 10.0 ** math.floor(math.log10(2 * span / _MOST_TICKS)) if span > 1e-300 else 0.0
    if step == 0.0:
        return []
    step *= next(factor for factor in (1, 2, 5, 10, 20) if 2 * span / (step * factor) <= _MOST_TICKS)
    first = math.ceil(low / step)
    return [step * number for number in range(first, first + 2 * _MOST_TICKS) if step * number <= high]


def _decades(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = max(1, math.ceil((last - first + 1) / _MOST_TICKS))
    powers = [power for power in range(first, last + 1) if power % every == 0 and -300 <= power <= 307]
    factors = (1, 2, 5) if last - first <= 2 else (1,)
    values = [float(f"{factor}e{power}") for power in powers for factor in factors]
    return [value for value in values if low <= value <= high]


def _label(value: float) -> str:
    text = short(value, 6)
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text.replace("-", "−")
    power = exponent.lstrip("+0") if exponent.startswith("+") else f"-{exponent[1:].lstrip('0')}"
    return f"{mantissa}e{power}".replace("-", "−")
