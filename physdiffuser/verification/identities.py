"""Proof that a formula is zero, by sympy's polynomials. Runs in the worker process.

Both formulas are written as rational functions of generators that are independent of each other:

* the variables and pi,
* `exp(m)` for each monomial m of an exponent; sines and cosines are exponentials of `i*m`, so that
  sums, multiples and halves of angles need no rules,
* the logarithm and the root of each irreducible factor of what stands under it.

The difference is zero when its numerator is zero after `root**n = radicand`. Which branch a root
is on is decided by its value at sample points in the ranges of the variables: a sign that is not
the same at all of them is not resolved, and the difference is then not shown to be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import sympy

from physdiffuser.verification.independent_generators import IMAGINARY, PI, Generators, Undecided

DIGITS = 40
_CLOSE = mpmath.mpf(10) ** -25


class Reduction:
    """Writes sympy expressions as rational functions of generators."""

    def __init__(self, samples: Sequence[dict[Any, Any]], divisors: dict[Any, int]) -> None:
        self.generators = Generators(samples, divisors)
        self.seen: dict[Any, Any] = {}
        self.variables = frozenset(samples[0]) if samples else frozenset()

    def visit(self, node: Any) -> Any:
        """The rational function that an expression is."""
        known = self.seen.get(node)
        if known is None:
            known = self.seen[node] = self._visit(node)
        return known

    def _visit(self, node: Any) -> Any:
        if node.is_Rational:
            return node
        if node.is_Symbol:
            degree = self.generators.divisors.get(node, 1)
            # A variable whose root occurs is written as a power of that root.
            return node if degree == 1 else self._root_generator(node, degree) ** degree
        if node is sympy.pi:
            return PI
        if node is sympy.E:
            return self.exponential(sympy.Integer(1))
        if node.is_Add:
            return sympy.Add(*[self.visit(part) for part in node.args])
        if node.is_Mul:
            return sympy.Mul(*[self.visit(part) for part in node.args])
        if node.func is sympy.exp:
            return self.exponential(self.visit(node.args[0]))
        if node.is_Pow:
            return self._power(*node.as_base_exp())
        if node.is_Function or node.func is sympy.Abs:
            return self._function(node.func, self.visit(node.args[0]))
        raise Undecided

    def _power(self, base: Any, power: Any) -> Any:
        if base is sympy.E:
            return self.exponential(self.visit(power))
        below = self.visit(base)
        if power.is_Integer:
            if abs(power) > 60:
                raise Undecided
            return below**power
        if power.is_Rational:
            return self.root(below, power)
        return self.exponential(self.visit(power) * self.logarithm(below))

    def _function(self, function: Any, argument: Any) -> Any:
        half = sympy.Rational(1, 2)
        if function is sympy.log:
            return self.logarithm(argument)
        if function is sympy.Abs:
            return self.root(argument**2, half)
        if function in (sympy.sinh, sympy.cosh, sympy.tanh):
            up = self.exponential(argument)
            odd, even = up - 1 / up, up + 1 / up
            return {sympy.sinh: odd / 2, sympy.cosh: even / 2, sympy.tanh: odd / even}[function]
        if function in (sympy.sin, sympy.cos, sympy.tan):
            turn = self.exponential(IMAGINARY * argument)
            odd, even = (turn - 1 / turn) / IMAGINARY, turn + 1 / turn
            return {sympy.sin: odd / 2, sympy.cos: even / 2, sympy.tan: odd / even}[function]
        if function is sympy.acos:
            return PI / 2 - self._function(sympy.asin, argument)
        if function in (sympy.asin, sympy.atan):
            return self._arc(function, sympy.cancel(sympy.together(argument)))
        raise Undecided

    def _arc(self, function: Any, argument: Any) -> Any:
        apply = mpmath.asin if function is sympy.asin else mpmath.atan
        values = self.generators.evaluate(argument)
        sign = 1
        if argument.could_extract_minus_sign():
            # Both are odd.
            argument, values, sign = sympy.expand(-argument), [-value for value in values], -1
        name = "asin" if function is sympy.asin else "atan"
        return sign * self.generators.new(name, sympy.factor(argument), [apply(value) for value in values])

    # ---- exponentials ----

    def exponential(self, argument: Any) -> Any:
        """`exp` of a rational function: a product over the terms of its numerator."""
        top, bottom = sympy.fraction(sympy.cancel(sympy.together(argument)))
        result = sympy.Integer(1)
        for term in sympy.Add.make_args(sympy.expand(top)):
            coefficient, rest = (term / bottom).as_coeff_Mul()
            if not coefficient.is_Rational:
                raise Undecided
            # A number in the denominator belongs to the coefficient.
            scale, rest = sympy.factor_terms(rest).as_coeff_Mul()
            result *= self._exponential_term(coefficient * scale, sympy.cancel(rest))
        return result

    def _exponential_term(self, coefficient: Any, rest: Any) -> Any:
        if coefficient == 0:
            return sympy.Integer(1)
        scale, rest = rest.as_coeff_Mul()
        coefficient *= scale
        argument_of = self._inverted(coefficient, rest)
        if argument_of is not None:
            return argument_of
        generators = self.generators
        divisor = generators.divisors.get(rest, 1)
        denominator = int(coefficient.q)
        if divisor % denominator:
            # First pass: remember what the exponent must be divided by.
            generators.denominators[rest] = _lcm(generators.denominators.get(rest, 1), denominator)
            divisor = denominator
        values = [mpmath.exp(value / divisor) for value in generators.evaluate(rest)]
        base = generators.new("exp", (rest, divisor), values)
        return base ** int(coefficient * divisor)

    def _inverted(self, coefficient: Any, rest: Any) -> Any:
        """`exp(k*log(f))` and `exp(i*k*asin(u))` without the inner function, else None."""
        meaning = self.generators.meaning.get(rest)
        if meaning is not None and meaning[0] == "log":
            return self.root(meaning[1], coefficient) if coefficient.q > 1 else meaning[1] ** coefficient
        if coefficient.q == 1:
            inner = sympy.cancel(rest / IMAGINARY)
            meaning = self.generators.meaning.get(inner)
            sign = 1
            if meaning is None:
                meaning, sign = self.generators.meaning.get(sympy.cancel(-inner)), -1
            if meaning is not None and meaning[0] in ("asin", "atan"):
                value = meaning[1]
                half = sympy.Rational(1, 2)
                if meaning[0] == "asin":
                    turn = self.root(1 - value**2, half) + IMAGINARY * value
                else:
                    turn = (1 + IMAGINARY * value) / self.root(1 + value**2, half)
                return turn ** (sign * coefficient)
        if sympy.cancel(rest / IMAGINARY) == PI:
            angle = coefficient * sympy.pi
            cosine, sine = sympy.cos(angle), sympy.sin(angle)
            if not (cosine.has(sympy.cos, sympy.sin) or sine.has(sympy.cos, sympy.sin)):
                return self.visit(cosine) + IMAGINARY * self.visit(sine)
        return None

    # ---- logarithms and roots ----

    def factors(self, value: Any) -> tuple[Any, list[tuple[Any, int]]]:
        """A rational function as a number times powers of irreducible polynomials."""
        top, bottom = sympy.fraction(sympy.cancel(sympy.together(self.reduced(value))))
        number = sympy.Integer(1)
        found: list[tuple[Any, int]] = []
        for part, direction in ((top, 1), (bottom, -1)):
            # The square root of -1 is no number here but a generator, so the factors are over Q.
            scale, factors = sympy.factor_list(part)
            number *= scale**direction
            found += [(factor, power * direction) for factor, power in factors]
        return number, found

    def logarithm(self, value: Any) -> Any:
        """The logarithm of a positive value, as those of the sizes of its factors."""
        number, found = self.factors(value)
        result = sympy.Integer(0)
        if number == 0:
            raise Undecided
        for prime, power in sympy.factorrat(abs(number)).items():
            key = sympy.Integer(prime)
            if key != 1:
                result += power * self.generators.new(
                    "log", key, [mpmath.log(int(prime))] * self.generators.count
                )
        for factor, power in found:
            meaning = self.generators.meaning.get(factor)
            if meaning is not None and meaning[0] == "exp":
                exponent, divisor = meaning[1]
                if exponent.has(IMAGINARY):
                    continue
                result += power * exponent / divisor
                continue
            if meaning is not None and meaning[0] == "root":
                inner, degree = meaning[1]
                result += power * self.logarithm(inner) / degree
                continue
            if factor == IMAGINARY:
                continue
            sizes = [mpmath.log(abs(part)) for part in self.generators.evaluate(factor)]
            result += power * self.generators.new("log", self._positive(factor), sizes)
        return result

    def _positive(self, factor: Any) -> Any:
        """The factor with the sign it has at the samples, where that is one sign."""
        values = self.generators.evaluate(factor)
        if all(abs(value.imag) < _CLOSE and value.real < 0 for value in values):
            return sympy.expand(-factor)
        return factor

    def root(self, value: Any, power: Any) -> Any:
        """A real power that is no integer, of a value that is positive at the samples."""
        number, found = self.factors(value)
        degree = int(power.q)
        if number == 0:
            return sympy.Integer(0)
        parts: list[tuple[Any, int]] = [
            (sympy.Integer(prime), count)
            for prime, count in sympy.factorrat(abs(number)).items()
            if prime != 1
        ]
        if number < 0:
            parts.append((sympy.Integer(-1), 1))
        parts += [(self._positive(factor), count) for factor, count in found]
        result = sympy.Integer(1)
        for factor, count in parts:
            total = Fraction(int(power.p) * count, degree)
            whole = total.numerator // total.denominator
            result *= factor**whole
            left = total - whole
            if left:
                result *= self._root_generator(factor, left.denominator) ** left.numerator
        return self._on_branch(result, value, power)

    def _root_generator(self, factor: Any, degree: int) -> Any:
        if factor == -1:
            if degree != 2:
                raise Undecided
            return IMAGINARY
        values = [mpmath.root(part, degree) for part in self.generators.evaluate(factor)]
        generator = self.generators.new("root", (factor, degree), values)
        if factor.is_Symbol and factor in self.variables:
            made = self.generators.divisors.get(factor, 1)
            if made % degree:
                self.generators.denominators[factor] = _lcm(
                    self.generators.denominators.get(factor, 1), degree
                )
            elif made == degree:
                return generator
        self.generators.relations[generator] = (degree, factor)
        return generator

    def _on_branch(self, result: Any, value: Any, power: Any) -> Any:
        """The root times the fourth root of one that makes it the real positive one at all samples."""
        exponent = mpmath.mpf(int(power.p)) / int(power.q)
        wanted = [mpmath.power(abs(part), exponent) for part in self.generators.evaluate(value)]
        found = self.generators.evaluate(result)
        i = mpmath.mpc(0, 1)
        for turn, factor in ((1, 1), (-1, -1), (i, IMAGINARY), (-i, -IMAGINARY)):
            if all(abs(turn * b - a) <= _CLOSE * abs(a) for a, b in zip(wanted, found, strict=True)):
                return factor * result
        values = [mpmath.root(mpmath.power(a, 1), 1) for a in wanted]
        key = sympy.cancel(sympy.together(self.reduced(value)))
        degree = int(power.q)
        generator = self.generators.new("size", (key, degree), [mpmath.root(a, int(power.p)) for a in values])
        if int(power.p) == 1:
            self.generators.relations[generator] = (degree, key)
            return generator
        raise Undecided

    # ---- the end ----

    def reduced(self, value: Any) -> Any:
        """The same function with every root below its degree."""
        top, bottom = sympy.fraction(sympy.together(value))
        return self._reduced_polynomial(top) / self._reduced_polynomial(bottom)

    def _reduced_polynomial(self, value: Any) -> Any:
        value = sympy.expand(value)
        relations = self.generators.relations
        # Later roots may stand for earlier ones: the last made are resolved first.
        for root in reversed(list(relations)):
            if not value.has(root):
                continue
            degree, radicand = relations[root]
            polynomial = sympy.Poly(value, root)
            terms = [
                coefficient * root ** (power % degree) * radicand ** (power // degree)
                for (power,), coefficient in polynomial.terms()
            ]
            total = sympy.Add(*terms)
            if any(part.is_Pow and part.exp.is_negative for part in sympy.preorder_traversal(total)):
                total = sympy.fraction(sympy.together(total))[0]
            value = sympy.expand(total)
        return value

    def is_zero(self, value: Any) -> bool:
        """Whether a rational function of generators is zero."""
        top, bottom = sympy.fraction(sympy.together(value))
        top = self._reduced_polynomial(top)
        if top != 0:
            return False
        return all(part != 0 for part in self.generators.evaluate(bottom))


def _lcm(left: int, right: int) -> int:
    return int(sympy.ilcm(left, right))


def is_zero(difference: Any, samples: Sequence[dict[Any, Any]]) -> bool:
    """Whether an expression can be shown to be zero.

    Parameters
    ----------
    difference
        A real sympy expression without floats, known to be zero at the samples.
    samples
        Points of the ranges: value by symbol, mpmath numbers. At least one.
    """
    with mpmath.workdps(DIGITS):
        difference = sympy.sqrtdenest(difference)
        if _reduces_to_zero(difference, samples):
            return True
        # A function whose derivatives are all zero is the constant it is at a sample.
        symbols = sorted(difference.free_symbols, key=str)
        return bool(symbols) and all(
            _reduces_to_zero(sympy.diff(difference, symbol), samples) for symbol in symbols
        )


def _reduces_to_zero(difference: Any, samples: Sequence[dict[Any, Any]]) -> bool:
    divisors: dict[Any, int] = {}
    for _ in range(4):
        reduction = Reduction(samples, divisors)
        try:
            value = reduction.visit(difference)
            if not reduction.generators.denominators:
                return reduction.is_zero(value)
        except (Undecided, sympy.PolynomialError, ZeroDivisionError, NotImplementedError):
            if not reduction.generators.denominators:
                return False
        for key, denominator in reduction.generators.denominators.items():
            divisors[key] = _lcm(divisors.get(key, 1), denominator)
    return False
