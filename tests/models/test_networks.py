"""Encoder, denoiser and decoder: shapes, symmetries, cache, conditions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_networks import small_config, small_model
from torch import Tensor

from physdiffuser.config import DecoderConfig, ModelConfig
from physdiffuser.errors import UsageError
from physdiffuser.models.features.statistics import summarise
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.vocabulary import BOS, MASK, Vocabulary


@pytest.fixture(name="model")
def _model() -> LawModel:
    return small_model()


VARIANTS = [{}, {"attention": "physics-slice", "options": {"slices": 8}}, {"attention": "biased"}]


def tables(batch: int = 2, rows: int = 20) -> tuple[Tensor, Tensor, Tensor]:
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.uniform(0.5, 3.0, (batch, rows, 10)).astype(np.float16))
    used = torch.zeros(batch, 9, dtype=torch.bool)
    used[:, [1, 4, 7]] = True
    values[..., :9] = values[..., :9] * used[:, None]
    return values, torch.zeros(batch, rows, dtype=torch.bool), used


@pytest.mark.parametrize("encoder", VARIANTS)
def test_encoder_ignores_padding_and_order(encoder: dict[str, object]) -> None:
    torch.manual_seed(0)
    model = LawModel(small_config(**encoder), Vocabulary()).eval()
    rows, padding, used = tables()
    with torch.no_grad():
        memory, mask = model.encode(rows, padding, used)
        order = torch.randperm(rows.shape[1])
        turned, _ = model.encode(rows[:, order], padding, used)
        longer = torch.cat((rows, torch.full_like(rows[:, :6], 77.0)), dim=1)
        padded = torch.cat((padding, torch.ones_like(padding[:, :6])), dim=1)
        other, _ = model.encode(longer, padded, used)
    assert memory.shape == (2, 16 + 9 + 1, 32) and mask.shape == (2, 26)
    assert mask[:, 16:25].tolist() == (~used).tolist()
    keep = ~mask
    torch.testing.assert_close(turned[keep], memory[keep], atol=2e-4, rtol=2e-4)
    torch.testing.assert_close(other[keep], memory[keep], atol=2e-4, rtol=2e-4)


def test_cached_decoding_equals_uncached(model: LawModel) -> None:
    assert model.decoder is not None
    with torch.no_grad():
        memory, mask = model.encode(*tables())
        tokens = torch.randint(6, 40, (2, 12))
        whole = model.decoder(tokens, memory, mask)
        state = model.decoder.start()
        parts = [model.decoder(part, memory, mask, state) for part in tokens.split([1, 1, 5, 1, 4], dim=1)]
        assert state.position == 12
        torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)
        swapped = torch.tensor([1, 0])
        state.select(swapped)
        again = model.decoder(tokens[swapped, -1:], memory[swapped], mask[swapped], state)
        expected = model.decoder(torch.cat((tokens, tokens[:, -1:]), dim=1), memory, mask)[:, -1:]
        torch.testing.assert_close(again, expected[swapped], atol=1e-5, rtol=1e-5)


def test_the_decoder_does_not_see_the_future(model: LawModel) -> None:
    assert model.decoder is not None
    with torch.no_grad():
        memory, mask = model.encode(*tables())
        tokens = torch.randint(6, 40, (2, 10))
        changed = tokens.clone()
        changed[:, 6:] = 7
        first, second = (model.decoder(each, memory, mask) for each in (tokens, changed))
    torch.testing.assert_close(first[:, :6], second[:, :6])


def test_the_denoiser_never_answers_mask(model: LawModel) -> None:
    assert model.denoiser is not None
    masks = torch.full((2, 8), Vocabulary().ids[MASK])
    with torch.no_grad():
        logits = model.denoiser(masks, *model.encode(*tables()))
    assert torch.isneginf(logits[..., Vocabulary().ids[MASK]]).all()
    assert torch.isfinite(logits).sum() == logits.numel() - 16


def test_without_condition_nothing_of_the_table_is_left(model: LawModel) -> None:
    rows, padding, used = tables()
    with torch.no_grad():
        memory, mask = model.encode(rows, padding, used)
        first = model.without_condition(memory, mask, torch.tensor([True, False]))
        second = model.without_condition(memory * 3.0, mask, torch.tensor([True, False]))
    torch.testing.assert_close(first[0][0], second[0][0])
    torch.testing.assert_close(first[0][1], memory[1])
    assert not first[1][0].any()


def test_summaries_hold_the_exponents_of_a_power_law() -> None:
    rng = np.random.default_rng(3)
    values = np.zeros((1, 100, 10))
    values[0, :, [0, 3]] = rng.uniform(1.0, 4.0, (2, 100))
    values[0, :, 9] = values[0, :, 0] ** 2 / values[0, :, 3]
    used = torch.zeros(1, 9, dtype=torch.bool)
    used[0, [0, 3]] = True
    columns, table = summarise(torch.from_numpy(values), torch.zeros(1, 100, dtype=torch.bool), used)
    assert float(columns[0, 0, 0]) == pytest.approx(2.0, abs=0.02)
    assert float(columns[0, 3, 0]) == pytest.approx(-1.0, abs=0.02)
    assert float(columns[0, 1].abs().max()) == 0.0
    assert torch.isfinite(columns).all() and torch.isfinite(table).all()


@pytest.mark.parametrize("rows", [1, 2])
def test_summaries_of_tiny_and_constant_tables_are_finite(rows: int) -> None:
    used = torch.ones(2, 9, dtype=torch.bool)
    for fill in (0.0, 1.0, 60_000.0):
        values = torch.full((2, rows, 10), fill)
        columns, table = summarise(values, torch.zeros(2, rows, dtype=torch.bool), used)
        assert torch.isfinite(columns).all() and torch.isfinite(table).all()


def test_a_generator_that_needs_more_than_the_attention_offers_is_refused() -> None:
    config = ModelConfig(width=32, heads=2, diffusion=DecoderConfig(layers=1, attention="physics-slice"))
    with pytest.raises(UsageError, match="the denoiser"):
        LawModel(config, Vocabulary())


def test_teacher_forcing_and_stepping_agree_on_the_first_token(model: LawModel) -> None:
    assert model.decoder is not None
    first = torch.full((2, 1), Vocabulary().ids[BOS])
    with torch.no_grad():
        memory, mask = model.encode(*tables())
        alone = model.decoder(first, memory, mask)
        long = model.decoder(torch.cat((first, torch.full((2, 5), 9)), dim=1), memory, mask)
    torch.testing.assert_close(alone[:, 0], long[:, 0], atol=1e-5, rtol=1e-5)
