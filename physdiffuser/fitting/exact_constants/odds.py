"""When a constant may be set to a special value: the odds that an arbitrary one would lie as near to one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from physdiffuser.expressions import Expression, Number
from physdiffuser.fitting.exact_constants.forms import Form, FormTable, decimal_nats, fraction_cost

_EXPONENT_DISCOUNT = 0.8
_SAME = 4e-15
"""Values that differ by less than this share of them are those of one form."""


@dataclass(frozen=True)
class SettingRule:
    """When a constant may be set to a special value.

    Both numbers were chosen by `tools/measure_constants.py` (docs/calibration.md).
    """

    most_odds: float = 0.005
    """Largest expected number of equally simple forms as near to an arbitrary constant. Forms of every price
    are tried, so that an arbitrary constant is set about twice as often."""
    farthest: float = 1.0
    """Standard errors by which setting a constant may move it."""


DEFAULT_RULE = SettingRule()


def odds(table: FormTable, value: float, error: float, form: Form, exponent: bool = False) -> float:
    """Chance that an arbitrary constant lies as near to a form that is as simple as that one.

    Forms nearer than a standard error count as one standard error away: the data cannot tell them apart.

    Parameters
    ----------
    value, error
        The fitted constant, not 0, and its standard error.
    exponent
        Whether it stands in an exponent, where only fractions are usual.

    Returns
    -------
    The expected number of such forms, which is above 1 where they are dense.
    """
    away = max(abs(form.value - value), error) / abs(value)
    return 2.0 * away * table.density(value, form.cost, exponent)


def as_exponent(form: Form) -> Form:
    """Exponents of laws are whole, halves, thirds or quarters much more often than their factors are."""
    fraction = Fraction(form.value).limit_denominator(4)
    usual = abs(float(fraction) - form.value) < 1e-12 and abs(fraction) <= 6
    return replace(form, cost=form.cost - _EXPONENT_DISCOUNT) if usual else form


def form_of(table: FormTable, value: float, expression: Expression) -> Form:
    """The cheapest form of a value; a decimal or a fraction where the table has none.

    Parameters
    ----------
    value
        Not 0.
    expression
        How the value is written.
    """
    listed = table.near(value, _SAME, 1)
    costs = [listed[0].cost] if listed else []
    if isinstance(expression, Number) and not isinstance(expression.value, float):
        costs.append(fraction_cost(Fraction(expression.value)))
    places = next((count for count in range(1, 17) if float(f"{value:.{count - 1}e}") == value), 17)
    costs.append(decimal_nats(places))
    return Form(value, min(costs), expression)


def chance_of(table: FormTable, value: float, error: float, form: Form, exponent: bool = False) -> float:
    """`odds` as a probability: that at least one of the forms is as near."""
    return -math.expm1(-odds(table, value, error, form, exponent))
