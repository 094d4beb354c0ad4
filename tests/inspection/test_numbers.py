"""Numbers made of attention: trees, trajectories, readers, entropy, intervals, subjects."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from inspected_networks import SLICES, networks, saved

from physdiffuser.errors import DataError, UsageError
from physdiffuser.expressions import parse
from physdiffuser.generation.diffusion.sampler import DiffusionSampler
from physdiffuser.inspection.attention_reads import effective_rows, focus, over_rows, reliance
from physdiffuser.inspection.drawing.figures import Origin, Side, mosaic, new_figure
from physdiffuser.inspection.networks import open_networks, open_others, random_networks
from physdiffuser.inspection.session import show
from physdiffuser.inspection.statistics import (
    agreement,
    interval,
    ratio_interval,
    received,
    relative_entropy,
    share_interval,
)
from physdiffuser.inspection.subjects import find_columns, find_law, from_law, from_table, sample_suite
from physdiffuser.inspection.tokens import arguments_of, kind_of, law_tokens, pretty
from physdiffuser.inspection.trajectories import (
    RecordingSampler,
    grammar_of,
    order_of_kinds,
    record,
    sampling_options,
)
from physdiffuser.models.features.reading import Reading
from physdiffuser.models.tokens.vocabulary import Vocabulary

LAW = find_law("I.24.6")


def test_arguments_of_a_formula() -> None:
    tokens = ["add", "mul", "x1", "x2", "sqrt", "div", "1", "x3"]
    assert arguments_of(tokens) == [(0, (1, 4)), (1, (2, 3)), (4, (5,)), (5, (6, 7))]
    with pytest.raises(ValueError, match="no single formula"):
        arguments_of(["x1", "x2"])


def test_kinds_cover_the_vocabulary() -> None:
    kinds = {token: kind_of(token) for token in Vocabulary().tokens}
    assert kinds["<mask>"] == "masked" and kinds["<eos>"] == "special" and kinds["pi"] == "constant"
    assert kinds["C"] == "constant" and kinds["x9"] == "variable" and kinds["neg"] == "unary"
    assert set(kinds.values()) == {"masked", "binary", "unary", "variable", "constant", "special"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("omega_0", "ω₀"),
        ("x1", "x₁"),
        ("lambda", "λ"),
        ("speed", "speed"),
        ("v (m/s)", "v (m/s)"),
        ("E_n", "E_n"),
    ],
)
def test_names_as_a_physicist_writes_them(name: str, expected: str) -> None:
    assert pretty(name) == expected


def test_a_law_as_the_networks_write_it() -> None:
    reading = Reading(
        np.zeros((1, 10), np.float16), np.zeros(9, np.bool_), (-1, 1, -1, 0, -1, -1, -1, -1, -1)
    )
    tokens = law_tokens(parse("7.5*a*exp(-3.7*b)", ["a", "b"]), reading, Vocabulary())
    assert tokens is not None and tokens[:2] == ["mul", "x4"]
    assert "C" in tokens and "x2" in tokens and "7.5" not in tokens


def test_entropy_knows_its_ends() -> None:
    even = np.full((1, 4, 8), 1 / 8)
    assert np.allclose(relative_entropy(even), 1.0)
    assert np.allclose(relative_entropy(np.eye(8)[None]), 0.0)
    causal = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    found = relative_entropy(causal, causal=True)
    assert np.isnan(found[0]) and np.allclose(found[1:], 1.0)


def test_even_attention_receives_an_even_share() -> None:
    kinds = np.array([0, 1, 1, 2, 0, 0])
    got, even = received(np.full((2, 6, 6), 1 / 6), kinds, 3)
    assert np.allclose(got, even) and np.allclose(even, [1 / 2, 1 / 3, 1 / 6])
    causal = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
    got, even = received(causal[None], kinds, 3, causal=True)
    assert np.allclose(got, even)
    # a key that cannot be seen yet is not expected to receive anything
    assert even[2] < 1 / 6


def test_agreement_sees_edges_and_not_neighbours() -> None:
    tokens = ["add", "mul", "x1", "x2", "div", "x3", "x4"]
    edges = [(place, root) for place, roots in arguments_of(tokens) for root in roots]
    allowed = np.ones((7, 7), dtype=bool)
    tree = np.full((7, 7), 0.01)
    for place, roots in arguments_of(tokens):
        tree[place, list(roots)] = 0.5
    neighbour = np.eye(7, k=1)
    found = agreement(np.stack([tree, neighbour, np.full((7, 7), 1 / 7)]), edges, allowed)
    surplus, matched = found[0] - found[1], found[2] - found[3]
    assert surplus[0] > 0.2 and matched[0] > 0.4
    # looking at the next token beats shuffling, since first arguments stand there, but not equal distance
    assert surplus[1] > 0.1 and matched[1] == pytest.approx(0.0)
    assert surplus[2] == pytest.approx(0.0) and matched[2] == pytest.approx(0.0)
    assert np.isnan(agreement(tree[None, :1, :1], [], allowed[:1, :1])).all()


def test_intervals_hold_what_they_should() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(2.0, 1.0, 100)
    middle, low, high = interval(np.append(values, np.nan))
    assert middle == pytest.approx(values.mean()) and low < middle < high and 0.2 < high - low < 0.6
    assert ratio_interval(2 * values, values)[1:] == pytest.approx((2.0, 2.0))
    assert all(np.isnan(interval(np.array([np.nan]))))


@pytest.mark.parametrize("laws", [2, 3, 10])
def test_intervals_of_few_laws_hold_the_truth_as_often_as_they_say(laws: int) -> None:
    rng = np.random.default_rng(1)
    means = [interval(rng.normal(1.0, 0.2, laws), 500) for _ in range(300)]
    assert 0.9 < np.mean([low <= 1.0 <= high for _, low, high in means]) < 0.99
    shared = rng.lognormal(0.0, 0.5, (300, laws))
    ratios = [ratio_interval(rng.lognormal(0.0, 0.3, laws) * below, below, 500) for below in shared]
    truth = np.exp(0.3**2 / 2)
    assert 0.87 < np.mean([low <= truth <= high for _, low, high in ratios]) < 0.99


def test_an_interval_of_shares_is_one_of_shares() -> None:
    middle, low, high = share_interval(np.array([0.2, 0.9]))
    assert middle == pytest.approx(0.55) and (low, high) == (0.0, 1.0)


def test_one_law_has_no_interval() -> None:
    for found in (interval(np.array([2.0])), ratio_interval(np.array([2.0, np.nan]), np.ones(2))):
        assert found[0] == 2.0 and np.isnan(found[1:]).all()


def test_names_of_one_sign_stand_upright() -> None:
    """A caret on its side is a "less than"."""
    axes = new_figure(4.0, 3.0, "title", Origin("weights", "table", True)).subplots()
    side = Side(["^", "ω₀", "start"], rotation=90.0)
    mosaic(axes, np.full((1, 1, 3, 3), 0.5), lines=["layer"], columns=["head"], left=Side(), below=side)
    shown = {label.get_text(): label.get_rotation() for label in axes.get_xticklabels()}
    assert shown == {"^": 0.0, "ω₀": 90.0, "start": 90.0}


def test_readers_and_what_their_choice_hangs_on() -> None:
    showing = show(networks(), from_law(LAW, rows=60, noise=0.0, seed=0))
    weights = showing.encoder_weights("gather")
    assert weights.shape == (2, 2, 5, 60) and np.allclose(weights.sum(axis=-1), 1.0, atol=1e-5)
    assert np.all(np.diff(showing.values[:, -1]) >= 0)
    assert showing.labels == (*LAW.names, LAW.output)
    rows = effective_rows(weights)
    assert (rows >= 1).all() and (rows <= 60).all()
    even = np.full((3, 60), 1 / 60)
    assert np.allclose(focus(even, showing.values), 0.0) and np.allclose(effective_rows(even), 60.0)
    first = np.eye(60)[:1]
    assert focus(first, showing.values)[0, -1] < -0.5  # the smallest target
    hangs = reliance(showing, "gather", shuffles=2)
    assert hangs.shape == (2, 5, len(showing.labels)) and (hangs > 0).all() and (hangs < 1).all()


def test_a_constant_column_is_read_by_nobody() -> None:
    subject = from_law(LAW, rows=60, noise=0.0, seed=0)
    subject.inputs[:, 1] = 2.0
    showing = show(networks(), subject)
    hangs = reliance(showing, "gather", shuffles=2)
    assert np.abs(hangs[:, :, 1]).max() < 1e-6 < hangs[:, :, 0].min()


def test_slices_are_distributions_over_rows_too() -> None:
    showing = show(networks(**SLICES), from_law(LAW, rows=60, noise=0.0, seed=0))
    weights = showing.encoder_weights("rows")
    assert weights.shape == (2, 2, 60, 8)
    assert np.allclose(over_rows(showing, weights).sum(axis=-1), 1.0)


@pytest.mark.parametrize("remask", [0.0, 0.6])
def test_a_trajectory_is_what_the_sampler_did(remask: float) -> None:
    showing = show(networks(), from_law(LAW, rows=60, noise=0.0, seed=0))
    options = sampling_options(showing, remask)
    mask = showing.networks.model.vocabulary.ids["<mask>"]
    found = record(showing, options, 8, np.random.default_rng(5))
    plain = []
    rng = np.random.default_rng(5)
    denoiser = showing.networks.model.denoiser
    assert denoiser is not None
    for window in options.windows:
        sampler = DiffusionSampler(
            denoiser, grammar_of(showing), options, lambda memory, mask: (memory, mask)
        )
        start = torch.full((4, window), mask)
        with torch.inference_mode():
            plain += sampler.fill(start, showing.memory.expand(4, -1, -1), showing.mask.expand(4, -1), rng)
    assert [path.written for path in found] == plain
    for path in found:
        assert (path.states[0] == mask).all() and not (path.states[-1] == mask).any()
        for step in range(path.steps):
            before, after = path.states[step] == mask, path.states[step + 1] == mask
            assert np.array_equal(after, (before & ~path.revealed[step]) | path.remasked[step])
        assert ((path.confidence > 0) & (path.confidence <= 1 + 1e-9)).all()
        assert (path.resolved() >= 1).all() and (path.resolved() <= path.steps).all()
        assert (path.states[path.halfway()] == mask).mean() <= 0.5
    assert any(path.remasked.any() for path in found) == (remask > 0)
    orders = order_of_kinds(found, showing.networks.model.vocabulary.tokens, formulas_only=False)
    assert all(0 < share <= 1 for shares in orders.values() for share in shares)


def test_the_recorder_is_the_sampler() -> None:
    own = {name for name in vars(RecordingSampler) if not name.startswith("__")}
    assert all(hasattr(DiffusionSampler, name) for name in own), "the sampler's steps have other names now"


def test_random_networks_leave_the_generator_of_chance_alone() -> None:
    like = networks()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    control = random_networks(like)
    assert torch.equal(torch.rand(1), expected)
    assert not control.trained and "UNTRAINED" in control.label


def test_every_label_says_whether_anything_was_learned() -> None:
    untrained = networks(**SLICES)
    assert untrained.label == "UNTRAINED random weights, physics-slice attention"
    shipped = open_networks()
    assert shipped.trained and re.fullmatch(
        r"weights standard \(shipped\), [\d,]+ tables seen, encoder [0-9a-f]{8}", shipped.label
    )


def test_older_weights_call_their_tables_laws(tmp_path: Path) -> None:
    description = saved(tmp_path / "older", tables=1234) / "model.json"
    text = description.read_text(encoding="utf-8")
    assert text.count('"tables": 1234') == 1
    description.write_text(text.replace('"tables": 1234', '"laws": 1234'), encoding="utf-8")
    assert "1,234 tables seen" in open_networks(weights=str(tmp_path / "older")).label


def test_encoders_beside_others_are_named_in_order_of_their_slices() -> None:
    beside = open_others(open_networks("physics-slice", parts=()))
    assert [other.model.config.encoder.options["slices"] for other in beside] == [4, 8, 16]
    assert [other.source for other in beside] == [f"shipped, slices-{slices}" for slices in (4, 8, 16)]
    assert [other.source for other in open_others(open_networks("biased", parts=()))] == ["shipped, gated"]
    assert open_others(open_networks(parts=())) == []


def test_laws_are_found_and_near_misses_named() -> None:
    assert find_law("feynman_001").name == "Einstein Mass-Energy Equivalence"
    assert find_law("einstein mass-energy equivalence").id == "feynman_001"
    with pytest.raises(UsageError, match=r"close are .*I\.24\.6"):
        find_law("I.24.66")
    with pytest.raises(UsageError, match=r"Coulomb"):
        find_law("coulomb law")
    with pytest.raises(UsageError, match="ids look like"):
        find_law("\x1b[31m")


def test_a_sample_is_spread_over_the_groups() -> None:
    laws = sample_suite("tiers", 10)
    groups = [law.group for law in laws]
    assert len(laws) == len(set(laws)) == 10
    assert {group: groups.count(group) for group in groups} == dict.fromkeys(groups, 2) and len(
        set(groups)
    ) == 5
    assert len(sample_suite("ood", 1000)) == 20


def test_columns_are_found() -> None:
    assert find_columns(["a", "b", "c"], ["c", "a"]) == [2, 0]
    with pytest.raises(UsageError, match="did you mean 'omega'"):
        find_columns(["omega", "x"], ["omga", "x"])


def test_a_table_too_wide_names_the_telling_columns(tmp_path: pytest.TempPathFactory) -> None:
    rng = np.random.default_rng(0)
    table = rng.uniform(1, 2, (50, 11))
    table[:, 10] = table[:, 7] ** 2
    path = f"{tmp_path}/wide.csv"
    header = ",".join(f"c{index}" for index in range(11))
    np.savetxt(path, table, delimiter=",", header=header, comments="")
    with pytest.raises(DataError, match=r"10 input columns.*at most 9 with --inputs.*'c7'"):
        from_table(path, {})
    assert from_table(path, {"inputs": ("c1", "c7")})[0].names == ("c1", "c7")
