"""How the target bends along each column: averages over groups of rows that are neighbours in that column.

Partial-residual curves (Ezekiel, 1924; Larsen and McCleary, 1972) of least squares in linear and logarithmic
coordinates, in equally filled groups, with the spread inside each group: what is left of a power law
once the power law is gone shows the sine, the peak or the saturation that stands beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.features.statistics import both_scales, compress, counted, unit_residual
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float

GROUPS = 8
_CURVES = 3
CURVE_FEATURES = GROUPS * (2 * _CURVES + 2)


def _memberships(values: Tensor, keep: Tensor, count: Tensor) -> Tensor:
    """Share of each row in each group's mean, (b, n, c, GROUPS): groups of equal size by rank."""
    ranked = values.masked_fill(keep == 0.0, float("inf")).argsort(dim=1).argsort(dim=1)
    group = (ranked * GROUPS / count).long().clamp(max=GROUPS - 1)
    member = torch.nn.functional.one_hot(group, GROUPS).float() * keep.unsqueeze(-1)
    return member / member.sum(dim=1, keepdim=True).clamp_min(1.0)


@checked
@torch.no_grad()
def partial_residual_curves(
    rows: Float[Tensor, "batch rows 10"],
    padding_mask: Bool[Tensor, "batch rows"],
    used: Bool[Tensor, "batch 9"],
) -> Float[Tensor, "batch 9 features"]:
    """Curves of each column, (batch, 9, CURVE_FEATURES); zero for unused places.

    Parameters
    ----------
    rows
        (batch, rows, 10), nine places and the target, float.
    padding_mask
        (batch, rows), True where a row is padding.
    used
        (batch, 9), True where a place holds a column.
    """
    rows = rows.float()
    keep, count = counted(padding_mask)
    linear, logarithmic = both_scales(rows, used, keep)
    left = [unit_residual(scale[..., :-1], scale[..., -1], count) for scale in (logarithmic, linear)]
    along = torch.stack((linear[..., -1], *left), dim=-1)
    values = rows[..., :MAX_VARIABLES]
    member = _memberships(values, keep, count)
    means = torch.einsum("bncg,bnr->bcgr", member, along)
    squares = torch.einsum("bncg,bnr->bcgr", member, along.square())
    spreads = (squares - means.square()).clamp_min(0.0).sqrt()
    places = (
        torch.einsum("bncg,bnc->bcg", member, linear[..., :-1]),
        torch.einsum("bncg,bnc->bcg", member, values),
    )
    features = torch.cat((means.flatten(2), spreads.flatten(2), *places), dim=-1)
    return compress(features) * used.float().unsqueeze(-1)
