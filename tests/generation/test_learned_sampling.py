"""Samplers of learned generators: beams, temperatures, masks, and parts of formulas written anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned_parts import parts, problem

from physdiffuser.config import (
    AutoregressiveSampling,
    DiffusionSampling,
)
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Budget
from physdiffuser.expressions import Apply, evaluate, parse, to_text
from physdiffuser.expressions.tree import Variable, walk
from physdiffuser.generation.autoregressive.sampler import beam_search, sample, truncated
from physdiffuser.generation.diffusion import build as build_diffusion
from physdiffuser.generation.diffusion.infilling import Infiller
from physdiffuser.generation.diffusion.sampler import DiffusionSampler, masked_share
from physdiffuser.generation.infilling import build as build_infilling
from physdiffuser.models.features.reading import Reader
from physdiffuser.models.tokens.vocabulary import BOS, MASK, complete
from physdiffuser.search.archive import ParetoArchive


def test_beam_search_finds_the_likeliest_of_all_formulas(weights: Path) -> None:
    model, memory, mask, grammar = parts(weights)
    assert model.decoder is not None
    found = beam_search(model.decoder, grammar, memory, mask, places=3, beams=200)
    ids = model.vocabulary.ids
    scores: dict[tuple[int, ...], float] = {}
    names = ["x1", "x2", "add", "mul", "sin", "C"]
    stack: list[tuple[str, ...]] = [()]
    while stack:
        words = stack.pop()
        if complete(words):
            tokens = torch.tensor([[ids[BOS], *(ids[word] for word in words)]])
            with torch.inference_mode():
                logits = torch.log_softmax(model.decoder(tokens, memory, mask).double(), -1)[0]
            steps = [*(ids[word] for word in words), grammar.end]
            scores[tuple(steps[:-1])] = float(sum(logits[place, token] for place, token in enumerate(steps)))
        elif len(words) < 3:
            stack.extend((*words, name) for name in names)
    expected = sorted(scores.items(), key=lambda item: -item[1])
    assert [item.tokens for item in found[:20]] == [tokens for tokens, _ in expected[:20]]
    for item in found:
        assert item.score == pytest.approx(scores[item.tokens], abs=1e-4)


def test_sampling_at_temperature_zero_is_greedy(weights: Path) -> None:
    model, memory, mask, grammar = parts(weights)
    assert model.decoder is not None
    many, many_mask = memory.expand(5, -1, -1), mask.expand(5, -1)
    rng = np.random.default_rng(0)
    greedy, random = AutoregressiveSampling(temperature=0.0), AutoregressiveSampling(temperature=1.0)
    found = sample(model.decoder, grammar, many, many_mask, places=12, options=greedy, rng=rng)
    assert len({item.tokens for item in found}) == 1
    noisy = sample(model.decoder, grammar, many, many_mask, places=12, options=random, rng=rng)
    assert len({item.tokens for item in noisy}) > 1
    for item in (*found, *noisy):
        assert complete([model.vocabulary.tokens[token] for token in item.tokens])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"reveal": "margin", "schedule": "linear"},
        {"reveal": "random", "temperature": 0.0},
        {"remask": 0.5, "steps": 12},
        {"guidance": 1.5},
        {"confidence": 0.1},
        {"confidence": 0.0, "guidance": 0.5},
    ],
)
def test_diffusion_writes_formulas_whatever_the_options(options: dict[str, Any], weights: Path) -> None:
    model, memory, mask, grammar = parts(weights)
    assert model.denoiser is not None
    everyone = torch.ones(6, dtype=torch.bool)
    sampler = DiffusionSampler(
        model.denoiser,
        grammar,
        DiffusionSampling(**{"steps": 6, **options}),
        lambda memory, mask: model.without_condition(memory, mask, everyone),
    )
    start = torch.full((6, 10), model.vocabulary.ids[MASK])
    found = sampler.fill(start, memory.expand(6, -1, -1), mask.expand(6, -1), np.random.default_rng(0))
    for tokens in found:
        assert tokens is not None
        assert complete([model.vocabulary.tokens[token] for token in tokens])


def test_sure_places_are_revealed_at_once(weights: Path) -> None:
    model, memory, mask, grammar = parts(weights)
    assert model.denoiser is not None

    class Counting(DiffusionSampler):
        rows = 0

        def _log_probabilities(self, tokens: Any, *others: Any) -> Any:
            found = super()._log_probabilities(tokens, *others)
            self.rows += len(found)
            return found

    start = torch.full((6, 10), model.vocabulary.ids[MASK])
    rows, written = [], []
    for confidence in (1.0, 0.3, 0.0):
        options = DiffusionSampling(steps=8, confidence=confidence)
        sampler = Counting(model.denoiser, grammar, options, lambda m, k: (m, k))
        rng = np.random.default_rng(0)
        written.append(sampler.fill(start, memory.expand(6, -1, -1), mask.expand(6, -1), rng))
        rows.append(sampler.rows)
    # With confidence 0 all places are revealed in the first step.
    assert rows[0] == 48 and rows[0] >= rows[1] >= rows[2] == 6
    assert all(tokens is not None for found in written for tokens in found)


def test_unlikely_tokens_are_cut_off() -> None:
    found = np.log(np.array([[0.5, 0.3, 0.15, 0.05], [0.25, 0.25, 0.25, 0.25]]))
    found[1, 3] = -np.inf  # what the grammar forbids stays forbidden
    assert truncated(found, 0, 1.0) is found
    assert np.isfinite(truncated(found, 2, 1.0)).sum(axis=1).tolist() == [2, 2]
    kept = np.isfinite(truncated(found, 0, 0.7))
    assert kept[0].tolist() == [True, True, False, False] and kept[1].sum() == 3
    assert np.isfinite(truncated(found, 1, 0.9)).sum(axis=1).tolist() == [1, 1]


def test_the_most_likely_token_alone_is_greedy(weights: Path) -> None:
    model, memory, mask, grammar = parts(weights)
    assert model.decoder is not None
    many, many_mask = memory.expand(5, -1, -1), mask.expand(5, -1)
    rng = np.random.default_rng(0)
    given = (model.decoder, grammar, many, many_mask)
    one, greedy, rest = (
        sample(*given, places=12, rng=rng, options=options)
        for options in (
            AutoregressiveSampling(temperature=1.0, top_k=1),
            AutoregressiveSampling(temperature=0.0),
            AutoregressiveSampling(temperature=1.0, nucleus=0.99),
        )
    )
    assert {item.tokens for item in one} == {item.tokens for item in greedy}
    assert len({item.tokens for item in rest}) > 1


def test_infilling_as_a_refiner_rewrites_each_entry_once(weights: Path) -> None:
    given = problem()
    archive = ParetoArchive(given)
    assert archive.offer(Candidate(parse("0.5*v0*sqrt(v1) + v2", given.names), "elsewhere", ("given",)))
    generator = build_infilling(weights=str(weights), candidates=32)
    found = list(generator.propose(given, archive, Budget(1000)))
    assert found and all(candidate.generator == "infilling" for candidate in found)
    assert all(candidate.derivation[0] == "given" for candidate in found)
    assert all(np.isfinite(evaluate(candidate.expression, given.inputs)).all() for candidate in found)
    assert list(generator.propose(given, archive, Budget(1000))) == []


def test_what_was_given_stays(weights: Path) -> None:
    model, memory, mask, grammar = parts(weights)
    assert model.denoiser is not None
    ids = model.vocabulary.ids
    row = [ids["mul"], ids["x1"], ids["sin"], ids[MASK], ids[MASK], ids[MASK], grammar.end]
    sampler = DiffusionSampler(model.denoiser, grammar, DiffusionSampling(steps=3), lambda m, k: (m, k))
    found = sampler.fill(
        torch.tensor([row] * 4), memory.expand(4, -1, -1), mask.expand(4, -1), np.random.default_rng(0)
    )
    for tokens in found:
        assert tokens is not None and list(tokens[:3]) == row[:3] and len(tokens) <= 6


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_schedules_go_from_all_masks_to_none(schedule: str) -> None:
    shares = [masked_share(schedule, step / 10) for step in range(11)]
    assert shares[0] == pytest.approx(1.0) and shares[-1] == pytest.approx(0.0)
    assert shares == sorted(shares, reverse=True)


def test_infilling_changes_the_hole_only(weights: Path) -> None:
    given = problem()
    infiller = Infiller(build_diffusion(weights=str(weights)), given)
    formula = parse("2.5*v0*sin(v1 + v2)", given.names)
    found = infiller.rewritten(formula, 4, 48, np.random.default_rng(0))
    assert found and len(set(found)) == len(found)
    # Each has one part written anew, so most keep the column outside it or the sum inside.
    kept = [{to_text(node) for node in walk(skeleton)} & {"x1", "x2 + x3"} for skeleton in found]
    assert sum(map(bool, kept)) >= len(found) // 2


def test_later_rounds_rewrite_parts_of_the_best_formulas(weights: Path) -> None:
    given = problem()
    archive = ParetoArchive(given)
    best = parse("0.5*v0*sqrt(v1) + v2", given.names)
    assert archive.offer(Candidate(best, "elsewhere"))
    generator = build_diffusion(weights=str(weights), candidates=32)
    reader = Reader(given)
    found = [item[0] for item in generator.skeletons(given, reader, archive, 1) if item is not None]
    kept = [node for skeleton in found for node in walk(skeleton)]
    assert len(found) > 2 and len(set(found)) == len(found)
    # Whatever hole was drawn, a part of the formula stands outside it in most of what is written.
    assert (
        sum(node == Apply("sqrt", (Variable(1),)) or node == Variable(2) for node in kept) > len(found) // 3
    )


def test_infilling_refuses_what_it_cannot_read(weights: Path) -> None:
    given = problem()
    infiller = Infiller(build_diffusion(weights=str(weights)), given)
    rng = np.random.default_rng(0)
    assert infiller.rewritten(parse("v0 + v1 + v0*v1", given.names), 2, 4, rng)
    assert infiller.rewritten(parse("v0**17*sin(v1**19)", given.names), 1, 4, rng) == []
