"""Physics-slice attention: slices are means, padding has no part in them, rows come in any order."""

from __future__ import annotations

import pytest
import torch
from physdiffuser_attention_physics_slice.attention import PhysicsSliceAttention

WIDTH, HEADS = 16, 2


def module(**options: object) -> PhysicsSliceAttention:
    torch.manual_seed(0)
    return PhysicsSliceAttention(WIDTH, HEADS, slices=8, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("content_projection", [False, True])
@pytest.mark.parametrize("point_temperature", [False, True])
def test_padding_has_no_influence(content_projection: bool, point_temperature: bool) -> None:
    attention = module(content_projection=content_projection, point_temperature=point_temperature).eval()
    rows = torch.randn(2, 12, WIDTH)
    padded = torch.cat((rows, 100.0 * torch.randn(2, 5, WIDTH)), dim=1)
    mask = torch.zeros(2, 17, dtype=torch.bool)
    mask[:, 12:] = True
    expected, _ = attention(rows)
    found, weights = attention(padded, padding_mask=mask, need_weights=True)
    torch.testing.assert_close(found[:, :12], expected, atol=1e-5, rtol=1e-5)
    assert weights is not None
    torch.testing.assert_close(weights[:, :, :12].sum(-1), torch.ones(2, HEADS, 12))
    assert float(weights[:, :, 12:].abs().max()) == 0.0


def test_permuting_rows_permutes_the_result() -> None:
    attention = module().eval()
    rows = torch.randn(1, 20, WIDTH)
    order = torch.randperm(20)
    torch.testing.assert_close(
        attention(rows[:, order])[0], attention(rows)[0][:, order], atol=1e-5, rtol=1e-5
    )


def test_repeating_all_rows_changes_nothing() -> None:
    # Slices are means, normalised by their mass: the number of rows does not matter.
    attention = module().eval()
    rows = torch.randn(1, 10, WIDTH)
    once, _ = attention(rows)
    many, _ = attention(rows.repeat(1, 7, 1))
    torch.testing.assert_close(many[:, :10], once, atol=1e-4, rtol=1e-4)


def test_noise_only_in_training() -> None:
    attention = module(point_temperature=True)
    rows = torch.randn(1, 10, WIDTH)
    attention.train()
    assert not torch.equal(attention(rows)[0], attention(rows)[0])
    attention.eval()
    assert torch.equal(attention(rows)[0], attention(rows)[0])


def test_gradients_reach_every_parameter() -> None:
    attention = module(point_temperature=True)
    attention(torch.randn(2, 10, WIDTH))[0].square().sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert float(parameter.grad.abs().max()) > 0.0, name


def test_refusals() -> None:
    attention = module()
    rows = torch.randn(1, 5, WIDTH)
    with pytest.raises(ValueError, match="mixes all positions"):
        attention(rows, causal=True)
    with pytest.raises(ValueError, match="within one set"):
        attention(rows, rows)
    for slices in (3, 65):
        with pytest.raises(ValueError, match="between 4 and 64"):
            PhysicsSliceAttention(WIDTH, HEADS, slices=slices)
