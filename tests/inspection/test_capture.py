"""Captured weights are those that made the output; and nothing of the capture stays behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from inspected_networks import BARRIER, RELATIVE, SLICES, networks, random_model
from torch import nn

from physdiffuser.inspection.biases import bias_of
from physdiffuser.inspection.capture import Heard, Place, captured, places
from physdiffuser.inspection.session import encode, show
from physdiffuser.inspection.slices import cost, slices_of
from physdiffuser.inspection.subjects import Subject
from physdiffuser.inspection.written import read_by_decoder
from physdiffuser.models.attention import KeyValueCache
from physdiffuser.models.network import LawModel

VARIANTS = {"standard": {}, "slices": SLICES, "barrier": BARRIER, "relative": RELATIVE}


def subject(columns: int = 3, rows: int = 40) -> Subject:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 4.0, (rows, columns))
    names = tuple(f"v{index}" for index in range(columns))
    return Subject("table", inputs, 3.0 * inputs[:, 0] / inputs[:, -1], names, "y")


def run(model: LawModel, seed: int = 0) -> dict[str, torch.Tensor]:
    """Every part of a model once."""
    rng = torch.Generator().manual_seed(seed)
    rows = torch.rand(2, 30, 10, generator=rng).half()
    padding = torch.zeros(2, 30, dtype=torch.bool)
    padding[1, 25:] = True
    used = torch.tensor([[True] * 4 + [False] * 5, [True] * 2 + [False] * 7])
    tokens = torch.randint(6, 40, (2, 9), generator=rng)
    assert model.denoiser is not None and model.decoder is not None
    with torch.inference_mode():
        memory, mask = model.encode(rows, padding, used)
        return {
            "memory": memory,
            "denoiser": model.denoiser(tokens, memory, mask),
            "decoder": model.decoder(tokens, memory, mask),
        }


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def from_weights(heard: Heard) -> torch.Tensor:
    """The output of standard attention, made from the captured weights."""
    module: Any = heard.module.attention if hasattr(heard.module, "attention") else heard.module
    source = heard.query if heard.memory is None else heard.memory
    assert heard.weights is not None
    mixed = heard.weights @ module._split(module.value(source))
    return module.output(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_those_that_made_the_output(variant: str) -> None:
    model = random_model(**VARIANTS[variant])
    with captured(model) as heard:
        run(model)
    assert set(heard.calls) == {place for place, _, _ in places(model)}
    for place, calls in heard.calls.items():
        assert len(calls) == 1 and calls[0].weights is not None, place
        sums = calls[0].weights.sum(dim=-1)
        if variant == "slices" and place.kind == "rows":
            continue  # a test of its own below
        assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5), place
        with torch.inference_mode():
            assert torch.allclose(from_weights(calls[0]), calls[0].output, atol=1e-5), place


def test_slices_put_together_make_the_output() -> None:
    model = random_model(**SLICES)
    rng = torch.Generator().manual_seed(1)
    rows = torch.rand(1, 30, 10, generator=rng).half()
    used = torch.ones(1, 9, dtype=torch.bool)
    with captured(model) as heard, torch.inference_mode():
        model.encode(rows, torch.zeros(1, 30, dtype=torch.bool), used)
    call = heard.last(Place("encoder", "rows", 1))
    found = slices_of(call)
    assert found is not None and found.assignment.shape == (2, 30, 8) and found.attention.shape == (2, 8, 8)
    assert np.allclose(found.masses.sum(axis=1), 1.0) and np.allclose(found.attention.sum(axis=2), 1.0)
    module: Any = call.module
    with torch.inference_mode():
        split = module._split(module.content(call.query))[0]
        tokens = torch.from_numpy(found.assignment).float().transpose(1, 2) @ split
        tokens = tokens / (30 * torch.from_numpy(found.masses).float().unsqueeze(-1) + 1e-6)
        mixed = torch.from_numpy(found.attention).float() @ module.value(tokens)
        back = torch.from_numpy(found.assignment).float() @ mixed
        output = module.output(back.transpose(0, 1).flatten(1))
    assert torch.allclose(output, call.output[0], atol=1e-5)
    assert slices_of(heard.last(Place("encoder", "pooling", 0))) is None
    measured = cost({"M = 8": call}, rows=(16, 64))
    assert all(len(times) == 2 and min(times) > 0 for times in measured.values())


@pytest.mark.parametrize("form", [BARRIER, RELATIVE], ids=["barrier", "relative"])
def test_weights_without_the_bias_differ_by_the_bias_alone(form: dict[str, Any]) -> None:
    showing = show(networks(**form), subject())
    found = bias_of(showing.heard.last(Place("encoder", "rows", 0)))
    assert found is not None and np.abs(found.bias).max() > 1e-3
    assert np.allclose(found.with_bias.sum(axis=-1), 1.0, atol=1e-5)
    # softmax(a + b) is proportional to softmax(a) * exp(b)
    expected = found.without * np.exp(found.bias)
    expected /= expected.sum(axis=-1, keepdims=True)
    assert np.allclose(found.with_bias, expected, atol=1e-5)
    assert (found.moved > 0).all() and (found.moved < 1).all()
    barrier = form is BARRIER
    assert (found.alpha is not None) == barrier and (found.beta is not None) == barrier


def test_what_is_heard_of_the_decoder_is_what_decoding_with_a_cache_uses() -> None:
    showing = show(networks(), subject())
    model = showing.networks.model
    ids = model.vocabulary.encode(["mul", "x1", "sqrt", "x2"])
    whole = read_by_decoder(showing, ids).weights("decoder", "self")[:, 0]
    decoder = model.decoder
    assert decoder is not None
    state = decoder.start()
    with torch.inference_mode(), captured(model) as heard:
        for position, token in enumerate([model.vocabulary.ids["<bos>"], *ids]):
            heard.clear()
            decoder(torch.tensor([[token]]), showing.memory, showing.mask, state)
            step = heard.weights("decoder", "self")[:, 0]
            assert torch.allclose(step[..., 0, :], whole[..., position, : position + 1], atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_listening_changes_nothing(variant: str) -> None:
    model = random_model(**VARIANTS[variant])
    before = run(model)
    with captured(model):
        during = run(model)
    after = run(model)
    for name, output in before.items():
        assert torch.allclose(output, during[name], atol=1e-4), name
        assert torch.equal(output, after[name]), name


def test_no_hook_and_no_cost_when_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model()
    fused: list[int] = []
    kernel = F.scaled_dot_product_attention

    def counting(*arguments: Any, **options: Any) -> torch.Tensor:
        fused.append(1)
        return kernel(*arguments, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counting)
    modules = len(list(places(model)))
    assert hooks(model) == 0
    run(model)
    assert len(fused) == modules  # every module takes the fused kernel, which has no weights to give
    with captured(model):
        assert hooks(model) == 2 * modules
        run(model)
    assert len(fused) == modules and hooks(model) == 0
    with pytest.raises(RuntimeError, match="stop"), captured(model):
        raise RuntimeError("stop")
    assert hooks(model) == 0


def test_a_variant_without_weights_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from physdiffuser.inspection import capture

    class Silent:
        supports = frozenset({"padding_mask"})

    model = random_model(**SLICES)
    real = capture.find_attention
    monkeypatch.setattr(
        capture, "find_attention", lambda name: Silent() if name == "physics-slice" else real(name)
    )
    with captured(model) as heard:
        run(model)
    assert heard.last(Place("encoder", "rows", 0)).weights is None
    assert heard.last(Place("encoder", "pooling", 0)).weights is not None


def test_a_generator_without_weights_is_looked_at_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from physdiffuser.errors import UsageError
    from physdiffuser.inspection import capture
    from physdiffuser.inspection import reports as looks
    from physdiffuser.inspection.subjects import sample_suite

    class Silent:
        supports = frozenset({"padding_mask", "cross", "causal", "cache"})

    for module in (capture, looks):
        monkeypatch.setattr(module, "find_attention", lambda name: Silent())
    shown = networks(**SLICES)
    with pytest.raises(UsageError, match="does not return its weights"):
        looks.inspect_suite(shown, "ood", sample_suite("ood", 2))
    heard = read_by_decoder(show(shown, subject()), [6])
    assert heard.calls and not heard.has("decoder", "self")


def test_a_suite_that_cannot_be_written_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from physdiffuser.errors import UsageError
    from physdiffuser.inspection import aggregate
    from physdiffuser.inspection import reports as looks
    from physdiffuser.inspection.subjects import sample_suite

    monkeypatch.setattr(aggregate, "law_tokens", lambda *given: None)
    with pytest.raises(UsageError, match="none of these 2 laws of ood can be written"):
        looks.inspect_suite(networks(), "ood", sample_suite("ood", 2))


def test_caches_are_left_as_they_were() -> None:
    model = random_model()
    cache = KeyValueCache()
    module = next(module for place, module, _ in places(model) if place == Place("decoder", "self", 0))
    with torch.inference_mode(), captured(model) as heard:
        module(torch.zeros(1, 1, 16), causal=True, cache=cache)
    assert cache.keys is not None and cache.keys.shape[2] == 1
    assert heard.last(Place("decoder", "self", 0)).memory is None


def test_encoding_is_what_solve_encodes() -> None:
    from physdiffuser.models.proposing import encode_readings

    showing = show(networks(), subject(rows=90))
    with torch.inference_mode():
        memory, mask = encode(showing.networks.model, showing.reading)
    expected, expected_mask = encode_readings(showing.networks.model, [showing.reading])
    assert torch.equal(mask, expected_mask) and torch.equal(showing.mask, mask)
    assert torch.allclose(showing.memory, memory, atol=1e-4)
    # solve may run in bfloat16, which has eight bits
    assert torch.allclose(expected.float(), memory, atol=0.1)
