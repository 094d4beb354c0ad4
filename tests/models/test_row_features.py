"""Rows as real numbers: for sets, and blind to padding and to places without a column."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from physdiffuser.config import EncoderConfig, ModelConfig
from physdiffuser.models.features.statistics import ROW_FEATURES, row_features
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES, Vocabulary


def table(rows: int = 30, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    values = np.zeros((2, rows, MAX_VARIABLES + 1))
    values[:, :, [1, 4]] = rng.uniform(0.5, 5.0, (2, rows, 2))
    values[:, :, -1] = values[:, :, 1] ** 2 / values[:, :, 4]
    used = torch.zeros(2, MAX_VARIABLES, dtype=torch.bool)
    used[:, [1, 4]] = True
    return torch.tensor(values, dtype=torch.float16), torch.zeros(2, rows, dtype=torch.bool), used


def test_features_follow_their_rows() -> None:
    rows, padding, used = table()
    features = row_features(rows, padding, used)
    assert features.shape == (2, 30, ROW_FEATURES) and features.abs().max() <= 8.0
    order = torch.randperm(30)
    # What an exact law leaves is rounding, shown enlarged.
    shown = row_features(rows[:, order], padding, used)
    torch.testing.assert_close(shown, features[:, order], atol=5e-3, rtol=0.0)


def test_padding_and_unused_places_do_not_matter() -> None:
    rows, padding, used = table()
    features = row_features(rows, padding, used)
    longer = torch.cat((rows, torch.full((2, 5, MAX_VARIABLES + 1), 7.0, dtype=torch.float16)), dim=1)
    mask = torch.cat((padding, torch.ones(2, 5, dtype=torch.bool)), dim=1)
    torch.testing.assert_close(row_features(longer, mask, used)[:, :30], features, atol=5e-3, rtol=0.0)
    filled = rows.clone()
    filled[:, :, 7] = 3.0 + torch.rand(2, 30)
    torch.testing.assert_close(row_features(filled, padding, used), features, atol=5e-3, rtol=0.0)


def test_what_a_power_law_leaves_is_small_and_what_a_plane_leaves_is_not() -> None:
    rows, padding, used = table()
    rows = rows.float()
    # The residuals are scaled to one size, unless they are nothing.
    logs, plane = row_features(rows, padding, used)[..., [-4, -1]].unbind(dim=-1)
    assert plane.square().mean().sqrt() == pytest.approx(1.0, abs=0.01)
    rows[:, :, -1] = rows[:, :, 1] * 0.0 + 2.0
    constant = row_features(rows, padding, used)
    assert torch.isfinite(constant).all() and not constant[..., -4:].any()
    assert torch.isfinite(logs).all()


def test_an_encoder_reads_them_when_told_to() -> None:
    rows, padding, used = table()
    torch.manual_seed(0)
    config = ModelConfig(
        width=16, heads=2, encoder=EncoderConfig(layers=1, inducing=4, values=True), diffusion=None
    )
    model = LawModel(config, Vocabulary()).eval()
    values = model.encoder.values
    assert values is not None
    with torch.no_grad():
        before, _ = model.encode(rows, padding, used)
        values.weight.zero_()
        values.bias.zero_()
        after, _ = model.encode(rows, padding, used)
    assert not torch.allclose(before, after)
    assert (
        LawModel(config.model_copy(update={"encoder": EncoderConfig()}), Vocabulary()).encoder.values is None
    )
