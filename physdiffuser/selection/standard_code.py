"""What a usual law of one input costs: its place in the list of usual laws, whatever it is made of.

A logistic curve has parts that are rare together, but as a whole it is one of a few dozen curves that most
measurements of one quantity against another are fitted with.
"""

from __future__ import annotations

import math
from functools import lru_cache

from physdiffuser.expressions import OPERATORS, Expression
from physdiffuser.expressions.tree import variables
from physdiffuser.functions.family import Family
from physdiffuser.functions.standard_forms import further_forms, standard_forms
from physdiffuser.functions.table import families
from physdiffuser.selection.form_prior import Form, form_of, usual_forms

# Nats of a form that is fitted before the search, and of the other families, which take as much as an
# exponential or a power law on a level does: about log(4*35) and log(50*120), where each kind has so many
# forms, and a quarter and a fiftieth of the laws.
STANDARD_NATS, FURTHER_NATS = 9.0, 13.0
# How much counts of what the form beyond that takes by its parts.
PARTS_SHARE = 0.5


def usual_nats(expression: Expression, columns: int) -> float:
    """Nats of a form by its parts, or as one of the usual laws of one input if that is shorter.

    Parameters
    ----------
    expression
        The formula, with numbers or parameters as constants.
    columns
        From how many columns its variables are chosen.
    """
    by_parts = usual_forms().nats(expression, columns)
    return min(by_parts, standard_nats(expression, columns, by_parts))


def standard_nats(expression: Expression, columns: int, by_parts: float) -> float:
    """Nats of a form in the list of usual laws; inf if it is not in it.

    Parameters
    ----------
    expression, columns
        As for `usual_nats`.
    """
    if len(variables(expression)) != 1:
        return math.inf
    listed = _listed(families()).get(form_of(expression), math.inf)
    return listed + PARTS_SHARE * max(by_parts - listed, 0.0) if listed < math.inf else math.inf


@lru_cache(maxsize=4)
def _listed(known: tuple[Family, ...]) -> dict[tuple[Form, int], float]:
    """Nats of the usual laws; `known` are the families that they are made from."""
    first, operators = frozenset({0}), frozenset(OPERATORS)
    listed = {form_of(form): FURTHER_NATS for form in further_forms(first, operators)}
    return listed | {form_of(form): STANDARD_NATS for form in standard_forms(1, first, operators)}
