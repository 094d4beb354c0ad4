"""The parser: its grammar, and that hostile text is refused at once and never run."""

from __future__ import annotations

import gc
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physdiffuser.errors import UsageError
from physdiffuser.expressions import (
    PI,
    Apply,
    ExpressionSyntaxError,
    Number,
    Symbol,
    Variable,
    evaluate,
    parse,
    to_text,
)
from physdiffuser.expressions.parser import MAX_DEPTH, MAX_LENGTH, MAX_TREE_DEPTH
from physdiffuser.expressions.printing.latex import to_latex
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.simplification.textbook.arrange import arrange

NAMES = ["x", "y"]


def text(formula: str) -> str:
    return to_text(parse(formula, NAMES), NAMES)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("x+y*2", "x + y*2"),
        ("(x+y)*2", "(x + y)*2"),
        ("x-y-2", "x - y - 2"),
        ("x-(y-2)", "x - (y - 2)"),
        ("x/y/2", "x/y/2"),
        ("x/(y/2)", "x/(y/2)"),
        ("x**y**2", "x**y**2"),
        ("(x**y)**2", "(x**y)**2"),
        ("x^2", "x**2"),
        ("-x**2", "-x**2"),
        ("(-x)**2", "(-x)**2"),
        ("x**-2", "x**-2"),
        ("2**-x", "2**-x"),
        ("--x", "--x"),
        ("+x", "x"),
        ("-2", "-2"),
        ("-2**2", "-2**2"),
        (" x\t+\ny ", "x + y"),
        ("arcsin(x) + ln(y) + Abs(x)", "asin(x) + log(y) + abs(x)"),
        (".5*x", "0.5*x"),
        ("5.*x", "5*x"),
        ("1e3*x", "1000*x"),
        ("2.5E-3", "0.0025"),
        ("x - -2", "x - (-2)"),
        ("x*-y", "x*(-y)"),
        ("2*(-3)", "2*(-3)"),
    ],
)
def test_grammar(formula: str, expected: str) -> None:
    # A float without decimals is written as one and read back as the whole number.
    assert text(text(formula)) == expected
    assert text(expected) == expected


def test_short_decimals_are_exact_and_long_ones_measured() -> None:
    assert parse("0.5", []) == Number(Fraction(1, 2))
    assert parse("3.0", []) == Number(3)
    assert parse("0.1234", []) == Number(Fraction(617, 5000))
    assert parse("0.12345", []) == Number(0.12345)
    assert parse("1e-3", []) == Number(0.001)


def test_names() -> None:
    assert parse("pi*G", [], {"G": 6.674e-11}) == Apply("mul", (PI, Symbol("G", 6.674e-11)))
    # A column wins over a constant of the same name.
    assert parse("pi", ["pi"]) == Variable(0)
    assert parse("sin*sin(sin)", ["sin"]) == Apply("mul", (Variable(0), Apply("sin", (Variable(0),))))
    assert parse("größe + θ + 温度", ["größe", "θ", "温度"])


