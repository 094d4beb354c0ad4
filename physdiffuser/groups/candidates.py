"""Forms that a law of several groups may have, from searches of single groups and of all rows together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from physdiffuser.data.dataset import Dataset
from physdiffuser.data.statements.groups import Groups
from physdiffuser.expressions import Apply, Expression, Number, Parameter, to_text
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import add, bind, free_constants, mul, parameter_count, substitute
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.fitting import Fit
from physdiffuser.groups.sharing import MAX_CONSTANTS

if TYPE_CHECKING:
    from physdiffuser.groups.joint_fit import JointFit
    from physdiffuser.groups.numbers import Placed
    from physdiffuser.groups.selection import GroupSelection

Search = Callable[[Dataset, Sequence[str], float], Sequence[Expression]]
"""Formulas for a table: given it, formulas to start from, and the share of the budget."""


class FormSource(Protocol):
    """Where all forms of a law come from, in place of the usual laws and searches.

    Attributes
    ----------
    statements
        Texts from which a later run can go on, as keys.
    """

    statements: dict[str, None]

    def searched(
        self, dataset: Dataset, groups: Groups, selection: GroupSelection
    ) -> Iterator[tuple[list[Form], bool]]:
        """Forms for a selection, a list after each search, and whether they are usual laws."""

    def with_number(self, fit: JointFit, position: int, number: Number) -> Placed | None:
        """As `physdiffuser.groups.numbers.with_number`; None where a constant has to stay."""


# Groups that are searched by themselves: those with the most rows.
MAX_SEARCHED = 3
# A group with fewer rows is not searched by itself.
MIN_ROWS = 8
# The first search has so many times the budget of the others: its formulas are where they start.
FIRST_SHARE = 2.0


@dataclass(frozen=True)
class Form:
    """A skeleton, and constants that one group is known to have.

    Attributes
    ----------
    skeleton
        With a parameter for each constant.
    known
        One value for each parameter.
    """

    skeleton: Expression
    known: tuple[float, ...]


def forms_of(formulas: Sequence[Expression]) -> list[Form]:
    """The skeletons of formulas, with their fitted constants free, and their exact numbers as well."""
    found: dict[Expression, Form] = {}
    for formula in formulas:
        # Numbers that can be worked out, such as the root of one, are one constant.
        for variant in (arrange(formula), formula, with_freed_constants(formula), with_phases(formula)):
            skeleton, values = free_constants(variant)
            if 0 < len(values) <= MAX_CONSTANTS:
                found.setdefault(skeleton, Form(skeleton, values))
    return list(found.values())


def forms_of_fits(fits: Sequence[Fit]) -> list[Form]:
    """The forms of usual laws, with their fitted constants; waves with amplitude and phase as well."""
    found = [Form(fit.skeleton, tuple(fit.parameters.tolist())) for fit in fits if fit.parameters.size]
    laws = [bind(one.skeleton, list(one.known)) for one in found]
    phased = [made for law in laws if (made := with_phases(law)) != law]
    return [*found, *(Form(*free_constants(law)) for law in phased)]


def with_phases(expression: Expression) -> Expression:
    """The formula with `c*cos(u + p)` for `a*cos(u) + b*sin(u)`.

    The constants are as many, but amplitude and phase are more often the same in all groups.
    """

    def replace(node: Expression) -> Expression | None:
        if not isinstance(node, Apply) or node.operator not in ("add", "sub"):
            return None
        left, right = (_wave(part) for part in node.arguments)
        if left is None or right is None or left[2] != right[2] or left[1] == right[1]:
            return None
        sign = -1.0 if node.operator == "sub" else 1.0
        cosine, sine = (left[0], sign * right[0]) if left[1] == "cos" else (sign * right[0], left[0])
        inner = add(left[2], Number(math.atan2(-sine, cosine)))
        return mul(Number(math.hypot(cosine, sine)), Apply("cos", (inner,)))

    return substitute(expression, replace)


def _wave(node: Expression) -> tuple[float, str, Expression] | None:
    """Factor, function and argument of `a*cos(u)` or `a*sin(u)`; None for anything else."""
    factor = 1.0
    if isinstance(node, Apply) and node.operator == "mul":
        numbers = [part for part in node.arguments if isinstance(part, Number)]
        others = [part for part in node.arguments if not isinstance(part, Number)]
        if len(numbers) != 1 or len(others) != 1:
            return None
        factor, node = float(numbers[0].value), others[0]
    if isinstance(node, Apply) and node.operator in ("cos", "sin"):
        return factor, node.operator, node.arguments[0]
    return None


def with_factor(form: Form, factor: float) -> Form:
    """The form times a constant of its own."""
    position = parameter_count(form.skeleton)
    return Form(mul(Parameter(position), form.skeleton), (*form.known, factor))


def searched_forms(dataset: Dataset, groups: Groups, search: Search) -> Iterator[list[Form]]:
    """Forms from each search in turn: all rows, all rows in units of their group, and the largest groups.

    Each search starts from the formulas of those before.
    """
    tables = tables_of(dataset, groups)
    known: list[str] = []
    shares = np.array([FIRST_SHARE, *[1.0] * (len(tables) - 1)])
    for (table, scaled), share in zip(tables, (shares / shares.sum()).tolist(), strict=True):
        formulas = search(table, known, share)
        forms = forms_of(formulas)
        if scaled:
            forms = [one for form in forms for one in (form, with_factor(form, 1.0))]
        else:
            known = [to_text(formula, dataset.names) for formula in formulas]
        yield forms


def tables_of(dataset: Dataset, groups: Groups) -> list[tuple[Dataset, bool]]:
    """The tables to search, and whether their target is in units of the group's."""
    counts = np.bincount(groups.codes, minlength=len(groups.labels))
    largest = [int(code) for code in np.argsort(-counts, kind="stable") if counts[code] >= MIN_ROWS]
    own = [(dataset.take(np.flatnonzero(groups.codes == code)), False) for code in largest[:MAX_SEARCHED]]
    sizes = np.sqrt(
        np.bincount(groups.codes, np.square(dataset.target), len(groups.labels)) / np.maximum(counts, 1)
    )
    together = [(dataset, False)]
    if (sizes > 0).all():
        weights = dataset.weights
        scale = sizes[groups.codes]
        scaled = replace(
            dataset,
            target=dataset.target / scale,
            weights=None if weights is None else weights * np.square(scale),
        )
        together.append((scaled, True))
    # The groups first: where one is enough to find the form, it is found in the least time.
    return [
        (replace(table, groups=None), scaled)
        for table, scaled in (*own, *together)
        if np.ptp(table.target) > 0
    ]
