"""How likely the network finds a formula: against the decoder itself, token by token."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from small_networks import small_model

from physdiffuser.core.problem import Problem
from physdiffuser.expressions import evaluate, parse, to_prefix
from physdiffuser.models.likelihood import FormLikelihood
from physdiffuser.models.network import LawModel
from physdiffuser.models.tokens.canonical_skeleton import canonical_skeleton
from physdiffuser.models.tokens.vocabulary import BOS, EOS

NAMES = ("a", "b")


@pytest.fixture(name="problem", scope="module")
def _problem() -> Problem:
    inputs = np.random.default_rng(0).uniform(0.5, 3.0, (40, 2))
    return Problem(inputs, evaluate(parse("a*exp(-b)", NAMES), inputs), NAMES)


@pytest.fixture(name="model", scope="module")
def _model() -> LawModel:
    return small_model()


def likelihood(model: LawModel, problem: Problem, readings: int = 1) -> FormLikelihood:
    return FormLikelihood(model, problem, readings=readings, rng=np.random.default_rng(1))


def token_by_token(judge: FormLikelihood, text: str) -> float:
    """Nats of a formula over the places of the first reading, from a decoder that is asked step by step."""
    reading = judge.readings[0]
    names = [f"unused{place}" for place in range(9)]
    for place, column in enumerate(reading.columns):
        if column >= 0:
            names[place] = NAMES[column]
    vocabulary = judge.model.vocabulary
    ids = [*vocabulary.encode(to_prefix(canonical_skeleton(parse(text, names)))), vocabulary.ids[EOS]]
    state = judge.decoder.start()
    last, total = vocabulary.ids[BOS], 0.0
    with torch.inference_mode():
        for token in ids:
            logits = judge.decoder(torch.tensor([[last]]), judge.memory[:1], judge.mask[:1], state)
            total -= float(torch.log_softmax(logits[0, -1].double(), dim=-1)[token])
            last = token
    return total


@pytest.mark.parametrize("text", ["a", "2.7*a*exp(-b) + 0.3", "sqrt(a**2 + 1.3*b**2)/b"])
def test_nats_are_those_of_the_decoder(model: LawModel, problem: Problem, text: str) -> None:
    judge = likelihood(model, problem)
    assert judge.nats([parse(text, NAMES)])[0] == pytest.approx(token_by_token(judge, text), rel=0.02)


def test_how_a_formula_is_written_does_not_matter(model: LawModel, problem: Problem) -> None:
    judge = likelihood(model, problem, readings=3)
    one, other = judge.nats([parse("0.3*b*exp(-1.1*a)", NAMES), parse("exp(a*(-2.5))*b", NAMES)])
    assert one == other


def test_many_are_scored_as_one_by_one(model: LawModel, problem: Problem) -> None:
    judge = likelihood(model, problem, readings=3)
    formulas = [parse(text, NAMES) for text in ("a", "b", "a*b", "a/b + 1.2", "sin(a)*b**2")] * 20
    together = judge.nats(formulas)
    np.testing.assert_allclose(
        together[:5], [judge.nats([formula])[0] for formula in formulas[:5]], rtol=0.02
    )
    np.testing.assert_allclose(together[:5], together[-5:], rtol=0.02)


def test_what_cannot_be_written_is_never_likely(model: LawModel, problem: Problem) -> None:
    judge = likelihood(model, problem)
    too_long = " + ".join(f"sin({k}*a)*cos({k}*b)" for k in range(1, 9))
    assert judge.nats([parse(too_long, NAMES)])[0] == np.inf
    assert judge.nats([]).shape == (0,)


def test_reading_weights_does_not_start_the_compiler() -> None:
    # It takes longer to import than everything else in a run on few rows.
    script = (
        "import sys; from physdiffuser.models.shipped import find_weights, load_weights; "
        "load_weights(find_weights(), 'autoregressive', 'cpu'); "
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
