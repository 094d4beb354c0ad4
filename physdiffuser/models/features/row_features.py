"""Each row as real numbers: standardised columns, their logarithms, and the residuals of simple fits.

Least squares in linear and logarithmic coordinates leave residuals; their shape over the columns is what a
power law or a plane cannot explain, and therefore what is worth reading in a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.features.statistics import FITS, both_scales, counted, unit_residual
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float

ROW_FEATURES = 2 * (MAX_VARIABLES + 1) + FITS
_LARGEST = 8.0


@checked
@torch.no_grad()
def row_features(
    rows: Float[Tensor, "batch rows 10"],
    padding_mask: Bool[Tensor, "batch rows"],
    used: Bool[Tensor, "batch 9"],
) -> Float[Tensor, "batch rows features"]:
    """Features of each row, (batch, rows, ROW_FEATURES), at most 8 in size.

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
    left = [
        unit_residual(design[..., :-1], response[..., -1], count).unsqueeze(-1)
        for response in (logarithmic, linear)
        for design in (logarithmic, linear)
    ]
    features = torch.cat((linear, logarithmic, *left), dim=-1)
    return torch.nan_to_num(features).clamp(-_LARGEST, _LARGEST)
