"""Other ways to write a formula with fitted constants: what a search may find of a law."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from physdiffuser.expressions import Apply, Expression, Number
from physdiffuser.expressions.tree import substitute


def is_fitted(tree: Expression) -> bool:
    return isinstance(tree, Number) and not tree.exact


def everywhere(tree: Expression, rule: Callable[[Apply], Expression | None]) -> Expression:
    """A rule applied to every node, the innermost first."""
    if not isinstance(tree, Apply):
        return tree
    made = Apply(tree.operator, tuple(everywhere(part, rule) for part in tree.arguments))
    return rule(made) or made


def distributed(node: Apply) -> Expression | None:
    """`a*(b + c)` as `a*b + a*c`, `(b - c)/a` as `b/a - c/a`."""
    match node:
        case Apply(
            operator="mul", arguments=(left, Apply(operator="add" | "sub" as sign, arguments=(one, two)))
        ):
            return Apply(sign, (Apply("mul", (left, one)), Apply("mul", (left, two))))
        case Apply(
            operator="mul" | "div" as name,
            arguments=(Apply(operator="add" | "sub" as sign, arguments=(one, two)), right),
        ):
            return Apply(sign, (Apply(name, (one, right)), Apply(name, (two, right))))
    return None


def rescaled(rng: np.random.Generator) -> Callable[[Apply], Expression | None]:
    """A sum in a quotient, or under a root, times a number that is taken out again."""

    def times(tree: Expression, number: float) -> Expression:
        if isinstance(tree, Apply) and tree.operator in ("add", "sub"):
            return Apply(tree.operator, tuple(times(part, number) for part in tree.arguments))
        return Number(float(tree.value) * number) if is_fitted(tree) else Apply("mul", (Number(number), tree))  # type: ignore[union-attr]

    def rule(node: Apply) -> Expression | None:
        number = float(rng.uniform(0.2, 4.0))
        match node:
            case Apply(operator="div", arguments=(above, Apply(operator="add" | "sub") as below)):
                return Apply("div", (Apply("mul", (Number(number), above)), times(below, number)))
            case Apply(operator="sqrt", arguments=(Apply(operator="add" | "sub") as inside,)):
                return Apply(
                    "mul", (Number(1.0 / math.sqrt(number)), Apply("sqrt", (times(inside, number),)))
                )
        return None

    return rule


def inside_powers(node: Apply) -> Expression | None:
    """`(x - m)**2/w` as `(x/a - m/a)**2`, and `k/sqrt(u)` as `sqrt(k**2/u)`."""
    match node:
        case Apply(
            operator="div",
            arguments=(Apply(operator="pow", arguments=(base, power)), Number(value=float(scale))),
        ) if power == Number(2) and scale > 0:
            root = Number(1.0 / math.sqrt(scale))
            inside = everywhere(Apply("mul", (root, base)), distributed)
            return Apply("pow", (inside, power))
        case Apply(
            operator="div", arguments=(Number(value=number), Apply(operator="sqrt", arguments=(inside,)))
        ) if number > 0:
            return Apply("sqrt", (Apply("div", (Number(float(number) ** 2), inside)),))
    return None


def absorbed(node: Apply) -> Expression | None:
    """`A*exp(u)` as `exp(u + log(A))`."""
    match node:
        case Apply(
            operator="mul",
            arguments=(Number(value=float(number)), Apply(operator="exp", arguments=(inside,))),
        ) if number > 0:
            return Apply("exp", (Apply("add", (inside, Number(math.log(number)))),))
    return None


def without_phases(node: Apply) -> Expression | None:
    """`cos(u + p)` as `cos(p)*cos(u) - sin(p)*sin(u)`."""
    match node:
        case Apply(
            operator="cos" | "sin" as name,
            arguments=(Apply(operator="add", arguments=(angle, Number(value=float(phase)))),),
        ):
            cosine, sine = math.cos(phase), math.sin(phase)
            first = Apply("mul", (Number(cosine), Apply(name, (angle,))))
            if name == "cos":
                return Apply("sub", (first, Apply("mul", (Number(sine), Apply("sin", (angle,))))))
            return Apply("add", (first, Apply("mul", (Number(sine), Apply("cos", (angle,))))))
    return None


def shifted_phases(node: Apply) -> Expression | None:
    """`cos(u + p)` as a sine, and `sin(u + p)` as a cosine."""
    match node:
        case Apply(
            operator="cos" | "sin" as name,
            arguments=(Apply(operator="add", arguments=(angle, Number(value=float(phase)))),),
        ):
            shifted = Apply("add", (angle, Number(phase + math.pi / 2)))
            return Apply("sin", (shifted,)) if name == "cos" else Apply("neg", (Apply("cos", (shifted,)),))
    return None


def scrambles(tree: Expression, seed: int) -> dict[str, Expression]:
    """The formula written in several ways, by name."""
    rng = np.random.default_rng(seed)
    made = {
        "as written": tree,
        "multiplied out": everywhere(tree, distributed),
        "rescaled": everywhere(tree, rescaled(rng)),
        "amplitudes in exponents": everywhere(tree, absorbed),
        "inside powers": everywhere(tree, inside_powers),
        "phases expanded": everywhere(tree, without_phases),
    }
    made["shifted phases"] = everywhere(tree, shifted_phases)
    made["phases expanded and multiplied out"] = everywhere(made["phases expanded"], distributed)
    made["rescaled and multiplied out"] = everywhere(made["rescaled"], distributed)
    return made


def with_numbers(tree: Expression, values: dict[int, float | Fraction]) -> Expression:
    """Fitted numbers for some columns of a formula."""

    def number(node: Expression) -> Expression | None:
        index = getattr(node, "index", None)
        return Number(values[index]) if index in values else None

    return substitute(tree, number)
