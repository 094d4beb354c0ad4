"""Biased attention: an additive bias before the softmax, in both forms."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from physdiffuser_attention_biased.attention import BiasedAttention
from torch import Tensor

WIDTH, HEADS, COLUMNS = 16, 2, 10


def module(**options: Any) -> BiasedAttention:
    torch.manual_seed(0)
    return BiasedAttention(WIDTH, HEADS, **options)


def tables(rows: int = 12, batch: int = 3) -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(batch, rows, WIDTH), torch.randn(batch, rows, COLUMNS)


FORMS = [{"form": "barrier"}, {"form": "barrier", "gate_column": 0}, {"form": "relative"}]


@pytest.mark.parametrize("options", FORMS)
def test_weights_sum_to_one_as_they_are(options: dict[str, Any]) -> None:
    vectors, coordinates = tables()
    _, weights = module(**options)(vectors, coordinates=coordinates, need_weights=True)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, HEADS, 12), atol=1e-6, rtol=0)


@pytest.mark.parametrize("options", FORMS)
def test_zero_bias_is_standard_attention(options: dict[str, Any]) -> None:
    vectors, coordinates = tables()
    attention = module(**options)
    with torch.no_grad():
        if options["form"] == "barrier":
            attention.strength.fill_(-1e4)
        else:
            attention.second.weight.zero_()
    expected, _ = attention.attention(vectors)
    torch.testing.assert_close(attention(vectors, coordinates=coordinates)[0], expected, atol=1e-6, rtol=0)


def test_uphill_is_penalised_and_downhill_is_not() -> None:
    coordinates = torch.zeros(1, 3, COLUMNS)
    coordinates[0, :, -1] = torch.tensor([0.0, 1.0, 3.0])
    bias = module(form="barrier").bias(coordinates)[0, 0]
    assert bias[0, 1] < 0 and bias[0, 2] < bias[0, 1] and bias[1, 2] < 0
    assert float(bias.tril().abs().max()) == 0.0


def test_the_chosen_column_is_the_height() -> None:
    coordinates = torch.zeros(1, 3, COLUMNS)
    coordinates[0, :, 4] = torch.tensor([0.0, 1.0, 3.0])
    assert float(module(form="barrier").bias(coordinates).abs().max()) == 0.0
    assert float(module(form="barrier", height_column=4).bias(coordinates)[0, 0, 0, 2]) < 0.0


@pytest.mark.parametrize("options", FORMS)
def test_gradients_reach_every_parameter(options: dict[str, Any]) -> None:
    vectors, coordinates = tables()
    attention = module(**options)
    if options.get("gate_column") is not None:
        with torch.no_grad():
            attention.gate.fill_(0.3)
    attention(vectors, coordinates=coordinates)[0].square().sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
        # A bias on all keys alike changes no softmax.
        if name != "attention.key.bias":
            assert float(parameter.grad.abs().max()) > 0.0, name


def test_alpha_is_positive() -> None:
    attention = module(form="barrier", initial_strength=0.5)
    torch.testing.assert_close(attention.alpha, torch.full((HEADS,), 0.5))
    with torch.no_grad():
        attention.strength.fill_(-5.0)
    assert float(attention.alpha.min()) > 0.0


@pytest.mark.parametrize("options", FORMS)
def test_batches_and_padding(options: dict[str, Any]) -> None:
    vectors, coordinates = tables()
    attention = module(**options).eval()
    alone = torch.cat(
        [attention(vectors[i : i + 1], coordinates=coordinates[i : i + 1])[0] for i in range(3)]
    )
    torch.testing.assert_close(attention(vectors, coordinates=coordinates)[0], alone, atol=1e-5, rtol=1e-5)
    more = torch.cat((vectors, 50 * torch.randn(3, 4, WIDTH)), dim=1)
    further = torch.cat((coordinates, 50 * torch.randn(3, 4, COLUMNS)), dim=1)
    mask = torch.zeros(3, 16, dtype=torch.bool)
    mask[:, 12:] = True
    found, _ = attention(more, coordinates=further, padding_mask=mask)
    torch.testing.assert_close(found[:, :12], alone, atol=1e-4, rtol=1e-4)


def test_relative_bias_never_holds_rows_by_rows_by_hidden() -> None:
    rows, hidden = 2_000, 16
    attention = module(form="relative", hidden=hidden)
    largest = 0

    def watch(*arguments: Any) -> None:
        nonlocal largest
        for value in arguments:
            for tensor in value if isinstance(value, tuple) else (value,):
                if isinstance(tensor, Tensor):
                    largest = max(largest, tensor.numel())

    attention.second.register_forward_hook(watch)
    saved: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        saved.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        bias = attention.bias(torch.randn(1, rows, COLUMNS))
    assert bias.shape == (1, HEADS, rows, rows)
    assert largest < rows * rows
    # What autograd keeps for the backward pass: less than one hidden layer of all pairs.
    assert max(saved) <= rows * rows * HEADS < rows * rows * hidden


def test_refusals() -> None:
    vectors, coordinates = tables()
    attention = module()
    with pytest.raises(ValueError, match="needs the coordinates"):
        attention(vectors)
    with pytest.raises(ValueError, match="cannot be causal or cross"):
        attention(vectors, coordinates=coordinates, causal=True)
    with pytest.raises(ValueError, match="form must be"):
        module(form="linear")
