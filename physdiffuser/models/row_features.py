"""Each row as real numbers: standardised columns, their logarithms, and what simple fits leave over.

Least squares in linear and logarithmic coordinates leave residuals; their shape over the columns is what a
power law or a plane cannot explain, and therefore what is worth reading in a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from physdiffuser.models.statistics import FITS, counted, fit_ridge, standardise
from physdiffuser.models.vocabulary import MAX_VARIABLES

ROW_FEATURES = 2 * (MAX_VARIABLES + 1) + FITS
_LARGEST = 8.0


@torch.no_grad()
def row_features(rows: Tensor, padding_mask: Tensor, used: Tensor) -> Tensor:
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
    active = torch.cat((used, torch.ones_like(used[:, :1])), dim=1).float().unsqueeze(1)
    linear = standardise(rows, keep)[0] * active
    logarithmic = standardise(rows.abs().clamp_min(1e-6).log(), keep)[0] * active
    parts = [linear, logarithmic]
    for response in (logarithmic[..., -1], linear[..., -1]):
        for design in (logarithmic[..., :-1], linear[..., :-1]):
            _, residual = fit_ridge(design, response, count)
            size = (residual.square().sum(dim=1, keepdim=True) / count[:, 0]).sqrt()
            parts.append((residual / size.clamp_min(1e-4)).unsqueeze(-1))
    features = torch.cat(parts, dim=-1)
    return torch.nan_to_num(features).clamp(-_LARGEST, _LARGEST)
