"""Whether a formula balances: units carried through the tree.

A fitted constant may carry any unit, so the answer for a subtree is one of

* a unit: what its columns and exact numbers make of it;
* `ANYTHING`: a free constant is a factor of it, and can supply whatever unit is asked for;
* `UNNAMED`: a column with a unit is raised to a fitted power; only a free constant can set that right;
* `IMPOSSIBLE`: a sum of different units, or a sine, logarithm or exponent that is not a pure number.

Each free constant is taken by itself, so the test is necessary and not sufficient: it never refuses a
formula that some choice of units for its constants would balance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from physdiffuser.expressions.definitions import expanded
from physdiffuser.expressions.operators import OPERATORS
from physdiffuser.expressions.printing.format import to_text
from physdiffuser.expressions.tree import Apply, Expression, Number, Symbol, Variable
from physdiffuser.units.unit import DIMENSIONLESS, Unit

_ONE: Final = 0  # the code of "no unit"; other units get 1, 2, ... as they are met
ANYTHING: Final = -1
UNNAMED: Final = -2
IMPOSSIBLE: Final = -3
_MEMORY = 200_000


class UnbalancedError(ValueError):
    """A formula that no choice of units for its free constants balances."""


class UnitChecker:
    """Checks many formulas over the same columns.

    Units are numbered as they are met and their products remembered, and so are subtrees: a candidate
    costs a few microseconds.

    Parameters
    ----------
    units
        One per column.
    constants
        Units of named constants; `pi` has none, and a name that is missing is as free as a fitted one.
    """

    def __init__(
        self,
        units: Sequence[Unit],
        target: Unit,
        constants: Mapping[str, Unit] | None = None,
    ) -> None:
        self._codes: dict[Unit, int] = {DIMENSIONLESS: _ONE}
        self._units: list[Unit] = [DIMENSIONLESS]
        self._products: dict[tuple[int, int], int] = {}
        self._powers: dict[tuple[int, Fraction | int], int] = {}
        self._columns = [self._code_of(unit) for unit in units]
        self._target = self._code_of(target)
        named = {"pi": DIMENSIONLESS, **(constants or {})}
        self._named = {name: self._code_of(unit) for name, unit in named.items()}
        self._seen: dict[Expression, int] = {}

    def balances(self, expression: Expression) -> bool:
        """Whether the formula can have the target's unit."""
        code = self.code(expression)
        return code == self._target or code == ANYTHING

    def unit_of(self, expression: Expression, names: Sequence[str] | None = None) -> Unit | None:
        """The formula's unit, or None where a free constant decides it.

        Raises
        ------
        UnbalancedError
            Naming the smallest part that does not balance, with the columns' `names` if given.
        """
        code = self.code(expression)
        if code >= 0:
            return self._units[code]
        if code == ANYTHING:
            return None
        raise UnbalancedError(self._explain(expression, names))

    def code(self, expression: Expression) -> int:
        """The number of the formula's unit, or one of the negative codes above."""
        if len(self._seen) > _MEMORY:
            self._seen.clear()
        return self._code(expression)

    def unit(self, code: int) -> Unit:
        """The unit that a code of zero or more stands for."""
        return self._units[code]

    def _code_of(self, unit: Unit) -> int:
        code = self._codes.get(unit)
        if code is None:
            code = self._codes[unit] = len(self._units)
            self._units.append(unit)
        return code

    def _code(self, node: Expression) -> int:
        # The order of the tests is that of how often the kinds occur.
        if isinstance(node, Variable):
            return self._columns[node.index]
        if isinstance(node, Apply):
            code = self._seen.get(node)
            if code is None:
                code = self._seen[node] = self._apply(node)
            return code
        if isinstance(node, Number):
            if isinstance(node.value, float):
                return ANYTHING
            return _ONE if node.value else ANYTHING  # 0 can be added to anything
        if isinstance(node, Symbol):
            return self._named.get(node.name, ANYTHING)
        return ANYTHING

    def _apply(self, node: Apply) -> int:
        operator, arguments = node.operator, node.arguments
        if operator == "pow":
            return self._pow(arguments[0], arguments[1])
        codes = [self._code(argument) for argument in arguments]
        if IMPOSSIBLE in codes:
            return IMPOSSIBLE
        if operator == "mul":
            return self._product(codes[0], codes[1])
        if operator == "div":
            return self._product(codes[0], self._power(codes[1], -1))
        spec = OPERATORS[operator]
        if spec.definition is not None:
            return self._code(expanded(node))
        degree = spec.degree
        if degree is None:
            return _ONE if all(code in (_ONE, ANYTHING) for code in codes) else IMPOSSIBLE
        shared = codes[0]
        for code in codes[1:]:
            if shared == ANYTHING:
                shared = code
            elif code not in (shared, ANYTHING):
                return IMPOSSIBLE
        return shared if degree == 1 else self._power(shared, degree)

    def _pow(self, base: Expression, exponent: Expression) -> int:
        code, unit = self._code(base), self._code(exponent)
        if code == IMPOSSIBLE or unit not in (_ONE, ANYTHING):
            return IMPOSSIBLE
        value = exact_value(exponent)
        if value is not None:
            return self._power(code, value)
        if code == _ONE:
            return _ONE
        if has_column(exponent):
            return _ONE if code == ANYTHING else IMPOSSIBLE
        return ANYTHING if code == ANYTHING else UNNAMED

    def _product(self, left: int, right: int) -> int:
        if left < 0 or right < 0:
            return ANYTHING if ANYTHING in (left, right) else UNNAMED
        if left == _ONE:
            return right
        if right == _ONE:
            return left
        code = self._products.get((left, right))
        if code is None:
            code = self._products[left, right] = self._code_of(self._units[left] * self._units[right])
        return code

    def _power(self, base: int, exponent: Fraction | int) -> int:
        if base <= 0:
            return base
        code = self._powers.get((base, exponent))
        if code is None:
            code = self._powers[base, exponent] = self._code_of(self._units[base] ** exponent)
        return code

    def _explain(self, node: Expression, names: Sequence[str] | None) -> str:
        while isinstance(node, Apply):
            worse = [argument for argument in node.arguments if self._code(argument) == IMPOSSIBLE]
            if not worse:
                break
            node = worse[0]
        text = to_text(node, names, digits=4)
        if self._code(node) == UNNAMED or not isinstance(node, Apply):
            return f"{text}: a power that is not exact leaves a unit without a name"
        parts = [
            f"{to_text(argument, names, digits=4)} in {self._say(argument)}" for argument in node.arguments
        ]
        return f"{text} does not balance: {' and '.join(parts)}"

    def _say(self, node: Expression) -> str:
        code = self._code(node)
        return (
            str(self._units[code]) if code >= 0 else "any unit" if code == ANYTHING else "no unit with a name"
        )


