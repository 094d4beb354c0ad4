"""Pair lookup on data without noise: exact matches, found by hashing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from physdiffuser.generation.enumeration.factors import Frame
from physdiffuser.generation.enumeration.hashing import AffineIndex
from physdiffuser.generation.enumeration.library import Library
from physdiffuser.generation.enumeration.matches import Match
from physdiffuser.generation.enumeration.outer import Chain

FloatArray = npt.NDArray[np.float64]

# Queries answered in one go.
QUERIES = 60_000


def lookups(
    library: Library,
    frame: Frame,
    target: FloatArray,
    chains: tuple[Chain, ...],
    divisors: int,
    tolerance: float,
) -> Iterator[list[Match]]:
    """Exact matches `T⁻¹(y) = a + b*B`, `A*(a + b*B)` and `A + a + b*B`.

    Parameters
    ----------
    target
        Shape (probes,): the target on the library's probe rows, factors divided out.
    divisors
        How many of the cheapest entries are tried as A; 0 for singles only.
    tolerance
        Relative accuracy of the numbers.

    Yields
    ------
    The matches of each piece of work, possibly none.
    """
    values = library.values
    if not len(values):
        return
    index = AffineIndex(values, tolerance)
    undone = [(chain, result[0]) for chain in chains if (result := chain.undo(target)) is not None]
    if not undone:
        return
    queries = np.stack([value for _, value in undone])
    rows, entries = index.match(queries)
    costs = library.costs
    yield [
        Match(
            frame,
            undone[row][0],
            "single",
            None,
            library.expression(int(entry)),
            undone[row][0].cost + int(costs[entry]),
        )
        for row, entry in _verified(queries, values, rows, entries, tolerance)
    ]
    if divisors == 0:
        return
    cheapest = np.argsort(costs, kind="stable")[:divisors]
    for chain, value in undone:
        for start in range(0, cheapest.size, QUERIES):
            block = cheapest[start : start + QUERIES]
            left = values[block]
            found: list[Match] = []
            with np.errstate(all="ignore"):
                quotients = value / left
                differences = value - left
            for kind, queries in (("product", quotients), ("difference", differences)):
                rows, entries = index.match(queries)
                found.extend(
                    Match(
                        frame,
                        chain,
                        "product" if kind == "product" else "difference",
                        library.expression(int(block[row])),
                        library.expression(int(entry)),
                        chain.cost + int(costs[block[row]]) + int(costs[entry]) + 1,
                    )
                    for row, entry in _verified(queries, values, rows, entries, tolerance)
                )
            yield found


def triples(
    library: Library,
    frame: Frame,
    target: FloatArray,
    chains: tuple[Chain, ...],
    shifts: int,
    divisors: int,
    tolerance: float,
) -> Iterator[list[Match]]:
    """Exact matches `T⁻¹(y) = D + A*(a + b*B)` and `D*(A + a + b*B)` with small D and A.

    Parameters
    ----------
    shifts, divisors
        How many of the cheapest entries are tried as D and as A.
    """
    values, costs = library.values, library.costs
    if not len(values):
        return
    index = AffineIndex(values, tolerance)
    cheapest = np.argsort(costs, kind="stable")
    outer, inner = cheapest[:shifts], cheapest[:divisors]
    left = values[inner]
    for chain in chains:
        undone = chain.undo(target)
        if undone is None:
            continue
        for start in range(0, outer.size, max(1, QUERIES // inner.size)):
            block = outer[start : start + max(1, QUERIES // inner.size)]
            with np.errstate(all="ignore"):
                shifted = (undone[0] - values[block])[:, None, :] / left
                scaled = (undone[0] / values[block])[:, None, :] - left
            found: list[Match] = []
            for kind, queries in (("shifted product", shifted), ("scaled difference", scaled)):
                flat = queries.reshape(-1, queries.shape[-1])
                rows, entries = index.match(flat)
                for row, entry in _verified(flat, values, rows, entries, tolerance):
                    third, second = int(block[row // inner.size]), int(inner[row % inner.size])
                    found.append(
                        Match(
                            frame,
                            chain,
                            "shifted product" if kind == "shifted product" else "scaled difference",
                            library.expression(second),
                            library.expression(entry),
                            chain.cost + int(costs[third] + costs[second] + costs[entry]) + 2,
                            library.expression(third),
                        )
                    )
            yield found


def _verified(
    queries: FloatArray,
    values: FloatArray,
    rows: npt.NDArray[np.int64],
    entries: npt.NDArray[np.int64],
    tolerance: float,
) -> list[tuple[int, int]]:
    """Matches that hold on all probe rows, not just on those of the index."""
    if rows.size > 20_000:
        rows, entries = rows[:20_000], entries[:20_000]
    target, entry = queries[rows], values[entries]
    with np.errstate(all="ignore"):
        centred = entry - entry.mean(axis=1, keepdims=True)
        wanted = target - target.mean(axis=1, keepdims=True)
        slope = (centred * wanted).sum(axis=1) / np.square(centred).sum(axis=1)
        error = np.abs(wanted - slope[:, None] * centred).max(axis=1)
        blur = np.abs(target).max(axis=1) + np.abs(slope) * np.abs(entry).max(axis=1)
        span = np.ptp(target, axis=1)
        # Within rounding, and rounding small against what is explained.
        good = (error <= 100 * tolerance * blur) & (error <= 1e-3 * span) & (span > 0)
    return [(int(row), int(entry)) for row, entry in zip(rows[good], entries[good], strict=True)]
