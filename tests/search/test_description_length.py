"""The description length of a formula and the tests of its residuals, against their definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from physdiffuser.expressions import Apply, Number, complexity, parse
from physdiffuser.expressions.tree import fitted_constants
from physdiffuser.selection.description_length import (
    FORMS,
    NATS_PER_UNIT,
    ROUNDING_LOSS,
    DescriptionLength,
    exact_nats,
    form_nats,
    rounding_loss,
    shortest,
)
from physdiffuser.selection.form_prior import usual_forms

FloatArray = npt.NDArray[np.float64]
NAMES = ("a", "b")


class TestExactNumbers:
    """Each exact number p/q costs log(p*q) nats; exponents that are common cost less."""

    @pytest.mark.parametrize(
        ("text", "nats"),
        [
            ("a*b", 0.0),
            ("7", math.log(7)),
            ("-7", math.log(7)),
            ("0*a", 0.0),
            ("2*a", math.log(2)),
            ("3*a/4", math.log(3) + math.log(4)),
            ("a + 1", 0.0),
            ("2*a + 3*b", math.log(2) + math.log(3)),
            ("a**2", 0.0),
            ("a**4", 0.0),
            ("a**8", math.log(2)),
            ("sin(5*a)", math.log(5)),
            ("2.5e0*a", 0.0),  # a fitted number
        ],
    )
    def test_cost(self, text: str, nats: float) -> None:
        assert exact_nats(parse(text, NAMES)) == pytest.approx(nats, abs=1e-12)

    @pytest.mark.parametrize(
        ("exponent", "nats"),
        [
            (Fraction(3, 2), math.log(6) - math.log(4)),
            (Fraction(1, 2), 0.0),
            (Fraction(2, 3), math.log(6)),
            (Fraction(5, 4), math.log(20)),
            (Fraction(-7), math.log(7) - math.log(4)),
        ],
    )
    def test_cost_of_an_exponent(self, exponent: Fraction, nats: float) -> None:
        assert exact_nats(Apply("pow", (parse("a", NAMES), Number(exponent)))) == pytest.approx(
            nats, abs=1e-12
        )

    def test_an_exact_number_never_costs_more_than_a_fitted_one(self) -> None:
        assert exact_nats(parse("1000", NAMES), 2.0) == 2.0
        assert exact_nats(parse("1000*a + 3", NAMES), 2.0) == pytest.approx(2.0 + math.log(3))

    @pytest.mark.parametrize(
        ("exponent", "nats"), [(0.035, math.log(10)), (-0.0035, math.log(100)), (0.7, 0)]
    )
    def test_a_fitted_exponent_near_zero_costs_more_than_another(self, exponent: float, nats: float) -> None:
        tree = Apply("pow", (parse("a", NAMES), Number(exponent)))
        assert exact_nats(tree) == pytest.approx(nats, abs=1e-12)

    def test_exponents_are_not_capped(self) -> None:
        assert exact_nats(parse("a**1000", NAMES), 2.0) == pytest.approx(math.log(1000) - math.log(4))

    def test_fitted_constants_are_counted(self) -> None:
        assert fitted_constants(parse("2.5e0*a + 3*b**1.7e0 + 2.5e0", NAMES)) == 3
        assert fitted_constants(parse("3*a**2/4 + pi", NAMES)) == 0


class TestForm:
    @pytest.mark.parametrize("text", ["a*b", "a/sqrt(1 - b**2)", "sin(cos(tan(a + b)))", "a**b**a"])
    def test_the_cheaper_of_two_codes_and_a_small_price_of_complexity(self, text: str) -> None:
        tree = parse(text, NAMES)
        size = complexity(tree)
        expected = min(NATS_PER_UNIT * size, usual_forms().nats(tree, 2)) + FORMS.simpler_nats * size
        assert form_nats(tree, 2) == pytest.approx(expected, abs=1e-12)

    def test_both_codes_are_the_cheaper_one_somewhere(self) -> None:
        def common(text: str) -> bool:
            tree = parse(text, NAMES)
            return usual_forms().nats(tree, 2) < NATS_PER_UNIT * complexity(tree)

        assert common("a/sqrt(1 - b**2)")
        assert not common("tan(tan(tan(a)))")

    @pytest.mark.parametrize("difference", [-12.0, 0.0, 7.5, FORMS.max_doubt, FORMS.max_doubt + 50, math.inf])
    def test_a_conditional_prior_is_pooled_and_its_doubt_is_limited(self, difference: float) -> None:
        tree = parse("a/sqrt(1 - b**2)", NAMES)
        alone = form_nats(tree, 2) - FORMS.simpler_nats * complexity(tree)
        pooled = form_nats(tree, 2, alone + difference)
        assert pooled - form_nats(tree, 2) == pytest.approx(
            FORMS.conditional_share * min(difference, FORMS.max_doubt)
        )

    def test_more_columns_make_a_form_longer(self) -> None:
        tree = parse("a/sqrt(1 - b**2)", NAMES)
        assert form_nats(tree, 9) > form_nats(tree, 2)


class TestLength:
    @pytest.mark.parametrize("rows", [2, 7, 40, 1000])
    def test_a_fitted_constant_costs_half_a_logarithm_of_the_rows(self, rows: int) -> None:
        assert DescriptionLength(rows, 2).constant_nats == pytest.approx(0.5 * math.log(rows))

    def test_one_row_counts_as_two(self) -> None:
        assert DescriptionLength(1, 2).constant_nats == pytest.approx(0.5 * math.log(2))

    @pytest.mark.parametrize("constants", [0, 1, 3])
    @pytest.mark.parametrize("loss", [1e-6, 0.2, 3.0])
    def test_residuals_count_with_their_degrees_of_freedom(self, constants: int, loss: float) -> None:
        measure = DescriptionLength(50, 2)
        assert measure.left(constants, loss) == pytest.approx(0.5 * (50 - constants) * math.log(loss))
        assert measure.total(4.5, constants, loss) == pytest.approx(
            0.5 * (50 - constants) * math.log(loss) + 4.5 + constants * 0.5 * math.log(50)
        )

    @pytest.mark.parametrize("constants", [5, 6, 60])
    def test_as_many_constants_as_rows_explain_nothing(self, constants: int) -> None:
        assert DescriptionLength(5, 2).left(constants, 1e-12) == 0.0

    def test_losses_below_rounding_are_equal(self) -> None:
        measure = DescriptionLength(50, 2, floor=1e-8)
        assert measure.left(1, 1e-8) == measure.left(1, 1e-15) == measure.left(1, 0.0)
        assert measure.left(1, 2e-8) > measure.left(1, 1e-8)
        assert DescriptionLength(50, 2).floor == ROUNDING_LOSS

    @pytest.mark.parametrize("loss", [math.inf, math.nan])
    def test_a_loss_that_is_not_finite_is_infinitely_long(self, loss: float) -> None:
        assert DescriptionLength(50, 2).left(1, loss) == math.inf

    def test_the_parts_of_a_formula_add_up(self) -> None:
        measure = DescriptionLength(50, 2)
        tree = parse("2.5e0*a**2 + 3*b", NAMES)
        exact = exact_nats(tree, measure.constant_nats)
        assert measure.formula_nats(tree) == pytest.approx(form_nats(tree, 2) + exact)
        assert measure.formula_nats(tree, 80.0) == pytest.approx(form_nats(tree, 2, 80.0) + exact)
        assert measure.length(tree, 0.1) == pytest.approx(measure.total(measure.formula_nats(tree), 1, 0.1))
        assert measure.length(tree, 0.1, 80.0) == pytest.approx(
            measure.total(measure.formula_nats(tree, 80.0), 1, 0.1)
        )
        assert measure.plain_length(tree, 0.1) == pytest.approx(
            measure.total(NATS_PER_UNIT * complexity(tree) + exact, 1, 0.1)
        )

    def test_an_exact_number_is_capped_at_the_price_of_a_fitted_one(self) -> None:
        measure = DescriptionLength(9, 1)
        tree = parse("1234*a", ("a",))
        assert measure.formula_nats(tree) == pytest.approx(form_nats(tree, 1) + 0.5 * math.log(9))

    def test_one_more_constant_must_pay_for_itself(self) -> None:
        """The gain that a constant needs: half a logarithm for it, and one degree of freedom less."""
        measure = DescriptionLength(100, 1)
        loss = 0.01
        worth = loss * math.exp(-2 * 0.5 * math.log(100) / 98 + math.log(loss) / 98)
        assert measure.total(0.0, 2, 0.99 * worth) < measure.total(0.0, 1, loss)
        assert measure.total(0.0, 2, 1.01 * worth) > measure.total(0.0, 1, loss)

    def test_the_shortest_is_the_first_among_equals(self) -> None:
        assert shortest([3.0, 1.0, 2.0, 1.0]) == 1
        assert shortest(iter([0.0])) == 0


class TestRoundingLoss:
    @pytest.mark.parametrize("digits", [2, 3, 5])
    @pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
    def test_it_is_what_rounding_to_digits_causes(self, digits: int, size: float) -> None:
        random = np.random.default_rng(0)
        exact = random.uniform(1, 90, 4000) * size
        leading = 10.0 ** np.floor(np.log10(exact))
        unit = leading * 10.0 ** (1 - digits)
        written = np.round(exact / unit) * unit
        caused = np.square((written - exact) / size).mean() / (exact / size).var()
        # Half a unit of the last digit of a number that begins with a 1, relative.
        expected = rounding_loss(written, 0.5 * 10.0 ** (1 - digits))
        assert expected == pytest.approx(caused, rel=0.1)

    def test_zeros_and_signs(self) -> None:
        target = np.array([0.0, -2.0, 30.0, 400.0])
        unit = target / 400
        half = 0.005 * np.array([0.0, 1.0, 10.0, 100.0]) / 400
        assert rounding_loss(target, 0.005) == pytest.approx(np.square(half).mean() / 3 / unit.var())

    def test_full_precision_leaves_the_rounding_of_doubles(self) -> None:
        assert rounding_loss(np.array([1.0, 2.0]), 1e-10) == ROUNDING_LOSS
        assert rounding_loss(np.array([1.0, 2.0]), 2e-10) > ROUNDING_LOSS
        assert rounding_loss(np.zeros(3), 1e-3) >= ROUNDING_LOSS


def test_exact_numbers_beside_others_add_up() -> None:
    assert exact_nats(parse("3*sin(a) + 5*b", NAMES)) == pytest.approx(math.log(15))
    assert exact_nats(parse("7*sin(5*a)*exp(3*b)", NAMES)) == pytest.approx(math.log(105))
    assert DescriptionLength(9, 2).plain_length(parse("1234*a", NAMES), 0.1) == pytest.approx(
        DescriptionLength(9, 2).total(NATS_PER_UNIT * 3 + 0.5 * math.log(9), 0, 0.1)
    )
