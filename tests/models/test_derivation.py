"""Derivation chains say the same law as the formula, and what is no chain is refused."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.config import DataConfig
from physdiffuser.expressions import parse, to_prefix
from physdiffuser.inspection.tokens import shown_formula
from physdiffuser.models.features.reading import Reading
from physdiffuser.models.tokens.derivation import derivation, expanded
from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.models.tokens.vocabulary import END_STEP, NAMES, STEP, Vocabulary, complete
from physdiffuser.models.written import read_formula
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.laboratory import LaboratorySampler
from physdiffuser.training.laws import LawSampler
from physdiffuser.training.stream import LawStream, target_skeleton


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_chain_derives_its_law(seed: int, laboratory: bool) -> None:
    source = random.Random(seed)
    law = (LaboratorySampler if laboratory else LawSampler)(source).sample()
    tokens = to_prefix(target_skeleton(law))
    chain = derivation(tokens)
    assert complete(chain) and expanded(chain) == tokens
    assert chain.count(STEP) == chain.count(END_STEP) <= len(NAMES)
    for number, name in enumerate(NAMES):
        assert (name in chain) == (number < chain.count(STEP))


def test_steps_are_what_a_reader_would_name() -> None:
    tokens = to_prefix(parse("m/sqrt(1-v**2/c**2)", ("m", "v", "c")))
    assert " ".join(derivation(tokens)) == ("<step> sub 1 div pow x2 2 pow x3 2 <end_step> div x1 sqrt s1")
    twice = to_prefix(parse("exp(a*b)/(1+exp(a*b))", ("a", "b")))
    assert " ".join(derivation(twice)) == (
        "<step> mul x1 x2 <end_step> <step> exp s1 <end_step> div s2 add 1 s2"
    )
    assert derivation(["mul", "x1", "x2"]) == ["mul", "x1", "x2"]


@pytest.mark.parametrize(
    "chain",
    [
        "s1",  # a name before its step
        "<step> mul x1 s1 <end_step> s1",
        "<step> x1 x2",  # no end of the step
        "<step> x1 <end_step>",
        "mul <step> x1 <end_step> s1 x2",  # a step inside a formula
        "<step> x1 <end_step> mul s1 <step> x2 <end_step> s2",
        "<step> x1 <end_step> " * 4 + "s1",  # more steps than names
        "mul x1 <end_step> x2",
    ],
)
def test_what_is_no_chain_is_refused(chain: str) -> None:
    assert expanded(chain.split()) is None


def test_only_a_vocabulary_with_names_writes_steps() -> None:
    for vocabulary, chains in ((Vocabulary(), False), (Vocabulary.with_names(), True)):
        grammar = Grammar(vocabulary)
        permitted = grammar.permitted(np.ones(1, dtype=np.int64), 20)[0]
        assert permitted[vocabulary.ids[STEP]] == vocabulary.chains == chains


def test_the_stream_writes_chains_when_told_to() -> None:
    vocabulary = Vocabulary.with_names()
    stream = LawStream(DataConfig(rows=(20, 20), chains=0.5), vocabulary, 40, 3, Excluded([]))
    words = [vocabulary.decode(row) for row in stream.batch(0, 80).tokens.tolist()]
    chained = sum(STEP in law for law in words)
    assert 8 < chained < 50
    assert all(expanded(law) is not None for law in words)


def test_a_chain_is_read_as_its_law() -> None:
    reading = Reading(np.zeros((4, 10), dtype=np.float16), np.zeros(9, dtype=np.bool_), (1, -1, 0, *[-1] * 6))
    law = to_prefix(parse("exp(-c/a)/(1-exp(-c/a))", ("a", "b", "c")))
    chain = derivation(law)
    assert chain != law and STEP in chain
    assert read_formula(chain, reading) == read_formula(law, reading) is not None
    assert read_formula(chain[:-1], reading) is None
    names = ("p", "q")
    assert shown_formula(chain, reading, names) == shown_formula(law, reading, names)
    assert STEP not in shown_formula(chain, reading, names)
