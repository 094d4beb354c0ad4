"""What happens to a candidate on its way into the archive: refitted constants, simpler forms, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from physdiffuser.core.candidate import Candidate
from physdiffuser.core.formula_fits import loss_of, refitted
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.tree import fitted_constants, free_constants
from physdiffuser.functions.standard_fits import fit_further_forms
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.refinement.limiting_forms import limiting_form
from physdiffuser.search.refinement.rewriting import (
    small_phases,
    tame,
    without_powers,
    worth_arranging,
    worth_rounding,
)

# Simpler forms of a formula are sought if its description is at most so many nats longer than the shortest.
WORTH_ARRANGING = 60.0
# Formulas whose constants are fitted under the constraints of the user, after each turn; each takes about
# 0.05 s.
MAX_CONSTRAINED = 24


class Polisher:
    """Offers candidates to an archive, with their constants refitted and in simpler forms.

    Parameters
    ----------
    floor
        Relative loss that rounding of the target alone causes; constants of a formula are not refitted once
        this has been reached.
    """

    def __init__(self, problem: Problem, archive: ParetoArchive, floor: float) -> None:
        self._problem, self._archive, self._floor = problem, archive, floor
        # Formulas whose constants were fitted under the constraints, and their skeletons.
        self._constrained: set[Expression] = set()
        # Families of one input that are no usual laws, with the length of their descriptions; fitted once.
        self._families: list[tuple[float, Candidate]] | None = None

    def offer(self, candidate: Candidate, shortest: float) -> bool:
        """Offer a candidate and its variants; whether the archive may have changed.

        Parameters
        ----------
        shortest
            Nats of the shortest description so far.
        """
        candidate = replace(candidate, expression=small_phases(self._permitted(candidate.expression)))
        if self._archive.offer(candidate):
            self._offer_variants(candidate, shortest)
        elif self._archive.cancelled:
            self._offer_limit(candidate)
        else:
            return False
        return True

    def _offer_variants(self, candidate: Candidate, shortest: float) -> None:
        expression = candidate.expression
        if fitted_constants(expression) and self._archive.best_loss > self._floor:
            expression = refitted(expression, self._problem)
        if expression != candidate.expression:
            self._archive.offer(replace(candidate, expression=expression))
        if self._archive.latest <= shortest + WORTH_ARRANGING:
            for form in self._arranged(expression):
                self._archive.offer(replace(candidate, expression=form))

    def _offer_limit(self, candidate: Candidate) -> None:
        """In place of a formula whose terms cancel, the formula that it approaches."""
        limit = limiting_form(candidate.expression, self._problem.inputs)
        if limit is not None and worth_arranging(limit):
            limit = refitted(arrange(limit, positive=self._problem.positive), self._problem)
            self._archive.offer(replace(candidate, expression=self._permitted(limit)))

    def constrained(self, stop: Callable[[], bool]) -> Iterator[Candidate]:
        """In place of formulas that violate a constraint, the same with constants for which they do not.

        Those with the shortest descriptions of all that were not tried yet, as far as they are shorter than
        those that satisfy the constraints: other constants only make them longer. Few rows hardly tell
        families of functions apart and constraints do, so the families of one input are among them.

        Parameters
        ----------
        stop
            Asked whether to end.
        """
        problem = self._problem.all_rows
        if problem.rules is None:
            return
        count = 0
        for length, candidate in sorted(self._to_constrain(stop), key=lambda pair: pair[0]):
            if count == MAX_CONSTRAINED or length >= self._archive.shortest or stop():
                return
            if candidate.expression in self._constrained:
                continue
            # Arranged before: with exact numbers in it, a formula is longer as a textbook writes it.
            free = self._as_simple(candidate.expression)
            skeleton, _ = free_constants(free)
            if skeleton not in self._constrained:
                self._constrained |= {candidate.expression, skeleton}
                count += 1
                made = free if problem.satisfies(free) else problem.rules.fitted(free, problem)
                if made is not None:
                    yield replace(candidate, expression=made)

    def _as_simple(self, expression: Expression) -> Expression:
        """The formula arranged, if it has no more constants then."""
        if not worth_arranging(expression):
            return expression
        arranged = self._permitted(arrange(expression, positive=self._problem.positive))
        fewer = fitted_constants(arranged) <= fitted_constants(expression)
        return arranged if fewer and tame(arranged, expression) else expression

    def _to_constrain(self, stop: Callable[[], bool]) -> list[tuple[float, Candidate]]:
        """Formulas that may violate a constraint, with the length of their descriptions."""
        if self._families is None:
            said = ("fitted a family of functions of one input",)
            measure, problem = self._archive.description_length, self._problem
            fitted = [fit.expression for fit in fit_further_forms(problem, stop)]
            self._families = [
                (measure.length(one, loss_of(one, problem)), Candidate(one, "enumeration", said))
                for one in fitted
            ]
        violating = self._archive.violating
        entries = () if violating is None else (*violating.front(), *violating.near())
        return [*self._families, *((self._archive.length(entry), entry.candidate) for entry in entries)]

    def _arranged(self, expression: Expression) -> list[Expression]:
        """Simpler ways to write a formula, and what it stands for if its constants are at a limit."""
        positive = self._problem.positive
        forms = [expression]
        limit = limiting_form(expression, self._problem.inputs)
        if limit is not None and worth_arranging(limit):
            # A function at its limit stands for a simpler one.
            limit = arrange(refitted(limit, self._problem), positive=positive)
            forms += [limit, worth_rounding(limit)]
        for form in dict.fromkeys((*forms, worth_rounding(expression))):
            if worth_arranging(form):
                arranged = self._permitted(arrange(form, positive=positive))
                if tame(arranged, form):
                    forms.append(arranged)
        return forms[1:]

    def _permitted(self, expression: Expression) -> Expression:
        return expression if "pow" in self._problem.operators else without_powers(expression)
