"""Laws are printed as a textbook writes them, however the search has found them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scrambling import scrambles, with_numbers

from physdiffuser.expressions import Apply, Expression, Number, Symbol, evaluate, parse, to_text
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.simplification.textbook.rules import textbook
from physdiffuser.expressions.tree import distinct_constants, substitute, walk


@dataclass(frozen=True)
class Law:
    """A row of the table of laws: the text is the form that must be printed."""

    name: str
    text: str
    constants: dict[str, float]
    ranges: dict[str, tuple[float, float]]

    @property
    def columns(self) -> list[str]:
        return list(self.ranges)

    @property
    def tree(self) -> Expression:
        """With fitted numbers for the constants."""
        return self.with_constants(float)

    def with_constants(self, kind: Callable[[float], float | Fraction]) -> Expression:
        """With numbers of a kind for the constants."""
        values = {
            len(self.ranges) + place: kind(value) for place, value in enumerate(self.constants.values())
        }
        return with_numbers(parse(self.text, [*self.ranges, *self.constants]), values)

    def inputs(self, rows: int = 60) -> np.ndarray:
        rng = np.random.default_rng(0)
        return np.column_stack([rng.uniform(low, high, rows) for low, high in self.ranges.values()])

    def named(self, tree: Expression) -> str:
        """A formula as text, its fitted numbers by the names of the constants that they are."""

        def name(node: Expression) -> Expression | None:
            if not isinstance(node, Number):
                return None
            for symbol, value in self.constants.items():
                if abs(abs(float(node.value)) - value) < 1e-7 * value:
                    found = Symbol(symbol, value)
                    return found if node.value > 0 else Apply("neg", (found,))
            return None

        return to_text(substitute(tree, name), self.columns, 6)


def read() -> list[Law]:
    laws = []
    with (Path(__file__).parent / "textbook_forms.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            pairs = [pair.split("=") for pair in row["constants"].split()]
            spans = [pair.split("=") for pair in row["ranges"].split()]
            ranges = {name: tuple(map(float, span.split(":"))) for name, span in spans}
            laws.append(Law(row["name"], row["law"], {name: float(value) for name, value in pairs}, ranges))  # type: ignore[arg-type]
    return laws


LAWS = read()


def test_there_are_eighty_laws_of_different_form() -> None:
    assert len(LAWS) >= 80
    assert len({law.name for law in LAWS}) == len(LAWS)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_law_is_printed_as_a_textbook_writes_it(law: Law) -> None:
    inputs = law.inputs()
    positive = frozenset(place for place, (low, _) in enumerate(law.ranges.values()) if low >= 0)
    wanted = evaluate(law.tree, inputs)
    most = len(distinct_constants(law.tree)[1])
    for way, tree in scrambles(law.tree, seed=len(law.text)).items():
        assert np.allclose(evaluate(tree, inputs), wanted, rtol=1e-8), f"{way}: the test is wrong"
        made = textbook(arrange(tree, positive=positive))
        assert np.allclose(evaluate(made, inputs), wanted, rtol=1e-8, atol=1e-12 * abs(wanted).max()), way
        assert law.named(made) == law.text, way
        assert len(distinct_constants(made)[1]) <= most
        assert textbook(made) == made, way


def test_numbers_of_a_sum_are_added_up() -> None:
    assert to_text(textbook(parse("3*(1 + x + 1)", ["x"])), ["x"]) == "3*(2 + x)"
    assert to_text(textbook(parse("(3 + x - 3)*y", ["x", "y"])), ["x", "y"]) == "x*y"


def test_set_decimals_are_not_divided_by_each_other() -> None:
    tree = arrange(parse("(87*P + 6693/10)/(261 + 10*P + 275/P)", ["P"]))
    numbers = [node for node in walk(textbook(tree)) if isinstance(node, Number)]
    assert {str(number.value) for number in numbers} <= {"87", "6693/10", "2231/290", "261", "10", "275", "2"}


# Of set numbers the other order, or the number inside the root, is as usual.
AS_USUAL = {"straight line", "stress over strain", "sum of squares with a scale"}


@pytest.mark.parametrize("law", [law for law in LAWS if law.name not in AS_USUAL], ids=lambda law: law.name)
def test_decimals_that_a_table_proves_are_printed_in_the_same_way(law: Law) -> None:
    """In a table without noise constants of few digits are set to them."""

    def proved(value: float) -> float | Fraction:
        exact = Fraction(repr(value))
        return exact if exact.denominator <= 2000 else value

    tree = law.with_constants(proved)
    positive = frozenset(place for place, (low, _) in enumerate(law.ranges.values()) if low >= 0)
    made = textbook(arrange(tree, positive=positive))
    inputs = law.inputs()
    assert np.allclose(evaluate(made, inputs), evaluate(law.tree, inputs), rtol=1e-8)
    assert law.named(made) == law.text
