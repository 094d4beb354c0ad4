"""Statistics of attention over the laws of a suite, for trained networks and for random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from physdiffuser.arrays import FloatArray, IntArray
from physdiffuser.inspection.biases import layers_of as bias_layers
from physdiffuser.inspection.capture import captured
from physdiffuser.inspection.networks import Networks, quiet_networks
from physdiffuser.inspection.session import Showing, show
from physdiffuser.inspection.slices import layers_of as slice_layers
from physdiffuser.inspection.statistics import agreement, received, relative_entropy
from physdiffuser.inspection.subjects import from_law
from physdiffuser.inspection.tokens import KINDS, arguments_of, kind_of, law_tokens
from physdiffuser.inspection.trajectories import order_of_kinds, record, sampling_options
from physdiffuser.models.tokens.vocabulary import BOS, EOS, MASK, VARIABLES

if TYPE_CHECKING:
    from benchmarks_feynman.suites import Law


MEMORY_KINDS = ("pooled", "columns", "table")
MASKED_SHARE = 0.5
"""Share of a formula that is masked when the denoiser is looked at."""
_WAYS = 4


@dataclass
class LawStatistics:
    """What one law gave.

    Attributes
    ----------
    law, group
        Its id and tier.
    entropy
        By "part kind": mean relative entropy of the formula's tokens.
    got, even
        By "part kind": attention received by each kind of key, and by even attention.
    tree
        By part: see `statistics.agreement`, (4, layers * heads).
    own_column
        By part: (2, layers) weight on the column of the variable that is to be written, and mean weight
        on the other columns.
    order
        By kind of token: mean share of the steps after which it was in place.
    encoder
        Share of the encoder's attention that differs from an even one, by what attends to what; for a bias
        also the share that it moves.
    """

    law: str
    group: str
    entropy: dict[str, float] = field(default_factory=dict)
    got: dict[str, FloatArray] = field(default_factory=dict)
    even: dict[str, FloatArray] = field(default_factory=dict)
    tree: dict[str, FloatArray] = field(default_factory=dict)
    own_column: dict[str, FloatArray] = field(default_factory=dict)
    order: dict[str, float] = field(default_factory=dict)
    encoder: dict[str, float] = field(default_factory=dict)


def study(
    networks: Networks,
    laws: Sequence[Law],
    *,
    rows: int,
    noise: float,
    seed: int,
    trajectories: int,
    progress: Callable[[str], None] = lambda law: None,
) -> list[LawStatistics]:
    """Look at every law once; those whose formula the networks cannot write are left out.

    Parameters
    ----------
    networks
        Trained or random.
    trajectories
        Windows filled a law, for the order in which tokens are resolved; 0 for none.
    progress
        Called with the id of each law.
    """
    found = []
    for law in laws:
        progress(law.id)
        showing = show(networks, from_law(law, rows=rows, noise=noise, seed=seed), seed)
        tokens = law_tokens(law.expression, showing.reading, networks.model.vocabulary)
        if tokens is None or len(tokens) >= networks.model.config.length:
            continue
        one = LawStatistics(law.id, law.group)
        _encoder(showing, one)
        if networks.model.denoiser is not None:
            _denoiser(showing, tokens, one)
            if trajectories:
                _order(showing, trajectories, one)
        if networks.model.decoder is not None:
            _decoder(showing, tokens, one)
        found.append(one)
    return found


def _unevenness(weights: FloatArray) -> float:
    return float(0.5 * np.abs(weights - 1.0 / weights.shape[-1]).sum(axis=-1).mean())


def _encoder(showing: Showing, one: LawStatistics) -> None:
    found = one.encoder
    if showing.has("gather"):
        found["inducing points from rows"] = _unevenness(showing.encoder_weights("gather"))
        found["rows from inducing points"] = _unevenness(showing.encoder_weights("spread"))
    layers = slice_layers(showing)
    if layers:
        found["rows into slices"] = float(np.mean([_unevenness(layer.assignment) for layer in layers]))
        found["slices from slices"] = float(np.mean([_unevenness(layer.attention) for layer in layers]))
    biases = bias_layers(showing)
    if biases:
        found["rows from rows"] = float(np.mean([_unevenness(layer.with_bias) for layer in biases]))
        found["rows from rows, without the bias"] = float(
            np.mean([_unevenness(layer.without) for layer in biases])
        )
        found["moved by the bias"] = float(np.mean([layer.moved.mean() for layer in biases]))
    found["memory from rows"] = _unevenness(showing.encoder_weights("pooling"))


def _memory_kinds(showing: Showing) -> IntArray:
    """Kind of each memory token that is not masked."""
    memory = showing.networks.model.config.encoder.memory
    kept, _ = showing.keys
    last = len(kept) - 1 if showing.networks.model.encoder.statistics else -1
    kinds = [0 if index < memory else 2 if position == last else 1 for position, index in enumerate(kept)]
    return np.array(kinds, dtype=np.int64)


def _own_column(showing: Showing, cross: FloatArray, written: Sequence[tuple[int, str]]) -> FloatArray | None:
    """(2, layers) weight on the column of the variable at hand, and mean weight on the others.

    Parameters
    ----------
    cross
        (layers, heads, queries, keys), all memory tokens.
    written
        Query, and the variable that it is about.
    """
    model = showing.networks.model
    columns = showing.places
    if not model.encoder.statistics or len(columns) < 2 or not written:
        return None
    first = model.config.encoder.memory
    own, other = [], []
    for query, token in written:
        place = VARIABLES.index(token)
        own.append(cross[:, :, query, first + place].mean(axis=1))
        rest = [first + column for column in columns if column != place]
        other.append(cross[:, :, query][..., rest].mean(axis=(1, 2)))
    return np.stack([np.mean(own, axis=0), np.mean(other, axis=0)])


def _denoiser(showing: Showing, tokens: list[str], one: LawStatistics) -> None:
    model = showing.networks.model
    assert model.denoiser is not None
    length, config = len(tokens), model.config
    fitting = [window for window in config.diffusion_sampling.windows if length < window <= config.length]
    window = min(fitting) if fitting else config.length
    whole = np.array(model.vocabulary.encode([*tokens, *[EOS] * (window - length)]))
    rng = np.random.default_rng([showing.problem.seed, 41])
    # The same places are masked for trained and random networks.
    masked = np.zeros((_WAYS, window), dtype=np.bool_)
    for chosen in masked:
        chosen[rng.permutation(window)[: max(1, round(MASKED_SHARE * window))]] = True
    states = np.where(masked, model.vocabulary.ids[MASK], whole)
    with quiet_networks(), captured(model) as heard:
        memory, mask = showing.memory.expand(_WAYS, -1, -1), showing.mask.expand(_WAYS, -1)
        model.denoiser(torch.from_numpy(states), memory, mask)
    own = heard.weights("denoiser", "self").double().numpy()
    cross = heard.weights("denoiser", "cross").double().numpy()
    kept, _ = showing.keys
    one.entropy["denoiser self"] = float(relative_entropy(own)[..., :length].mean())
    one.entropy["denoiser cross"] = float(relative_entropy(cross[..., kept])[..., :length].mean())
    parts = []
    about = []
    for way in range(_WAYS):
        kinds = np.array([KINDS.index(kind_of(model.vocabulary.tokens[token])) for token in states[way]])
        parts.append(received(own[:, way, :, :length], kinds, len(KINDS)))
        places = [(place, tokens[place]) for place in range(length) if masked[way, place]]
        variables = [(place, token) for place, token in places if token in VARIABLES]
        found = _own_column(showing, cross[:, way], variables)
        if found is not None:
            about.append(found)
    one.got["denoiser self"], one.even["denoiser self"] = np.mean(parts, axis=0)
    one.got["denoiser cross"], one.even["denoiser cross"] = received(
        cross[..., :length, :][..., kept], _memory_kinds(showing), len(MEMORY_KINDS)
    )
    if about:
        one.own_column["denoiser"] = np.mean(about, axis=0)
    mean = own.mean(axis=1)[..., :length, :length]
    edges = [(place, root) for place, roots in arguments_of(tokens) for root in roots]
    # (layers, heads, length, length) -> (all heads, length, length)
    one.tree["denoiser"] = agreement(
        mean.reshape(-1, length, length), edges, np.ones((length, length), dtype=np.bool_)
    )


def _decoder(showing: Showing, tokens: list[str], one: LawStatistics) -> None:
    model = showing.networks.model
    assert model.decoder is not None
    words = [BOS, *tokens]
    ids = torch.tensor([model.vocabulary.encode(words)])
    with quiet_networks(), captured(model) as heard:
        model.decoder(ids, showing.memory, showing.mask)
    own = heard.weights("decoder", "self")[:, 0].double().numpy()
    cross = heard.weights("decoder", "cross")[:, 0].double().numpy()
    kept, _ = showing.keys
    one.entropy["decoder self"] = float(np.nanmean(relative_entropy(own, causal=True)))
    one.entropy["decoder cross"] = float(relative_entropy(cross[..., kept]).mean())
    kinds = np.array([KINDS.index(kind_of(word)) for word in words])
    one.got["decoder self"], one.even["decoder self"] = received(own, kinds, len(KINDS), causal=True)
    one.got["decoder cross"], one.even["decoder cross"] = received(
        cross[..., kept], _memory_kinds(showing), len(MEMORY_KINDS)
    )
    # The query that has read i tokens is the one that writes token i.
    found = _own_column(
        showing, cross, [(place, token) for place, token in enumerate(tokens) if token in VARIABLES]
    )
    if found is not None:
        one.own_column["decoder"] = found
    # An operator is written before its arguments, so it is they who can look back at it.
    edges = [(root + 1, place + 1) for place, roots in arguments_of(tokens) for root in roots]
    allowed = np.tril(np.ones((len(words), len(words)), dtype=np.bool_))
    allowed[:, 0] = False
    # (layers, heads, words, words) -> (all heads, words, words)
    one.tree["decoder"] = agreement(own.reshape(-1, len(words), len(words)), edges, allowed)


def _order(showing: Showing, count: int, one: LawStatistics) -> None:
    rng = showing.problem.generator(43)
    paths = record(showing, sampling_options(showing), count, rng)
    # Random networks hardly ever write a formula; their order is asked of whatever they put down.
    found = order_of_kinds(
        paths, showing.networks.model.vocabulary.tokens, formulas_only=showing.networks.trained
    )
    one.order = {kind: float(np.mean(steps)) for kind, steps in found.items()}
