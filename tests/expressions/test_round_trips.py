"""Text, tree, prefix tokens and sympy: each way and back."""

from __future__ import annotations

import pickle
import random
from fractions import Fraction

import mpmath
import pytest
from expression_strategies import COLUMNS, exact_trees, fitted_trees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from physdiffuser.expressions import (
    OPERATORS,
    PI,
    Apply,
    Expression,
    Number,
    OperatorSpec,
    Parameter,
    Symbol,
    Variable,
    complexity,
    from_prefix,
    parse,
    to_prefix,
    to_text,
)
from physdiffuser.expressions.operators import register
from physdiffuser.expressions.printing.format import number_text
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.simplification.exact import MAX_BITS
from physdiffuser.expressions.sympy_bridge import from_sympy, to_sympy
from physdiffuser.expressions.tree import (
    bind,
    free_constants,
    parameter_count,
    size,
    substitute,
    variables,
    walk,
)
from physdiffuser.verification.numeric import agree, random_point

NAMES = ["x1", "x2", "x3"]
QUICK = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
SLOW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def agree_everywhere(new: Expression, old: Expression, ranges: list[tuple[float, float]]) -> bool:
    rng = random.Random(0)
    with mpmath.workdps(60):
        return all(agree(new, old, random_point(ranges, rng)) is not False for _ in range(4))


@QUICK
@given(fitted_trees)
def test_text_reads_back_as_the_same_formula(tree: Expression) -> None:
    again = parse(to_text(tree), NAMES)
    # 2/3 reads back as a division, 0.25 as exact: the value is the same, and the text from then on.
    assert to_text(parse(to_text(again), NAMES)) == to_text(again)
    assert agree_everywhere(again, tree, [(0.3, 2.0)] * COLUMNS)
    assert agree_everywhere(again, tree, [(-2.0, 2.0)] * COLUMNS)


@QUICK
@given(fitted_trees)
def test_prefix_tokens_read_back_as_the_same_tree(tree: Expression) -> None:
    tokens = to_prefix(tree)
    assert len(tokens) == size(tree)
    assert from_prefix(tokens) == tree


@QUICK
@given(st.integers(-(10**150), 10**150), st.integers(1, 10**150))
def test_long_exact_numbers_survive_prefix_tokens(top: int, bottom: int) -> None:
    value = Fraction(top, bottom)
    number = Number(int(value) if value.denominator == 1 else value)
    assert from_prefix(to_prefix(number)) == number


@QUICK
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_survive_prefix_tokens_and_text(value: float) -> None:
    assert from_prefix(to_prefix(Number(value))) == Number(value)
    assert float(value_of(parse(to_text(Number(value)), []))) == value


def value_of(tree: Expression) -> float:
    if isinstance(tree, Apply):
        assert tree.operator == "neg"
        return -value_of(tree.arguments[0])
    assert isinstance(tree, Number)
    return float(tree.value)


@SLOW
@given(exact_trees)
def test_sympy_and_back_keeps_the_value(tree: Expression) -> None:
    import sympy

    symbolic = to_sympy(tree, positive={0, 1, 2})
    if symbolic.has(sympy.I, sympy.zoo, sympy.nan, sympy.oo, sympy.arg, sympy.im, sympy.re):
        return  # not real for positive columns, as sympy has noticed
    if any(max(abs(atom.p), atom.q) >= 2**MAX_BITS for atom in symbolic.atoms(sympy.Rational)):
        return  # sympy has computed a power that is no exact number here
    ranges = [(0.3, 2.0)] * COLUMNS
    try:
        again = from_sympy(symbolic)
    except ValueError:
        # sympy writes some functions of the table with others that the table lacks.
        return
    assert agree_everywhere(again, tree, ranges), (to_text(tree), symbolic)


