"""The two inspections: of one table, and of many laws of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.errors import UsageError
from physdiffuser.expressions import to_text
from physdiffuser.inspection.aggregate import LawStatistics, study
from physdiffuser.inspection.capture import places
from physdiffuser.inspection.drawing import aggregates as draw_aggregates
from physdiffuser.inspection.drawing import bias as draw_bias
from physdiffuser.inspection.drawing import encoder as draw_encoder
from physdiffuser.inspection.drawing import formula as draw_formula
from physdiffuser.inspection.drawing import slices as draw_slices
from physdiffuser.inspection.drawing.figures import DPI, Origin, Picture
from physdiffuser.inspection.networks import Networks, open_others, random_networks
from physdiffuser.inspection.page import Report, Table
from physdiffuser.inspection.session import Showing, show
from physdiffuser.inspection.slices import layers_of as slice_layers
from physdiffuser.inspection.statistics import share_interval
from physdiffuser.inspection.subjects import Subject
from physdiffuser.inspection.trajectories import order_of_kinds, record, sampling_options
from physdiffuser.inspection.written import (
    Choice,
    beams,
    ranked,
    read_by_decoder,
    read_by_denoiser,
    state_of,
)
from physdiffuser.models.attention import find_attention
from physdiffuser.models.tokens.vocabulary import BOS

if TYPE_CHECKING:
    from benchmarks_feynman.suites import Law

Say = Callable[[str], None]

_UNTRAINED = (
    "These weights are random: nothing was learned. The pictures show what the networks do before training, "
    "and nothing else should be read into them."
)
_INTRODUCTIONS = {
    "Encoder": "How the rows of the table become the short memory that both generators read.",
    "Slices": "The encoder's attention works through slices: each row belongs to a few of them, and they "
    "attend to each other.",
    "Bias": "The encoder's attention carries a bias that is computed from the rows themselves.",
    "Refinement": "How the diffusion generator fills masks, the surest first.",
    "Denoiser": "The network of the diffusion generator at the step of the trajectory above where half of "
    "the window was filled.",
    "Decoder": "The network of the autoregressive generator reading the formula that fits best of those it "
    "found likeliest. The line of a token shows what it looks at to write the next one.",
}
_SUITE_INTRODUCTION = (
    "The true formula of each law is given to the denoiser with half of its places masked (four ways), and "
    "to the decoder token by token. Laws are the unit of resampling."
)


def _nothing(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Settings:
    """How an inspection is made.

    Attributes
    ----------
    seed
        Of tables, rows, places and sampling.
    trajectories
        Windows that are filled, of which the best is drawn; of a suite, for each law.
    dpi
        Of the pictures.
    command
        That makes this page again.
    say
        Called with what is being done.
    """

    seed: int = 0
    trajectories: int = 64
    dpi: int = DPI
    command: str = ""
    say: Say = _nothing


def inspect_table(
    networks: Networks,
    subject: Subject,
    settings: Settings = Settings(),
    *,
    pair: tuple[int, int] | None = None,
    remask: float | None = None,
) -> Report:
    """Look at networks while they read one table and write its law.

    Parameters
    ----------
    pair
        Columns on which rows are drawn; the two most relevant when None.
    remask
        Share of re-masking in the trajectories; that of the weights when None.
    """
    seed, say = settings.seed, settings.say
    origin = Origin(networks.label, subject.title, networks.trained, settings.dpi)
    say("reading the table")
    showing = show(networks, subject, seed)
    others = [show(other, subject, seed) for other in open_others(networks)]
    pictures, numbers = _encoder(showing, origin, pair, others)
    tables: dict[str, list[Table]] = {}
    if networks.model.denoiser is not None:
        say("filling masks")
        seen = replace(origin, weights=networks.label_of("diffusion"))
        pictures += _refinement(showing, seen, remask, settings.trajectories, tables)
    if networks.model.decoder is not None:
        say("writing token by token")
        seen = replace(origin, weights=networks.label_of("autoregressive"))
        pictures += _decoding(showing, seen, tables)
    facts = {
        "Table": subject.title,
        "Rows": f"{len(subject.target):,}",
        "Columns": f"{', '.join(subject.names)} → {subject.target_name}",
        "Read in full": f"{len(showing.order)} rows; summaries of columns from {len(showing.reading.rows)}",
        "Weights": "; ".join([networks.label, *networks.lent.values()]),
    }
    if others:
        facts["Beside them"] = "; ".join(other.networks.label for other in others)
    if subject.law is not None:
        facts["True law"] = f"{subject.target_name} = {to_text(subject.law, subject.names)}"
    if settings.command:
        facts["Made by"] = settings.command
    facts["Precision"] = "single, seed " + str(seed)
    sections = {picture.section for picture in pictures}
    return Report(
        title=f"Inside the networks: {subject.title}",
        facts=facts,
        pictures=pictures,
        tables=tables,
        introductions={name: text for name, text in _INTRODUCTIONS.items() if name in sections},
        warnings=() if networks.trained else (_UNTRAINED,),
        numbers={
            "weights": networks.label,
            "table": subject.title,
            "columns": list(showing.labels),
            **numbers,
        },
    )


def _encoder(
    showing: Showing, origin: Origin, pair: tuple[int, int] | None, others: Sequence[Showing]
) -> tuple[list[Picture], dict[str, object]]:
    pictures: list[Picture] = []
    numbers: dict[str, object] = {}
    if showing.has("gather"):
        pictures += draw_encoder.induced_blocks(showing, origin)
        reads, found = draw_encoder.readers(showing, origin)
        numbers |= found
        pictures += [reads, draw_encoder.close_up(showing, origin, pair)]
    elif slice_layers(showing):
        reads, found = draw_encoder.readers(showing, origin, "rows")
        numbers |= found
        pictures.append(reads)
    pictures.append(draw_encoder.pooling(showing, origin))
    memory = draw_encoder.mixing(showing, origin)
    pictures += [memory] if memory is not None else []
    sliced, seconds = draw_slices.pictures(showing, origin, pair, others)
    pictures += sliced
    numbers |= seconds
    pictures += draw_bias.pictures(showing, origin, others)
    return pictures, numbers


def _choices(title: str, found: Sequence[Choice], votes: bool) -> Table:
    rows = [
        (
            choice.text,
            "not fitted" if choice.loss is None else f"{choice.loss:.2g}",
            *([str(choice.votes)] if votes else []),
        )
        for choice in found[:6]
    ]
    header = (
        "formula (constants c1, ... and factors are fitted)",
        "variance left",
        *(["written"] if votes else []),
    )
    return Table(title, header, tuple(rows))


def _refinement(
    showing: Showing, origin: Origin, remask: float | None, count: int, tables: dict[str, list[Table]]
) -> list[Picture]:
    names = showing.networks.model.vocabulary.tokens
    paths = record(showing, sampling_options(showing, remask), count, showing.problem.generator(47))
    found = ranked(showing, [path.written for path in paths])
    best = paths[found[0].index] if found else paths[0]
    ended = sum(not path.projected for path in paths)
    tables["Refinement"] = [_choices(f"What {len(paths)} windows became, best fit first", found, True)]
    order = order_of_kinds(paths, names, formulas_only=showing.networks.trained)
    pictures = [
        draw_formula.trajectory(showing, best, origin),
        draw_formula.resolution_order(order, ended if showing.networks.trained else len(paths), origin),
    ]
    state = state_of(best, best.halfway())
    heard = read_by_denoiser(showing, state)
    tokens = [names[token] for token in state]
    return pictures + [
        draw_formula.attention_grid(showing, heard, "denoiser", kind, tokens, origin)
        for kind in ("self", "cross")
        if heard.has("denoiser", kind)
    ]


def _decoding(showing: Showing, origin: Origin, tables: dict[str, list[Table]]) -> list[Picture]:
    names = showing.networks.model.vocabulary.tokens
    written = beams(showing)
    if not written:
        return []
    found = ranked(showing, [item.tokens for item in written])
    ids = written[found[0].index if found else 0].tokens
    tables["Decoder"] = [_choices(f"The {len(written)} likeliest formulas, best fit first", found, False)]
    heard = read_by_decoder(showing, ids)
    tokens = [BOS, *[names[token] for token in ids]]
    return [
        draw_formula.attention_grid(showing, heard, "decoder", kind, tokens, origin)
        for kind in ("self", "cross")
        if heard.has("decoder", kind)
    ]


def inspect_suite(
    networks: Networks,
    suite: str,
    laws: Sequence[Law],
    settings: Settings = Settings(trajectories=8),
    *,
    rows: int = 200,
    noise: float = 0.0,
) -> Report:
    """Statistics of attention over laws of a suite, with networks of random weights beside them.

    Parameters
    ----------
    networks
        Trained, as a rule.
    rows, noise
        Of the tables drawn from the laws.

    Raises
    ------
    UsageError
        If the generators' attention does not return weights, or they can write none of the laws.
    """
    _require_weights(networks)
    drawn = {"rows": rows, "noise": noise, "seed": settings.seed, "trajectories": settings.trajectories}

    def statistics(who: Networks, note: str) -> list[LawStatistics]:
        return study(
            who, laws, rows=rows, noise=noise, seed=settings.seed, trajectories=settings.trajectories,
            progress=lambda law: settings.say(law + note),
        )  # fmt: skip

    trained = statistics(networks, "")
    control = statistics(random_networks(networks, settings.seed), ", random weights")
    count = len(trained)
    if not count:
        raise UsageError(f"none of these {len(laws)} laws of {suite} can be written by these networks")
    title = f"{count} laws of {suite}, {rows} rows" + (f", noise {noise:g}" if noise else "")
    origin = Origin(networks.label, title, networks.trained, settings.dpi)
    pictures, numbers = _over_laws(trained, control, networks.model.config.heads, origin)
    encoder = {
        what: {
            name: share_interval(np.array([one.encoder[what] for one in found]))
            for name, found in (("trained", trained), ("random", control))
        }
        for what in trained[0].encoder
    }
    left_out = f" ({len(laws) - count} cannot be written)" if len(laws) > count else ""
    facts = {
        "Laws": f"{count} of {suite}{left_out}",
        "Tables": f"{rows} rows, noise {noise:g}, seed {settings.seed}",
        "Weights": networks.label,
        "Control": "the same networks with random weights, shown the same tables",
    }
    if settings.command:
        facts["Made by"] = settings.command
    return Report(
        title=f"Attention over the suite {suite}",
        facts=facts,
        pictures=pictures,
        tables={draw_aggregates.SECTION: [_unevenness_table(encoder)]},
        introductions={draw_aggregates.SECTION: _SUITE_INTRODUCTION},
        warnings=() if networks.trained else (_UNTRAINED,),
        numbers={
            "weights": networks.label,
            "suite": suite,
            "laws": [one.law for one in trained],
            "settings": drawn,
            **numbers,
            "encoder": encoder,
        },
    )


def _require_weights(networks: Networks) -> None:
    used = {variant for place, _, variant in places(networks.model) if place.part != "encoder"}
    silent = sorted(variant for variant in used if "weights" not in find_attention(variant).supports)
    if silent:
        raise UsageError(
            f"the attention {silent[0]!r} of these generators does not return its weights, so there is "
            "nothing to count over a suite; look at one table instead"
        )


def _over_laws(
    trained: list[LawStatistics], control: list[LawStatistics], heads: int, origin: Origin
) -> tuple[list[Picture], dict[str, object]]:
    """The pictures of the generators' attention over a suite, in order, and the numbers in them."""
    draw, count = draw_aggregates, len(trained)
    laws_by_tier = {**Counter(one.group for one in trained), "all": count}
    entropy, received = draw.entropies(trained, control), draw.receipts(trained, control)
    tree, own = draw.agreements(trained, control), draw.own_columns(trained, control)
    order = draw.orders(trained, control)
    pictures = [
        draw.draw_entropies(entropy, laws_by_tier, origin),
        draw.draw_receipts(received, count, origin),
    ]
    if tree:
        pictures.append(draw.draw_agreements(tree, heads, count, origin))
    if own:
        pictures.append(draw.draw_own_columns(own, count, origin))
    if order:
        pictures.append(draw.draw_orders(order, count, origin))
    numbers = {"entropy": entropy, "received": received, "tree": tree, "own_column": own, "order": order}
    return pictures, dict(numbers)


def _unevenness_table(encoder: dict[str, dict[str, tuple[float, float, float]]]) -> Table:
    rows = [
        (what, *(f"{middle:.1%} [{low:.1%}, {high:.1%}]" for middle, low, high in both.values()))
        for what, both in encoder.items()
    ]
    title = "Encoder: share of the attention that is uneven, with 95 % bootstrap intervals over laws"
    return Table(title, ("who attends to what", "trained", "random weights"), tuple(rows))