def exact_value(expression: Expression) -> Fraction | None:
    """The value of a subtree of exact numbers such as `-3/2`; None if it is anything else."""
    match expression:
        case Number(value=value) if not isinstance(value, float):
            return Fraction(value)
        case Apply(operator="neg", arguments=(argument,)):
            inner = exact_value(argument)
            return None if inner is None else -inner
        case Apply(operator="add" | "sub" | "mul" | "div" as operator, arguments=(left, right)):
            first, second = exact_value(left), exact_value(right)
            if first is None or second is None:
                return None
            match operator:
                case "add":
                    return first + second
                case "sub":
                    return first - second
                case "mul":
                    return first * second
                case _:
                    return first / second if second else None
    return None


def has_column(expression: Expression) -> bool:
    """Whether a column occurs."""
    if isinstance(expression, Apply):
        return any(has_column(argument) for argument in expression.arguments)
    return isinstance(expression, Variable)


@lru_cache(maxsize=16)
def _checker(units: tuple[Unit, ...], target: Unit, constants: tuple[tuple[str, Unit], ...]) -> UnitChecker:
    return UnitChecker(units, target, dict(constants))


def balances(
    expression: Expression,
    units: tuple[Unit, ...],
    target: Unit,
    constants: Mapping[str, Unit] | None = None,
) -> bool:
    """Whether a formula over columns of these units can have the target's unit.

    For many formulas over the same columns, make a `UnitChecker` and keep it.
    """
    return _checker(units, target, tuple(sorted((constants or {}).items(), key=_name))).balances(expression)


def unit_of(
    expression: Expression,
    units: tuple[Unit, ...],
    constants: Mapping[str, Unit] | None = None,
    names: Sequence[str] | None = None,
) -> Unit | None:
    """Unit of a formula, None where a free constant decides it.

    Raises
    ------
    UnbalancedError
        Naming the smallest part that does not balance.

    Examples
    --------
    >>> from physdiffuser.expressions import parse
    >>> m, s = Unit.parse("m"), Unit.parse("s")
    >>> str(unit_of(parse("2*x/t**2", ["x", "t"]), (m, s)))
    'm/s**2'
    """
    checker = _checker(units, DIMENSIONLESS, tuple(sorted((constants or {}).items(), key=_name)))
    return checker.unit_of(expression, names)


def _name(item: tuple[str, Unit]) -> str:
    return item[0]