def test_a_number_that_no_double_holds_is_refused() -> None:
    import sympy

    for number in (sympy.Integer(2) ** 1296, -(sympy.Integer(2) ** 1296)):
        with pytest.raises(ValueError, match="too large"):
            from_sympy(number)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x1**2/2", "x1**2/2"),
        ("sqrt(x1)", "sqrt(x1)"),
        ("exp(-x1)", "exp(-x1)"),
        ("2*pi*x1", "2*pi*x1"),
        ("x1 - x2", "x1 - x2"),
        ("1/x1", "1/x1"),
        ("-x1", "-x1"),
        ("abs(x1)", "abs(x1)"),
        ("x1/(x2*x3)", "x1/(x2*x3)"),
        ("exp(1)", "exp(1)"),
        ("-2*x1/3", "-2*x1/3"),
    ],
)
def test_sympy_forms_are_written_plainly(text: str, expected: str) -> None:
    assert to_text(from_sympy(to_sympy(parse(text, NAMES)))) == expected


def test_sympy_functions_the_table_lacks_are_rewritten() -> None:
    import sympy

    x = sympy.Symbol("x1", real=True)
    for function, text in [
        (sympy.cot, "1/tan(x1)"),
        (sympy.sec, "1/cos(x1)"),
        (sympy.csc, "1/sin(x1)"),
        (sympy.coth, "1/tanh(x1)"),
        (sympy.sech, "1/cosh(x1)"),
        (sympy.csch, "1/sinh(x1)"),
        (sympy.asec, "acos(1/x1)"),
    ]:
        assert to_text(from_sympy(function(x))) == text
    with pytest.raises(ValueError, match="gamma has no counterpart"):
        from_sympy(sympy.gamma(x))
    with pytest.raises(ValueError, match="neither a variable nor a known constant"):
        from_sympy(sympy.Symbol("q"), ["a", "b"])


def test_sympy_symbols_carry_signs_and_names_of_any_kind() -> None:
    import sympy

    names = ["E", "I", "lambda_", "beta", "S", "N", "Q", "O", "zeta"]
    tree = parse("E*I/lambda_ + beta**S - N*Q*O/zeta", names)
    symbolic = to_sympy(tree, names, positive={0, 2})
    assert {symbol.name for symbol in symbolic.free_symbols} == set(names)
    assert sympy.Symbol("E", positive=True) in symbolic.free_symbols
    assert sympy.Symbol("I", real=True) in symbolic.free_symbols
    assert sympy.exp(1) not in symbolic.atoms()
    again = from_sympy(symbolic, names)
    assert agree_everywhere(again, tree, [(0.5, 2.0)] * len(names))


def test_named_constants_reach_sympy_by_name() -> None:

    tree = Apply("mul", (Symbol("G", 6.674e-11), Variable(0)))
    assert {s.name for s in to_sympy(tree).free_symbols} == {"G", "x1"}
    assert from_sympy(to_sympy(tree), ["x1"], {"G": 6.674e-11}) == tree


def test_towers_of_powers_reach_sympy_unevaluated() -> None:
    assert to_sympy(parse("9**9**9", [])).is_Pow


def test_pickled_trees_are_equal_and_hash_alike() -> None:
    tree = parse("2*pi*sqrt(x1**3/x2)", NAMES)
    again = pickle.loads(pickle.dumps(tree))  # noqa: S301  # our own bytes
    assert again == tree
    assert hash(again) == hash(tree)


def test_tree_helpers() -> None:
    tree = parse("2*x1 + sin(x3)*x1", NAMES)
    assert size(tree) == len(list(walk(tree))) == 8
    assert variables(tree) == {0, 2}
    assert parameter_count(tree) == 0
    swapped = substitute(tree, lambda node: Variable(1) if node == Variable(0) else None)
    assert to_text(swapped) == "2*x2 + sin(x3)*x2"
    assert substitute(tree, lambda node: None) is tree
    fitted = Apply("add", (Apply("mul", (Number(0.5), Variable(0))), Number(2)))
    skeleton, values = free_constants(fitted)
    assert skeleton == Apply("add", (Apply("mul", (Parameter(0), Variable(0))), Number(2)))
    assert values == (0.5,)
    assert bind(skeleton, values) == fitted


def test_complexity_is_what_its_definition_says() -> None:
    for text, expected in [
        ("x1", 1),
        ("pi", 1),
        ("0.731", 1),
        ("x1*x2**2/2", 7),
        ("2*pi*sqrt(x1**3/x2)", 10),
        ("exp(x1)", 3),
        ("tanh(x1)", 4),
        ("-x1", 2),
    ]:
        assert complexity(parse(text, NAMES)) == expected, text


