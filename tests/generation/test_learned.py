"""Learned generators: what they write obeys the problem, is reproducible, and is fitted.

The networks here have random weights, so nothing is said of what they know.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from physdiffuser.config import (
    AutoregressiveSampling,
    DecoderConfig,
    DiffusionSampling,
    EncoderConfig,
    ModelConfig,
)
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.generator import Generator
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.errors import FileError, UsageError
from physdiffuser.expressions import Apply, evaluate, parse, to_text
from physdiffuser.expressions.tree import Variable, parameter_count, variables, walk
from physdiffuser.generation.autoregressive import build as build_autoregressive
from physdiffuser.generation.autoregressive.sampler import beam_search, sample, truncated
from physdiffuser.generation.diffusion import build as build_diffusion
from physdiffuser.generation.diffusion.infilling import Infiller
from physdiffuser.generation.diffusion.sampler import DiffusionSampler, masked_share
from physdiffuser.generation.infilling import build as build_infilling
from physdiffuser.models.checkpoint import load_model, save_model
from physdiffuser.models.features.reading import Reader, relevant_columns
from physdiffuser.models.network import LawModel
from physdiffuser.models.proposing import encode_readings
from physdiffuser.models.shipped import find_weights, shipped
from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.models.tokens.vocabulary import BOS, MASK, Vocabulary, complete
from physdiffuser.search.archive import ParetoArchive

BUILDERS = {"diffusion": build_diffusion, "autoregressive": build_autoregressive}


@pytest.fixture(scope="module", name="weights")
def _weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights on disk, opinionated enough to write different formulas."""
    torch.manual_seed(0)
    config = ModelConfig(
        width=32,
        heads=2,
        length=20,
        encoder=EncoderConfig(layers=1, inducing=4, memory=16, mixing=1),
        diffusion=DecoderConfig(layers=1),
        autoregressive=DecoderConfig(layers=1),
        diffusion_sampling=DiffusionSampling(steps=6, windows=(6, 12), temperature=2.0),
        autoregressive_sampling=AutoregressiveSampling(beams=4),
    )
    model = LawModel(config, Vocabulary())
    with torch.no_grad():
        for part in (model.denoiser, model.decoder):
            assert part is not None
            part.head.weight.mul_(2.0)
    folder = tmp_path_factory.mktemp("weights")
    save_model(folder, config, Vocabulary(), dict(model.named_parameters()), {"tables": 0})
    return folder


def problem(columns: int = 3, rows: int = 40, **changes: Any) -> Problem:
    rng = np.random.default_rng(0)
    inputs = rng.uniform(1.0, 4.0, (rows, columns))
    target = 3.0 * inputs[:, 0] / inputs[:, -1]
    names = tuple(f"v{index}" for index in range(columns))
    return Problem(inputs=inputs, target=target, names=names, **changes)


def proposals(name: str, weights: Path, given: Problem, steps: int = 10_000, **options: Any) -> list[Any]:
    generator = BUILDERS[name](weights=str(weights), **{"candidates": 16, "rounds": 1, **options})
    assert isinstance(generator, Generator) and generator.name == name
    return list(generator.propose(given, ParetoArchive(given), Budget(steps)))


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_candidates_obey_the_problem(name: str, weights: Path) -> None:
    given = problem(operators=frozenset({"add", "mul", "div", "sin", "sqrt"}))
    found = proposals(name, weights, given, candidates=32)
    assert len(found) > 5
    for candidate in found:
        assert candidate.generator == name and candidate.derivation
        assert parameter_count(candidate.expression) == 0
        assert variables(candidate.expression) <= set(range(3))
        operators = {node.operator for node in walk(candidate.expression) if isinstance(node, Apply)}
        # Fitting adds products and sums of terms and nothing else.
        assert operators <= {"add", "mul", "div", "sin", "sqrt"}
        assert np.isfinite(evaluate(candidate.expression, given.inputs)).all()


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_equal_seeds_give_equal_candidates(name: str, weights: Path) -> None:
    first, again, other = (proposals(name, weights, problem(seed=seed)) for seed in (1, 1, 2))
    assert [c.expression for c in first] == [c.expression for c in again]
    assert [c.expression for c in first] != [c.expression for c in other]


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_the_budget_is_kept_and_work_goes_on_where_it_stopped(name: str, weights: Path) -> None:
    given = problem()
    archive = ParetoArchive(given)
    generator = BUILDERS[name](weights=str(weights), candidates=16, rounds=1)
    parts = []
    for _ in range(60):
        parts.extend(generator.propose(given, archive, Budget(1)))
    whole = proposals(name, weights, given)
    assert [c.expression for c in parts] == [c.expression for c in whole]


