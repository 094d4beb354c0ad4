"""The built-in variants arrive through entry points, and what they cannot do is refused with the reason."""

from __future__ import annotations

import subprocess
import sys

import pytest

from physdiffuser.config import EncoderConfig, ModelConfig
from physdiffuser.errors import PluginError, UsageError
from physdiffuser.models.attention import build_attention, find_attention, require
from physdiffuser.models.decoder import Decoder
from physdiffuser.plugin_system.manager import load_plugins


def test_all_three_are_registered_through_entry_points() -> None:
    attentions = load_plugins().attentions
    assert {"standard", "physics-slice", "biased"} <= set(attentions)
    for name in ("standard", "physics-slice", "biased"):
        assert attentions[name].origin.entry_point.endswith(
            f"physdiffuser_attention_{name.replace('-', '_')}"
        )


@pytest.mark.parametrize("name", ["physics-slice", "biased"])
def test_causal_use_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be used for the autoregressive decoder"):
        Decoder(vocabulary=10, width=16, heads=2, layers=1, length=8, attention=name)


def test_the_reason_names_the_capability() -> None:
    with pytest.raises(UsageError, match="mixes all positions"):
        require(find_attention("physics-slice"), ["causal"], "anything causal")


def test_unknown_names_and_options() -> None:
    with pytest.raises(PluginError, match="no attention is called 'standart'"):
        find_attention("standart")
    with pytest.raises(UsageError, match="has no option 'slice'"):
        build_attention(find_attention("physics-slice"), 16, 2, {"slice": 8})


def test_configuration_takes_any_variant() -> None:
    for name in ("standard", "physics-slice", "biased"):
        assert ModelConfig(encoder=EncoderConfig(attention=name)).encoder.attention == name


def test_registering_loads_no_torch() -> None:
    code = (
        "import sys; from physdiffuser.plugin_system.manager import load_plugins; "
        "assert load_plugins().attentions; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
