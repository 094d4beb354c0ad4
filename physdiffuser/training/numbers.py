"""Numbers for a law: ranges, coefficients, rows, noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression, Parameter, evaluate
from physdiffuser.expressions.tree import add, mul, sub
from physdiffuser.models.vocabulary import MAX_VARIABLES
from physdiffuser.training.laws import Law

FloatArray = npt.NDArray[np.float64]

# Uniform ranges as laboratory tables and the published benchmarks have them; weights beside them.
_RANGES = np.array(
    [(1, 5), (1, 3), (1, 2), (3, 10), (0, 1), (2, 5), (1, 10), (0.1, 1), (0.5, 2), (5, 10), (-5, 5), (-1, 1),
     (0.1, 10), (1, 100)],
    dtype=np.float64,
)  # fmt: skip
_RANGE_WEIGHTS = np.array([38, 14, 9, 8, 5, 5, 5, 4, 4, 2, 3, 2, 1, 1], dtype=np.float64)
_RANGE_WEIGHTS /= _RANGE_WEIGHTS.sum()
_ATTEMPTS = 4
_SPARE = 5
_LARGEST_SPAN = 1e8


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


def draw_columns(rng: np.random.Generator, rows: int, columns: int) -> FloatArray:
    """Random columns, (rows, columns): uniform in usual ranges, now and then log-uniform or wide."""
    ranges = _RANGES[rng.choice(len(_RANGES), size=columns, p=_RANGE_WEIGHTS)]
    # Half the tables draw all columns from one range, as the published benchmarks mostly do.
    if rng.random() < 0.5:
        ranges[:] = ranges[0]
    values = rng.random((rows, columns)) * (ranges[:, 1] - ranges[:, 0]) + ranges[:, 0]
    style = rng.random(columns)
    logarithmic = np.flatnonzero(style < 0.05)
    if logarithmic.size:
        values[:, logarithmic] = np.exp(rng.uniform(-2.5, 2.5, (rows, logarithmic.size)))
    return values


def draw_coefficients(rng: np.random.Generator, law: Law) -> FloatArray:
    """Values of the parameters of `full_expression`."""
    inner = np.exp(rng.uniform(-1.5, 1.5, law.constants))
    outer = np.ones(len(law.terms))
    if rng.random() < 0.45:
        outer[:] = np.exp(rng.normal(0.0, 1.2)) * rng.choice((1, 1, 1, -1))
    if len(law.terms) > 1 and rng.random() < 0.4:
        outer *= rng.choice((0.5, 1.0, 2.0, 3.0, 0.25, 1.5), size=len(outer))
    return np.concatenate((inner, outer))


def draw_table(rng: np.random.Generator, law: Law, rows: int, noisy: float, dummies: float) -> Table | None:
    """Rows for a law, or None if no usual range keeps it finite and moving.

    Parameters
    ----------
    rng
        Source of the numbers.
    law
        The law.
    rows
        Number of rows.
    noisy, dummies
        Probability of noise on the target, and of columns that do not matter.
    """
    expression = full_expression(law)
    places = list(law.places)
    for _ in range(_ATTEMPTS):
        drawn = draw_columns(rng, _SPARE * rows, len(places))
        coefficients = draw_coefficients(rng, law)
        inputs = np.zeros((rows, MAX_VARIABLES))
        inputs[:, places] = drawn[:rows]
        target = evaluate(expression, inputs, coefficients)
        if not np.isfinite(target).all():
            # Tables hold only rows where the law holds (v < c): draw more of them and keep those.
            spare = np.zeros((_SPARE * rows, MAX_VARIABLES))
            spare[:, places] = drawn
            values = evaluate(expression, spare, coefficients)
            finite = np.flatnonzero(np.isfinite(values))[:rows]
            if len(finite) < rows:
                continue
            inputs, target = spare[finite], values[finite]
        largest = np.abs(target).max()
        if not 0.0 < largest < 1e12:
            continue
        spread = target.std()
        if spread <= 1e-3 * largest or largest > _LARGEST_SPAN * spread:
            continue
        columns = places
        if rng.random() < dummies and len(places) < MAX_VARIABLES:
            free = [place for place in range(MAX_VARIABLES) if place not in places]
            extra = rng.choice(free, size=min(len(free), int(rng.integers(1, 3))), replace=False)
            inputs[:, extra] = draw_columns(rng, rows, len(extra))
            columns = places + [int(place) for place in extra]
        if rng.random() < noisy:
            level = 10.0 ** rng.uniform(-3.0, -1.0) * np.sqrt(np.mean(target**2))
            target = target + rng.normal(0.0, level, rows)
        return Table(inputs, target, tuple(columns))
    return None