@pytest.mark.parametrize("name", sorted(BUILDERS))
@pytest.mark.parametrize("columns", [1, 9, 12])
def test_any_number_of_columns(name: str, columns: int, weights: Path) -> None:
    for candidate in proposals(name, weights, problem(columns)):
        assert variables(candidate.expression) <= set(range(columns))


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_si_sized_numbers_come_back_in_their_own_size(name: str, weights: Path) -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(1.0, 4.0, (50, 2)) * np.array([1e-27, 1e21])
    target = 1e-9 * inputs[:, 0] * inputs[:, 1]
    usual = frozenset({"add", "mul", "div", "sqrt"})
    given = Problem(inputs=inputs, target=target, names=("m", "n"), operators=usual)
    found = proposals(name, weights, given, candidates=48)
    errors = [float(np.median(np.abs(evaluate(c.expression, inputs) / given.target - 1.0))) for c in found]
    # Any fitted formula is of the size of the target, even from a network that knows nothing.
    assert found and np.median(errors) < 3.0


@pytest.mark.parametrize("name", sorted(BUILDERS))
@pytest.mark.parametrize("rows", [1, 3])
def test_tables_too_small_for_a_network_get_no_candidates(name: str, rows: int, weights: Path) -> None:
    assert proposals(name, weights, problem(rows=rows)) == []


@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_outliers_weights_and_constant_columns(name: str, weights: Path) -> None:
    given = problem(rows=30, weights=np.ones(30), loss="robust")
    given.inputs[:, 1] = 2.0
    given.target[3] = 1e12
    assert all(
        np.isfinite(evaluate(c.expression, given.inputs)).all() for c in proposals(name, weights, given)
    )


def test_without_weights_the_user_is_told_what_to_do() -> None:
    with pytest.raises(UsageError, match="physdiffuser train small"):
        find_weights("no-such-attention")
    for name in shipped():
        assert (find_weights(name) / "model.json").is_file()


def test_weights_of_ones_own(weights: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PHYSDIFFUSER_WEIGHTS", str(weights))
    assert find_weights() == find_weights("standard") == weights
    with pytest.raises(UsageError, match="trained with the attention 'standard', not 'biased'"):
        find_weights("biased")
    with pytest.raises(FileError, match=r"model\.json"):
        find_weights(weights=str(tmp_path))


def test_telling_columns_are_kept() -> None:
    rng = np.random.default_rng(2)
    inputs = rng.uniform(1.0, 2.0, (400, 15))
    inputs[:, 7] = 1.0
    target = inputs[:, 3] ** 2 + 0.5 * np.cos(9.0 * inputs[:, 11]) + 1e-3 * inputs[:, 0]
    chosen = relevant_columns(inputs, target)
    assert len(chosen) == 9 and {3, 11} <= set(chosen) and 7 not in chosen and chosen == sorted(chosen)
    assert relevant_columns(inputs[:, :9], target) == list(range(9))


def parts(weights: Path) -> tuple[LawModel, torch.Tensor, torch.Tensor, Grammar]:
    model = load_model(weights)
    reading = Reader(problem()).read(np.random.default_rng(0))
    memory, mask = encode_readings(model, [reading])
    return model, memory.float(), mask, Grammar(model.vocabulary, ["x1", "x2", "add", "mul", "sin", "C"])


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


@pytest.mark.parametrize("damage", ["missing", "sum", "json", "shape", "no encoder", "blocks"])
def test_damaged_weights_are_named(damage: str, weights: Path, tmp_path: Path) -> None:
    import json
    import shutil

    folder = tmp_path / "weights"
    shutil.copytree(weights, folder)
    if damage == "missing":
        (folder / "encoder.safetensors").unlink()
    elif damage == "sum":
        (folder / "encoder.safetensors").write_bytes(b"not what it was")
    elif damage == "json":
        (folder / "model.json").write_text("{", encoding="utf-8")
    else:
        description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        if damage == "shape":
            description["config"]["width"] = 64
        elif damage == "no encoder":
            del description["files"]["encoder.safetensors"]
        else:
            description["files"]["blocks.safetensors"] = "0" * 64
        (folder / "model.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(FileError, match=str(folder)):
        load_model(folder)


def test_a_missing_attention_package_is_named(weights: Path, tmp_path: Path) -> None:
    import json
    import shutil

    from physdiffuser.errors import PluginError

    folder = tmp_path / "weights"
    shutil.copytree(weights, folder)
    description = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    description["attention"]["quantum"] = {"package": "somebodys_quantum_attention", "version": "3.1"}
    (folder / "model.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(PluginError, match=r"somebodys_quantum_attention 3\.1"):
        load_model(folder)


def test_importing_a_generator_loads_no_torch() -> None:
    code = (
        "import sys, physdiffuser.generation.diffusion, physdiffuser.generation.autoregressive; "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
