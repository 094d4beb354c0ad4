"""What could stand in a place of a formula instead: all that a library holds, judged by matrix products.

For every place the rows say which values would be right there (`physdiffuser.library.subtree_target`). Each
entry `B` of a library is judged as `B`, `b*B` and `a + b*B`, alone and multiplied with one of its simplest
entries, by the residuals that the formula would have and by what the new part costs to write down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray, IndexArray, IntArray
from physdiffuser.core.problem import Problem
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import ONE, Apply, Expression, Number, complexity, evaluate
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import Path, add, call, fitted_constants, mul, positions, replace_at
from physdiffuser.generation.neighbours.building_blocks import BuildingBlocks
from physdiffuser.library.subtree_target import SubtreeTarget, subtree_target
from physdiffuser.selection.description_length import NATS_PER_UNIT

FloatArray32 = npt.NDArray[np.float32]

# Rows on which entries are judged.
ROWS = 256
# A residual below this share of the target's square is rounding.
_ROUNDING = 1e-14
# Entries whose weighted variance is a smaller share of their square are no more than a constant.
_VARIES = np.float32(1e-5)
# Shares of a target's square that single precision does not tell from nothing.
_SINGLE = 1e-6
_PLAIN, _SCALED, _AFFINE = range(3)


class _Sample:
    """Some rows of the table, with the values of formulas on them."""

    def __init__(self, inputs: FloatArray, target: FloatArray, share: FloatArray) -> None:
        self.inputs, self.target, self.share = inputs, target, share
        self._known: dict[Expression, FloatArray] = {}

    def values(self, expressions: Sequence[Expression]) -> FloatArray:
        for expression in expressions:
            if expression not in self._known:
                self._known[expression] = np.broadcast_to(
                    evaluate(expression, self.inputs), self.target.shape
                )
        return np.array([self._known[expression] for expression in expressions])


@dataclass(frozen=True)
class _Find:
    """An entry for a place: `factor * (offset + slope*entry)`, and the nats that it saves."""

    place: int
    factor: int | None
    kind: int
    entry: int
    saved: float


class _Divided(NamedTuple):
    """The targets of all places divided by a factor.

    Attributes
    ----------
    factor
        Its number, None for the targets as they are.
    price
        Nats for writing it.
    targets, shares
        Shape (targets, rows).
    power
        Shape (targets,): weighted sum of squares.
    places
        The targets that are numbers.
    """

    factor: int | None
    price: float
    targets: FloatArray
    shares: FloatArray
    power: FloatArray
    places: IndexArray


class Replacements:
    """Finds what to put in the places of formulas of one problem.

    Parameters
    ----------
    device
        Where entries are ranked.
    """

    def __init__(self, problem: Problem, device: Device = HOST) -> None:
        rows = problem.generator(7).permutation(problem.rows)[:ROWS]
        self.rows = rows
        self.inputs = problem.inputs[rows]
        self.count = problem.rows
        share = np.ones(rows.size) if problem.weights is None else problem.weights[rows]
        self.share = share / share.sum()
        self.building_blocks = BuildingBlocks(self.inputs, problem)
        self._device = device
        self._values, self._squares = (
            device.put(self.building_blocks.values),
            device.put(self.building_blocks.squares),
        )

    def of(self, expression: Expression, residual: FloatArray, most: int) -> list[Expression]:
        """The formula with other parts, those first that shorten the description most.

        Parameters
        ----------
        expression
            With fitted constants as float numbers, at their best.
        residual
            Shape (rows of the problem,): target less prediction.
        """
        residual = residual[self.rows]
        sample = _Sample(self.inputs, evaluate(expression, self.inputs) + residual, self.share)
        asked: list[tuple[Path, Expression, SubtreeTarget]] = []
        for path, node in positions(expression)[1:]:
            wanted = subtree_target(sample, expression, path, 1.0, 0.0)
            if wanted is not None:
                asked.append((path, node, wanted))
        if not asked or not self.building_blocks.nats.size:
            return []
        with np.errstate(all="ignore"):
            now = 0.5 * self.count * float(np.log(max(float(self.share @ (residual * residual)), 1e-300)))
            finds = list(self._judged([one[-1] for one in asked], now, [one[-2] for one in asked]))
        finds.sort(key=lambda find: -find.saved)
        found: list[Expression] = []
        # One formula has many places where nothing but its constants changes.
        seen = {_outline(expression)}
        for find in finds:
            if len(found) == most:
                break
            path, _, wanted = asked[find.place]
            term = self._term(find, wanted)
            if term is None:
                continue
            changed = replace_at(expression, path, term)
            outline = _outline(changed)
            if outline not in seen:
                seen.add(outline)
                found.append(changed)
        return found

    def _judged(
        self, subtree_targets: list[SubtreeTarget], now: float, nodes: list[Expression]
    ) -> Iterator[_Find]:
        """The best entry of each kind for each target and factor, with what it would save."""
        constant = self.building_blocks.constant_nats
        present = [NATS_PER_UNIT * complexity(node) + constant * fitted_constants(node) for node in nodes]
        wanted = np.array([one.values for one in subtree_targets])
        weights = np.array([one.weights * one.total for one in subtree_targets])
        numbers = (None, *range(len(self.building_blocks.factors)))
        divided = [self._divided(wanted, weights, number) for number in numbers]
        for (number, price, targets, shares, power, places), best in self._ranked(divided):
            for row, place in enumerate(places.tolist()):
                for kind in (_PLAIN, _SCALED, _AFFINE):
                    entry = int(best[row, kind])
                    # Ranked in single precision, believed in double.
                    column = self.building_blocks.column(entry)
                    offset, slope = _line(targets[place], shares[place], column, kind)
                    left = targets[place] - offset - slope * column
                    squares = float(shares[place] @ (left * left))
                    length = self._nats(squares, float(power[place])) + float(
                        self.building_blocks.nats[entry]
                    )
                    length += price + constant * kind
                    if np.isfinite(length):
                        yield _Find(place, number, kind, entry, now + present[place] - length)

    def _divided(self, wanted: FloatArray, weights: FloatArray, number: int | None) -> _Divided:
        price, targets, shares = 0.0, wanted, weights
        if number is not None:
            factor = self.building_blocks.column(self.building_blocks.factors[number])
            targets, shares = wanted / factor, weights * factor * factor
            price = float(self.building_blocks.nats[self.building_blocks.factors[number]]) + NATS_PER_UNIT
        with_numbers = np.isfinite(targets).all(axis=1) & np.isfinite(shares).all(axis=1)
        power = (shares * targets * targets).sum(axis=1)
        places = np.flatnonzero(with_numbers & (power > 0.0) & (power < np.inf))
        return _Divided(number, price, targets, shares, power, places)

    def _ranked(self, divided: list[_Divided]) -> Iterator[tuple[_Divided, IntArray]]:
        """Where there are places, the best entries of these (`_best`)."""
        some = [one for one in divided if one.places.size]
        if not self._device.remote:
            for one in some:
                yield one, self._best(one.targets[one.places], one.shares[one.places])
        elif some:
            # To a GPU one factor is nothing.
            targets, shares = (
                np.concatenate([every[one.places] for one, every in zip(some, kind, strict=True)])
                for kind in ([one.targets for one in some], [one.shares for one in some])
            )
            ends = np.cumsum([one.places.size for one in some])[:-1]
            yield from zip(some, np.split(self._best(targets, shares), ends), strict=True)

    def _nats(self, left: float, power: float) -> float:
        """What a weighted sum of squares costs, which is rounding below a share of the target's."""
        return 0.5 * self.count * float(np.log(max(left, _ROUNDING * power, 1e-300)))

    def _best(self, targets: FloatArray, shares: FloatArray) -> IntArray:
        """The entries of least length as `B`, `b*B` and `a + b*B`, shape (targets, 3)."""
        best = np.full((len(targets), 3), np.inf)
        which = np.zeros((len(targets), 3), np.int64)
        total = shares.sum(axis=1, keepdims=True)
        weights = shares / total
        scale = np.sqrt((weights * targets * targets).sum(axis=1, keepdims=True))
        unit = targets / scale
        first = (weights * unit).sum(axis=1, keepdims=True).astype(np.float32)
        asked, relative = (weights * unit).astype(np.float32), weights.astype(np.float32)
        asked, relative = self._device.put(asked), self._device.put(relative)
        scale, first = self._device.put(scale), self._device.put(first)
        half = 0.5 * self.count
        for nats, piece in self.building_blocks.pieces:
            values, squares = self._values[piece], self._squares[piece]
            cross = asked @ values.T
            square = np.maximum(relative @ squares.T, np.float32(1e-30))
            mean = relative @ values.T
            sizes = (self.building_blocks.sizes[piece] / scale).astype(np.float32)
            for kind, residual in enumerate(_residuals(cross, square, mean, sizes, first)):
                place = residual.argmin(axis=1)
                least = np.maximum(np.asarray(residual[np.arange(len(residual)), place]), _SINGLE)
                length = half * np.log(least) + nats
                better = length < best[:, kind]
                best[better, kind] = length[better]
                which[better, kind] = np.asarray(place)[better] + piece.start
        return which

    def _term(self, find: _Find, wanted: SubtreeTarget) -> Expression | None:
        term, column = self.building_blocks.expression(find.entry), self.building_blocks.column(find.entry)
        target, share = wanted.values, wanted.weights
        factor: Expression | None = None
        if find.factor is not None:
            chosen = self.building_blocks.factors[find.factor]
            factor = self.building_blocks.expression(chosen)
            times = self.building_blocks.column(chosen)
            target, share = target / times, share * times * times
        offset, slope = _line(target, share, column, find.kind)
        if not (np.isfinite(slope) and np.isfinite(offset)):
            return None
        if find.kind != _PLAIN:
            term = mul(Number(slope), term)
        elif slope < 0.0:
            term = call("neg", term)
        if find.kind == _AFFINE:
            term = add(Number(offset), term)
        return term if factor is None else mul(factor, term)


