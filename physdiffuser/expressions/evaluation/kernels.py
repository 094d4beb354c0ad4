"""The operators of formulas as LLVM code, eight rows at a time.

Exponential, logarithm, sine and cosine are written out here, since a compiler has no vector code for them:
the argument is reduced to a short interval, exactly or nearly so, and a Taylor series does the rest (Muller,
Elementary Functions, 2016, chapters 4 and 11). `tests/expressions/test_compiled.py` measures them against 60
digits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

LANES = 8
# Rows of a block. Three buffers of 2 kB stay in the first-level cache.
BLOCK = 256
MAX_STACK = 64
# Beyond, the reduction of sine and cosine has too few digits; the caller evaluates in another way.
TRIGONOMETRIC_LIMIT = 1e6

# Operation codes. 0 and 1 push a column and a number; the operators follow.
COLUMN, NUMBER = 0, 1
BINARY = ("add", "sub", "mul", "div")
UNARY = ("neg", "sqrt", "exp", "log", "sin", "cos", "tanh", "abs")
# Powers that are multiplications and roots, with the code of each exponent.
POWERS = {2.0: "p2", 3.0: "p3", 4.0: "p4", -1.0: "m1", -2.0: "m2", 0.5: "p05", 1.5: "p15", -0.5: "m05"}
CODES = {name: code for code, name in enumerate((*BINARY, *UNARY, *POWERS.values()), start=2)}

VECTOR = f"<{LANES} x double>"
_WHOLE = f"<{LANES} x i64>"
MASK = f"<{LANES} x i1>"
# Adding 1.5 * 2**52 rounds a double to a whole number and leaves that number in its lowest bits.
_ROUNDER = 6755399441055744.0
# log(2), and pi/2 in three parts: the leading parts have so few bits that small multiples are exact.
_LOG2_HIGH, _LOG2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_QUARTERS = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)


class _Function:
    """Text of one LLVM function under construction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def line(self, text: str) -> str:
        """An instruction with a result, whose name is returned."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def add(self, left: str, right: str) -> str:
        return self.line(f"fadd {VECTOR} {left}, {right}")

    def sub(self, left: str, right: str) -> str:
        return self.line(f"fsub {VECTOR} {left}, {right}")

    def mul(self, left: str, right: str) -> str:
        return self.line(f"fmul {VECTOR} {left}, {right}")

    def div(self, left: str, right: str) -> str:
        return self.line(f"fdiv {VECTOR} {left}, {right}")

    def multiply_add(self, left: str, right: str, more: str) -> str:
        """`left*right + more`, fused where the processor can."""
        arguments = ", ".join(f"{VECTOR} {one}" for one in (left, right, more))
        return self.line(f"call {VECTOR} @llvm.fmuladd.v{LANES}f64({arguments})")

    def sqrt(self, value: str) -> str:
        return self.line(f"call {VECTOR} @llvm.sqrt.v{LANES}f64({VECTOR} {value})")

    def absolute(self, value: str) -> str:
        return self.line(f"call {VECTOR} @llvm.fabs.v{LANES}f64({VECTOR} {value})")

    def compare(self, how: str, left: str, right: str) -> str:
        return self.line(f"fcmp {how} {VECTOR} {left}, {right}")

    def select(self, mask: str, yes: str, no: str) -> str:
        return self.line(f"select {MASK} {mask}, {VECTOR} {yes}, {VECTOR} {no}")

    def bits(self, value: str) -> str:
        return self.line(f"bitcast {VECTOR} {value} to {_WHOLE}")

    def double(self, value: str) -> str:
        return self.line(f"bitcast {_WHOLE} {value} to {VECTOR}")

    def whole(self, operation: str, left: str, right: str) -> str:
        return self.line(f"{operation} {_WHOLE} {left}, {right}")

    def polynomial(self, argument: str, coefficients: list[Fraction]) -> str:
        """Coefficients from the constant term up, even and odd ones apart: half the waiting."""
        square = self.mul(argument, argument)
        halves = []
        for part in (coefficients[::2], coefficients[1::2]):
            value = _real(float(part[-1]))
            for coefficient in reversed(part[:-1]):
                value = self.multiply_add(value, square, _real(float(coefficient)))
            halves.append(value)
        return self.multiply_add(halves[1], argument, halves[0])


def _hexadecimal(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _real(value: float) -> str:
    return "<" + ", ".join([f"double {_hexadecimal(value)}"] * LANES) + ">"


def _integer(value: int) -> str:
    return "<" + ", ".join([f"i64 {value}"] * LANES) + ">"


_ONE = _real(1.0)


def _rounded(function: _Function, value: str, factor: float) -> tuple[str, str]:
    """Nearest whole number of `value*factor`, as a double, and a vector with it in the lowest bits."""
    raised = function.multiply_add(value, _real(factor), _real(_ROUNDER))
    return function.sub(raised, _real(_ROUNDER)), raised


def _power_of_two(function: _Function, raised: str) -> str:
    """`2**n` for the whole number in the lowest bits of `raised`."""
    biased = function.whole("add", function.bits(raised), _integer(1023))
    return function.double(function.whole("shl", biased, _integer(52)))


def _reduced_exponential(function: _Function, value: str) -> tuple[str, str, str]:
    """n, the vector with n in its bits, and `exp(r) - 1` for `value = n*log(2) + r`."""
    count, raised = _rounded(function, value, 1.0 / math.log(2.0))
    rest = function.multiply_add(count, _real(-_LOG2_HIGH), value)
    rest = function.multiply_add(count, _real(-_LOG2_LOW), rest)
    # The thirteenth power of log(2)/2 over 13! is 2e-16 of the first.
    series = function.polynomial(rest, [Fraction(1, math.factorial(k)) for k in range(2, 14)])
    return count, raised, function.multiply_add(function.mul(rest, rest), series, rest)


def _exp(function: _Function, value: str) -> str:
    # nan passes both comparisons by.
    value = function.select(function.compare("ogt", value, _real(710.0)), _real(710.0), value)
    value = function.select(function.compare("olt", value, _real(-746.0)), _real(-746.0), value)
    count, _, grown = _reduced_exponential(function, value)
    # 2**1024 and 2**-1074 are reached in two steps.
    half = function.multiply_add(count, _real(0.5), _real(_ROUNDER))
    other = function.add(function.sub(count, function.sub(half, _real(_ROUNDER))), _real(_ROUNDER))
    result = function.add(grown, _ONE)
    return function.mul(function.mul(result, _power_of_two(function, half)), _power_of_two(function, other))


def _tanh(function: _Function, value: str) -> str:
    size = function.absolute(value)
    size = function.select(function.compare("ogt", size, _real(20.0)), _real(20.0), size)
    _, raised, grown = _reduced_exponential(function, function.add(size, size))
    scale = _power_of_two(function, raised)
    excess = function.multiply_add(scale, grown, function.sub(scale, _ONE))
    result = function.div(excess, function.add(excess, _real(2.0)))
    sign = function.whole("and", function.bits(value), _integer(-(2**63)))
    return function.double(function.whole("or", function.bits(result), sign))


def _log(function: _Function, value: str) -> str:
    small = function.compare("olt", value, _real(2.0**-1022))
    normal = function.select(small, function.mul(value, _real(2.0**54)), value)
    shift = function.select(small, _real(54.0), _real(0.0))
    # value = 2**k * m with m between the roots of 1/2 and 2.
    bits = function.bits(normal)
    root = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
    biased = function.whole("add", bits, _integer((1023 << 52) - root))
    exponent = function.whole("lshr", biased, _integer(52))
    # As a double: the number is put into the bits of 2**52.
    as_double = function.double(function.whole("or", exponent, _integer(0x433 << 52)))
    count = function.sub(function.sub(as_double, _real(2.0**52 + 1023.0)), shift)
    taken = function.whole("sub", function.whole("shl", exponent, _integer(52)), _integer(1023 << 52))
    fraction = function.sub(function.double(function.whole("sub", bits, taken)), _ONE)
    # log((1 + s)/(1 - s)) = 2*(s + s**3/3 + ...), arranged so that the leading term is exact.
    ratio = function.div(fraction, function.add(fraction, _real(2.0)))
    square = function.mul(ratio, ratio)
    series = function.polynomial(square, [Fraction(2, 2 * k + 1) for k in range(1, 11)])
    half = function.mul(function.mul(fraction, fraction), _real(0.5))
    more = function.mul(ratio, function.multiply_add(square, series, half))
    more = function.multiply_add(count, _real(_LOG2_LOW), more)
    result = function.sub(function.sub(half, more), fraction)
    result = function.sub(function.mul(count, _real(_LOG2_HIGH)), result)
    result = function.select(function.compare("oeq", value, _real(math.inf)), value, result)
    result = function.select(function.compare("oeq", value, _real(0.0)), _real(-math.inf), result)
    # Negative, or nan already.
    bad = function.compare("ult", value, _real(0.0))
    return function.select(bad, _real(math.nan), result)


def _sine(function: _Function, value: str, quarter: int) -> str:
    """Sine of `value + quarter*pi/2`."""
    count, raised = _rounded(function, value, 2.0 / math.pi)
    rest = value
    for part in _QUARTERS[:2]:
        rest = function.multiply_add(count, _real(-part), rest)
    # The last part is kept as a correction.
    last = function.mul(count, _real(_QUARTERS[2]))
    final = function.sub(rest, last)
    tail = function.sub(function.sub(rest, final), last)
    square = function.mul(final, final)
    sines = [Fraction((-1) ** k, math.factorial(2 * k + 1)) for k in range(1, 9)]
    cosines = [Fraction((-1) ** k, math.factorial(2 * k)) for k in range(2, 9)]
    series = function.polynomial(square, sines)
    cube = function.mul(square, final)
    sine = function.add(final, function.multiply_add(cube, series, tail))
    series = function.polynomial(square, cosines)
    half = function.mul(square, _real(0.5))
    top = function.sub(_ONE, half)
    # What `1 - half` lost.
    lost = function.sub(function.sub(_ONE, top), half)
    series = function.mul(function.mul(square, square), series)
    product = function.mul(final, tail)
    cosine = function.add(top, function.add(lost, function.sub(series, product)))
    bits = (
        function.whole("add", function.bits(raised), _integer(quarter)) if quarter else function.bits(raised)
    )
    odd = function.whole("and", bits, _integer(1))
    is_odd = function.line(f"icmp ne {_WHOLE} {odd}, zeroinitializer")
    result = function.select(is_odd, cosine, sine)
    sign = function.whole("shl", function.whole("and", bits, _integer(2)), _integer(62))
    result = function.double(function.whole("xor", function.bits(result), sign))
    if quarter == 0:
        # The sign of zero.
        result = function.select(function.compare("oeq", value, _real(0.0)), value, result)
    return result


def _power(exponent: float) -> Callable[[_Function, str], str]:
    """As `OPERATORS["pow"]` does it."""

    def power(function: _Function, value: str) -> str:
        match exponent:
            case 1.5:
                return function.mul(value, function.sqrt(value))
            case 0.5 | -0.5:
                result = function.sqrt(value)
            case _:
                result = value if abs(exponent) == 1.0 else function.mul(value, value)
                if exponent == 3.0:
                    result = function.mul(result, value)
                elif exponent == 4.0:
                    result = function.mul(result, result)
        return function.div(_ONE, result) if exponent < 0.0 else result

    return power


_UNARY: dict[str, Callable[[_Function, str], str]] = {
    "neg": lambda function, value: function.line(f"fneg {VECTOR} {value}"),
    "sqrt": _Function.sqrt,
    "exp": _exp,
    "log": _log,
    "sin": lambda function, value: _sine(function, value, 0),
    "cos": lambda function, value: _sine(function, value, 1),
    "tanh": _tanh,
    "abs": _Function.absolute,
    **{name: _power(exponent) for exponent, name in POWERS.items()},
}
_BINARY: dict[str, Callable[[_Function, str, str], str]] = {
    "add": _Function.add,
    "sub": _Function.sub,
    "mul": _Function.mul,
    "div": _Function.div,
}


def loop(name: str) -> str:
    """One operator on the vectors of a block: 1 is returned where an argument is too large for it."""
    function = _Function()
    arity = 2 if name in _BINARY else 1
    bounded = name in ("sin", "cos")
    arguments = [
        function.line(
            f"load {VECTOR}, ptr {function.line(f'getelementptr {VECTOR}, ptr {pointer}, i64 %i')}, align 8"
        )
        for pointer in ("%a", "%b")[:arity]
    ]
    result = _BINARY[name](function, *arguments) if arity == 2 else _UNARY[name](function, *arguments)
    target = function.line(f"getelementptr {VECTOR}, ptr %out, i64 %i")
    bad = "zeroinitializer"
    if bounded:
        size = function.absolute(arguments[0])
        beyond = function.compare("ogt", size, _real(TRIGONOMETRIC_LIMIT))
        finite = function.compare("olt", size, _real(math.inf))
        bad = function.line(f"and {MASK} {beyond}, {finite}")
        bad = function.line(f"or {MASK} {bad}, %bad")
    body = "\n".join(function.lines)
    parameters = "ptr %a, ptr %b, ptr %out, i64 %n" if arity == 2 else "ptr %a, ptr %out, i64 %n"
    carried = f"  %bad = phi {MASK} [ zeroinitializer, %entry ], [ {bad}, %loop ]\n" if bounded else ""
    reduced = (
        f"  %any = call i1 @llvm.vector.reduce.or.v{LANES}i1({MASK} {bad})\n  %flag = zext i1 %any to i64\n"
        if bounded
        else ""
    )
    return f"""define internal i64 @{name}({parameters}) noinline #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
{carried}{body}
  store {VECTOR} {result}, ptr {target}, align 8
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %exit
exit:
{reduced}  ret i64 {"%flag" if bounded else "0"}
}}
"""
