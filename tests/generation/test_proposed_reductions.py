"""Reductions that formulas propose: what depends on one or two groups of columns may be another function."""

from __future__ import annotations

import numpy as np
import pytest

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Number, evaluate, parse, to_text
from physdiffuser.expressions.tree import variables, walk
from physdiffuser.noise.noise_floor import levels
from physdiffuser.reduction.proposed_reductions import AT_ONCE, ProposedReductions, proposed_reductions
from physdiffuser.search.archive import ParetoArchive

NAMES = ("m", "v", "c", "x", "u", "t")


def reductions(text: str) -> list[tuple[str, tuple[str, ...]]]:
    found = []
    for reduction in proposed_reductions([parse(text, NAMES)]):
        factor = reduction.factor()
        features = tuple(to_text(feature, NAMES) for feature in reduction.features)
        found.append(("1" if factor is None else to_text(factor, NAMES), features))
    return found


@pytest.mark.parametrize(
    ("formula", "factor", "features"),
    [
        ("m*exp(0.5653*v**2/c**2)", "m", ("v/c",)),
        ("m*v*(2.38 - 1.39*cos(v/c))", "m*v", ("v/c",)),
        ("0.6*(x - u*t)*(u**2/c**2 + 1.645)", "x - u*t", ("c/u",)),
        ("exp(0.937*m*v)", "1", ("m*v",)),
        ("8.8*m/((u*v/(c*x))**2 + 4.2)**2", "m", ("v*u/(c*x)",)),
        ("2.5 - 2.45*cos(1/t**2)", "1", ("t",)),
        ("m*(2 + exp((t - u)**2))", "m", ("u - t",)),
        ("m*(1 - v)*(2 + cos(x))", "m*(1 - v)", ("x",)),
        ("m*(1 - v)*(2 + cos(x))", "m", ("v", "x")),
        ("x + 3*v**1.4999", "1", ("v", "x")),
    ],
)
def test_a_formula_tells_its_factor_and_its_groups(
    formula: str, factor: str, features: tuple[str, ...]
) -> None:
    wanted = parse(factor, NAMES)
    rows = np.random.default_rng(0).uniform(1, 2, (20, len(NAMES)))

    def same(found: str) -> bool:
        return np.allclose(evaluate(parse(found, NAMES), rows), evaluate(wanted, rows))

    groups = [
        sorted(map(_group, of))
        for known, of in reductions(formula)
        if same(known) and len(of) == len(features)
    ]
    assert sorted(map(_group, features)) in groups


def _group(text: str) -> str:
    """A group up to its sign and to which of its columns stands above."""
    tree = parse(text, NAMES)
    rows = np.random.default_rng(1).uniform(1, 2, (5, len(NAMES)))
    values = np.abs(np.log(np.abs(evaluate(tree, rows))))
    return f"{sorted(variables(tree))} " + " ".join(f"{value:.6f}" for value in values)


@pytest.mark.parametrize(
    "formula",
    [
        "m*v/c",
        "3.2*m",
        "m*v + c*x + u*t",
        "0.8*m**1.07*cos(v*c + 0.3*x*u + t)",
    ],
)
def test_formulas_of_powers_alone_or_of_many_groups_suggest_nothing(formula: str) -> None:
    assert reductions(formula) == []


@pytest.mark.parametrize("formula", ["v**1.107*(1 + m)*exp(0.3*t)", "(m + 0.31*c)**2*cos(x)*(1.2 + exp(t))"])
def test_no_fitted_constant_is_left_in_a_factor(formula: str) -> None:
    for reduction in proposed_reductions([parse(formula, NAMES)]):
        factor = reduction.factor() or Number(1)
        assert all(not isinstance(node, Number) or node.exact for node in walk(factor))


def test_all_functions_of_one_group_are_taken_together() -> None:
    assert reductions("m*exp(-v/2)*(2.5 - cos(v))") == [("m", ("v",))]


class TestSuggestions:
    """The frames of a run: each once, and only those that rows can be told by."""

    def archive(self) -> ParetoArchive:
        random = np.random.default_rng(0)
        inputs = random.uniform(1, 3, (800, 3))
        m, v, c = inputs.T
        v *= 0.3
        target = m / np.sqrt(1 - (v / c) ** 2) * (1 + 0.01 * random.normal(size=800))
        archive = ParetoArchive(Problem(inputs, target, NAMES[:3]))
        for text in ("m*exp(0.52*v**2/c**2)", "m*(1 + 0.02*cos(c))", "m*(1 + 0.1*v**2)"):
            archive.offer(Candidate(parse(text, NAMES[:3]), "test"))
        return archive

    def test_the_right_one_comes_and_those_that_say_less_do_not(self) -> None:
        archive = self.archive()
        whole = Reduction.of_columns((), range(3))
        suggestions = ProposedReductions(archive.problem, levels(archive.problem, [whole]))
        found = suggestions.take(archive, [whole])
        texts = [[to_text(feature, NAMES) for feature in reduction.features] for reduction in found]
        assert ["v/c"] in texts
        assert ["c"] not in texts
        assert len(found) <= AT_ONCE

    def test_none_comes_twice(self) -> None:
        archive = self.archive()
        suggestions = ProposedReductions(archive.problem, [])
        first = suggestions.take(archive, [])
        assert first
        assert not set(first) & set(suggestions.take(archive, []))
        assert ProposedReductions(archive.problem, []).take(archive, first) != first
