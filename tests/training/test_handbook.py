"""Handbook laws: what is drawn is a formula over its columns; noise models and ranges do what they say."""

from __future__ import annotations

import random

import numpy as np
import pytest

from physdiffuser.config import load_training_config
from physdiffuser.expressions import Apply, Parameter, to_prefix
from physdiffuser.expressions.tree import walk
from physdiffuser.models.tokens.vocabulary import Vocabulary
from physdiffuser.training.decontamination import SHORT, Excluded
from physdiffuser.training.handbook import HandbookSampler
from physdiffuser.training.laws import Law
from physdiffuser.training.numbers import broad_columns, draw_table, full_expression, with_noise
from physdiffuser.training.stream import LawStream, target_skeleton


def _laws(count: int) -> list[Law]:
    sampler = HandbookSampler(random.Random(5))
    return [law for law in (sampler.sample() for _ in range(count)) if law is not None]


def test_nearly_every_draw_is_a_law_that_the_networks_can_write() -> None:
    laws, known = _laws(500), Vocabulary().ids
    assert len(laws) > 450
    written = [to_prefix(target_skeleton(law)) for law in laws]
    assert sum(all(word in known for word in words) for words in written) > 0.98 * len(laws)
    assert {"exp", "log", "sqrt", "pow", "sin", "tanh"} <= {word for words in written for word in words}
    assert sum(len(words) > SHORT for words in written) > 0.5 * len(written)


def test_each_constant_is_a_parameter_of_its_own_and_exponents_are_marked() -> None:
    for law in _laws(300):
        nodes = [node for _, term in law.terms for node in walk(term)]
        found = [node.index for node in nodes if isinstance(node, Parameter)]
        assert sorted(found) == list(range(law.constants))
        raised = {
            node.arguments[1].index
            for node in nodes
            if isinstance(node, Apply) and node.operator == "pow" and isinstance(node.arguments[1], Parameter)
        }
        assert raised == law.exponents


def test_most_laws_have_tables_in_broad_ranges() -> None:
    rng = np.random.default_rng(3)
    tables = [draw_table(rng, law, 40, 0.0, 0.0, broad=True) for law in _laws(200)]
    made = [table for table in tables if table is not None]
    assert len(made) > 0.8 * len(tables)
    assert all(np.isfinite(table.target).all() for table in made)


def test_exponents_that_are_usual_are_drawn_often() -> None:
    rng = np.random.default_rng(3)
    law = next(law for law in _laws(500) if law.exponents and len(law.places) > 1)
    from physdiffuser.training.numbers import draw_coefficients

    place = min(law.exponents)
    drawn = [float(draw_coefficients(rng, law)[place]) for _ in range(400)]
    assert 0.4 < np.mean([round(value * 60, 6).is_integer() for value in drawn]) < 0.7
    assert full_expression(law) is not None


def test_broad_ranges_span_decades_and_both_signs() -> None:
    rng = np.random.default_rng(3)
    tables = [broad_columns(rng, 4).draw(rng, 100) for _ in range(400)]
    sizes = np.abs(np.stack(tables))
    ratios = sizes.max(axis=1) / sizes.min(axis=1)
    assert (ratios > 3).mean() > 0.5
    assert (ratios > 25).mean() > 0.2
    assert 0.03 < (np.stack(tables).min(axis=1) < 0).mean() < 0.15


@pytest.mark.parametrize("kind", ["even", "relative", "heavy", "outliers", "rounded"])
def test_noise_has_the_level_that_was_asked_for(kind: str) -> None:
    rng = np.random.default_rng(3)
    target = np.linspace(1.0, 9.0, 20_000)
    noisy = with_noise(rng, target, 0.05, (kind,))
    errors = noisy - target
    typical = float(np.median(np.abs(errors))) / float(np.sqrt(np.mean(target**2)))
    assert 0.003 < typical < 0.06
    if kind == "relative":
        assert np.abs(errors[target > 8]).mean() > 4 * np.abs(errors[target < 2]).mean()
    if kind == "rounded":
        assert len(np.unique(noisy)) < 100
    if kind in ("heavy", "outliers"):
        assert np.abs(errors).max() > 6 * np.median(np.abs(errors)) / 0.67


def test_few_short_laws_are_kept_in_the_recipe_broad() -> None:
    config = load_training_config("broad")
    stream = LawStream(config.data.model_copy(update={"rows": (20, 40)}), Vocabulary(), 40, 1, Excluded(()))
    batch = stream.batch(0, 600)
    assert (batch.lengths <= SHORT).mean() < 0.35
