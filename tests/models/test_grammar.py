"""Only formulas can be written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.models.tokens.grammar import Grammar
from physdiffuser.models.tokens.vocabulary import EOS, Vocabulary, complete

VOCABULARY = Vocabulary()


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(1, 20))
def test_random_walks_through_the_grammar_are_formulas(seed: int, places: int) -> None:
    grammar = Grammar(VOCABULARY)
    rng = np.random.default_rng(seed)
    open_arguments = np.ones(1, dtype=np.int64)
    tokens: list[str] = []
    for place in range(places + 1):
        allowed = np.flatnonzero(grammar.permitted(open_arguments, places - place)[0])
        token = int(rng.choice(allowed))
        if token == grammar.end:
            break
        tokens.append(VOCABULARY.tokens[token])
        open_arguments = grammar.advance(open_arguments, np.array([token]))
    assert complete(tokens) and len(tokens) <= places


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_projection_is_the_best_formula(seed: int, places: int) -> None:
    # Few tokens, so that all sequences can be tried.
    names = ["x1", "sin", "add"]
    grammar = Grammar(VOCABULARY, names)
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(places, len(VOCABULARY)))
    found = grammar.project(scores)
    assert found is not None
    best = -np.inf
    ids = [VOCABULARY.ids[name] for name in names]
    stack: list[list[int]] = [[]]
    while stack:
        prefix = stack.pop()
        if complete([VOCABULARY.tokens[token] for token in prefix]):
            whole = prefix + [grammar.end] * (places - len(prefix))
            best = max(best, float(scores[np.arange(places), whole].sum()))
        elif len(prefix) < places:
            stack.extend([*prefix, token] for token in ids)
    assert float(scores[np.arange(places), found].sum()) == pytest.approx(best)
    words = VOCABULARY.decode(found.tolist())
    assert complete(words) and set(words) <= set(names)


def test_projection_keeps_what_is_certain_and_says_when_there_is_none() -> None:
    grammar = Grammar(VOCABULARY)
    scores = np.full((3, len(VOCABULARY)), -np.inf)
    scores[0, VOCABULARY.ids["add"]] = 0.0
    scores[1:, VOCABULARY.ids["x1"]] = -5.0
    scores[1:, VOCABULARY.ids[EOS]] = -1.0
    found = grammar.project(scores)
    assert found is not None and VOCABULARY.decode(found.tolist()) == ["add", "x1", "x1"]
    scores[2, VOCABULARY.ids["x1"]] = -np.inf
    assert grammar.project(scores) is None


def test_rows_have_their_own_tokens() -> None:
    grammar = Grammar(VOCABULARY, [{"x1"}, {"x2", "add"}])
    permitted = grammar.permitted(np.ones(2, dtype=np.int64), 5)
    assert [VOCABULARY.tokens[token] for token in np.flatnonzero(permitted[0])] == ["x1"]
    assert {VOCABULARY.tokens[token] for token in np.flatnonzero(permitted[1])} == {"x2", "add"}
    twice = grammar.repeated([1, 1, 0])
    assert twice.symbols.shape[0] == 3 and (twice.symbols[0] == twice.symbols[1]).all()
    with pytest.raises(ValueError, match="no leaf"):
        Grammar(VOCABULARY, ["add", "sin"])
