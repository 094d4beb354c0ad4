"""Pairs of formulas that are equal, and pairs that are nearly so, made from templates.

A template is a formula with the slots A, B and C; each filling puts variables or short formulas in
them. The ranges keep every formula of a pair defined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from physdiffuser.expressions import evaluate, parse

NAMES = ("u", "w", "x", "y", "z")
# u > w always; the others are of the size of one.
RANGES = ((3.0, 9.0), (1.0, 2.0), (0.5, 1.4), (0.6, 1.3), (0.2, 0.9))


@dataclass(frozen=True)
class Pair:
    """Two formulas of the variables in NAMES."""

    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} ~ {self.right}"


# Slots may be anything positive, A > B.
_ALGEBRA = """
sqrt(A**2) = A
sqrt((B - A)**2) = A - B
abs(B - A) = A - B
A/sqrt(A**2 - B**2) = 1/sqrt(1 - B**2/A**2)
C/sqrt(1 - B**2/A**2) = C*A/sqrt((A - B)*(A + B))
sqrt(A**2 - B**2) = sqrt(A - B)*sqrt(A + B)
sqrt((A - B)/(A + B)) = (A - B)/sqrt(A**2 - B**2)
(1 + B/A)/sqrt(1 - B**2/A**2) = sqrt((A + B)/(A - B))
sqrt(A**2*C**2 + B**2*C**4) = C*sqrt(A**2 + (B*C)**2)
sqrt(A**4 - B**4) = sqrt(A**2 - B**2)*sqrt(A**2 + B**2)
sqrt(A**2 + 2*A*B + B**2) = A + B
sqrt(A**2*B - 2*A*B**2 + B**3) = (A - B)*sqrt(B)
(A - B)**2 + 4*A*B = (A + B)**2
(A + B)*(A - B)*(A**2 + B**2) = A**4 - B**4
(A**3 - B**3)/(A - B) = A**2 + A*B + B**2
1/(1/A + 1/B) = A*B/(A + B)
1/(1/A + C/B) = A*B/(B + A*C)
A/(1 + A/(C*B**2)*(1 - C)) = A*B**2*C/(C*B**2 + A - A*C)
(A + B)/(1 + A*B/C**2) = C**2*(A + B)/(C**2 + A*B)
C*(1/B - 1/A) = C*(A - B)/(A*B)
A*C - B*C + (A - B)*B = (A - B)*(B + C)
sqrt(sqrt(A)) = A**0.25
(A**3*B**3)**(1/3) = A*B
(A*B)**1.5/sqrt(A) = A*B*sqrt(B)
sqrt(3 + 2*sqrt(2))*A = A + sqrt(2)*A
sqrt(A + 2*sqrt(A*B) + B) = sqrt(A) + sqrt(B)
"""
_LOGARITHMS = """
log(A**2*B/C) = 2*log(A) + log(B) - log(C)
log(A**2 - B**2) = log(A - B) + log(A + B)
log(sqrt(A/B)) = log(A)/2 - log(B)/2
C*log(1 + B/A) = C*log(A + B) - C*log(A)
exp(C*log(A)) = A**C
A**(B + 2) = A**2*A**B
exp(A)*exp(-B) = exp(A - B)
exp(log(A) + B) = A*exp(B)
exp(log(A)/2) = sqrt(A)
8**C = 2**(3*C)
0.5 + 0.5/tanh(log(A/B)) = A**2/(A**2 - B**2)
cosh(log(A)) = (A + 1/A)/2
sinh(log(A/B)) = (A**2 - B**2)/(2*A*B)
log(exp(C) + 1) - C = log(1 + exp(-C))
"""
# Slots are angles or exponents: A of any size, C below one.
_HYPERBOLIC = """
tanh(C) = (exp(2*C) - 1)/(exp(2*C) + 1)
tanh(C) = (exp(C) - exp(-C))/(exp(C) + exp(-C))
A/(exp(C) + exp(-C)) = A/(2*cosh(C))
A/(exp(C) - 1) = A*exp(-C)/(1 - exp(-C))
1/(exp(C) - 1) = (1/tanh(C/2) - 1)/2
cosh(C)**2 - sinh(C)**2 = 1
sinh(2*C) = 2*sinh(C)*cosh(C)
cosh(2*C) = 1 + 2*sinh(C)**2
tanh(C)*cosh(C) = sinh(C)
sqrt((exp(C) - exp(-C))**2 + 4) = exp(C) + exp(-C)
sqrt(cosh(C)**2 - 1) = sinh(C)
(1 + tanh(C))/2 = 1/(1 + exp(-2*C))
"""
_TRIGONOMETRIC = """
A*sin(C)**2 + A*cos(C)**2 = A
A*sin(C/2)**2 = A*(1 - cos(C))/2
4*A*sin(C/2)**2 = 2*A*(1 - cos(C))
tan(C/2) = sin(C)/(1 + cos(C))
tan(C/2) = (1 - cos(C))/sin(C)
sqrt((1 - cos(C))/2) = sin(C/2)
sqrt((1 + cos(C))/2) = cos(C/2)
sqrt(1 - cos(C)**2) = sin(C)
sqrt(1 + tan(C/2)**2) = 1/cos(C/2)
A*sin(2*C) = 2*A*sin(C)*cos(C)
cos(2*C) = 1 - 2*sin(C)**2
sin(3*C) = 3*sin(C) - 4*sin(C)**3
sin(A + C) = sin(A)*cos(C) + cos(A)*sin(C)
cos(A - C) = cos(A)*cos(C) + sin(A)*sin(C)
sin(C + pi/3) = sin(C)/2 + sqrt(3)/2*cos(C)
sin(pi/2 - C) = cos(C)
cos(C + pi) = -cos(C)
A**2 + B**2 - 2*A*B*cos(C) = (A - B)**2 + 4*A*B*sin(C/2)**2
sin(A)*cos(C) = (sin(A + C) + sin(A - C))/2
cos(C)/(1 - sin(C)) = (1 + sin(C))/cos(C)
A*cos(C)**4 = A*(3 + 4*cos(2*C) + cos(4*C))/8
cos(asin(C/2)) = sqrt(1 - C**2/4)
asin(C/2) + acos(C/2) = pi/2
atan(C) + atan(1/C) = pi/2
2*atan(C/(1 + sqrt(1 + C**2))) = atan(C)
"""

_FILLINGS: tuple[tuple[str, dict[str, str]], ...] = (
    ("first", {"A": "u", "B": "w", "C": "x"}),
    ("second", {"A": "(u*x)", "B": "(w/2)", "C": "(x*z)"}),
    ("third", {"A": "(u + y)", "B": "w", "C": "(z*y)"}),
)


def _fill(text: str, filling: dict[str, str]) -> str:
    return "".join(filling.get(letter, letter) for letter in text)


def equal_pairs() -> Iterator[Pair]:
    """More than 200 pairs of equal formulas."""
    for group in (_ALGEBRA, _LOGARITHMS, _HYPERBOLIC, _TRIGONOMETRIC):
        for line in group.strip().splitlines():
            left, right = line.split(" = ")
            for _, filling in _FILLINGS:
                yield Pair(_fill(left, filling), _fill(right, filling))


def _value(law: str) -> float:
    point = np.array([[4.0, 1.7, 0.9, 1.1, 0.35]])
    return float(evaluate(parse(law, NAMES), point)[0])


def _put(law: str, name: str, new: str) -> str:
    return re.sub(rf"\b{name}\b", new, law)


_LAWS = """
u/(4*pi*w**3*x*y**2)
u/sqrt(1 - w**2/u**2)
x*exp(-y*z/(u*w))
u*sin(x*z)*cos(y)
sqrt(u**2 + z*w**2 - 2*u*w*cos(x - y))
x/(exp(y*z/(2*pi*w)) - 1)
2*pi*sqrt(u**3/(w*x))
(u*x + w*y)/(u + w)
x*(1 + z*cos(y))/sqrt(u - w)
u*log(w/x)*z
x*tanh(y*z/w) + u
asin(z*sin(x))*w
"""


def near_misses() -> Iterator[Pair]:
    """More than 200 pairs that differ: by 1e-4 in a constant, a swapped variable, a wrong exponent."""
    for law in _LAWS.strip().splitlines():
        used = [name for name in NAMES if re.search(rf"\b{name}\b", law)]
        yield Pair(f"1.0001*({law})", law)
        yield Pair(f"0.9999*({law})", law)
        yield Pair(f"{law} + 0.0001", law)
        for name in used:
            yield Pair(_put(law, name, f"({name}*1.0001)"), law)
            # As the base of a power only the brackets keep the meaning.
            yield Pair(_put(law, name, f"({name}**1.0001)"), law)
        for name in used:
            for other in used:
                if other > name:
                    swapped = _put(_put(_put(law, name, "swap"), other, name), "swap", other)
                    # Some laws are symmetric in two of their variables.
                    if abs(_value(swapped) - _value(law)) > 1e-6 * abs(_value(law)):
                        yield Pair(swapped, law)
        for old, new in (
            ("**2", "**3"),
            ("2*", "3*"),
            ("sqrt", "1*"),
            ("sin", "cos"),
            ("exp(-", "exp("),
            ("1 -", "1 +"),
        ):
            if old in law:
                yield Pair(law.replace(old, new, 1), law)
