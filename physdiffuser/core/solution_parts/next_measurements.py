"""Suggested measurements, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from physdiffuser.expressions import Expression


@dataclass(frozen=True)
class NextMeasurement:
    """A measurement that would tell laws apart.

    Attributes
    ----------
    inputs
        One value for each input column.
    noise
        Expected standard deviation of the target there.
    values, errors
        What each law predicts, and the standard error of that by the uncertainty of its constants.
    separation, between
        Standard errors (noise and constants of both) by which the two laws differ that differ most, and
        their positions.
    """

    inputs: tuple[float, ...]
    noise: float
    values: tuple[float, ...]
    errors: tuple[float, ...]
    separation: float
    between: tuple[int, int]


@dataclass(frozen=True)
class NextMeasurements:
    """The measurements that would best tell the surviving laws apart.

    Attributes
    ----------
    laws, texts
        The laws that the table does not exclude, the chosen one first.
    rows
        Their rows in the Pareto table, counted from 1; None for a law that has none.
    ranges
        Of each input column, within which points were sought.
    points
        The most informative first; each takes into account those before it. Empty if one law remains.
    """

    laws: tuple[Expression, ...]
    texts: tuple[str, ...]
    rows: tuple[int | None, ...]
    ranges: tuple[tuple[float, float], ...]
    points: tuple[NextMeasurement, ...]
