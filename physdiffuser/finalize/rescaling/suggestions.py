"""Suggested measurements of a table that was solved in other units, in its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from physdiffuser.core.solution_parts.next_measurements import NextMeasurements
from physdiffuser.data.dataset import Dataset
from physdiffuser.data.ranges import Range
from physdiffuser.expressions import Expression, to_text
from physdiffuser.expressions.units.rescale import Rescaled


def ranges_inside(
    ranges: Mapping[str, Range], dataset: Dataset, exponents: Sequence[int]
) -> dict[str, Range] | None:
    """Ranges in the units of the table, in those in which column k is divided by 2**exponents[k]."""
    places = {column.name: exponent for column, exponent in zip(dataset.columns, exponents, strict=True)}
    return {
        name: (math.ldexp(low, -places[name]), math.ldexp(high, -places[name]))
        for name, (low, high) in ranges.items()
    } or None


@np.errstate(over="ignore")
def suggestions_outside(
    found: NextMeasurements | None,
    restored: Callable[[Expression], Rescaled | None],
    exponents: Sequence[int],
    names: Sequence[str],
) -> NextMeasurements | None:
    """Suggestions in the units of the table; None if a law cannot be written in these.

    Parameters
    ----------
    restored
        A law in the units of the table.
    exponents
        Of the columns and, last, of the target: they were divided by 2 to these powers.
    names
        Of the columns in formulas.
    """
    if found is None:
        return None
    laws = [law.expression for law in map(restored, found.laws) if law is not None]
    if len(laws) < len(found.laws):
        return None

    def outside(values: Sequence[float], powers: Sequence[int]) -> tuple[float, ...]:
        return tuple(float(np.ldexp(value, power)) for value, power in zip(values, powers, strict=True))

    *columns, target = exponents
    points = tuple(
        replace(
            point,
            inputs=outside(point.inputs, columns),
            noise=float(np.ldexp(point.noise, target)),
            values=outside(point.values, [target] * len(laws)),
            errors=outside(point.errors, [target] * len(laws)),
        )
        for point in found.points
    )
    ends = zip(found.ranges, columns, strict=True)
    ranges = tuple((math.ldexp(low, power), math.ldexp(high, power)) for (low, high), power in ends)
    texts = tuple(to_text(law, names) for law in laws)
    return replace(found, laws=tuple(laws), texts=texts, ranges=ranges, points=points)
