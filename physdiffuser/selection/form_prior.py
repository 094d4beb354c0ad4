"""How usual a form is: nats to write it down, by what laws of physics and of the laboratory are made of.

A formula is taken apart into sums, products of powers, functions and leaves, whatever the order and the
brackets it is written with. Each of these is an event in a place (a factor of a sum under a root, a
term in the argument of an exponential), and its probability is counted in the stream of laws that the
networks are trained on, places smoothed by the wider places they belong to (Witten and Bell, 1991).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files

from physdiffuser.expressions import Apply, Expression, Number, Parameter, Variable
from physdiffuser.models.tokens.skeleton import terms, without_linear_coefficients
from physdiffuser.models.tokens.vocabulary import NUMBERS

# A place, widest description last; an event there.
Event = tuple[tuple[str, ...], str]


@dataclass(frozen=True)
class Form:
    """A part of a formula.

    Its kind is "variable", "number", "constant", "product", "sum", "minus", "power" or a function.

    Attributes
    ----------
    parts
        Of a product the factors with their exponents, of a sum the terms with their signs, of a function
        its arguments with 1.
    factor
        Of a product the number in front: "", "exact" or "fitted".
    """

    kind: str
    parts: tuple[tuple[Form, Fraction], ...] = ()
    factor: str = ""


_ONE = Fraction(1)
_HALVES = 2
_SMALL = frozenset(Fraction(number) for number in NUMBERS)
# Nats to say whether a term of the outermost sum has a factor, exact or fitted.
_FACTOR = math.log(3.0)
# And which sign each further one has.
_SIGN = math.log(2.0)
# Share of laws that have in a place what the counted ones have in a wider one: other fields write other laws.
ELSEWHERE = 0.05
# About as many different events there are: what has never been seen anywhere is one of them.
_EVENTS = 40
_VARIABLE, _NUMBER, _CONSTANT = Form("variable"), Form("number"), Form("constant")


def take_apart(expression: Expression) -> Form:
    """The form of a formula."""
    match expression:
        case Variable():
            return _VARIABLE
        case Number(exact=True, value=value):
            # Laws hold small numbers; 33/10 is as usual as 3.3, and what it is costs more to say.
            return _NUMBER if abs(Fraction(value)) in _SMALL else _CONSTANT
        case Apply(operator="add" | "sub" | "neg"):
            return _sum(expression)
        case Apply(operator="mul" | "div" | "sqrt"):
            return _product(expression)
        case Apply(operator="pow", arguments=(_, Number(exact=True))):
            return _product(expression)
        case Apply(operator=name, arguments=arguments):
            kind = "power" if name == "pow" else name
            return Form(kind, tuple((take_apart(argument), _ONE) for argument in arguments))
        case _:
            return _CONSTANT


def _sum(expression: Expression) -> Form:
    found: list[tuple[Form, Fraction]] = []

    def collect(node: Expression, sign: int) -> None:
        match node:
            case Apply(operator="add", arguments=(left, right)):
                collect(left, sign)
                collect(right, sign)
            case Apply(operator="sub", arguments=(left, right)):
                collect(left, sign)
                collect(right, -sign)
            case Apply(operator="neg", arguments=(inner,)):
                collect(inner, -sign)
            case _:
                found.append((take_apart(node), Fraction(sign)))

    collect(expression, 1)
    if len(found) == 1:
        ((inner, sign),) = found
        return Form("minus", ((inner, sign),))
    return Form("sum", tuple(found))


def _product(expression: Expression) -> Form:
    factors: list[tuple[Form, Fraction]] = []
    numbers: list[str] = []

    def collect(node: Expression, exponent: Fraction) -> None:
        match node:
            case Apply(operator="mul", arguments=(left, right)):
                collect(left, exponent)
                collect(right, exponent)
            case Apply(operator="div", arguments=(left, right)):
                collect(left, exponent)
                collect(right, -exponent)
            case Apply(operator="sqrt", arguments=(inner,)):
                collect(inner, exponent / 2)
            case Apply(operator="pow", arguments=(base, Number(exact=True) as power)):
                collect(base, exponent * Fraction(power.value))
            case Apply(operator="neg", arguments=(inner,)):
                collect(inner, exponent)
            case Number(exact=exact):
                if not exact or node.value not in (1, -1):
                    small = exact and abs(Fraction(node.value)) in _SMALL
                    numbers.append("exact" if small else "fitted")
            case Parameter():
                numbers.append("fitted")
            case _ if exponent.denominator > _HALVES:
                # The laws that were counted have no thirds; they are as usual as exponents that were fitted.
                factors.append((Form("power", ((take_apart(node), _ONE), (_CONSTANT, _ONE))), _ONE))
            case _:
                # A fitted exponent has either sign.
                part = take_apart(node)
                factors.append((part, abs(exponent) if part.kind == "power" else exponent))

    collect(expression, _ONE)
    factor = "" if not numbers else "fitted" if "fitted" in numbers else "exact"
    if not factors:
        return _CONSTANT if factor == "fitted" else _NUMBER
    if len(factors) == 1 and not factor and factors[0][1] == 1:
        return factors[0][0]
    return Form("product", tuple(factors), factor)


def _has_own_sign(form: Form) -> bool:
    """Whether a fitted number says whether a term is added or subtracted."""
    return form.kind == "constant" or form.factor == "fitted"


def _power_name(exponent: Fraction) -> str:
    return str(exponent) if exponent.denominator <= 3 and abs(exponent) <= 6 else "other"


@lru_cache(maxsize=4_096)
def form_of(expression: Expression) -> tuple[Form, int]:
    """The form of a formula without its linear coefficients, and how many terms that has."""
    plain = without_linear_coefficients(expression)
    return take_apart(plain), len(terms(plain))


def events(form: Form, place: tuple[str, ...] = ("law", "")) -> Iterator[Event]:
    """What happens in writing a form down, each event with its place.

    Parameters
    ----------
    place
        Where it stands: what holds it, and what holds that.
    """
    yield ("kind", *place), form.kind
    match form.kind:
        case "product":
            yield ("factor", *place), form.factor
            yield ("factors", *place), str(min(len(form.parts), 12))
            for part, exponent in form.parts:
                yield ("exponent", part.kind, *place), _power_name(exponent)
                inside = f"{part.kind}^{_power_name(exponent)}" if part.kind == "sum" else "product"
                yield from events(part, (inside, place[0]))
        case "sum":
            yield ("terms", *place), str(min(len(form.parts), 12))
            for part, sign in form.parts:
                if not _has_own_sign(part):
                    yield ("sign", part.kind, *place), "+" if sign > 0 else "-"
                inside = place[0] if place[0].startswith("sum^") else f"sum in {place[0]}"
                yield from events(part, (inside, place[1]))
        case _:
            for part, _ in form.parts:
                yield from events(part, (form.kind, place[0]))


class FormPrior:
    """Counts of events, and the nats that they make of a form.

    Parameters
    ----------
    counts
        For each place, and each wider place it belongs to, how often each event was seen.
    """

    def __init__(self, counts: dict[tuple[str, ...], Counter[str]]) -> None:
        self.counts = counts
        self._totals = {place: (sum(seen.values()), len(seen)) for place, seen in counts.items()}
        self.probability = lru_cache(maxsize=100_000)(self._probability)

    @classmethod
    def counted(cls, seen: Iterable[tuple[Event, int]]) -> FormPrior:
        """Of events and how often they were seen."""
        counts: dict[tuple[str, ...], Counter[str]] = {}
        for (place, event), often in seen:
            for wider in _wider(place):
                counts.setdefault(wider, Counter())[event] += often
        return cls(counts)

    def _probability(self, place: tuple[str, ...], event: str) -> float:
        probability = 1.0 / _EVENTS
        for wider in reversed(_wider(place)):
            total, kinds = self._totals.get(wider, (0, 0))
            if total:
                seen = (self.counts[wider][event] + kinds * probability) / (total + kinds)
                probability = (1.0 - ELSEWHERE) * seen + ELSEWHERE * probability
        return probability

    def nats(self, expression: Expression, columns: int) -> float:
        """Nats to write the formula's form down, numbers left out.

        Parameters
        ----------
        columns
            From how many columns its variables are chosen.
        """
        form, pieces = form_of(expression)
        total = pieces * _FACTOR + (pieces - 1) * _SIGN
        total -= sum(math.log(self.probability(place, event)) for place, event in events(form))
        return total + _variables(form) * math.log(max(columns, 1)) - _orders(form)


def _wider(place: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A place and the wider ones it belongs to, narrowest first."""
    return [place[:end] for end in range(len(place), 0, -1)]


def _variables(form: Form) -> int:
    return 1 if form.kind == "variable" else sum(_variables(part) for part, _ in form.parts)


def _orders(form: Form) -> float:
    """Logarithm of the number of orders in which factors and terms could have been written."""
    own = math.lgamma(len(form.parts) + 1) if form.kind in ("product", "sum") else 0.0
    return own + sum(_orders(part) for part, _ in form.parts)


@lru_cache(maxsize=1)
def usual_forms() -> FormPrior:
    """The counts that ship, of the stream of training laws; see `tools/count_forms.py`."""
    text = files("physdiffuser.selection").joinpath("usual_forms.json").read_text(encoding="utf-8")
    counted = json.loads(text)["counts"]
    return FormPrior.counted(
        ((tuple(place.split("|")), event), often)
        for place, found in counted.items()
        for event, often in found.items()
    )
