"""Keeping benchmark laws out of training.

Two laws count as the same when, after all constant factors are taken out of both, some renaming of
variables makes them equal in value, up to one factor, at fixed points. Values do not care how a
law is written, so rewriting does not hide it. A law with constant placeholders also counts as the same if
they can take values that make it so: `exp(C*u)` is `exp(-u)`, and `u**C` is `u**2` (`placeholders`). So do
laws that differ in signs alone: `1 + v**2/c**2` and `1 - v**2/c**2`, `exp(u)` and `exp(-u)`. Laws of
at most nine tokens (`a*b/c`) are arithmetic that no training set can avoid; they are let through, and so are
longer ones that are such a product but for a constant in front (`q*B/(2*pi*m)`): in training that constant is
1 or any random number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import IndexArray, IntArray
from physdiffuser.expressions import ONE, Apply, Expression, Number, Parameter, Variable, evaluate, to_prefix
from physdiffuser.expressions.tree import substitute, variables, walk, with_columns
from physdiffuser.models.tokens.skeleton import terms, without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import MAX_VARIABLES
from physdiffuser.training.placeholders import (
    Instances,
    exponents,
    group_of,
    instances_of,
    values,
    with_unit_constants,
    without_sign_roles,
)

ComplexArray = npt.NDArray[np.complex128]

# Laws with at most this many prefix tokens are not excluded.
SHORT = 9
_POINTS = np.random.default_rng(20_240_607).uniform(0.55, 1.9, (3, MAX_VARIABLES)).astype(np.complex128)
_RESOLUTION = 1e6
_CHUNK = 40_000
_REMEMBERED = 20_000


def without_factors(expression: Expression) -> Expression:
    """The formula with every constant factor, at any depth, replaced by 1; signs stay."""
    return _without_factors(expression)[0]


def _without_factors(expression: Expression) -> tuple[Expression, bool]:
    """The formula without constant factors, and whether it is a constant itself."""
    if isinstance(expression, Parameter):
        return ONE, True
    if not isinstance(expression, Apply):
        return expression, not isinstance(expression, Variable)
    found = [_without_factors(argument) for argument in expression.arguments]
    constant = all(alone for _, alone in found)
    arguments = tuple(argument for argument, _ in found)
    if expression.operator == "pow":
        return Apply("pow", (arguments[0], expression.arguments[1])), constant
    if expression.operator not in ("mul", "div") or constant:
        return Apply(expression.operator, arguments), constant
    left, right = arguments
    factor = next((argument for argument, alone in found if alone), None)
    if factor is None:
        return Apply(expression.operator, arguments), False
    if not found[1][1]:
        rest = right if expression.operator == "mul" else Apply("div", (ONE, right))
    else:
        rest = left
    negative = factor != ONE and bool(evaluate(factor, np.empty((1, 0)))[0] < 0)
    return Apply("neg", (rest,)) if negative else rest, False


def without_signs(expression: Expression) -> Expression:
    """The formula with sums for differences, and no minus but in exponents."""
    if isinstance(expression, Number):
        return Number(-expression.value) if expression.value < 0 else expression
    if not isinstance(expression, Apply):
        return expression
    if expression.operator == "neg":
        return without_signs(expression.arguments[0])
    first, *others = expression.arguments
    if expression.operator == "pow" and isinstance(others[0], (Number, Apply)) and not variables(others[0]):
        return Apply("pow", (without_signs(first), others[0]))
    operator = "add" if expression.operator == "sub" else expression.operator
    return Apply(operator, tuple(without_signs(part) for part in expression.arguments))


def _keys(values: ComplexArray) -> IntArray:
    """One integer per row of values at the three points, (n, 3); equal for proportional rows."""
    with np.errstate(all="ignore"):
        logs = np.log(np.abs(values))
        first = np.rint((logs[:, 1] - logs[:, 0]) * _RESOLUTION)
        second = np.rint((logs[:, 2] - logs[:, 0]) * _RESOLUTION)
    good = np.isfinite(first) & np.isfinite(second)
    first, second = first[good].astype(np.int64), second[good].astype(np.int64)
    return first * np.int64(1_000_003_019) + second


def _values(expression: Expression, points: ComplexArray) -> ComplexArray:
    # The operators take complex columns as well as real ones, and no root is outside its domain then.
    table: Any = points
    value: Any = evaluate(expression, table)
    return np.asarray(value, dtype=np.complex128)


def _renamed(expression: Expression) -> tuple[Expression, int]:
    """The formula with its variables numbered 0, 1, ... and how many there are."""
    places = {place: index for index, place in enumerate(sorted(variables(expression)))}
    if all(place == index for place, index in places.items()):
        return expression, len(places)
    return with_columns(expression, places), len(places)


def forms(expression: Expression) -> list[Expression]:
    """The forms of a law that are compared: without linear coefficients, and without any factor."""
    ones = expression
    if any(isinstance(node, Parameter) for node in walk(expression)):
        ones = substitute(expression, lambda node: ONE if isinstance(node, Parameter) else None)
    found = [without_linear_coefficients(ones), without_linear_coefficients(without_factors(ones))]
    return [found[0]] if found[0] == found[1] else found


def without_constants(expression: Expression) -> Expression:
    """The form of an excluded law that laws with placeholders are compared with."""
    ones = substitute(expression, lambda node: ONE if isinstance(node, Parameter) else None)
    return _with_unit_numbers(ones)


def _as_exponential(node: Expression) -> Expression | None:
    """`10**u` as an exponential."""
    if not isinstance(node, Apply) or node.operator != "pow" or variables(node.arguments[0]):
        return None
    base, exponent = float(evaluate(node.arguments[0], np.empty((1, 0)))[0]), node.arguments[1]
    if not variables(exponent) or not 0.0 < base < np.inf or base == 1.0:
        return None
    exponent = substitute(exponent, _as_exponential)
    return Apply("exp", (exponent if base > 1.0 else Apply("neg", (exponent,)),))


def _with_unit_numbers(expression: Expression) -> Expression:
    if any(_as_exponential(node) is not None for node in walk(expression)):
        expression = substitute(expression, _as_exponential)
    return without_linear_coefficients(with_unit_constants(without_factors(expression)))


def _unsigned_numbers(expression: Expression) -> Expression:
    return without_signs(_with_unit_numbers(expression))


def _keeps_its_form(law: Expression) -> bool:
    """Whether a law without its signs has as many terms and depends on all of its variables.

    `(a - b)/(a + b)` does not: without signs it is 1.
    """
    unsigned = without_signs(law)
    if len(terms(without_linear_coefficients(unsigned))) < len(terms(without_linear_coefficients(law))):
        return False
    renamed, count = _renamed(unsigned)
    points = np.repeat(_POINTS[:1, :count], count + 1, axis=0)
    points[np.arange(count), np.arange(count)] *= 1.1
    with np.errstate(all="ignore"):
        values = _values(renamed, points) + np.zeros(count + 1)
        moved = np.abs(values[:count] / values[count] - 1.0) > 1e-9
    return bool(moved.all())


def _chunks(count: int) -> Iterator[IndexArray]:
    orders = permutations(range(count))
    while chunk := list(islice(orders, _CHUNK)):
        yield np.array(chunk, dtype=np.intp)


def signatures(expression: Expression) -> IntArray:
    """Keys of a law under every renaming of its variables."""
    return _signatures(forms(expression))


def _signatures(found: Iterable[Expression]) -> IntArray:
    keys: list[IntArray] = []
    for form in found:
        renamed, count = _renamed(form)
        if count == 0:
            continue
        for orders in _chunks(count):
            values = np.stack([_values(renamed, point[orders]) for point in _POINTS], axis=1)
            keys.append(np.unique(_keys(values)))
    return np.unique(np.concatenate(keys)) if keys else np.empty(0, dtype=np.int64)


def key(expression: Expression) -> list[int]:
    """Keys of a law with its variables as they are, one for each form that has a finite value."""
    found: list[int] = []
    for form in forms(expression):
        renamed, count = _renamed(form)
        if count:
            values = _values(renamed, _POINTS[:, :count])
            found.extend(int(number) for number in _keys(values[None, :]))
    return found


class _Group:
    """Excluded laws with as many variables and functions of the same families.

    Parameters
    ----------
    laws
        Without constant factors, and with added constants of 1 and -1.
    """

    def __init__(self, laws: Sequence[Expression]) -> None:
        self.exponents = frozenset(exponents(law) for law in laws)
        self.keys = _signatures(dict.fromkeys(laws))

    def contains(self, instances: Instances) -> bool:
        """Whether some values of the placeholders give one of the laws."""
        for constants in values(instances.roles, self.exponents):
            rows = len(constants)
            table = np.empty((rows, 3, instances.count + constants.shape[1]), dtype=np.complex128)
            table[:, :, : instances.count] = _POINTS[None, :, : instances.count]
            table[:, :, instances.count :] = constants[:, None, :]
            # (rows, 3 points, columns) -> (rows * 3, columns), and back
            found = _values(instances.expression, table.reshape(3 * rows, -1))
            if _any_of(_keys(np.broadcast_to(found, 3 * rows).reshape(rows, 3)), self.keys):
                return True
        return False


def _any_of(numbers: IntArray, keys: IntArray) -> bool:
    if not len(keys):
        return False
    places = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return bool((keys[places] == numbers).any())


class Excluded:
    """Laws that must not be trained on.

    Parameters
    ----------
    laws
        Their formulas. Those of at most `SHORT` tokens, with or without the constant in front, are
        counted and let through.

    Attributes
    ----------
    short, short_but_for_factor, long
        How many laws were let through as they are, let through for what remains without the
        constant in front, and excluded.
    """

    def __init__(self, laws: Iterable[Expression]) -> None:
        self.short = self.short_but_for_factor = self.long = 0
        self._answers: dict[Expression, bool] = {}
        keys: list[IntArray] = []
        groups: dict[tuple[int, frozenset[str], bool], list[Expression]] = {}
        unsigned: dict[tuple[int, frozenset[str]], list[Expression]] = {}
        for law in laws:
            if len(to_prefix(law)) <= SHORT:
                self.short += 1
            elif (
                len(terms(law)) == 1
                and len(to_prefix(without_linear_coefficients(law))) <= SHORT
                and len(terms(without_linear_coefficients(law))) == 1
            ):
                self.short_but_for_factor += 1
            else:
                self.long += 1
                keys.append(signatures(law))
                form = without_constants(law)
                # Without its constants exp(-2*u) + exp(-3*u) is exp(-u); that must not refuse exp(C*u).
                merged = len(terms(form)) == 1 < len(terms(without_linear_coefficients(law)))
                groups.setdefault((*group_of(form), merged), []).append(form)
                if not merged and _keeps_its_form(law):
                    keys.append(signatures(without_signs(law)))
                    unsigned.setdefault(group_of(form), []).append(without_signs(form))
        self._groups = {group: _Group(members) for group, members in groups.items()}
        self._unsigned = {group: _Group(members) for group, members in unsigned.items()}
        self._keys = np.unique(np.concatenate(keys)) if keys else np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def contains(self, expression: Expression) -> bool:
        """Whether the formula is an excluded law, for some values of its parameters."""
        law, _ = _renamed(expression)
        answer = self._answers.get(law)
        if answer is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            answer = self.contains_as_written(law) or self.contains_instance(law)
            self._answers[law] = answer
        return answer

    def contains_as_written(self, expression: Expression) -> bool:
        """Whether the formula is such a law, signs aside, with every parameter taken for a factor of 1."""
        found = [*key(expression), *key(without_signs(expression))]
        return _any_of(np.array(found, dtype=np.int64), self._keys)

    def contains_instance(self, expression: Expression) -> bool:
        """Whether the parameters can take other values that give an excluded law."""
        if not any(isinstance(node, Parameter) for node in walk(expression)):
            return False
        size, families = group_of(expression)
        kinds = [False, True] if len(terms(expression)) > 1 else [False]
        places = [(size, families, kind) for kind in kinds]
        groups = [self._groups[place] for place in places if place in self._groups]
        if groups:
            instances = instances_of(expression, _with_unit_numbers)
            if any(group.contains(instances) for group in groups):
                return True
        others = self._unsigned.get((size, families))
        return others is not None and others.contains(
            without_sign_roles(instances_of(expression, _unsigned_numbers))
        )
