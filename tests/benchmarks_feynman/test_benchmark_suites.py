"""The suites as data: complete, defined in their ranges, balanced in units, the development set apart."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from law_identity import equal_laws, generalised, same_up_to_renaming

from benchmarks_feynman.sampling import bits, draw, sample
from benchmarks_feynman.suites import (
    SAMPLED,
    SUITES,
    VALIDATION,
    Law,
    LawVariable,
    load_suite,
    published,
    select,
)
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, evaluate, parse
from physdiffuser.expressions.tree import variables
from physdiffuser.expressions.units.dimensions import balances
from physdiffuser.units.unit import Unit

LAWS = [law for suite in SAMPLED for law in load_suite(suite)]
FEYNMAN = [law for law in LAWS if law.suite not in ("dev", VALIDATION)]
# Their published formula does not balance; the note of the law says why.
UNBALANCED = {"ood_020"}


def test_the_suites_have_the_published_sizes() -> None:
    groups = Counter((law.suite, law.group) for law in FEYNMAN)
    assert groups == {
        ("fsred", "base"): 100,
        ("fsred", "bonus"): 20,
        ("tiers", "trivial"): 20,
        ("tiers", "simple"): 25,
        ("tiers", "moderate"): 30,
        ("tiers", "complex"): 25,
        ("tiers", "multi_step"): 20,
        ("ood", "ood"): 20,
    }
    assert len(load_suite("dev")) >= 100
    assert len(load_suite(VALIDATION)) == 300
    assert len({(law.suite, law.id) for law in LAWS}) == len(LAWS)


@pytest.mark.parametrize("suite", SAMPLED)
def test_every_law_uses_its_variables_and_is_finite_in_its_ranges(suite: str) -> None:
    for law in load_suite(suite):
        assert variables(law.expression) == set(range(len(law.names))), law.id
        assert len({*law.names, law.output}) == len(law.names) + 1, law.id
        assert all(variable.low < variable.high for variable in law.variables), law.id
        value = evaluate(law.expression, draw(law.variables, bits(law, 0, "test"), 2000))
        assert np.isfinite(value).all(), law.id
        assert np.ptp(value) > 0, law.id


@pytest.mark.parametrize("suite", ["fsred", "tiers", "ood"])
def test_every_law_balances_in_its_units(suite: str) -> None:
    for law in load_suite(suite):
        units = law.units
        assert units is not None, law.id
        columns = tuple(Unit.parse(units[name]) for name in law.names)
        balanced = balances(law.expression, columns, Unit.parse(units[law.output]))
        assert balanced is (law.id not in UNBALANCED), law.id


@pytest.mark.parametrize("law", [law for law in load_suite("tiers") if {"v", "c"} <= set(law.names)], ids=str)
def test_no_speed_above_that_of_light_in_the_chosen_ranges(law: Law) -> None:
    by_name = {variable.name: variable for variable in law.variables}
    assert by_name["v"].high < by_name["c"].low


def test_no_development_law_is_a_law_of_the_suites() -> None:
    with np.errstate(all="ignore"):
        clashes = {law.id: equal_laws(law, FEYNMAN) for law in load_suite("dev")}
    assert {name: [other.id for other in found] for name, found in clashes.items() if found} == {}


def test_no_validation_law_is_a_law_of_another_suite_or_an_example_or_twice_there() -> None:
    """Up to names, a constant factor, and measured constants that another law has as variables."""
    known = [law for suite in SUITES if suite != VALIDATION for law in load_suite(suite)]
    known += [_law(text, columns) for text, columns in EXAMPLES]
    seen = [(law, [form for form in _forms(law) if form[1] <= 8]) for law in known]
    clashes = {}
    with np.errstate(all="ignore"):
        for law in load_suite(VALIDATION):
            mine = [form for form in _forms(law) if form[1] <= 8]
            clashes[law.id] = [
                other.id
                for other, theirs in seen
                if any(m == n and same_up_to_renaming(a, b, m) for a, m in mine for b, n in theirs)
            ]
            seen.append((law, mine))
    assert {name: found for name, found in clashes.items() if found} == {}


def _forms(law: Law) -> set[tuple[Expression, int]]:
    return {(law.expression, len(law.names)), generalised(law.expression)}


def _law(text: str, columns: str) -> Law:
    names = tuple(LawVariable(name, 1.0, 2.0) for name in columns.split())
    return Law(text, "examples", "", "", "out_", None, text, names)


EXAMPLES = (
    ("a**1.5", "a"),
    ("364.6*n**2/(n**2 - 4)", "n"),
    ("0.724*T**4", "T"),
    ("p*c/(0.058 + c)", "p c"),
    ("2.5*exp(-0.3*t)*cos(4*t)", "t"),
    ("f*g/(g - f)", "f g"),
    ("G*m*n/r**2", "G m n r"),
    ("0.2351 - 0.1117*exp(0.03519*T)", "T"),
    ("h*(0.53 - 0.0262*l)", "h l"),
)


@pytest.mark.parametrize(
    ("text", "columns", "same_as"),
    [
        ("0.5*a*b**2", "a b", "feynman_007"),  # other names
        ("3.7*b**2*a", "a b", "feynman_007"),  # another constant factor
        ("6.674e-11*p*q/d**2", "p q d", "feynman_024"),  # a measured constant for a variable
        ("z*sqrt(1 - (w/u)**2)", "w u z", "feynman_087"),  # columns in another order
        ("a/(b + a)*s", "a b s", "feynman_074"),  # Michaelis-Menten is the voltage divider
    ],
)
def test_a_renamed_law_is_found_to_be_the_same(text: str, columns: str, same_as: str) -> None:
    names = tuple(LawVariable(name, 1.0, 2.0) for name in columns.split())
    law = Law("new", "dev", "", "", "out", None, text, names)
    assert same_as in [other.id for other in equal_laws(law, FEYNMAN)]


def test_different_laws_are_not_the_same() -> None:
    left, right = parse("a*b**2", ["a", "b"]), parse("a*b**3", ["a", "b"])
    assert not same_up_to_renaming(left, right, 2)
    assert same_up_to_renaming(left, parse("b*a**2", ["a", "b"]), 2)
    assert not same_up_to_renaming(left, parse("2*a*b**2", ["a", "b"]), 2, factor=False)


def test_generalising_shares_equal_constants_and_keeps_small_numbers() -> None:
    expression, count = generalised(parse("3*x + 0.731*x**2 + 0.731", ["x"]))
    assert count == 2
    assert expression == parse("3*x + k*x**2 + k", ["x", "k"])


def test_the_development_set_covers_what_it_promises() -> None:
    tags = Counter(tag for law in load_suite("dev") for tag in law.tags)
    promised = {"free-constants", "si", "few-rows", "dummies", "outliers", "heteroscedastic", "plain"}
    assert set(tags) == promised
    assert min(tags.values()) >= 3
    assert all(law.dummy > 0 for law in load_suite("dev") if "dummies" in law.tags)
    assert all(20 <= (law.rows or 0) <= 50 for law in load_suite("dev") if "few-rows" in law.tags)


def test_unknown_names_are_answered_with_the_valid_ones() -> None:
    with pytest.raises(UsageError, match="unknown suite 'feynman'; choose one of fsred, tiers, ood, dev"):
        select(["feynman"])
    with pytest.raises(UsageError, match=r"no law 'I\.10\.8' in fsred; close are .*I\.10\.7"):
        select(["fsred"], ["I.10.8"])
    with pytest.raises(UsageError, match="it is in tiers: pass --suite tiers"):
        select(["fsred"], ["feynman_001"])


def test_laws_are_selected_in_the_order_of_the_suite() -> None:
    assert [law.id for law in select(["fsred"], ["I.12.1", "I.10.7"])] == ["I.10.7", "I.12.1"]
    assert len(select(["fsred"], every=4)) == 30


def test_published_rates_carry_their_protocol() -> None:
    entries = published()
    assert len(entries) == 30
    assert all(0 <= float(entry["exact_recovery_percent"]) <= 100 and entry["budget"] for entry in entries)


def test_the_classic_problems_have_the_published_rows_and_a_value_in_each() -> None:
    laws = load_suite("classic")
    groups = Counter(law.group for law in laws)
    published = {
        "Nguyen": 12,
        "Keijzer": 14,
        "Korns": 15,
        "Vladislavleva": 8,
        "Livermore": 22,
        "R": 3,
        "Jin": 6,
    }
    assert groups == published | {"Constant": 8, "Koza": 3, "Pagie": 1, "Strogatz": 14}
    for law in laws:
        assert law.rows is not None
        table = sample(law, rows=min(law.rows, 100))
        assert np.isfinite(table.target).all(), law.id
