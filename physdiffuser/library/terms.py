"""The parts of a library that physics uses most: power products, and functions of them.

Growth by size alone spends most of a library on sums of unlike things. Power products, and simple
functions of one power product (`exp(-a*b/c)`, `sqrt(1 - a**2/b**2)`, `1/(1 + a*b)`), are put in first.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from physdiffuser.arrays import IntArray
from physdiffuser.core.reduction import Exponents
from physdiffuser.library.expression_library import Library

_HALF, _ONE, _TWO = Fraction(1, 2), Fraction(1), Fraction(2)
# Search cost of an exponent: what is common is cheap.
EXPONENT_COSTS: dict[Fraction, int] = {
    _ONE: 1,
    -_ONE: 1,
    _TWO: 2,
    -_TWO: 2,
    _HALF: 2,
    -_HALF: 2,
    Fraction(3): 3,
    Fraction(-3): 3,
    Fraction(3, 2): 3,
    Fraction(-3, 2): 3,
    Fraction(4): 4,
    Fraction(-4): 4,
}


@cache
def power_products(features: int, limit: int) -> tuple[tuple[Exponents, ...], tuple[int, ...]]:
    """The cheapest power products of so many features, with their costs, at most `limit`.

    The cost of a product is the sum of its exponents' costs.
    """
    # products[c] holds the products of cost c over the features taken in so far.
    top = 12
    products: list[list[Exponents]] = [[] for _ in range(top + 1)]
    products[0].append(())
    for feature in range(features):
        longer: list[list[Exponents]] = [list(level) for level in products]
        for cost, level in enumerate(products):
            for exponent, price in EXPONENT_COSTS.items():
                # A full level stays as it is, which keeps tables of hundreds of columns quick.
                room = limit - len(longer[cost + price]) if cost + price <= top else 0
                if room > 0:
                    longer[cost + price].extend((*product, (feature, exponent)) for product in level[:room])
        products = longer
    # The square of a cheap product is nearly as cheap: (v/c)**2 is one idea, not two.
    prices = {product: cost for cost, level in enumerate(products) for product in level}
    cheaper: list[list[Exponents]] = [[] for _ in range(top + 1)]
    for cost, level in enumerate(products):
        for product in level:
            if len(product) > 1 and all(exponent.numerator % 2 == 0 for _, exponent in product):
                root = tuple((feature, exponent / 2) for feature, exponent in product)
                cheaper[min(cost, prices.get(root, cost) + 1)].append(product)
            else:
                cheaper[cost].append(product)
    found: list[Exponents] = []
    costs: list[int] = []
    for cost, level in enumerate(cheaper):
        if cost == 0:
            continue
        room = limit - len(found)
        if room <= 0:
            break
        found.extend(level[:room])
        costs.extend([cost] * min(room, len(level)))
    return tuple(found), tuple(costs)


# Powers of one feature to another are made of so many features: there are more than their squares.
MAX_OF_POWERS = 5

# Functions of a power product, and of one plus or minus it.
_OF_PRODUCT = ("exp", "exp_neg", "sin", "cos", "log", "half_sin", "exp_less_one", "tanh", "tan")
_OF_SHIFTED = ("inv", "sqrt", "sq", "log")
_OF_FUNCTION = ("sq", "inv", "one_plus", "one_minus")


def fill(library: Library, limit: int) -> None:
    """Put power products and functions of them into a library, up to about `limit` entries."""
    # Each product brings some twenty functions of itself along.
    products, costs = power_products(len(library.features), max(len(library.features), limit // 15))
    before = library.size
    library.add_monomials(products, costs)
    monomials = np.concatenate([np.arange(len(library.features)), np.arange(before, library.size)])
    # Sums and differences of columns, and of equal powers of them: T**4 - T0**4, 1/n**2 - 1/m**2.
    features = np.arange(len(library.features))
    library.apply_pairs(("add", "sub"), features)
    powers = features
    for step in ("sq", "sq", "inv"):
        before = library.size
        library.apply(step, features if step == "inv" else powers)
        powers = np.arange(before, library.size)
        library.apply_pairs(("add", "sub"), powers)
        if step == "inv":
            before = library.size
            library.apply("sq", powers)
            library.apply_pairs(("add", "sub"), np.arange(before, library.size))
    _powers_of_features(library, features)
    for name in ("one_plus", "one_minus"):
        before = library.size
        library.apply(name, monomials)
        shifted = np.arange(before, library.size)
        for outer in _OF_SHIFTED:
            start = library.size
            library.apply(outer, shifted)
            if outer == "sqrt":
                library.apply("inv", np.arange(start, library.size))
    for name in _OF_PRODUCT:
        if library.size >= limit:
            break
        before = library.size
        library.apply(name, monomials)
        functions = np.arange(before, library.size)
        for outer in _OF_FUNCTION:
            start = library.size
            library.apply(outer, functions)
            if outer in ("one_plus", "one_minus"):
                library.apply("inv", np.arange(start, library.size))


def _powers_of_features(library: Library, features: IntArray) -> None:
    """Interest and adiabats: `x**y`, `(1 + x)**y`, `x**(1 - y)`, one over each, and its distance from 1."""
    if not 2 <= len(features) <= MAX_OF_POWERS:
        return

    def beside(form: str) -> list[IntArray]:
        """Each feature, and what a form makes of it."""
        found = []
        for feature in features:
            before = library.size
            library.apply(form, features[[feature]])
            found.append(np.array([feature, *range(before, library.size)]))
        return found

    bases, exponents = beside("one_plus"), beside("one_minus")
    first = library.size
    for base, one in enumerate(bases):
        for exponent, other in enumerate(exponents):
            if base != exponent:
                library.add_powers(one, other)
    powers = np.arange(first, library.size)
    library.apply("inv", powers)
    library.apply("one_minus", powers)
