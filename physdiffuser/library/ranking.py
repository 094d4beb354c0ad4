"""The few best entries of a block of residuals, which is all that the search needs of it.

On the processor a block is a whole matrix. On a GPU many are computed at once, and
the least few of each row come back. Both answer the same questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import CHECK_ARRAYS, IndexArray, checked
from physdiffuser.device import Device
from physdiffuser.library.screening import pair_residuals

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float32, Int64

if TYPE_CHECKING:
    from physdiffuser.device_arrays import DeviceArray

FloatArray32 = npt.NDArray[np.float32]

# Of each row so many come back from a GPU where one is asked for, and those whose shares of variance are
# within so much of the least are computed in double precision.
FEW, TIED = 3, 1e-5


class ResidualBlock(Protocol):
    """Residuals of shape (rows, columns)."""

    @checked
    def least(self) -> Float32[np.ndarray, " rows"]:
        """Shape (rows,): the least of each row."""
        ...

    def lowest(self) -> float:
        """The least of all."""
        ...

    def columns(self, row: int) -> list[int]:
        """Where a row is least, to single precision."""
        ...

    def best(self, count: int) -> list[tuple[float, int, int]]:
        """The least of all in no order: residual, row, column."""
        ...

    def best_of_rows(self, count: int) -> list[tuple[float, int, int]]:
        """The least few of each row."""
        ...

    def best_rows(self, count: int) -> list[tuple[float, int, int]]:
        """The least of each of the best rows."""
        ...


class FullBlock:
    """A block of which all residuals are at hand."""

    @checked
    def __init__(self, residual: Float32[np.ndarray, "rows columns"]) -> None:
        self.residual = residual

    @checked
    def least(self) -> Float32[np.ndarray, " rows"]:
        """See `ResidualBlock`."""
        least: FloatArray32 = self.residual.min(axis=1)
        return least

    def lowest(self) -> float:
        """See `ResidualBlock`."""
        return float(self.residual.min())

    def columns(self, row: int) -> list[int]:
        """See `ResidualBlock`; one, whose residual no other is below."""
        return [int(self.residual[row].argmin())]

    def best(self, count: int) -> list[tuple[float, int, int]]:
        """See `ResidualBlock`."""
        flat = self.residual.ravel()
        places = np.argpartition(flat, min(count, flat.size - 1))[:count]
        width = self.residual.shape[1]
        return [(float(flat[place]), *divmod(int(place), width)) for place in places]

    def best_of_rows(self, count: int) -> list[tuple[float, int, int]]:
        """See `ResidualBlock`."""
        columns = np.argpartition(self.residual, min(count, self.residual.shape[1] - 1), axis=1)[:, :count]
        return [
            (float(self.residual[row, column]), row, int(column))
            for row, some in enumerate(columns)
            for column in some
        ]

    def best_rows(self, count: int) -> list[tuple[float, int, int]]:
        """See `ResidualBlock`."""
        least = self.residual.min(axis=1)
        rows = np.argpartition(least, min(count, least.size - 1))[:count]
        return [(float(least[row]), int(row), int(self.residual[row].argmin())) for row in rows]


class TruncatedBlock:
    """The smallest few residuals of each row of a block.

    Parameters
    ----------
    values, places
        Shape (rows, few), ascending: residuals and their columns.
    tied
        Shape (rows,): residuals that are no more than this apart may be equal.
    """

    @checked
    def __init__(
        self,
        values: Float32[np.ndarray, "rows few"],
        places: Int64[np.ndarray, "rows few"],
        tied: Float32[np.ndarray, " rows"],
    ) -> None:
        self.values, self.places, self.tied = values, places, tied

    @checked
    def least(self) -> Float32[np.ndarray, " rows"]:
        """See `ResidualBlock`."""
        least: FloatArray32 = self.values[:, 0]
        return least

    def lowest(self) -> float:
        """See `ResidualBlock`."""
        return float(self.values[:, 0].min())

    def columns(self, row: int) -> list[int]:
        """See `ResidualBlock`; in their order."""
        near = self.values[row] - self.values[row, 0] <= self.tied[row]
        return sorted(self.places[row, near].tolist())

    def best(self, count: int) -> list[tuple[float, int, int]]:
        """See `ResidualBlock`."""
        return self._found(np.argsort(self.values, axis=None, kind="stable")[:count])

    def best_of_rows(self, count: int) -> list[tuple[float, int, int]]:
        """See `ResidualBlock`."""
        # (rows, few): the place of each entry in the flattened values
        every = np.arange(self.values.size).reshape(self.values.shape)
        return self._found(every[:, :count].ravel())

    def best_rows(self, count: int) -> list[tuple[float, int, int]]:
        """See `ResidualBlock`."""
        return self._found(np.argsort(self.values[:, 0], kind="stable")[:count] * self.values.shape[1])

    def _found(self, flat: IndexArray) -> list[tuple[float, int, int]]:
        rows, ranks = np.divmod(flat, self.values.shape[1])
        return [
            (float(self.values[row, rank]), row, int(self.places[row, rank]))
            for row, rank in zip(rows.tolist(), ranks.tolist(), strict=True)
        ]


@checked
def row_blocks(costs: Int64[np.ndarray, " entries"], width: int) -> list[tuple[int, slice]]:
    """Slices of entries of one cost each, at most `width` long; `costs` is sorted."""
    found: list[tuple[int, slice]] = []
    levels, starts = np.unique(costs, return_index=True)
    stops = [*starts[1:], len(costs)] if len(costs) else []
    for level, start, stop in zip(levels, starts, stops, strict=True):
        found.extend(
            (int(level), slice(at, min(at + width, int(stop)))) for at in range(int(start), int(stop), width)
        )
    return found


@checked
def ranked(
    residuals: Iterable[Float32[np.ndarray, "rows columns"]],
    device: Device,
    few: int = FEW,
    variance: Float32[np.ndarray, " rows"] | None = None,
) -> Iterator[ResidualBlock]:
    """Blocks of residuals that share their rows.

    Parameters
    ----------
    residuals
        Each of shape (rows, columns), of arrays of the device. Computed one at a time, as they are asked
        for, on the processor, and all together on a GPU.
    few
        How many of each row can be asked for.
    variance
        Shape (rows,): of which the residuals are shares; 1 when None.
    """
    if not device.remote:
        for residual in residuals:
            yield FullBlock(residual)
        return
    # Nothing is brought back before everything has been asked for: the device need not wait.
    found = [cast("DeviceArray", residual).lowest(few) for residual in residuals]
    tied = np.float32(TIED) * (np.ones(1, np.float32) if variance is None else np.asarray(variance))
    for values, places in found:
        least = np.asarray(values)
        yield TruncatedBlock(least, np.asarray(places), np.broadcast_to(tied, len(least)))


def part(residual_block: ResidualBlock, rows: slice) -> ResidualBlock:
    """Some rows of a block."""
    if isinstance(residual_block, TruncatedBlock):
        return TruncatedBlock(
            residual_block.values[rows], residual_block.places[rows], residual_block.tied[rows]
        )
    return FullBlock(cast(FullBlock, residual_block).residual[rows])


class PairBlocks:
    """Residuals of the best `a + b*A + c*B`, block by block.

    Parameters
    ----------
    library
        Shape (entries, probes), of arrays of the device: weighted, centred, of unit norm.
    correlation
        Shape (entries,): correlation of each entry with the target.
    columns
        The entries taken as B, block by block.
    few
        How many of each row can be asked for.
    device
        Where the arrays are.
    once
        Whether each pair is asked for once, so that no entry of B comes before one of A.
    """

    @checked
    def __init__(
        self,
        library: Float32[np.ndarray, "entries probes"],
        correlation: Float32[np.ndarray, " entries"],
        columns: Sequence[slice],
        few: int,
        device: Device,
        *,
        once: bool,
    ) -> None:
        self._library, self._correlation, self._once = library, correlation, once
        self._columns, self._few, self._device = columns, few, device
        self._rows = slice(0, 0)
        self._known: dict[int, ResidualBlock] = {}

    def residual_block(self, block: slice, number: int, last: int) -> ResidualBlock:
        """The residuals of some rows as A with one group of columns as B.

        Parameters
        ----------
        block
            Blocks are asked for in their order.
        number
            Of the group of columns.
        last
            Where the last block ends.
        """
        if not self._device.remote:
            return FullBlock(pair_residuals(self._library, block, self._columns[number], self._correlation))
        if block.start < self._rows.start or block.stop > self._rows.stop:
            self._work_out(slice(block.start, max(block.stop, min(block.start + self._device.rows, last))))
        return part(self._known[number], slice(block.start - self._rows.start, block.stop - self._rows.start))

    def _work_out(self, rows: slice) -> None:
        numbers = [
            number for number, some in enumerate(self._columns) if some.stop > rows.start or not self._once
        ]
        residuals = (
            pair_residuals(self._library, rows, self._columns[number], self._correlation)
            for number in numbers
        )
        self._rows = rows
        self._known = dict(zip(numbers, ranked(residuals, self._device, self._few), strict=True))