PAYLOADS = [
    "__import__('os').system('touch CANARY')",
    '__import__("pathlib").Path("CANARY").touch()',
    "eval('1')",
    'exec(\'open("CANARY","w")\')',
    "open('CANARY', 'w')",
    "().__class__.__bases__[0].__subclasses__()",
    "x.__class__",
    "x.real",
    "lambda: 0",
    "lambda x: x",
    "[x for x in (1,)]",
    "{x: y}",
    "{x}",
    "[x]",
    "x[0]",
    "x if y else 1",
    "x and y",
    "not x",
    "x == y",
    "x < y",
    "x := 1",
    "x = 1",
    "x; y",
    "import os",
    "from os import system",
    "print(x)",
    "globals()",
    "getattr(x, 'y')",
    "breakpoint()",
    "help()",
    "input()",
    "f'{x}'",
    "'x'",
    '"x"',
    "`x`",
    "x // y",
    "x % y",
    "x @ y",
    "x & y",
    "x | y",
    "~x",
    "x << 2",
    "1j*x",
    "0x10",
    "1_000",
    "0b1",
    "1e",
    "1..2",
    "$(touch CANARY)",
    "x\x00y",
    "x\\y",
    "#x",
    "x # y",
    "!x",
    "x'",
    "S('x')",
    "Symbol('x')",
    "sin",
    "sin()",
    "sin(x, y)",
    "sin x",
    "add(x, y)",
    "neg(x)",
    "pow(x, y)",
    "**x",
    "x**",
    "x y",
    "x(y)",
    "2x",
    "2(x)",
    "(x",
    "x)",
    "()",
    "",
    "   ",
    ",",
    "sin(x,)",
    "x,y",
    "(x,y)",
    "９*x",
    "²",
    "x²",
    "∞",
    "nan",
    "inf",
    "1e999",
    "9" * 156,
    "-" * 200 + "x",
    "(" * 200 + "x" + ")" * 200,
    "sin(" * 200 + "x" + ")" * 200,
    "2**" * 200 + "x",
    "x+" * 5000 + "x",
    "x*" * 5000 + "x",
    "x" * (MAX_LENGTH + 1),
    "q",
    "xy",
    "\u202ex",
    "ｘ",
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=[f"{i}" for i in range(len(PAYLOADS))])
def test_what_is_no_formula_is_refused_at_once(
    payload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Collecting all the objects of the test process, and threads of other tests, take none of its time.
    gc.disable()
    try:
        started = time.thread_time()
        with pytest.raises(ExpressionSyntaxError) as caught:
            parse(payload, NAMES)
        taken = time.thread_time() - started
    finally:
        gc.enable()
    assert taken < 0.5
    assert isinstance(caught.value, UsageError)
    message = str(caught.value)
    # One line of plain characters, whatever the formula held, and not a copy of all of it.
    assert message.isascii() and message.isprintable() and len(message) < 500
    assert list(tmp_path.iterdir()) == []


def test_errors_say_where() -> None:
    with pytest.raises(ExpressionSyntaxError, match=r"character 5: unexpected '\+'|character 5"):
        parse("x + * y", NAMES)
    with pytest.raises(ExpressionSyntaxError, match="unknown name 'z'; known are pi x y"):
        parse("x + z", NAMES)
    with pytest.raises(ExpressionSyntaxError, match="unknown function 'erf'; known are abs acos"):
        parse("erf(x)", NAMES)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="xy123.+-*/^()e ,sincoqrt\u00b2_'", max_size=40))
def test_any_text_is_read_or_refused(formula: str) -> None:
    try:
        tree = parse(formula, NAMES)
    except ExpressionSyntaxError:
        return
    assert to_text(parse(to_text(tree, NAMES), NAMES), NAMES) == to_text(tree, NAMES)


@pytest.mark.parametrize(
    "formula",
    [
        "9**9**9**9",
        "x**9**9**9",
        "(" * (MAX_DEPTH - 2) + "x" + ")" * (MAX_DEPTH - 2),
        "sin(" * (MAX_DEPTH - 2) + "x" + ")" * (MAX_DEPTH - 2),
        "exp(" * (MAX_DEPTH - 2) + "x" + ")" * (MAX_DEPTH - 2),
        "-" * (MAX_DEPTH - 2) + "x",
        "2**" * (MAX_DEPTH - 2) + "x",
        "x+" * (MAX_TREE_DEPTH - 2) + "x",
        "+".join(f"x**{n}" for n in range(MAX_TREE_DEPTH // 2)),
        "*".join(f"sin({n}*x)" for n in range(MAX_TREE_DEPTH // 2 - 2)),
        "1/(1+" * 40 + "x" + ")" * 40,
        "sqrt(1+" * 40 + "x" + ")" * 40,
        "9" * 30 + "**" + "9" * 30,
        "1e308*1e308*x",
        "1e-308*1e-308*x",
    ],
    ids=range(15),
)
def test_what_is_read_can_be_used(formula: str) -> None:
    """At the limits of the grammar nothing else recurses too deep, runs out of memory or hangs."""
    import numpy as np

    started = time.perf_counter()
    tree = parse(formula, NAMES)
    inputs = np.array([[0.5, 2.0], [1.5, 0.7]])
    evaluate(tree, inputs)
    to_latex(tree, NAMES)
    for form in (canonical(tree), arrange(tree)):
        assert evaluate(form, inputs).shape == (2,)
    assert time.perf_counter() - started < 10.0


def test_long_integers_are_read_and_never_overflow() -> None:
    digits = "9" * 155
    inputs = np.array([[0.5], [2.0]])
    for text in (f"{digits}*x", f"{digits}*{digits}*{digits}*x", f"x**{digits}", f"{digits}**{digits}"):
        expression = parse(text, ["x"])
        assert parse(to_text(expression, ["x"]), ["x"]) == expression
        values = evaluate(expression, inputs)
        np.testing.assert_array_equal(evaluate(canonical(expression), inputs), values)
        assert not np.isnan(values).any()
