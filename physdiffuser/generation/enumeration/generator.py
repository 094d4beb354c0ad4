"""The enumeration generator: stages of growing cost, the cheap ones first.

A run alternates between lookups that assume exact data (hashing, very fast) and screenings that do
not (matrix products), because it cannot know which kind of table it was given; each stage uses a
larger library than the one before. All stages work on every hypothesis about the reduction of the law.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import numpy as np

import physdiffuser.generation.enumeration.stages  # noqa: F401  # registers the stages
from physdiffuser.core.archive import NOTHING_LEFT, Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.work import MeteredGenerator, Work
from physdiffuser.device import HOST, Device
from physdiffuser.expressions import ONE, Expression, Variable
from physdiffuser.expressions.tree import mul
from physdiffuser.functions.standard_fits import standard_candidates
from physdiffuser.generation.enumeration.context import Context
from physdiffuser.generation.enumeration.ladders import LADDERS, Ladder, Ladders, Row, own_rows
from physdiffuser.generation.enumeration.registry import STAGES
from physdiffuser.generation.sparse.dictionary import make
from physdiffuser.generation.sparse.logarithmic import logarithmic
from physdiffuser.generation.sparse.regression import forward, least_squares, scaled
from physdiffuser.generation.sparse.sums import combination
from physdiffuser.library.matches import near_simple
from physdiffuser.noise.noise_floor import as_good, best_first, best_of_each_size, levels
from physdiffuser.reduction.factors import relevant_columns
from physdiffuser.reduction.proposed_reductions import ProposedReductions
from physdiffuser.reduction.trend import plausible
from physdiffuser.selection.description_length import leaves_noise

# Exact matches come last where numbers are rounded more coarsely than this.
FINE = 1e-6
# With fewer rows residuals pass for noise whatever they are.
ENOUGH_ROWS = 30


class EnumerationGenerator(MeteredGenerator):
    """Library lookups in order of cost; see the package's modules for each part.

    Parameters
    ----------
    device
        Where pairs are ranked and constants fitted.
    ladders
        Which stages run, in which order and at which sizes.
    """

    name = "enumeration"

    def __init__(self, device: Device = HOST, ladders: Ladders = LADDERS) -> None:
        super().__init__()
        self._device = device
        self._ladders = ladders

    def run(self, problem: Problem, archive: Archive) -> Work:
        """Candidates stage by stage; see `MeteredGenerator`."""
        if problem.columns == 0:
            return
        yield from sums_of_columns(problem)
        # Where a power law or a line fits exactly, the other usual laws are not worth their fits.
        if not archive.is_solved:
            yield from standard_candidates(problem, archive.analysis)
        yield from power_laws(archive.analysis.first.reductions, problem)
        yield 0.02
        context = Context(problem, self._device)
        ladder = self._ladder(context, archive)
        climb = _Climb(context, archive, self._ladders.proposed)
        if not (yield from climb.rows(ladder.first, climb.reductions)):
            new = yield from climb.collapse()
            if not (yield from climb.rows(ladder.first, new)):
                yield from climb.rows((*ladder.later, *own_rows()), climb.reductions)

    def _ladder(self, context: Context, archive: Archive) -> Ladder:
        if archive.analysis.first.noisy:
            return self._ladders.noisy
        # Numbers of few digits are screened first, for the screenings tell as many digits apart as they have;
        # so is a single column, whose screenings are cheap. Exact matches do not depend on weights.
        problem = context.problem
        exact_first = context.tolerance < FINE and problem.columns > 1 and not problem.exact_tried
        return self._ladders.clean if exact_first else self._ladders.clean.exact_last()


class _Climb:
    """One run's way up a ladder: the reductions that are known, and what has been tried.

    Parameters
    ----------
    proposed
        The rows for reductions that formulas propose.
    """

    def __init__(self, context: Context, archive: Archive, proposed: tuple[Row, ...]) -> None:
        analysis = archive.analysis.first
        self._context = context
        self._problem = context.problem
        self._archive = archive
        self._shows_noise = analysis.noisy
        self._levels = list(analysis.levels)
        self.reductions = list(analysis.reductions)
        if analysis.noisy:
            first = best_of_each_size(analysis.rough, self._levels)
            self.reductions = list(dict.fromkeys([*first, *self.reductions]))
        self._proposed = proposed
        self._proposals = ProposedReductions(self._problem, self._levels)
        # Whether functions with constants inside have been fitted.
        self._fitted_constants = False
        # The formula whose residuals were tested last, and whether they are noise.
        self._tested: tuple[Expression | None, bool] = (None, False)

    def rows(
        self, rows: Iterable[Row], reductions: list[Reduction]
    ) -> Generator[Candidate | float, None, bool]:
        """Work off rows on the reductions that each is for; returns whether the law was found."""
        for row in rows:
            stage = STAGES[row.stage]
            for reduction in row.suited(reductions):
                yield from self._on_proposed_reductions()
                if (stage.exact or stage.when_incomplete) and self._leaves_noise():
                    continue
                if stage.accepts(self._problem, reduction):
                    yield from stage.run(self._context, row.size, reduction)
                self._fitted_constants = self._fitted_constants or stage.fits_constants
                if self._archive.is_solved:
                    # What is simpler by this stage's own measure has been looked at.
                    return True
        return False

    def collapse(self) -> Generator[Candidate | float, None, list[Reduction]]:
        """Add the reductions by scale symmetries and data collapse; returns those that are plausible."""
        later = yield from self._archive.analysis.later()
        new = [reduction for reduction in later if reduction not in self.reductions]
        yield from power_laws(new, self._problem)
        every = [*new, *self.reductions]
        believed = set(plausible(self._problem, every))
        if self._shows_noise:
            # Noise grows where a factor that spans decades is divided out; this judges by the target.
            self._levels += levels(self._problem, new)
            believed |= as_good(self._levels)
            # Of the reductions with one feature only the first are tried with constants inside.
            every = best_first(every, self._levels)
        self.reductions = [reduction for reduction in every if reduction in believed]
        return [reduction for reduction in self.reductions if reduction in new]

    def _on_proposed_reductions(self) -> Work:
        """Work on reductions that formulas propose, once formulas are worth reading.

        A formula whose residuals are noise may be the law but for one function; before that, formulas
        worth reading have come up when functions with constants inside have been fitted.
        """
        if self._leaves_noise() or (self._fitted_constants and self._shows_noise):
            for reduction in self._proposals.take(self._archive, self.reductions):
                for row in self._proposed:
                    yield from STAGES[row.stage].run(self._context, row.size, reduction)

    def _leaves_noise(self) -> bool:
        """Whether the best formula so far leaves noise over: nothing exact is to be found then."""
        front = self._archive.front()
        if not front:
            return False
        best = min(front, key=self._archive.length)
        if best.loss < NOTHING_LEFT:
            return False
        expression = best.candidate.expression
        if expression != self._tested[0]:
            self._tested = expression, leaves_noise(self._problem, expression)
        return self._tested[1] and self._problem.rows >= ENOUGH_ROWS


def sums_of_columns(problem: Problem) -> Work:
    """Sums of the relevant columns, and power products of them with fitted exponents (sums of logarithms).

    What any other formula has to beat, in a few milliseconds.
    """
    weights = np.ones(problem.rows) if problem.weights is None else problem.weights
    columns = [Variable(column) for column in relevant_columns(problem.inputs, problem.target)]
    dictionary = make(list(columns), problem.inputs)
    for supports in forward(*scaled(dictionary.values, problem.target, weights)):
        best = supports[0].columns
        coefficients = least_squares(dictionary.values[:, best], problem.target, weights)
        if coefficients is None:
            continue
        tree = combination(coefficients, [dictionary.terms[column] for column in best])
        if tree is not None:
            yield Candidate(tree, "enumeration", ("fitted a sum of columns",))
    # The same of the logarithms.
    yield from logarithmic(problem, Reduction((), tuple(columns)), plain=True)


def power_laws(reductions: Iterable[Reduction], problem: Problem) -> Iterator[Candidate]:
    """Pure power laws: each hypothesis with nothing but a constant left."""
    for reduction in reductions:
        tree = reduction.factor()
        if tree is None:
            continue
        product = reduction.product(problem.inputs)
        weights = np.ones_like(product) if problem.weights is None else problem.weights
        scale = np.abs(product).max()
        unit = product / scale
        constant = float((weights * unit * problem.target).sum() / (weights * unit * unit).sum() / scale)
        if np.isfinite(constant) and constant != 0:
            number = near_simple(constant, 1e-11)
            yield Candidate(
                tree if number == ONE else mul(number, tree),
                "enumeration",
                ("the logarithm of the target is linear in the logarithms of the columns: a power law",),
            )