def _residuals(
    cross: FloatArray32, square: FloatArray32, mean: FloatArray32, sizes: FloatArray32, first: FloatArray32
) -> Iterator[FloatArray32]:
    """What `B`, `b*B` and `a + b*B` leave of targets of unit size, each of shape (targets, entries).

    Parameters
    ----------
    cross, square, mean
        Shape (targets, entries): weighted means of target times entry, of squares, of entries.
    sizes
        Shape (targets, entries): root mean squares of entries over those of the targets.
    first
        Shape (targets, 1): weighted mean of each target.
    """
    left = square * sizes
    left -= 2.0 * np.abs(cross)
    left *= sizes
    left += 1.0
    # Beyond what single precision holds nothing is a match.
    left[~np.isfinite(left)] = np.inf
    yield left
    np.divide(cross * cross, square, out=left)
    np.subtract(1.0, left, out=left)
    yield left
    own = square - mean * mean
    cross -= mean * first
    # What hardly varies explains nothing but rounding.
    own[own < _VARIES * square] = np.inf
    np.divide(cross * cross, own, out=left)
    np.subtract(1.0 - first * first, left, out=left)
    yield left


def _line(target: FloatArray, share: FloatArray, column: FloatArray, kind: int) -> tuple[float, float]:
    """Offset and slope with which one entry meets one target best, in double precision."""
    if kind == _PLAIN:
        return 0.0, -1.0 if share @ (target * column) < 0.0 else 1.0
    middle = level = 0.0
    if kind == _AFFINE:
        total = share.sum()
        middle, level = float(share @ column / total), float(share @ target / total)
    centred = column - middle
    slope = float(share @ (centred * target) / (share @ (centred * centred)))
    return level - slope * middle, slope


def _outline(expression: Expression) -> Expression:
    """The canonical form without fitted factors, all other fitted constants alike."""

    def drawn(node: Expression, factor: bool) -> Expression:
        if isinstance(node, Number) and not node.exact:
            return ONE if factor else Number(1.5)
        if not isinstance(node, Apply):
            return node
        inside = node.operator in ("mul", "div", "neg")
        return Apply(node.operator, tuple(drawn(argument, inside) for argument in node.arguments))

    return canonical(drawn(expression, False))