@QUICK
@given(fitted_trees)
def test_complexity_is_the_sum_over_nodes(tree: Expression) -> None:
    own = OPERATORS[tree.operator].complexity if isinstance(tree, Apply) else 1
    parts = tree.arguments if isinstance(tree, Apply) else ()
    assert complexity(tree) == own + sum(complexity(part) for part in parts)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        ["add", "x1"],
        ["x1", "x2"],
        ["add", "x1", "x2", "x3"],
        ["frobnicate", "x1"],
        ["x0"],
        ["x-1"],
        ["nan"],
        ["inf"],
        ["-inf"],
        ["1_000"],
        ["0x10"],
        ["1/0"],
        ["٣"],
        ["1e999"],
        ["__import__"],
        [""],
        ["9" * 161],
    ],
)
def test_bad_prefix_sequences_are_refused(tokens: list[str]) -> None:
    with pytest.raises(ValueError, match=r"unknown token|prefix sequence"):
        from_prefix(tokens)


def test_operators_of_plugins_are_read_and_written() -> None:
    register(OperatorSpec("between", 2, 3, min, (min, max), max))
    try:
        tree = parse("2*between(x1, x2 + 1)", NAMES)
        assert tree == Apply("mul", (Number(2), Apply("between", (Variable(0), parse("x2 + 1", NAMES)))))
        assert to_text(tree) == "2*between(x1, x2 + 1)"
        assert from_prefix(to_prefix(tree)) == tree
        assert complexity(tree) == 9
        with pytest.raises(ValueError, match="between takes 2 arguments, not 1"):
            parse("between(x1)", NAMES)
        with pytest.raises(ValueError, match="exists already"):
            register(OperatorSpec("between", 2, 3, min, (min, max), max))
    finally:
        del OPERATORS["between"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (OperatorSpec("arcsin", 1, 3, min, (min,), max), "exists already"),
        (OperatorSpec("two words", 1, 3, min, (min,), max), "no identifier"),
        (OperatorSpec("triple", 3, 3, min, (min,) * 3, max), "arity"),
        (OperatorSpec("slack", 2, 3, min, (min,), max), "one derivative per argument"),
        (OperatorSpec("plus", 2, 3, min, (min, min), max, infix="@"), "infix"),
    ],
)
def test_contradictory_operators_are_refused(spec: OperatorSpec, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register(spec)


def test_pi_is_one_symbol() -> None:
    assert parse("pi", []) == PI
    assert to_prefix(PI) == ["pi"]


def test_every_name_of_sympy_may_be_a_column() -> None:
    import keyword

    import sympy

    greek = "alpha beta gamma delta epsilon zeta eta theta iota kappa mu nu xi omicron rho sigma tau upsilon"
    names = sorted({*sympy.__all__, *greek.split(), "lambda_", "phi", "chi", "psi", "omega"} - {"pi"})
    names = [name for name in names if name.isidentifier() and not keyword.iskeyword(name)]
    assert len(names) > 900
    for start in range(0, len(names), 8):
        chosen = names[start : start + 8]
        tree = parse(" + ".join(f"{name}**{power}" for power, name in enumerate(chosen, 1)), chosen)
        symbolic = to_sympy(tree, chosen)
        assert {symbol.name for symbol in symbolic.free_symbols} == set(chosen)
        again = from_sympy(symbolic, chosen)
        assert parse(to_text(again, chosen), chosen) == again
        assert canonical(again) == canonical(tree)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (9024.7, 3, "9020"),
        (-92270.3, 4, "-92270"),
        (999_600.0, 3, "1e+06"),
        (6.2313e6, 3, "6.23e+06"),
        (0.00012345, 2, "0.00012"),
        (123.456, 5, "123.46"),
    ],
)
def test_shortened_numbers_of_everyday_size_are_plain(value: float, digits: int, text: str) -> None:
    assert number_text(value, digits) == text


def test_a_short_number_stays_short_however_many_digits_are_asked_for() -> None:
    assert to_text(Number(6.6743e-11), digits=16) == "6.6743e-11"
    assert to_text(Number(1 / 3), digits=16) == "0.3333333333333333"
    assert to_text(Number(0.1 + 0.2), digits=4) == "0.3"
