"""Parts of laws: those that one law proposes to another, and those that two laws share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from physdiffuser.core.solution import Solution
from physdiffuser.data.dataset import Dataset
from physdiffuser.expressions import Apply, Expression, Parameter, Variable, to_text
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.tree import (
    add,
    free_constants,
    mul,
    parameter_count,
    size,
    variables,
    walk,
    with_columns,
)
from physdiffuser.fitting import fit_constants

# Parts of one law that are proposed, nodes that a part has, and columns that are put beside it.
MAX_PARTS, MIN_NODES, MAX_COLUMNS = 8, 3, 4
# Rows that proposals are fitted to; the search refits them to all of its own.
ROWS = 300


@dataclass(frozen=True)
class SharedPart:
    """A part that several laws have.

    Attributes
    ----------
    text
        The part, with `c1`, `c2`, ... for fitted constants.
    targets
        Names of the targets whose laws have it.
    """

    text: str
    targets: tuple[str, ...]


def parts_of(expression: Expression) -> list[Expression]:
    """Distinct parts with a variable in them, the largest first."""
    found: dict[Expression, Expression] = {}
    for node in walk(expression):
        if isinstance(node, Apply) and size(node) >= MIN_NODES and variables(node):
            found.setdefault(_form(node), node)
    return sorted(found.values(), key=size, reverse=True)


def proposals(laws: Sequence[tuple[Expression, Sequence[str]]], dataset: Dataset, seed: int) -> list[str]:
    """Formulas for a target that are built from the parts of other laws.

    Each part is tried with a factor, beside a constant, and times and beside each of a few columns; the
    constants are fitted.

    Parameters
    ----------
    laws
        The chosen law of each other target, and the aliases of its columns.
    dataset
        The table of the target.
    seed
        Random seed of the fits.
    """
    rows = np.linspace(0, dataset.rows - 1, min(dataset.rows, ROWS)).astype(np.intp)
    some = dataset.take(rows)
    texts: dict[str, None] = {}
    for part in _parts_for(laws, dataset.names):
        for skeleton, start in _around(part, len(dataset.names)):
            with np.errstate(all="ignore"):
                fit = fit_constants(
                    skeleton,
                    some.inputs,
                    some.target,
                    weights=some.weights,
                    initial=start,
                    starts=4,
                    rng=np.random.default_rng([seed, 12]),
                )
            if np.isfinite(fit.loss):
                texts[to_text(fit.expression, dataset.names)] = None
    return list(texts)


def _parts_for(
    laws: Sequence[tuple[Expression, Sequence[str]]], names: Sequence[str]
) -> Iterator[Expression]:
    """Parts of the laws in the columns of another table; those that hold another column are left out."""
    seen: set[Expression] = set()
    for law, own in laws:
        for part in parts_of(law)[:MAX_PARTS]:
            if not {own[index] for index in variables(part)} <= set(names):
                continue
            moved = with_columns(part, {index: names.index(own[index]) for index in variables(part)})
            form = _form(moved)
            if form not in seen:
                seen.add(form)
                yield moved


def _around(part: Expression, columns: int) -> Iterator[tuple[Expression, list[float]]]:
    """Skeletons around a part, with values to start from."""
    inner, values = free_constants(part)
    free = parameter_count(inner)
    factor, offset = Parameter(free), Parameter(free + 1)
    scaled = mul(factor, inner)
    yield scaled, [*values, 1.0]
    yield add(offset, scaled), [*values, 1.0, 0.0]
    for index in range(min(columns, MAX_COLUMNS)):
        yield mul(scaled, Variable(index)), [*values, 1.0]
        yield add(mul(offset, Variable(index)), scaled), [*values, 1.0, 0.0]


def _form(part: Expression) -> Expression:
    """What two parts have in common that differ in their fitted constants."""
    return free_constants(canonical(part))[0]


def named_form(part: Expression, names: Sequence[str]) -> str:
    """The form as text, in the names of the columns, for comparison between tables."""
    return to_text(_form(part), names)


def shared_parts(solutions: Mapping[str, Solution]) -> tuple[SharedPart, ...]:
    """The largest parts that the chosen laws of two targets or more have in common."""
    where: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    inner: dict[str, set[str]] = {}
    for target, solution in solutions.items():
        if solution.best is None:
            continue
        for part in parts_of(solution.best.expression):
            form = named_form(part, solution.names)
            where.setdefault(form, []).append(target)
            sizes[form] = size(part)
            inner[form] = {named_form(one, solution.names) for one in parts_of(part)} - {form}
    shared = sorted((form for form in where if len(where[form]) > 1), key=lambda form: -sizes[form])
    kept: list[str] = []
    for form in shared:
        if not any(form in inner[other] and where[other] == where[form] for other in kept):
            kept.append(form)
    return tuple(SharedPart(form, tuple(where[form])) for form in kept)
