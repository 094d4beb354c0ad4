"""Inside biased attention: the bias, the weights with and without it, and what was learned of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from physdiffuser_attention_biased.attention import BiasedAttention

from physdiffuser.arrays import FloatArray
from physdiffuser.inspection.capture import Heard
from physdiffuser.inspection.networks import quiet_networks
from physdiffuser.inspection.session import Showing


@dataclass(frozen=True)
class Bias:
    """One layer's bias on one table.

    Attributes
    ----------
    form
        "barrier" or "relative".
    bias, with_bias, without
        (heads, rows, rows): what is added to the logits, the weights, and the weights had it not been.
    alpha
        (heads,) learned strength of the barrier; None for the relative form.
    began
        Alpha before training, the same for every head; beta began at 0.
    beta
        (heads,) learned gate; None where there is none.
    moved
        (heads,) share of the attention that the bias moved: mean total-variation distance between the two.
    """

    form: str
    bias: FloatArray
    with_bias: FloatArray
    without: FloatArray
    alpha: FloatArray | None
    began: float
    beta: FloatArray | None
    moved: FloatArray


def bias_of(heard: Heard) -> Bias | None:
    """What the bias did in one call, or None if its module is no biased attention."""
    module = heard.module
    if not isinstance(module, BiasedAttention) or heard.weights is None:
        return None
    mask = heard.options.get("padding_mask")
    with quiet_networks():
        bias = module.bias(heard.options["coordinates"], mask)[0].double().numpy()
        _, plain = module.attention(heard.query, padding_mask=mask, need_weights=True)
        without = plain[0].double().numpy()
        barrier = module.form == "barrier"
        alpha = module.alpha.double().numpy() if barrier else None
        gated = barrier and module.gate_column is not None
        beta = module.gate.double().numpy() if gated else None
    weights = heard.weights[0].double().numpy()
    moved = 0.5 * np.abs(weights - without).sum(axis=-1).mean(axis=-1)
    return Bias(module.form, bias, weights, without, alpha, module.initial_strength, beta, moved)


def layers_of(showing: Showing) -> list[Bias]:
    """The bias of every layer of the encoder; empty where its attention has none."""
    found = map(bias_of, showing.calls_among_rows)
    return [one for one in found if one is not None]
