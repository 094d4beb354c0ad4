"""What the networks are given of a table besides the bits of its numbers, computed from the rows they read.

A set encoder can learn these, at the cost of millions of laws: least squares in linear and logarithmic
coordinates, what the residuals have in common with products of columns, and with a few functions of
each column. `summarise` makes one vector for each column and one for the table; they enter the memory as
tokens beside what the attention finds. `row_features` gives each row as real numbers: standardised columns,
their logarithms, and the residuals of simple fits, which are what is worth reading in a row.
`partial_residual_curves` shows how the target bends along each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from physdiffuser.arrays import CHECK_ARRAYS, checked
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float


_RIDGE = 1e-3
_FUNCTIONS = 8
FITS = 4
COLUMN_FEATURES = FITS * (2 + MAX_VARIABLES + _FUNCTIONS) + 6
TABLE_FEATURES = FITS * 2 + 6


@checked
def counted(
    padding_mask: Bool[Tensor, "b n"],
) -> tuple[Float[Tensor, "b n 1"], Float[Tensor, "b 1 1"]]:
    """1 for each row that is no padding, (b, n, 1), and how many there are, (b, 1, 1), at least 1."""
    keep = (~padding_mask).float().unsqueeze(-1)
    return keep, keep.sum(dim=1, keepdim=True).clamp_min(1.0)


@checked
def standardise(
    values: Float[Tensor, "b n c"], keep: Float[Tensor, "b n 1"]
) -> tuple[Float[Tensor, "b n c"], Float[Tensor, "b 1 c"], Float[Tensor, "b 1 c"]]:
    """Centred and scaled over the kept rows; also mean and spread. values (b, n, c), keep (b, n, 1)."""
    count = keep.sum(dim=1, keepdim=True).clamp_min(1.0)
    mean = (values * keep).sum(dim=1, keepdim=True) / count
    centred = (values - mean) * keep
    spread = (centred.square().sum(dim=1, keepdim=True) / count).sqrt()
    scaled = torch.where(spread > 1e-5, centred / spread.clamp_min(1e-5), torch.zeros_like(centred))
    return scaled, mean, spread


@checked
def both_scales(
    rows: Float[Tensor, "b n 10"], used: Bool[Tensor, "b 9"], keep: Float[Tensor, "b n 1"]
) -> tuple[Float[Tensor, "b n 10"], Float[Tensor, "b n 10"]]:
    """All columns and the target standardised, as they are and as logarithms; unused places 0.

    Parameters
    ----------
    rows
        (b, n, 10), float.
    used
        (b, 9), True where a place holds a column.
    keep
        (b, n, 1), see `counted`.
    """
    active = torch.cat((used, torch.ones_like(used[:, :1])), dim=1).float().unsqueeze(1)
    linear = standardise(rows, keep)[0] * active
    logarithmic = standardise(rows.abs().clamp_min(1e-6).log(), keep)[0] * active
    return linear, logarithmic


@checked
def unit_residual(
    columns: Float[Tensor, "b n c"], target: Float[Tensor, "b n"], count: Float[Tensor, "b 1 1"]
) -> Float[Tensor, "b n"]:
    """Residuals of `fit_ridge`, over their root mean square, (b, n)."""
    _, residual = fit_ridge(columns, target, count)
    size = (residual.square().sum(dim=1, keepdim=True) / count[:, 0]).sqrt()
    return residual / size.clamp_min(1e-4)


@checked
def fit_ridge(
    columns: Float[Tensor, "b n c"], target: Float[Tensor, "b n"], count: Float[Tensor, "b 1 1"]
) -> tuple[Float[Tensor, "b c"], Float[Tensor, "b n"]]:
    """Ridge regression of standardised columns (b, n, c) on a target (b, n): slopes, residual."""
    gram = columns.transpose(1, 2) @ columns / count
    gram = gram + _RIDGE * torch.eye(columns.shape[2], device=columns.device)
    moment = (columns.transpose(1, 2) @ target.unsqueeze(-1)) / count
    # solve_ex: a check for singular matrices would make a GPU wait, and the ridge rules them out.
    slopes = _eliminated(gram, moment) if gram.is_cuda else torch.linalg.solve_ex(gram, moment)[0]
    return slopes.squeeze(-1), target - (columns @ slopes).squeeze(-1)


def _eliminated(gram: Tensor, moment: Tensor) -> Tensor:
    """Solutions of positive definite systems (b, c, c) and (b, c, 1) by elimination.

    The batched solvers of a GPU cannot be captured in a CUDA graph.
    """
    system = torch.cat((gram, moment), dim=2)
    for place in range(gram.shape[1]):
        row = system[:, place : place + 1] / system[:, place : place + 1, place : place + 1]
        others = system - system[:, :, place : place + 1] * row
        system = torch.cat((others[:, :place], row, others[:, place + 1 :]), dim=1)
    return system[:, :, -1:]


def _functions(values: Tensor) -> Tensor:
    """A few functions of every column, (b, n, c, functions)."""
    size = values.abs().clamp_min(1e-4)
    return torch.stack(
        (
            values.square(),
            1.0 / size,
            values.sin(),
            values.cos(),
            values.sin().abs().clamp_min(1e-3).log(),
            values.cos().abs().clamp_min(1e-3).log(),
            size.clamp(max=20.0),
            1.0 / (1.0 + size.square()),
        ),
        dim=-1,
    )


@checked
@torch.no_grad()
def summarise(
    rows: Float[Tensor, "batch rows 10"],
    padding_mask: Bool[Tensor, "batch rows"],
    used: Bool[Tensor, "batch 9"],
) -> tuple[Float[Tensor, "batch 9 column"], Float[Tensor, "batch table"]]:
    """Features of each column and of the table.

    Parameters
    ----------
    rows
        (batch, rows, 10), nine places and the target, float.
    padding_mask
        (batch, rows), True where a row is padding.
    used
        (batch, 9), True where a place holds a column.

    Returns
    -------
    columns
        (batch, 9, COLUMN_FEATURES); zero for unused places.
    table
        (batch, TABLE_FEATURES).
    """
    rows = rows.float()
    keep, count = counted(padding_mask)
    active = used.float().unsqueeze(1)  # (b, 1, 9)
    values, target = rows[..., :MAX_VARIABLES], rows[..., MAX_VARIABLES:]
    log_values = values.abs().clamp_min(1e-6).log()
    log_target = target.abs().clamp_min(1e-6).log()
    linear, _, linear_spread = standardise(values, keep)
    logarithmic, log_mean, log_spread = standardise(log_values, keep)
    linear, logarithmic = linear * active, logarithmic * active
    plain, _, plain_spread = standardise(target, keep)
    logged, target_mean, target_spread = standardise(log_target, keep)

    shaped = _functions(values)
    shape = shaped.shape
    basis, _, _ = standardise(shaped.flatten(2), keep)
    basis = basis.view(shape) * active.unsqueeze(-1)  # (b, n, 9, functions)

    column_parts: list[Tensor] = []
    table_parts: list[Tensor] = []
    for response, response_spread in ((logged, target_spread), (plain, plain_spread)):
        for design, design_spread in ((logarithmic, log_spread), (linear, linear_spread)):
            slopes, residual = fit_ridge(design, response.squeeze(-1), count)
            left = (residual.square().sum(dim=1) / count[:, 0, 0]).sqrt()  # (b,)
            # In original units: in log-log coordinates these are the exponents of a power law.
            raw = slopes * (response_spread[:, 0] / design_spread[:, 0].clamp_min(1e-5)).clamp(max=1e3)
            unit = residual / left.clamp_min(1e-4).unsqueeze(-1)
            shared = torch.einsum("bn,bni,bnj->bij", unit, design, design) / count
            bent = torch.einsum("bn,bnif->bif", unit, basis) / count
            column_parts += [raw.unsqueeze(-1), slopes.unsqueeze(-1), shared, bent]
            table_parts += [left.unsqueeze(-1), left.clamp_min(1e-4).log().unsqueeze(-1)]
    negative = ((values < 0).float() * keep).sum(dim=1) / count[:, 0]
    column_parts += [
        log_mean[:, 0].unsqueeze(-1),
        log_spread[:, 0].unsqueeze(-1),
        linear_spread[:, 0].clamp(max=50.0).unsqueeze(-1),
        negative.unsqueeze(-1),
        (values.abs() * keep).amax(dim=1).clamp_min(1e-6).log().unsqueeze(-1),
        used.float().unsqueeze(-1),
    ]
    table_parts += [
        target_mean[:, 0],
        target_spread[:, 0],
        plain_spread[:, 0].clamp_min(1e-6).log(),
        ((target < 0).float() * keep).sum(dim=1) / count[:, 0],
        count[:, 0].log(),
        used.float().sum(dim=1, keepdim=True) / MAX_VARIABLES,
    ]
    columns = torch.cat(column_parts, dim=-1) * used.float().unsqueeze(-1)
    table = torch.cat(table_parts, dim=-1)
    # A logarithm of the size keeps rare large values from drowning the rest.
    return compress(columns), compress(table)


@checked
def compress(features: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The same up to 3 in size, then a logarithm; what is not finite as 0 or the largest."""
    features = torch.nan_to_num(features, nan=0.0, posinf=1e4, neginf=-1e4)
    return torch.where(
        features.abs() <= 3.0, features, features.sign() * (3.0 + (features.abs() - 2.0).clamp_min(1.0).log())
    )


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
    rows, padding_mask, used
        As in `summarise`.
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

    Residuals of least squares in linear and logarithmic coordinates are averaged over equally filled groups
    of rows that are neighbours in the column, with the spread inside each group. What is left of a power law
    once the power law is gone shows the sine, the peak or the saturation that stands beside it.

    Parameters
    ----------
    rows, padding_mask, used
        As in `summarise`.

    References
    ----------
    Partial residuals: Ezekiel (1924); Larsen and McCleary (1972).
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
