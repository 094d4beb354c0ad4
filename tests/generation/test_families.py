"""The table of function families: values come from the template, and mistakes in a row are named."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.core.family import FamilySpec, everywhere
from physdiffuser.expressions import OPERATORS, Number, Variable, evaluate, to_text
from physdiffuser.expressions.tree import bind
from physdiffuser.functions import table
from physdiffuser.functions.blocks import with_constants
from physdiffuser.functions.curves import best_points
from physdiffuser.functions.family import Family, compiled, linear_form, numeric
from physdiffuser.functions.standard_forms import standard_forms
from physdiffuser.functions.table import families, families_for
from physdiffuser.generation.enumeration.parametric import entries
from physdiffuser.plugin_system.manager import Plugins
from physdiffuser.plugin_system.records import Origin, Registered

FloatArray = npt.NDArray[np.float64]

RANGES = {"positive": (0.5, 6.0), "either sign": (-3.0, 4.0), "negative": (-9.0, -1.0)}


@pytest.mark.parametrize("limits", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("family", families_for("enumeration"), ids=lambda family: family.name)
def test_values_are_those_of_the_formula(family: Family, limits: tuple[float, float]) -> None:
    """The reference is the evaluator of formulas, one point of the grid at a time."""
    inputs = np.random.default_rng(0).uniform(*limits, (40, family.spec.arity))
    with np.errstate(all="ignore"):
        tries = family.tries("enumeration", *inputs.T)
        values = family.values(list(inputs.T), tries)
    assert values.shape == (len(tries), 40) and tries.shape[1] == family.constants
    variables = [Variable(place) for place in range(family.spec.arity)]
    for constants, row in zip(tries, values, strict=True):
        formula = family.build(variables, [Number(float(value)) for value in constants])
        expected = evaluate(formula, inputs)
        if np.isnan(row).all() and family.positive:
            continue
        assert np.array_equal(np.isfinite(row), np.isfinite(expected))
        # Of `exp(x) - 1` and `log(1 + x)` the formula itself loses digits.
        size = np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        assert np.allclose(row, expected, rtol=1e-7, atol=1e-12 * size, equal_nan=True)


@pytest.mark.parametrize("limits", RANGES.values(), ids=RANGES)
def test_a_family_is_tried_where_it_is_a_number(limits: tuple[float, float]) -> None:
    u = np.random.default_rng(1).uniform(*limits, 60)
    for use in ("enumeration", "curves", "blocks"):
        for family in families_for(use):
            if family.spec.arity == 1:
                with np.errstate(all="ignore"):
                    tries = family.tries(use, u)
                    form = linear_form(family)
                    terms = numeric(form.terms, form.arguments(u), tries)
                assert np.isfinite(tries).all()
                finite = [np.isfinite(np.broadcast_to(term, (len(tries), 60))).all(axis=1) for term in terms]
                assert not len(tries) or np.all(finite, axis=0).mean() > 0.4, family.name


def test_small_arguments_lose_no_digits() -> None:
    tree = compiled(FamilySpec("f", "(exp(c*u) - 1)/log(1 + c*u)", ("c",), everywhere(_ones))).tree
    [value] = numeric([tree], [np.array([1e-12, 1e-14])], np.array([[1.0]]))
    assert np.allclose(value, 1.0, rtol=1e-11)


def _ones(u: FloatArray) -> FloatArray:
    return np.ones((1, 1))


def test_blocks_hold_no_operation_on_constants_alone() -> None:
    column = np.linspace(0.5, 4.0, 30)
    texts = [to_text(block, ("a", "x"), digits=4) for block in with_constants(1, column)]
    assert "1/(x + 0.12)" in texts
    assert "sqrt(x**2 + 0.0144)" in texts
    assert with_constants(1, np.ones(30)) == []


def test_coefficients_are_found_in_a_formula_or_its_logarithm() -> None:
    u = np.array([0.5, 2.0, 3.0])

    def terms(template: str, *coefficients: str) -> tuple[bool, list[FloatArray]]:
        form = linear_form(compiled(FamilySpec("f", template, ("k",), {"curves": _ones}, coefficients)))
        values = numeric(form.terms, form.arguments(u), np.array([[0.7]]))
        return form.logarithmic, [np.broadcast_to(value, (1, 3))[0] for value in values]

    decay = np.exp(0.7 * u)
    for template, logarithmic, expected in (
        ("(a + b*u)*exp(k*u)", False, [decay, u * decay]),
        ("u**a/(k + u)**b", True, [np.log(u), -np.log(0.7 + u)]),
        ("exp(a/(u + k) - b*u)", True, [1 / (u + 0.7), -u]),
    ):
        found, values = terms(template, "a", "b")
        assert found == logarithmic
        assert np.allclose(values, expected, rtol=1e-14)


WRONG = {
    "unknown name": (FamilySpec("f", "u/(k + m)", ("k",), everywhere(_ones)), "unknown name 'm'"),
    "bad formula": (FamilySpec("f", "u/(k +", ("k",), everywhere(_ones)), "formula, character"),
    "unused constant": (FamilySpec("f", "u + k", ("k", "m"), everywhere(_ones)), "'m' does not occur"),
    "no argument": (FamilySpec("f", "k", ("k",), everywhere(_ones)), "'u' does not occur"),
}


@pytest.mark.parametrize(("spec", "message"), WRONG.values(), ids=WRONG)
def test_a_template_that_cannot_be_read_is_named(spec: FamilySpec, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compiled(spec)


def test_coefficients_must_be_linear() -> None:
    spec = FamilySpec("f", "sin(a*u) + k", ("k",), {"curves": _ones}, ("a",))
    with pytest.raises(ValueError, match="linear in a"):
        linear_form(compiled(spec))


def test_fields_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="used nowhere"):
        FamilySpec("f", "u/(k + u)", ("k",))
    with pytest.raises(ValueError, match="differ from each other"):
        FamilySpec("f", "u*u", ("u",), everywhere(_ones))
    with pytest.raises(ValueError, match="needs constants"):
        FamilySpec("f", "u**2", (), everywhere(_ones))
    with pytest.raises(ValueError, match="no use is called 'search'"):
        FamilySpec("f", "u*k", ("k",), {"search": _ones})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="for enumeration only"):
        FamilySpec("f", "u + k*v", ("k",), everywhere(_ones))


def test_one_row_takes_part_in_every_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """`x/(k + x)` in one row is screened, fitted as a curve, a building block and a usual law."""
    row = FamilySpec(
        "half_saturation",
        "u/(k + u)",
        ("k",),
        everywhere(lambda u: np.array([[0.3], [1.0], [4.0]])),
        standard=("a*f", "a + b*f"),
    )
    x = np.random.default_rng(2).uniform(0.2, 5.0, (60, 2))
    before = standard_forms(1, frozenset({0}), frozenset(OPERATORS))
    origin = Origin("test", "1", "test")
    plugins = Plugins(families={row.name: Registered(row.name, "family", origin, row, row)})
    monkeypatch.setattr(table, "load_plugins", lambda: plugins)
    made = entries(x.T, 2, frozenset(OPERATORS))
    assert [made.family_of(entry).name for entry in range(len(made.values))].count(row.name) == 6
    [family] = [family for family in families_for("curves") if family.name == row.name]
    target = 2 + 3 * x[:, 0] / (1 + x[:, 0])
    (left, inside, coefficients), *_ = best_points(family, x[:, 0], target, np.ones(60))
    assert left < 1e-20 and np.allclose([*inside, *coefficients], [1.0, 2.0, 3.0])
    blocks = [to_text(block, ("x",)) for block in with_constants(0, x[:, 0])]
    assert {"x/(0.3 + x)", "x/(4 + x)"} <= set(blocks)
    new = standard_forms(1, frozenset({0}), frozenset(OPERATORS))[len(before) :]
    shown = [to_text(bind(form, [7.5, 8.5, 9.5]), ("x",)) for form in new]
    assert shown == ["7.5*x/(8.5 + x)", "7.5 + 8.5*x/(9.5 + x)"]


def test_names_are_told_apart() -> None:
    names = [family.name for family in families()]
    assert len(set(names)) == len(names) > 60
