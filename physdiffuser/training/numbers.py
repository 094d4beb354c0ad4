"""Numbers for a law: ranges, coefficients, rows, noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.expressions import Expression, Parameter, evaluate
from physdiffuser.expressions.tree import add, mul, sub
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES
from physdiffuser.training.laws import Law

# Uniform ranges as laboratory tables and the published benchmarks have them; weights beside them.
_RANGES = np.array(
    [(1, 5), (1, 3), (1, 2), (3, 10), (0, 1), (2, 5), (1, 10), (0.1, 1), (0.5, 2), (5, 10), (-5, 5), (-1, 1),
     (0.1, 10), (1, 100)],
    dtype=np.float64,
)  # fmt: skip
_RANGE_WEIGHTS = np.array([38, 14, 9, 8, 5, 5, 5, 4, 4, 2, 3, 2, 1, 1], dtype=np.float64)
_RANGE_SUMS = np.cumsum(_RANGE_WEIGHTS / _RANGE_WEIGHTS.sum())[:-1]
_FREE_RANGES = np.array([(0.1, 3), (0, 2), (0.2, 5), (0, 10), (0.5, 2), (-3, 3), (1, 1.5)], dtype=np.float64)
_FREE_WEIGHTS = np.array([24, 18, 22, 14, 8, 10, 4], dtype=np.float64)
_FREE_SUMS = np.cumsum(_FREE_WEIGHTS / _FREE_WEIGHTS.sum())[:-1]
# How far apart the ends of a broad range are; columns that span decades are mostly even in the logarithm.
_RATIOS = np.array([1.3, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0])
_RATIO_SUMS = np.cumsum([0.08, 0.14, 0.18, 0.18, 0.16, 0.12, 0.09, 0.05])[:-1]
_DECADES = 8.0
_USUAL_EXPONENTS = np.array(
    [
        1 / 3,
        2 / 3,
        4 / 3,
        1 / 4,
        3 / 4,
        5 / 4,
        1 / 2,
        3 / 2,
        5 / 2,
        0.1,
        0.2,
        0.3,
        0.4,
        0.6,
        0.7,
        0.8,
        1.2,
        1.6,
        2.0,
        3.0,
    ]
)
_SIGNS = (1.0, 1.0, 1.0, -1.0)
_ATTEMPTS = 4
_SPARE = 5
_MAX_SPAN = 1e8
_LARGEST = 1e12


@dataclass(frozen=True)
class Table:
    """Rows that obey a law.

    Attributes
    ----------
    inputs
        Shape (rows, 9); unused places are zero.
    target
        Shape (rows,), with noise.
    columns
        Places that hold a column: those of the law, and of columns that have nothing to do with it.
    """

    inputs: FloatArray
    target: FloatArray
    columns: tuple[int, ...]


def full_expression(law: Law) -> Expression:
    """The law with a parameter in front of each term; parameters inside the terms come first."""
    result: Expression | None = None
    for position, (sign, term) in enumerate(law.terms):
        scaled = mul(Parameter(law.constants + position), term)
        if result is None:
            result = scaled
        else:
            result = add(result, scaled) if sign > 0 else sub(result, scaled)
    assert result is not None
    return result


@dataclass(frozen=True)
class Columns:
    """How the numbers in columns are spread.

    Attributes
    ----------
    lows, highs
        Of each column.
    logarithmic
        Whether the logarithm is uniform between them, not the number.
    """

    lows: FloatArray
    highs: FloatArray
    logarithmic: BoolArray

    def draw(self, rng: np.random.Generator, rows: int) -> FloatArray:
        """Random rows, (rows, columns)."""
        values = rng.random((rows, len(self.lows))) * (self.highs - self.lows) + self.lows
        if self.logarithmic.any():
            values[:, self.logarithmic] = np.exp(values[:, self.logarithmic])
        return values


def usual_columns(rng: np.random.Generator, columns: int) -> Columns:
    """Uniform in usual ranges, now and then log-uniform."""
    ranges = _RANGES[np.searchsorted(_RANGE_SUMS, rng.random(columns))]
    # Half the tables draw all columns from one range, as the published benchmarks mostly do.
    if rng.random() < 0.5:
        ranges[:] = ranges[0]
    logarithmic = rng.random(columns) < 0.05
    ranges[logarithmic] = (-2.5, 2.5)
    return Columns(ranges[:, 0], ranges[:, 1], logarithmic)


def free_columns(rng: np.random.Generator, columns: int) -> Columns:
    """Columns around 1, for laws that are of their kind in any unit; see `draw_scales`."""
    ranges = _FREE_RANGES[np.searchsorted(_FREE_SUMS, rng.random(columns))]
    logarithmic = rng.random(columns) < 0.15
    ranges[logarithmic] = np.log((0.05, 20.0))
    return Columns(ranges[:, 0], ranges[:, 1], logarithmic)


def broad_columns(rng: np.random.Generator, columns: int) -> Columns:
    """Ranges of any width around numbers of any size near 1; those of decades mostly log-uniform."""
    ratios = _RATIOS[np.searchsorted(_RATIO_SUMS, rng.random(columns))]
    centres = np.exp(rng.normal(0.0, 0.9, columns))
    # Half the tables have one range for all columns, so that their sums and quotients have two sides.
    if rng.random() < 0.5:
        ratios[:], centres[:] = ratios[0], centres[0]
    lows, highs = centres / np.sqrt(ratios), centres * np.sqrt(ratios)
    around = rng.random(columns) < 0.08
    lows[around] = -highs[around]
    share = rng.random(columns) < 0.10
    lows[share], highs[share] = 0.02, 0.98
    logarithmic = (highs > _DECADES * lows) & (lows > 0.0) & (rng.random(columns) < 0.7)
    lows[logarithmic], highs[logarithmic] = np.log(lows[logarithmic]), np.log(highs[logarithmic])
    return Columns(lows, highs, logarithmic)


def with_noise(
    rng: np.random.Generator, target: FloatArray, level: float, kinds: Sequence[str]
) -> FloatArray:
    """A target with errors.

    Parameters
    ----------
    target
        Shape (rows,), without errors.
    level
        Standard deviation, relative to the root mean square of the target (`relative`: to each value).
    kinds
        One of these is drawn: `even`; `relative`; `heavy`, errors of Student's distribution with three
        degrees of freedom; `outliers`, even with some rows ten times as far off; `rounded`, to a multiple
        of a step.
    """
    size = level * float(np.sqrt(np.mean(target**2)))
    kind = kinds[int(rng.integers(len(kinds)))]
    if kind == "rounded":
        step = 10.0 ** np.floor(np.log10(size * np.sqrt(12.0)))
        return np.asarray(np.rint(target / step) * step)
    if kind == "relative":
        return np.asarray(target * (1.0 + rng.normal(0.0, level, len(target))))
    if kind == "heavy":
        return np.asarray(target + size / np.sqrt(3.0) * rng.standard_t(3, len(target)))
    errors = rng.normal(0.0, size, len(target))
    if kind == "outliers":
        errors[rng.random(len(target)) < rng.uniform(0.01, 0.08)] *= 10.0
    return np.asarray(target + errors)


def draw_scales(rng: np.random.Generator, columns: int) -> FloatArray:
    """Factors of columns: another unit for most of them."""
    scales = 10.0 ** rng.uniform(-2.0, 3.0, columns)
    scales[rng.random(columns) < 0.4] = 1.0
    return scales


def draw_coefficients(rng: np.random.Generator, law: Law) -> FloatArray:
    """Values of the parameters of `full_expression`."""
    inner = np.exp(rng.uniform(-1.5, 1.5, law.constants))
    for place in law.exponents:
        if rng.random() < 0.5:
            inner[place] = _USUAL_EXPONENTS[int(rng.integers(len(_USUAL_EXPONENTS)))]
    if law.free:
        outer = np.exp(rng.normal(0.0, 0.8, len(law.terms))) * rng.choice(_SIGNS, len(law.terms))
        return np.concatenate((inner, outer * draw_scales(rng, 1)))
    outer = np.ones(len(law.terms))
    if rng.random() < 0.45:
        outer[:] = np.exp(rng.normal(0.0, 1.2)) * rng.choice((1, 1, 1, -1))
    if len(law.terms) > 1 and rng.random() < 0.4:
        outer *= rng.choice((0.5, 1.0, 2.0, 3.0, 0.25, 1.5), size=len(outer))
    return np.concatenate((inner, outer))


def draw_table(
    rng: np.random.Generator,
    law: Law,
    rows: int,
    noisy: float,
    dummies: float,
    noise: tuple[float, float] = (1e-3, 0.1),
    *,
    broad: bool = False,
    kinds: Sequence[str] = ("even",),
) -> Table | None:
    """Rows for a law, or None if no usual range keeps it finite and moving.

    Parameters
    ----------
    noisy, dummies
        Probability of noise on the target, and of columns that do not matter.
    noise
        Least and largest level of noise, relative to the root mean square of the target.
    broad
        Whether ranges are of any width (`broad_columns`) and not those of the published benchmarks.
    kinds
        Of noise; see `with_noise`.
    """
    expression = full_expression(law)
    places = list(law.places)
    style = free_columns if law.free else broad_columns if broad else usual_columns
    for _ in range(_ATTEMPTS):
        columns = style(rng, len(places))
        coefficients = draw_coefficients(rng, law)
        inputs = np.zeros((rows, MAX_VARIABLES))
        inputs[:, places] = columns.draw(rng, rows)
        target = evaluate(expression, inputs, coefficients)
        if not np.isfinite(target).all():
            # Tables hold only rows where the law holds (v < c): draw more of them and keep those.
            spare = np.zeros((_SPARE * rows, MAX_VARIABLES))
            spare[:, places] = columns.draw(rng, _SPARE * rows)
            values = evaluate(expression, spare, coefficients)
            finite = np.flatnonzero(np.isfinite(values))[:rows]
            if len(finite) < rows:
                continue
            inputs, target = spare[finite], values[finite]
        largest = np.abs(target).max()
        if not 0.0 < largest < _LARGEST:
            continue
        spread = target.std()
        if spread <= 1e-3 * largest or largest > _MAX_SPAN * spread:
            continue
        if law.free:
            inputs[:, places] *= draw_scales(rng, len(places))
        used = places
        if rng.random() < dummies and len(places) < MAX_VARIABLES:
            free = [place for place in range(MAX_VARIABLES) if place not in places]
            extra = rng.choice(free, size=min(len(free), int(rng.integers(1, 3))), replace=False)
            inputs[:, extra] = style(rng, len(extra)).draw(rng, rows)
            used = places + [int(place) for place in extra]
        if rng.random() < noisy:
            target = with_noise(rng, target, float(np.exp(rng.uniform(*np.log(noise)))), kinds)
        return Table(inputs, target, tuple(used))
    return None
