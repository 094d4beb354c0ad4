"""The contract check of attention variants passes the built-in ones and names what is wrong in others."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from physdiffuser.plugin_system.manager import load_plugins
from physdiffuser.specs import AttentionSpec
from physdiffuser.testing import ContractError, check_attention


@pytest.mark.parametrize("name", ["standard", "physics-slice", "biased"])
def test_built_in_variants_keep_the_contract(name: str) -> None:
    assert len(check_attention(load_plugins(False).attention(name))) >= 7


class Faulty(nn.Module):
    """Softmax attention with one head and one fault."""

    def __init__(self, width: int, heads: int, fault: str = "") -> None:
        super().__init__()
        self.fault = fault
        self.key = nn.Linear(width, width)
        self.spare = nn.Linear(width, width) if fault == "unused" else None
        self.calls = 0

    def forward(self, query: Any, memory: Any = None, *, padding_mask: Any = None, **options: Any) -> Any:
        source = query if memory is None else memory
        logits = query @ self.key(source).transpose(1, 2) / 8
        if padding_mask is not None and self.fault != "padding":
            logits = logits.masked_fill(padding_mask[:, None], float("-inf"))
        weights = logits.softmax(-1)
        output = weights @ source
        match self.fault:
            case "shape":
                return output[..., :1], None
            case "alone":
                return output
            case "nan":
                return output * float("nan"), None
            case "random":
                return output + torch.rand(()), None
            case "order":
                return output + torch.arange(output.shape[1])[:, None], None
            case "state":
                self.calls += 1
                return output + 0.01 * self.key.weight.detach().sum() * self.calls, None
            case "weights":
                return output, 2 * weights[:, None].expand(-1, 4, -1, -1)
        return output, None


@pytest.mark.parametrize(
    ("fault", "supports", "message"),
    [
        ("shape", {"padding_mask"}, "shape"),
        ("alone", {"padding_mask"}, "pair"),
        ("nan", {"padding_mask"}, "not finite"),
        ("random", {"padding_mask"}, "evaluation mode differ"),
        ("state", {"padding_mask"}, "evaluation mode differ"),
        ("order", {"padding_mask"}, "another order"),
        ("padding", {"padding_mask"}, "padded rows"),
        ("unused", {"padding_mask"}, "no gradient reaches the parameter spare"),
        ("", {"padding_mask", "causal"}, "sees those after it"),
        ("", {"padding_mask", "weights"}, "None is returned"),
        ("weights", {"padding_mask", "weights"}, "do not sum to 1"),
    ],
)
def test_a_wrong_variant_is_named(fault: str, supports: set[str], message: str) -> None:
    spec = AttentionSpec("faulty", partial(Faulty, fault=fault), supports=frozenset(supports))
    with pytest.raises(ContractError, match=message):
        check_attention(spec)


def test_the_same_module_without_a_fault_passes() -> None:
    assert check_attention(AttentionSpec("fine", Faulty, supports=frozenset({"padding_mask", "cross"})))
