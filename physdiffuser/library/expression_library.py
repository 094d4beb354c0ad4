"""The library: many distinct small expressions, with their values on a few rows.

Expressions are kept as recipes (an operator code and the positions of its arguments), because a
tree for each of a million entries would cost more than all their values. Trees are built only for
the entries that are looked at.

Entries are distinct by value up to sign: a formula that takes the same values on the probe rows as
an earlier, cheaper one is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, IntArray, checked
from physdiffuser.core.reduction import Exponents, monomial
from physdiffuser.expressions import Expression
from physdiffuser.library.forms import CODE, FORMS, LESS_ONE, ONE_MINUS, POWER, Form

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Bool, Float64, Int64, UInt64

LEAF, MONOMIAL = -1, -2

# Entries are computed in pieces of this many, so that a piece stays a few megabytes.
PIECE = 20_000


# What a transcendental function of another one costs more: `exp(sin(x))` is rare beside `x*sin(y)`.
NESTED = 2
# Sizes that are not looked at: their squares, or what divides by them, may be no numbers.
LARGEST = 1e140
# The column of costs in a recipe, and the cost of what is not to be used.
COST, NEVER = 3, 1_000


class Library:
    """Distinct expressions over some features, growing on demand.

    Parameters
    ----------
    inputs
        Shape (probes, features): the rows on which entries are distinguished and looked up.
    features
        Trees of the features: columns, or groups of columns.
    """

    @checked
    def __init__(
        self,
        inputs: Float64[np.ndarray, "probes features"],
        features: tuple[Expression, ...],
        operators: frozenset[str],
    ) -> None:
        self.inputs = inputs
        self.features = features
        self.forms = {form.name: form for form in FORMS[:-2] if form.needs <= operators}
        self.has_powers = POWER.needs <= operators
        # Code, arguments, cost, and whether a transcendental function is in it.
        # Buffers that double when full; the first `size` rows are in use.
        self._values = np.empty((1024, len(inputs)))
        self._recipes = np.empty((1024, 5), np.int64)
        self._keys: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self._trees: dict[int, Expression] = {}
        self.exponents: list[Exponents] = []
        self.size = 0
        self.level = 1
        recipe = np.array([[LEAF, feature, 0, 1, 0] for feature in range(len(features))], np.int64).reshape(
            -1, 5
        )
        # Entry i is feature i, whatever its values: one that says nothing, or whose squares are no
        # numbers, is there as zeros, and nothing is made of it.
        leaves = np.ascontiguousarray(inputs.T)
        good = _of_use(leaves)
        recipe[~good, COST] = NEVER
        self._store(np.where(good[:, None], leaves, 0.0), recipe)
        self._keys = np.unique(value_keys(leaves[good]))

    # -- reading -------------------------------------------------------------------------------

    @property
    @checked
    def values(self) -> Float64[np.ndarray, "entries probes"]:
        """Shape (entries, probes); a view that holds until the library grows."""
        return self._values[: self.size]

    @property
    @checked
    def costs(self) -> Int64[np.ndarray, " entries"]:
        """Shape (entries,): cost of each entry."""
        return self._recipes[: self.size, COST]

    @property
    @checked
    def functions(self) -> Bool[np.ndarray, " entries"]:
        """Shape (entries,): whether an entry holds a transcendental function."""
        return self._recipes[: self.size, 4] > 0

    def expression(self, entry: int) -> Expression:
        """The tree of an entry."""
        known = self._trees.get(entry)
        if known is not None:
            return known
        code, left, right = (int(part) for part in self._recipes[entry, :3])
        tree: Expression
        if code == LEAF:
            tree = self.features[left]
        elif code == MONOMIAL:
            tree = monomial(self.exponents[left], self.features)
        else:
            form = FORMS[code]
            arguments = [self.expression(left)] + ([self.expression(right)] if form.arity == 2 else [])
            tree = form.build(*arguments)
        self._trees[entry] = tree
        return tree

    # -- growing -------------------------------------------------------------------------------

    def _append(self, values: FloatArray, recipes: IntArray) -> int:
        """Keep the entries that are finite, vary, and are new; returns how many."""
        if not len(values):
            return 0
        good = _of_use(values)
        values, recipes = values[good], recipes[good]
        keys = value_keys(values)
        keys, first = np.unique(keys, return_index=True)
        if self._keys.size:
            position = np.searchsorted(self._keys, keys)
            position[position == self._keys.size] = 0
            new = self._keys[position] != keys
            keys, first = keys[new], first[new]
        if not keys.size:
            return 0
        first.sort()
        self._store(values[first], recipes[first])
        self._keys = np.sort(np.concatenate([self._keys, keys]))
        return int(first.size)

    def _store(self, values: FloatArray, recipes: IntArray) -> None:
        size = self.size + len(values)
        if size > len(self._values):
            room = max(size, 2 * len(self._values))
            for name in ("_values", "_recipes"):
                old = getattr(self, name)
                new = np.empty((room, old.shape[1]), old.dtype)
                new[: self.size] = old[: self.size]
                setattr(self, name, new)
        self._values[self.size : size] = values
        self._recipes[self.size : size] = recipes
        self.size = size

    def _of_cost(
        self,
        cost: int,
    ) -> IntArray:
        return np.flatnonzero(self.costs == cost)

    def _cheap_enough(self, form: Form, level: int) -> IntArray:
        """The entries of which a one-argument form has the cost `level`."""
        nested = NESTED * self._recipes[: self.size, 4] * form.transcendental
        return np.flatnonzero(self.costs + nested == level - form.cost)

    @checked
    def apply(self, form: str, entries: Int64[np.ndarray, " entries"]) -> int:
        """Add `form(entry)` for the given entries; returns how many were new."""
        chosen = self.forms.get(form)
        entries = entries[self.costs[entries] < NEVER]
        if chosen is None or not entries.size:
            return 0
        with np.errstate(all="ignore"):
            made = chosen.evaluate(self._values[entries])
        codes = np.full(entries.size, CODE[form])
        if chosen is ONE_MINUS:
            negative = (made < 0).all(axis=1)
            made[negative] = -made[negative]
            codes[negative] = CODE[LESS_ONE.name]
        nested = self._recipes[entries, 4] & chosen.transcendental
        recipe = np.stack(
            [
                codes,
                entries,
                np.zeros_like(entries),
                self._recipes[entries, COST] + chosen.cost + NESTED * nested,
                self._recipes[entries, 4] | chosen.transcendental,
            ],
            axis=1,
        )
        return self._append(made, recipe)

    @checked
    def apply_pairs(self, forms: tuple[str, ...], entries: Int64[np.ndarray, " entries"]) -> None:
        """Add each two-argument form of every pair of the given entries."""
        entries = entries[self.costs[entries] < NEVER]
        for name in forms:
            form = self.forms.get(name)
            if form is not None and entries.size > 1:
                level = int(self.costs[entries].max()) * 2 + form.cost
                for _ in self._combine(form, entries, entries, level, self.size + entries.size**2 + 1):
                    continue

    @checked
    def add_powers(
        self, bases: Int64[np.ndarray, " bases"], exponents: Int64[np.ndarray, " exponents"]
    ) -> None:
        """Add each of some entries to the power of each of others, where that is a number on every row."""
        if self.has_powers and bases.size and exponents.size:
            costs = self.costs
            level = int(costs[bases].min() + costs[exponents].min()) + POWER.cost
            for _ in self._combine(
                POWER, bases, exponents, level, self.size + bases.size * exponents.size + 1
            ):
                continue

    def add_monomials(self, exponents: Sequence[Exponents], costs: Sequence[int]) -> int:
        """Add power products; `exponents` lists (feature, exponent) pairs."""
        with np.errstate(all="ignore"):
            logs = np.log(np.abs(self.inputs))
            signs = np.sign(self.inputs)
        made = np.empty((len(exponents), len(self.inputs)))
        for row, product in enumerate(exponents):
            value = np.zeros(len(self.inputs))
            sign = np.ones(len(self.inputs))
            for column, exponent in product:
                value += float(exponent) * logs[:, column]
                if exponent.denominator != 1:
                    sign = np.where(signs[:, column] < 0, np.nan, sign)
                elif exponent.numerator % 2:
                    sign = sign * signs[:, column]
            with np.errstate(all="ignore"):
                made[row] = np.exp(value) * sign
        first = len(self.exponents)
        self.exponents.extend(exponents)
        recipe = np.stack(
            [
                np.full(len(exponents), MONOMIAL),
                np.arange(first, first + len(exponents)),
                np.zeros(len(exponents), np.int64),
                np.array(costs, np.int64),
                np.zeros(len(exponents), np.int64),
            ],
            axis=1,
        )
        return self._append(made, recipe.astype(np.int64))

    def grow(self, limit: int) -> Iterator[int]:
        """Enumerate by cost until the library holds `limit` entries.

        Yields the size after each piece of work. Can be called again with a larger limit; the level
        that was cut off is then enumerated again, and what is known is dropped by value.
        """
        while self.size < limit:
            level = self.level + 1
            for form in self.forms.values():
                if form.arity == 1:
                    self.apply(form.name, self._cheap_enough(form, level))
            yield self.size
            for left_cost in range(1, level - 1):
                right_cost = level - 1 - left_cost
                left, right = self._of_cost(left_cost), self._of_cost(right_cost)
                for form in self.forms.values():
                    if form.arity != 2 or (form.symmetric and left_cost > right_cost):
                        continue
                    for _ in self._combine(form, left, right, level, limit):
                        yield self.size
                    if self.size >= limit:
                        return
            self.level = level
            if level > 30:
                return

    def _combine(self, form: Form, left: IntArray, right: IntArray, level: int, limit: int) -> Iterator[int]:
        rows = max(1, PIECE // max(1, right.size))
        for start in range(0, left.size, rows):
            some = left[start : start + rows]
            first, second = np.repeat(some, right.size), np.tile(right, some.size)
            if form.symmetric:
                keep = first <= second if form.name == "mul" else first < second
                first, second = first[keep], second[keep]
            if not first.size:
                continue
            values = self._values
            with np.errstate(all="ignore"):
                made = form.evaluate(values[first], values[second])
            if form.name == "sub":
                # Of a - b and b - a keep the one that can go under a root or a logarithm.
                swap = (made < 0).all(axis=1)
                made[swap] = -made[swap]
                first[swap], second[swap] = second[swap], first[swap]
            code, cost = np.full(first.size, CODE[form.name]), np.full(first.size, level)
            functions = self._recipes[first, 4] | self._recipes[second, 4]
            self._append(made, np.stack([code, first, second, cost, functions], axis=1))
            yield self.size
            if self.size >= limit:
                return


def _of_use(values: FloatArray) -> BoolArray:
    """Which rows of values are finite, vary, and are of a size that has a square."""
    if not values.size:
        return np.zeros(len(values), np.bool_)
    with np.errstate(all="ignore"):
        size = np.abs(values).max(axis=1)
        varies = np.ptp(values, axis=1) > 1e-7 * size
    return np.asarray(np.isfinite(size) & (size < LARGEST) & (size > 1.0 / LARGEST) & varies)


@checked
def value_keys(values: Float64[np.ndarray, "rows probes"]) -> UInt64[np.ndarray, " rows"]:
    """One 64-bit key per row, equal for rows that agree to about 9 digits up to sign."""
    probes = min(values.shape[1], 5)
    key = np.zeros(len(values), np.uint64)
    sign = np.where(values[:, 0] < 0, -1.0, 1.0)
    with np.errstate(over="ignore"):
        for probe in range(probes):
            bits = np.ascontiguousarray(values[:, probe] * sign + 0.0).view(np.uint64)
            rounded = (bits + np.uint64(1 << 20)) >> np.uint64(21)
            key = (key ^ rounded) * np.uint64(0x9E3779B97F4A7C15)
            key ^= key >> np.uint64(29)
    return key
