"""Standard attention against torch's own, its masks, positions and cache."""

from __future__ import annotations

import pytest
import torch
from physdiffuser_attention_standard.attention import StandardAttention, sinusoidal
from torch import Tensor, nn

from physdiffuser.models.attention import KeyValueCache

WIDTH, HEADS = 24, 4


def twins() -> tuple[StandardAttention, nn.MultiheadAttention]:
    """Ours and torch's, with the same weights."""
    torch.manual_seed(0)
    ours = StandardAttention(WIDTH, HEADS)
    theirs = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat((ours.query.weight, ours.key.weight, ours.value.weight)))
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key.bias, ours.value.bias)))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    return ours.eval(), theirs.eval()


def padding(batch: int, keys: int) -> Tensor:
    mask = torch.zeros(batch, keys, dtype=torch.bool)
    mask[0, keys // 2 :] = True
    return mask


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("cross", [False, True])
def test_equals_torch(padded: bool, cross: bool, grad: bool) -> None:
    ours, theirs = twins()
    query = torch.randn(3, 7, WIDTH)
    memory = torch.randn(3, 11, WIDTH) if cross else query
    mask = padding(3, memory.shape[1]) if padded else None
    with torch.set_grad_enabled(grad):
        plain, none = ours(query, memory if cross else None, padding_mask=mask)
        output, weights = ours(query, memory if cross else None, padding_mask=mask, need_weights=True)
        expected, expected_weights = theirs(
            query, memory, memory, key_padding_mask=mask, average_attn_weights=False
        )
    assert none is None
    torch.testing.assert_close(plain, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(weights, expected_weights, atol=1e-6, rtol=0)


def test_causal_mask_equals_torch() -> None:
    ours, theirs = twins()
    query = torch.randn(2, 6, WIDTH)
    future = torch.ones(6, 6, dtype=torch.bool).triu(1)
    expected, _ = theirs(query, query, query, attn_mask=future)
    found, _ = ours(query, causal=True)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
def test_cache_equals_uncached(positions: str) -> None:
    torch.manual_seed(1)
    ours = StandardAttention(WIDTH, HEADS, positions=positions).eval()
    query = torch.randn(2, 9, WIDTH)
    with torch.no_grad():
        whole, _ = ours(query, causal=True)
        cache = KeyValueCache()
        parts = [ours(part, causal=True, cache=cache)[0] for part in query.split([4, 1, 1, 3], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-6, rtol=0)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_positions_break_the_symmetry_of_sets(positions: str) -> None:
    torch.manual_seed(2)
    rows = torch.randn(1, 6, WIDTH)
    turned = rows.flip(1)
    plain = StandardAttention(WIDTH, HEADS)
    placed = StandardAttention(WIDTH, HEADS, positions=positions)
    torch.testing.assert_close(plain(turned)[0].flip(1), plain(rows)[0], atol=1e-6, rtol=0)
    assert not torch.allclose(placed(turned)[0].flip(1), placed(rows)[0], atol=1e-4)


def test_sinusoidal_table() -> None:
    table = sinusoidal(50, 8)
    torch.testing.assert_close(table[3, 0], torch.sin(torch.tensor(3.0)))
    torch.testing.assert_close(table[3, 3], torch.cos(torch.tensor(3.0 / 10_000 ** (2 / 8))))


def test_too_long_a_sequence_and_bad_options_are_refused() -> None:
    short = StandardAttention(WIDTH, HEADS, positions="learned", max_positions=4)
    with pytest.raises(ValueError, match="at most 4"):
        short(torch.randn(1, 5, WIDTH))
    with pytest.raises(ValueError, match="not a multiple"):
        StandardAttention(10, 4)
    with pytest.raises(ValueError, match="positions must be"):
        StandardAttention(WIDTH, HEADS, positions="rotary")
