"""Reductions read off formulas that describe the rows well, and are not the law yet.

`m*exp(0.57*v**2/c**2)` is wrong where the law is `m/sqrt(1 - v**2/c**2)`, but right in that the law is m
times a function of v/c. Under noise that shows neither in slopes nor in a polynomial of all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import gcd, lcm

from physdiffuser.core.analysis import Level
from physdiffuser.core.archive import Archive
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Apply, Expression, Number, Variable, to_text
from physdiffuser.expressions.tree import fitted_constants, variables
from physdiffuser.noise.noise_floor import POLICY as NOISE_FLOOR
from physdiffuser.noise.noise_floor import levels

# Formulas looked at, the shortest descriptions first, and reductions worked on before the next look.
FORMULAS = 10
AT_ONCE = 2
# A reduction with more features than these is no simpler than the table.
FEATURES = 2

_Powers = dict[Expression, Fraction]


class ProposedReductions:
    """The reductions that a run's best formulas suggest, each once.

    Parameters
    ----------
    known
        How well polynomials in the features of the reductions that are known predict rows.
    """

    def __init__(self, problem: Problem, known: Iterable[Level]) -> None:
        self.problem = problem
        self._least = min((level.error for level in known), default=float("inf"))
        self._seen: set[Reduction] = set()

    def take(self, archive: Archive, every: Iterable[Reduction]) -> list[Reduction]:
        """New ones that predict rows hardly worse than the best does; at most `AT_ONCE`."""
        entries = sorted(
            {*archive.front(), *archive.near()},
            key=lambda entry: (archive.length(entry), to_text(entry.candidate.expression)),
        )
        self._seen.update(every)
        found: list[Reduction] = []
        for reduction in proposed_reductions(entry.candidate.expression for entry in entries[:FORMULAS]):
            if reduction in self._seen:
                continue
            self._seen.add(reduction)
            for level in levels(self.problem, [reduction]):
                self._least = min(self._least, level.error)
                if level.error < NOISE_FLOOR.as_good * self._least:
                    found.append(reduction)
            if len(found) == AT_ONCE:
                break
        return found


def proposed_reductions(formulas: Iterable[Expression]) -> Iterator[Reduction]:
    """Reductions that formulas suggest: what depends on one or two groups of columns may be another function.

    Each factor of a formula that depends on one group is taken out by itself, then all that are more than
    powers of columns together.
    """
    for formula in formulas:
        factors = _factors(formula)
        rest = [pair for pair in factors if not _plain(pair[0])]
        for one in rest:
            others = [pair for pair in factors if pair is not one]
            groups = _groups([one[0]])
            if len(groups) == 1 and not any(_in_the_way(tree, groups[0]) for tree, _ in others):
                yield Reduction.of(others, groups)
        groups = _groups(tree for tree, _ in rest)
        if 1 <= len(groups) <= FEATURES:
            yield Reduction.of((pair for pair in factors if pair not in rest), groups)


def _in_the_way(factor: Expression, group: Expression) -> bool:
    """Whether a factor had to be fitted again, or is itself a function of nothing but the group."""
    return bool(fitted_constants(factor)) or (not _plain(factor) and variables(factor) <= variables(group))


def _factors(tree: Expression, exponent: Fraction = Fraction(1)) -> list[tuple[Expression, Fraction]]:
    """A formula as a product of powers, numbers left out."""
    match tree:
        case Number():
            return []
        case Apply(operator="mul", arguments=(left, right)):
            return _factors(left, exponent) + _factors(right, exponent)
        case Apply(operator="div", arguments=(above, below)):
            return _factors(above, exponent) + _factors(below, -exponent)
        case Apply(operator="neg", arguments=(inner,)):
            return _factors(inner, exponent)
        case Apply(operator="sqrt", arguments=(inner,)):
            return _factors(inner, exponent / 2)
        case Apply(operator="pow", arguments=(base, Number(value=value))) if not isinstance(value, float):
            return _factors(base, exponent * Fraction(value))
    return [(tree, exponent)] if variables(tree) else []


def _plain(tree: Expression) -> bool:
    """A column, or a sum or difference of two: what may stand for one."""
    match tree:
        case Variable():
            return True
        case Apply(operator="add" | "sub", arguments=(Variable(), Variable())):
            return True
    return False


def _groups(trees: Iterable[Expression]) -> tuple[Expression, ...]:
    """The groups of columns that some formulas depend on; single columns where there would be more groups."""
    found: dict[tuple[tuple[Expression, Fraction], ...], None] = {}
    for tree in trees:
        for powers in _leaves(tree):
            found[_direction(powers)] = None
    bases = dict.fromkeys(base for powers in found for base, _ in powers)
    if len(found) >= len(bases):
        return tuple(bases)
    return tuple(Reduction.of(powers, ()).factor() or base for powers in found for base, _ in powers[:1])


def _leaves(tree: Expression) -> Iterator[_Powers]:
    """The power products of columns that a formula is made of."""
    powers: _Powers = {}
    for base, exponent in _factors(tree):
        if _plain(base):
            powers[base] = powers.get(base, Fraction(0)) + exponent
        elif isinstance(base, Apply):
            for argument in base.arguments:
                yield from _leaves(argument)
    kept = {base: exponent for base, exponent in powers.items() if exponent}
    if kept:
        yield kept


def _direction(powers: _Powers) -> tuple[tuple[Expression, Fraction], ...]:
    """The power product whose powers a group's are: whole exponents without a common factor."""
    ordered = sorted(powers.items(), key=lambda pair: min(variables(pair[0])))
    scale = lcm(*(exponent.denominator for _, exponent in ordered))
    scale = scale if ordered[0][1] > 0 else -scale
    shared = gcd(*(int(exponent * scale) for _, exponent in ordered))
    return tuple((base, exponent * scale / shared) for base, exponent in ordered)
