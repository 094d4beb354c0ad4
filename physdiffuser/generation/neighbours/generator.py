"""Small changes of the shortest descriptions so far: a part left out, exchanged or put in, and fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Archive, entries_to_vary
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.derivation import LONGEST_SHOWN, found_as, target_symbol
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import Apply, Expression, evaluate
from physdiffuser.expressions.tree import positions, replace_at
from physdiffuser.fitting import refit
from physdiffuser.generation.neighbours.insertions import insertions
from physdiffuser.generation.neighbours.removals import as_meant, removals
from physdiffuser.generation.neighbours.replacements import Replacements
from physdiffuser.generation.neighbours.ties import ties
from physdiffuser.selection.description_length import NATS_PER_UNIT


@dataclass(frozen=True)
class NeighbourSearchPolicy:
    """How much of the neighbourhood of a formula is searched.

    Set on the third and fourth set of development laws (docs/search.md).
    """

    entries: int = 5
    within: float = 150.0
    """Entries whose neighbours are searched in one call; one that takes `within` nats more than the shortest
    is left out."""
    into_entry: int = 8
    into_part: int = 2
    """Insertions that are fitted, for an entry itself and for each formula with a part of it left out."""
    moved: int = 2
    """Of how many entries a call parts are left out and others put in."""
    replaced: int = 2
    replacements: int = 24
    fits_of_place: int = 3
    """Of how many entries other parts are looked up, how many of these are fitted, and how many fits take as
    long as looking up what could stand in one place."""
    fits_per_step: int = 40
    """Fits for a step, a tenth of a second or so."""


POLICY = NeighbourSearchPolicy()

FUNCTIONS = ("exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "atan", "sinh", "cosh")


class NeighbourGenerator:
    """Varies the entries of the archive, the shortest description first, each once.

    Parameters
    ----------
    device
        Where it is ranked what could stand in a place.
    """

    name = "neighbours"

    def __init__(self, device: Device = HOST) -> None:
        self._device = device
        self._seen: set[Expression] = set()
        self._tried: set[Expression] = set()
        self._fits = 0
        self._replacements: Replacements | None = None

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Neighbours of entries that were not looked at before, fitted; returns when there are none left."""
        target = target_symbol(problem)
        for number, entry in enumerate(entries_to_vary(archive, self._seen, POLICY.within, POLICY.entries)):
            if budget.exhausted:
                return
            found = entry.candidate
            self._seen.add(found.expression)
            formula = found_as(target, found.expression, problem)
            derivation = (*found.derivation, f"varied, as the rows ask for more or less of it: {formula}")
            around = self._around(problem, found.expression, moved=number < POLICY.moved)
            if number < POLICY.replaced:
                around = chain(self._replaced(problem, found.expression), around)
            for expression in around:
                yield Candidate(
                    expression, self.name, derivation if len(formula) <= LONGEST_SHOWN else found.derivation
                )
                steps, self._fits = divmod(self._fits, POLICY.fits_per_step)
                if steps and not budget.spend(steps):
                    return

    def _around(self, problem: Problem, expression: Expression, *, moved: bool) -> Iterator[Expression]:
        simpler = [*ties(expression), *removals(expression)]
        parts = self._new([*simpler, *_exchanged(expression, problem.operators)])
        yield from self._put_in(problem, expression, POLICY.into_entry)
        for part in parts:
            fitted = self._fitted(problem, part)
            if fitted is None:
                continue
            yield fitted
            if moved:
                yield from self._put_in(problem, fitted, POLICY.into_part)

    def _replaced(self, problem: Problem, expression: Expression) -> Iterator[Expression]:
        """The formula, and what its constants make it look like, with other parts that the rows ask for."""
        for whole in dict.fromkeys((expression, as_meant(expression))):
            residual = self._residual(problem, whole)
            if residual is None:
                continue
            if self._replacements is None:
                self._replacements = Replacements(problem, self._device)
            self._fits += POLICY.fits_of_place * len(positions(whole))
            for new in self._new(self._replacements.of(whole, residual, POLICY.replacements)):
                fitted = self._fitted(problem, new)
                if fitted is not None:
                    yield fitted

    def _residual(self, problem: Problem, expression: Expression) -> FloatArray | None:
        """Residuals of a formula, outliers cut; None where it is no number."""
        with np.errstate(all="ignore"):
            residual = problem.target - evaluate(expression, problem.inputs)
        if not np.isfinite(residual).all():
            return None
        if problem.loss == "robust":
            limit = 2.5 * 1.4826 * float(np.median(np.abs(residual)))
            residual = np.clip(residual, -limit, limit)
        return np.asarray(residual, np.float64)

    def _put_in(self, problem: Problem, expression: Expression, most: int) -> Iterator[Expression]:
        residual = self._residual(problem, expression)
        if residual is None:
            return
        self._fits += 2
        changed = insertions(expression, problem.inputs, residual, problem.weights, most, NATS_PER_UNIT)
        for new in self._new(changed):
            fitted = self._fitted(problem, new)
            if fitted is not None:
                yield fitted

    def _fitted(self, problem: Problem, expression: Expression) -> Expression | None:
        if not problem.admits(expression):
            return None
        self._fits += 1
        fit = refit(expression, problem.inputs, problem.target, weights=problem.weights, loss=problem.loss)
        return fit.expression if np.isfinite(fit.loss) else None

    def _new(self, expressions: list[Expression]) -> list[Expression]:
        fresh = [expression for expression in dict.fromkeys(expressions) if expression not in self._tried]
        self._tried.update(fresh)
        return fresh


def _exchanged(expression: Expression, allowed: frozenset[str]) -> list[Expression]:
    """The formula with one function instead of another."""
    return [
        replace_at(expression, path, Apply(name, node.arguments))
        for path, node in positions(expression)
        if isinstance(node, Apply) and node.operator in FUNCTIONS
        for name in FUNCTIONS
        if name != node.operator and name in allowed
    ]
