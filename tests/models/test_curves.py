"""How the target bends along each column, as averages over groups of neighbouring rows."""

from __future__ import annotations

import numpy as np
import torch

from physdiffuser.models.features.statistics import CURVE_FEATURES, GROUPS, partial_residual_curves
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES


def _table(rows: int = 160) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(3)
    values = np.zeros((1, rows, MAX_VARIABLES + 1))
    values[0, :, [1, 4]] = rng.uniform(0.5, 3.0, (2, rows))
    values[0, :, -1] = values[0, :, 1] ** 2 * (2 + np.sin(2 * values[0, :, 4]))
    used = torch.zeros(1, MAX_VARIABLES, dtype=torch.bool)
    used[0, [1, 4]] = True
    return torch.from_numpy(values).float(), torch.zeros(1, rows, dtype=torch.bool), used


def test_the_sine_beside_a_power_law_shows_along_its_column() -> None:
    rows, padding, used = _table()
    features = partial_residual_curves(rows, padding, used)
    assert features.shape == (1, MAX_VARIABLES, CURVE_FEATURES)
    assert not features[0, ~used[0]].any()
    # Means of the residual of the power law, the second of three curves of each group.
    curves = features[0, :, : 3 * GROUPS].view(MAX_VARIABLES, GROUPS, 3)[..., 1]
    x, y = rows[0, :, 4].double().numpy(), rows[0, :, -1].double().numpy()
    design = np.column_stack([np.ones(len(x)), np.log(rows[0, :, 1].double().numpy()), np.log(x)])
    residual = np.log(y) - design @ np.linalg.lstsq(design, np.log(y), rcond=None)[0]
    order = np.argsort(x)
    expected = [part.mean() for part in np.split(residual[order] / residual.std(), GROUPS)]
    np.testing.assert_allclose(curves[4].numpy(), expected, atol=0.05)
    # Most of the residual's variance is between the groups along the sine's column, little along the other.
    assert curves[4].square().mean() > 0.7 and curves[1].square().mean() < 0.1


def test_order_and_padding_do_not_matter() -> None:
    rows, padding, used = _table()
    expected = partial_residual_curves(rows, padding, used)
    shuffled = rows[:, torch.randperm(rows.shape[1], generator=torch.Generator().manual_seed(1))]
    torch.testing.assert_close(
        partial_residual_curves(shuffled, padding, used), expected, atol=1e-4, rtol=1e-4
    )
    padded = torch.cat((rows, torch.full((1, 40, MAX_VARIABLES + 1), 7.0)), dim=1)
    mask = torch.cat((padding, torch.ones(1, 40, dtype=torch.bool)), dim=1)
    torch.testing.assert_close(partial_residual_curves(padded, mask, used), expected, atol=1e-4, rtol=1e-4)


def test_few_equal_and_extreme_rows_stay_finite() -> None:
    used = torch.ones(1, MAX_VARIABLES, dtype=torch.bool)
    for count in (1, 3, 30):
        for value in (0.0, 1.0, 6e4, -6e4):
            rows = torch.full((1, count, MAX_VARIABLES + 1), value)
            found = partial_residual_curves(rows, torch.zeros(1, count, dtype=torch.bool), used)
            assert torch.isfinite(found).all()
