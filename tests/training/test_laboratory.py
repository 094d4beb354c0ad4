"""Laws of fitted curves: canonical, of their kind in any unit, several tables of each."""

from __future__ import annotations

import random

import numpy as np

from physdiffuser.config import DataConfig
from physdiffuser.expressions import evaluate, from_prefix, to_prefix
from physdiffuser.expressions.tree import variables
from physdiffuser.fitting import fit_constants
from physdiffuser.models.tokens.skeleton import with_linear_coefficients, without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import Vocabulary, complete
from physdiffuser.training.decontamination import Excluded
from physdiffuser.training.laboratory import LaboratorySampler
from physdiffuser.training.numbers import draw_scales, draw_table
from physdiffuser.training.stream import LawStream, target_skeleton


def test_targets_are_formulas_in_one_form() -> None:
    sampler = LaboratorySampler(random.Random(1))
    most = 0
    for _ in range(500):
        law = sampler.sample()
        skeleton = target_skeleton(law)
        assert complete(to_prefix(skeleton)) and without_linear_coefficients(skeleton) == skeleton
        assert variables(skeleton) == set(law.places) and 1 <= len(law.places) <= 3
        most = max(most, law.constants)
    assert most >= 5


def test_such_a_law_is_of_its_kind_in_any_unit() -> None:
    """Its own form, with other constants, describes a table whose columns were measured in other units."""
    sampler = LaboratorySampler(random.Random(2))
    rng = np.random.default_rng(2)
    described = tried = 0
    while tried < 40:
        law = sampler.sample()
        table = draw_table(rng, law, 60, noisy=0.0, dummies=0.0)
        if table is None or not 0 < law.constants <= 2 or len(law.places) != 1:
            continue
        tried += 1
        inputs = table.inputs * draw_scales(rng, table.inputs.shape[1])
        found = fit_constants(
            with_linear_coefficients(target_skeleton(law)), inputs, table.target, starts=40, rng=rng
        )
        error = np.abs(evaluate(found.expression, inputs) - table.target).max()
        described += bool(error < 1e-3 * table.target.std())
    # The rest are missed by the fit, whose starts are random: they are of the right form all the same.
    assert described >= 30


def test_several_tables_of_each_law() -> None:
    config = DataConfig(rows=(20, 20), tables=3, laboratory=0.5)
    batch = LawStream(config, Vocabulary(), 32, 5, Excluded([])).batch(0, 30)
    changes = np.flatnonzero((batch.tokens[1:] != batch.tokens[:-1]).any(axis=1)) + 1
    # Sometimes a law cannot be given that many tables.
    assert 8 <= len(changes) <= 20
    for first, second in zip(batch.rows[:-1], batch.rows[1:], strict=True):
        assert not np.array_equal(first, second)


def test_a_share_of_the_stream_comes_from_the_laboratory() -> None:
    vocabulary = Vocabulary()
    inside = []
    for share in (0.0, 1.0):
        stream = LawStream(DataConfig(rows=(20, 20), laboratory=share), vocabulary, 40, 5, Excluded([]))
        laws = [from_prefix(vocabulary.decode(row)) for row in stream.batch(0, 60).tokens.tolist()]
        inside.append(np.mean([to_prefix(law).count("C") > 0 for law in laws]))
    assert inside[0] < 0.4 and inside[1] > 0.7
