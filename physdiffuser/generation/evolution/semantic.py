"""The building blocks that come closest to the target of one subtree of a formula.

One matrix product fits `a + b*block` for all blocks at once.
"""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Apply, Expression, Number
from physdiffuser.expressions.tree import add, mul, sub
from physdiffuser.generation.evolution.blocks import Blocks
from physdiffuser.library.subtree_target import SubtreeTarget

_EXACT = 1e-9


def answers(
    subtree_targets: list[SubtreeTarget], blocks: Blocks, parsimony: tuple[float, ...]
) -> list[list[Expression]]:
    """For each subtree target the blocks that meet it best, as `a + b*block`, one a price of complexity."""
    if not subtree_targets or not len(blocks):
        return [[] for _ in subtree_targets]
    weights = np.array([one.weights for one in subtree_targets])
    values = np.array([one.values for one in subtree_targets])
    mean = np.einsum("kr,kr->k", weights, values)
    centred = values - mean[:, None]
    with np.errstate(all="ignore"):
        size = np.sqrt(np.einsum("kr,kr,kr->k", weights, centred, centred))
        asked = (weights * centred / size[:, None]).astype(np.float32)
        usable = np.isfinite(asked).all(axis=1)
        asked[~usable] = 0.0
        light = weights.astype(np.float32)
        block_mean = light @ blocks.values.T
        spread = light @ blocks.squares.T - block_mean**2
        product = asked @ blocks.values.T
        share = np.where(spread > 1e-5, product**2 / spread, 0.0)
    left = np.log(np.clip(1.0 - share, 1e-6, 1.0))
    found: list[list[Expression]] = []
    for row, one in enumerate(subtree_targets):
        if not usable[row]:
            found.append([])
            continue
        picks = dict.fromkeys(int(np.argmin(left[row] + price * blocks.complexity)) for price in parsimony)
        found.append([_affine(one, blocks, pick) for pick in picks])
    return found


def _affine(one: SubtreeTarget, blocks: Blocks, pick: int) -> Expression:
    """`a + b*block` fitted in double precision, without an `a` or a `b` that hardly matters."""
    block = blocks.expressions[pick]
    with np.errstate(all="ignore"):
        slope, offset = _line(one, blocks.column(pick))
    if abs(slope - 1.0) < _EXACT:
        term: Expression = block
    elif abs(slope + 1.0) < _EXACT:
        term = Apply("neg", (block,)) if offset == 0.0 else block
        return term if offset == 0.0 else sub(Number(offset), block)
    else:
        term = mul(Number(slope), block)
    return term if offset == 0.0 else add(Number(offset), term)


def _line(one: SubtreeTarget, column: FloatArray) -> tuple[float, float]:
    """Slope and offset; the offset is 0 if it improves the fit by less than a twentieth."""
    share, wanted = one.weights, one.values
    mean, level = float(share @ column), float(share @ wanted)
    centred = column - mean
    spread = float(share @ centred**2)
    slope = float(share @ (centred * wanted)) / spread if spread > 0.0 else 0.0
    offset = level - slope * mean
    square = float(share @ column**2)
    plain = float(share @ (column * wanted)) / square if square > 0.0 else 0.0
    residual = float(share @ (wanted - offset - slope * column) ** 2)
    residual_plain = float(share @ (wanted - plain * column) ** 2)
    if residual_plain <= residual * 1.05 + 1e-18 * float(share @ wanted**2):
        return plain, 0.0
    return slope, offset
