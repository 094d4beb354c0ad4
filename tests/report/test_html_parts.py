"""What the page says is true: evidence, sensitivities, warnings about where the law is not tested."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from solutions import NAMES, equation, solution, trees

from physdiffuser.core.solution import Equation, Solution, sample_fit_points
from physdiffuser.expressions import parse
from physdiffuser.expressions.printing.mathml import mathml_terms, name_mathml, to_mathml
from physdiffuser.report.html.charts import axis_for
from physdiffuser.report.html.evidence import checks_of, steps_of
from physdiffuser.report.html.extrapolation import extrapolation_warnings
from physdiffuser.report.html.sensitivity import sensitivities

RNG = np.random.default_rng(3)
TABLE = RNG.uniform(1.0, 5.0, (200, 2))


def with_table(best: Equation, inputs: np.ndarray = TABLE, **changes: object) -> Solution:
    from physdiffuser.expressions import evaluate

    truth = evaluate(best.expression, inputs)
    points = sample_fit_points(truth, truth, np.zeros(len(inputs), bool), inputs=inputs)
    return solution(best, fit_points=points, rows=len(inputs), **changes)  # type: ignore[arg-type]


# ---- formulas ----


@given(trees)
def test_mathml_is_well_formed_and_counts_its_children(tree: object) -> None:
    root = ElementTree.fromstring(f"<math>{to_mathml(tree, NAMES)}</math>")  # type: ignore[arg-type]
    for node in root.iter():
        if node.tag in ("mfrac", "msup", "msub"):
            assert len(node) == 2
    assert ElementTree.fromstring(f"<math>{''.join(mathml_terms(tree, NAMES))}</math>") is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        ("a - (v_m_s - 3)", "a−(vm_s−3)"),
        ("-a/2", "−a2"),
        ("2*3", "2⋅3"),
        ("a*(-2)", "a\u2062(−2)"),
        ("a**(-0.5)", "a−1/2"),
        ("sin(a)**2", "sin2\u2061(a)"),
        ("1.5e-12*a", "1.5×10−12\u2062a"),
        ("(a + 2)*a", "(a+2)\u2062a"),
        ("0.3*a", "0.3\u2062a"),
        ("-0.3*a + 1/8", "−0.3\u2062a+18"),
    ],
)
def test_formulas_read_as_they_should(formula: str, text: str) -> None:
    written = to_mathml(parse(formula, NAMES), ("a", "vm_s"))
    shown = "".join(ElementTree.fromstring(f"<math>{written}</math>").itertext())
    assert shown.replace("vms", "vm_s") == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("theta", "<mi>θ</mi>"),
        ("Omega", "<mi>Ω</mi>"),
        ("lambd", "<mi>λ</mi>"),
        ("v0", "<msub><mi>v</mi><mn>0</mn></msub>"),
        ("v_max", "<msub><mi>v</mi><mi>max</mi></msub>"),
        ("sho", "<mi>sho</mi>"),
        ("<b>", "<mi>&lt;b&gt;</mi>"),
    ],
)
def test_names_are_set_as_a_physicist_would(name: str, expected: str) -> None:
    assert name_mathml(name) == expected


def test_a_sum_can_be_broken_between_its_terms() -> None:
    terms = mathml_terms(parse("a - (v_m_s - 1) + 2*a", NAMES), NAMES)
    assert len(terms) == 3
    assert terms[1].startswith('<mo form="infix">−</mo><mrow><mo>(</mo>')
    assert terms[2].startswith('<mo form="infix">+</mo>')


# ---- evidence ----


def test_the_evidence_of_a_step_is_measured_on_the_rows() -> None:
    best = equation(
        "a**2/v_m_s",
        derivation=(
            "took the logarithm",
            "divided by the power law a**2/v_m_s",
            "constants fitted to 200 rows: T = 1.1*a**2/v_m_s",
            "2.003 (standard error 0.002) agrees with 2",
            "0.001 (standard error 0.004) is compatible with 0: its term is dropped",
            "evolution: generation 3, a new part gave 2*a",
            "the law: T = a**2/v_m_s",
        ),
    )
    steps = steps_of(with_table(best))
    assert [bool(step.right) for step in steps] == [False, False, True, False, False, True, True]
    assert steps[0].evidence == ""
    assert "before and of 1 after" in steps[1].evidence
    truth = TABLE[:, 0] ** 2 / TABLE[:, 1]
    left = np.mean((0.1 * truth) ** 2)
    assert steps[2].text == "constants fitted to 200 rows"
    assert steps[2].evidence.startswith(
        f"rms error {np.sqrt(left):.3g}, {100 * left / truth.var():.2g} % of the"
    )
    assert steps[3].evidence == "0.003 apart, 1.5 standard errors"
    assert steps[4].evidence == "0.25 standard errors from 0"
    assert steps[6].evidence == "rms error 0, exact, 200 rows"


def test_a_formula_whose_digits_were_cut_too_short_is_not_blamed() -> None:
    best = equation("a", derivation=("constants fitted to 9 rows: T = 1000*(a + 7)",))
    assert "too few" in steps_of(with_table(best))[0].evidence


def test_checks_tell_what_holds_from_what_fails_and_what_is_open() -> None:
    from physdiffuser.verification.checks import pole_check, probability_check, residual_check
    from physdiffuser.verification.verify import verify

    law = parse("2*a", NAMES)

    def checked(final, *given, **more):  # type: ignore[no-untyped-def]
        made = verify(law, final, *given, **more)
        return checks_of(equation("2*a", verification=made.sentences, check_states=made.states))

    good, bad = 2 * TABLE[:, 0], 2 * TABLE[:, 0] + np.where(np.arange(200) >= 150, 5.0, 0.0)
    seen, unseen = np.arange(150), np.arange(150, 200)
    passed = checked(law, TABLE, good, seen, unseen, further=[residual_check(False)])
    assert [check.state for check in passed] == ["passed"] * 4
    noisy = bad + RNG.normal(0, 0.01, 200)
    failed = checked(law, TABLE, noisy, seen, unseen, further=[residual_check(True)])
    states = {check.topic: check.state for check in failed}
    assert states["test set"] == states["residuals"] == "failed"
    further = [pole_check(True), probability_check(0.5)]
    against = checked(law, TABLE, good, seen, unseen, further=further)
    assert [check.state for check in against[-2:]] == ["failed", "failed"]
    further = [pole_check(False), probability_check(0.99)]
    speaking_for = checked(law, TABLE, good, seen, unseen, further=further)
    assert [check.state for check in speaking_for[-2:]] == ["passed", "passed"]
    few = checked(law, TABLE[:6], good[:6], np.arange(6), np.arange(0))
    assert {check.topic: check.state for check in few}["test set"] == "open"
    other = checked(parse("3*a", NAMES), TABLE, good, seen, unseen)
    assert other[0].state == "failed"


# ---- sensitivity ----


def test_elasticities_of_a_power_law_are_its_exponents() -> None:
    first, second = sensitivities(parse("a**2/sqrt(v_m_s)", NAMES), TABLE)
    assert first.elasticity == pytest.approx((2, 2, 2), rel=1e-6)
    assert second.elasticity == pytest.approx((-0.5, -0.5, -0.5), rel=1e-6)


def test_shares_of_a_sum_are_those_of_its_variances() -> None:
    first, second = sensitivities(parse("3*a + v_m_s", NAMES), TABLE)
    variance = 9 * TABLE[:, 0].var() + TABLE[:, 1].var()
    assert first.share == pytest.approx(9 * TABLE[:, 0].var() / variance, abs=0.08)
    assert second.share == pytest.approx(TABLE[:, 1].var() / variance, abs=0.05)
    low, high = first.swing or (0, 0)
    ends = np.percentile(TABLE[:, 0], [10, 90])
    assert high - low == pytest.approx(3 * (ends[1] - ends[0]))


def test_a_column_that_does_not_occur_has_none() -> None:
    first, second = sensitivities(parse("a - 3", NAMES), TABLE)
    assert first.elasticity is None, "the target changes its sign"
    assert first.share == 1.0
    assert (second.used, second.share) == (False, None)


# ---- where it is not tested ----


def warned(best: Equation, inputs: np.ndarray = TABLE) -> str:
    return "\n".join(extrapolation_warnings(with_table(best, inputs), best))


def test_the_end_of_the_domain_is_named() -> None:
    text = warned(equation("log(a - 0.5)"))
    assert "Below the table's a" in text and "has no finite value from about 0.4" in text
    assert "Above" not in text


def test_a_law_that_explodes_is_named() -> None:
    assert "Above the table's a (1.0" in warned(equation("exp(exp(a/2))")).replace("1 to", "1.0 to")
    assert warned(equation("3*a")) == ""


def test_columns_that_go_together_are_named() -> None:
    together = np.stack([TABLE[:, 0], TABLE[:, 0] * 2 + 0.01 * TABLE[:, 1]], axis=1)
    assert "a and v (m/s) were varied together (rank correlation 1.00)" in warned(
        equation("a*v_m_s"), together
    )
    assert "together" not in warned(equation("a*v_m_s"))


def test_holes_and_few_values_are_named() -> None:
    hole = TABLE.copy()
    hole[:, 0] = np.where(hole[:, 0] > 3, hole[:, 0] + 10, hole[:, 0])
    edge = TABLE[TABLE[:, 0] <= 3, 0].max()
    assert f"No row has a between {edge:.3g} and 13" in warned(equation("a"), hole)
    few = TABLE.copy()
    few[:, 0] = np.round(few[:, 0] / 2)
    assert "a takes only 2 values" in warned(equation("a"), few)


def test_combinations_without_a_value_are_named() -> None:
    ordered = np.sort(TABLE, axis=1)
    assert "but not together" in warned(equation("sqrt(v_m_s - a)"), ordered)


def test_a_band_that_widens_is_named() -> None:
    from physdiffuser.expressions.tree import Apply, Number, Variable

    law = Apply("pow", (Variable(0), Number(2.01)))
    best = equation(law, covariance=((0.01,),), degrees_of_freedom=50)
    assert "one range further" in warned(best)


# ---- axes ----


@pytest.mark.parametrize(
    "values",
    [[1, 2], [-3e-7, 5e-7], [1e300, 1e308], [-1e308, 1e308], [5, 5], [0, 0], [1e-320, 2e-320], [np.nan]],
)
@pytest.mark.parametrize("log", [False, True])
def test_ticks_stand_on_their_axis(values: list[float], log: bool) -> None:
    axis = axis_for(np.array(values, dtype=float), 60, 400, log=log)
    places = [place for place, _ in axis.ticks]
    assert all(60 <= place <= 400 for place in places)
    assert places == sorted(places)
    assert len(places) <= 12


def test_ticks_are_round() -> None:
    assert [label for _, label in axis_for(np.array([0.0, 10.0]), 0, 100).ticks] == [
        "0",
        "2",
        "4",
        "6",
        "8",
        "10",
    ]
    assert [label for _, label in axis_for(np.array([1e-3, 1e3]), 0, 100, log=True).ticks][:2] == [
        "0.01",
        "1",
    ]


def test_a_long_term_is_divided_into_its_factors() -> None:
    names = ("a", "v_m_s")
    law = "1.5 - exp(-0.300410041*a)*(2.50290029*cos(4.00120012*a) + 0.00195420019*sin(4.00120012*a))*v_m_s"
    terms = mathml_terms(parse(law, names), names)
    assert len(terms) == 4
    assert terms[1].startswith('<mo form="infix">−</mo><msup>') and terms[2].startswith("<mrow><mo>(</mo>")
    assert terms[3] == "<msub><mi>v</mi><mi>m</mi></msub>" or "v" in terms[3]
    whole = ElementTree.fromstring(f"<math>{''.join(terms)}</math>")
    text = "".join(whole.itertext())
    assert text.count("(") == text.count(")")
    short = mathml_terms(parse("2*a*exp(-a)", names), names)
    assert len(short) == 1
