"""The evolution generator: one generation a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from physdiffuser.core.archive import Archive
from physdiffuser.core.candidate import Candidate
from physdiffuser.core.formula_fits import loss_of
from physdiffuser.core.problem import Budget, Problem
from physdiffuser.expressions import OPERATORS, Expression, Number, Variable, complexity, to_text
from physdiffuser.expressions.tree import free_constants, mul, substitute
from physdiffuser.fitting import fit_constants, refit
from physdiffuser.fitting.student import student_weights
from physdiffuser.generation.evolution.blind import BlindMutation
from physdiffuser.generation.evolution.blocks import Blocks
from physdiffuser.generation.evolution.enrich import enriched
from physdiffuser.generation.evolution.mutation import Mutation, SemanticMutation, Surroundings
from physdiffuser.generation.evolution.policy import POLICY, EvolutionPolicy
from physdiffuser.generation.evolution.population import Elites, Individual
from physdiffuser.generation.evolution.powerlaw import power_laws
from physdiffuser.generation.evolution.profile import profile
from physdiffuser.generation.evolution.refine import RUNAWAY, refine
from physdiffuser.generation.evolution.restrictions import form_test, relevant_columns
from physdiffuser.generation.evolution.scaling import Scaling, without_signs
from physdiffuser.generation.evolution.scoring import LOSS_FLOOR, Scorer
from physdiffuser.generation.evolution.simplify import degenerate, simpler, strip, without_rounding

_STREAM = 0xE701


class EvolutionGenerator:
    """Populations with subtree mutation and crossover, constants fitted in every candidate.

    Parameters
    ----------
    mutations
        Further variations, each given `EvolutionPolicy.subtree_targets` parents a generation.
    policy
        Sizes of a generation and of the population, among others; `POLICY` when None.
    """

    name = "evolution"

    def __init__(self, *, mutations: Sequence[Mutation] = (), policy: EvolutionPolicy | None = None) -> None:
        self._policy = POLICY if policy is None else policy
        self.generations = 0
        self._blind = BlindMutation()
        self._semantic = SemanticMutation()
        self._informed: tuple[Mutation, ...] = (self._semantic, *mutations)
        self._started = False

    @property
    def scored(self) -> int:
        """Formulas evaluated and fitted so far."""
        return self._scorer.scored if self._started else 0

    def propose(self, problem: Problem, archive: Archive, budget: Budget) -> Iterator[Candidate]:
        """Yield formulas that improve the archive; one step is one generation."""
        if budget.exhausted or not problem.columns:
            return
        if not self._started:
            self._start(problem)
            self._seed(archive)
            yield from self._improvements(archive)
            if not budget.spend():
                return
        if not len(self._around.blocks):
            return
        self._seed(archive)
        while True:
            self._generation()
            yield from self._improvements(archive)
            if not budget.spend():
                return

    def _start(self, problem: Problem) -> None:
        self._started = True
        self._problem = problem
        self._rng = problem.generator(_STREAM)
        rows = np.arange(problem.rows)
        if problem.rows > self._policy.screening_rows:
            rows = np.sort(self._rng.choice(problem.rows, self._policy.screening_rows, replace=False))
        self._scaling = Scaling.of(problem.inputs, problem.target)
        self._inputs = self._scaling.apply(problem.inputs)
        self._target = self._scaling.apply_target(problem.target)
        weights = None if problem.weights is None else problem.weights[rows]
        self._base_weights = weights
        self._scorer = Scorer(self._inputs[rows], self._target[rows], weights)
        columns = relevant_columns(self._scorer, problem.columns)
        allowed = problem.operators
        self._balanced = form_test(problem)
        blocks = Blocks(self._scorer.inputs, columns, allowed, self._policy.blocks, self._balanced)
        arities = {name: OPERATORS[name].arity for name in sorted(allowed)}
        self._around = Surroundings(
            blocks,
            self._scorer,
            tuple(name for name, arity in arities.items() if arity == 1),
            tuple(name for name, arity in arities.items() if arity == 2),
            problem.constants,
            tuple(columns),
            self._scaling.restore,
            self._scale_in,
        )
        limit = min(problem.max_complexity, self._policy.limit)
        self._elites = Elites(limit, self._policy.width, self._policy.decay)
        self._seen: set[tuple[bytes, int]] = set()
        self._tried: set[Expression] = set()
        self._seeded: set[Expression] = set()
        self._offered: dict[int, float] = {}
        self._add(blocks.expressions, "a building block")
        self._add(power_laws(self._scorer, columns), "a power law")

    def _generation(self) -> None:
        self.generations += 1
        if self._problem.loss == "robust":
            self._reweight()
        if not len(self._elites):
            drawn = [self._around.blocks.draw(self._rng) for _ in range(self._policy.offspring)]
            self._add(drawn, "a building block")
            return
        parents = self._elites.draw(self._rng, self._policy.offspring)
        self._add(self._blind.propose(parents, self._around, self._rng), self._blind.name)
        self._add(self._semantic.pairs(self._policy.lookups, self._around, self._rng), self._semantic.name)
        for mutation in self._informed:
            parents = self._elites.draw(self._rng, self._policy.subtree_targets)
            self._add(mutation.propose(parents, self._around, self._rng), mutation.name)
        self._refine()
        if self.generations % self._policy.limit_interval == 0:
            self._restrict()

    def _restrict(self) -> None:
        """Give up the formulas far more complex than the simplest that is as good as the best."""
        front = self._elites.front()
        if not front:
            return
        best = front[-1].loss
        simplest = next(one for one in front if one.loss <= best * self._policy.as_good)
        room = self._policy.room_exact if best <= 10 * LOSS_FLOOR else self._policy.room
        most = min(self._problem.max_complexity, self._policy.limit)
        self._elites.restrict(min(most, simplest.complexity + room))

    def _add(
        self, expressions: Sequence[Expression], source: str, fitted: bool = False, again: bool = False
    ) -> None:
        """Score formulas and keep those that find a place; equals of earlier ones only `again`."""
        fresh: list[tuple[Expression, int, str]] = []
        allowed = self._problem.operators
        for expression in expressions:
            known = profile(expression, allowed)
            if known is not None and known[0] <= self._elites.limit and self._balanced(expression):
                fresh.append((expression, *known))
        if not fresh:
            return
        scores = self._scorer.score([expression for expression, _, _ in fresh])
        for row in np.flatnonzero(np.isfinite(scores.loss)).tolist():
            expression, cost, kind = fresh[row]
            mark = (scores.keys[row], cost)
            if mark in self._seen and not again:
                continue
            self._seen.add(mark)
            one = Individual(
                expression,
                cost,
                kind,
                float(scores.loss[row]),
                float(scores.factor[row]),
                float(scores.offset[row]),
                scores.keys[row],
                source,
                fitted,
            )
            self._elites.add(one)

    def _refine(self) -> None:
        """Improve the constants of promising formulas, and try what is simpler next to the best."""
        front = self._elites.front()
        for one in front:
            if not one.simplified:
                one.simplified = True
                self._add(simpler(one.expression), one.source)
        unprobed = [one for one in front if not one.probed][: self._policy.probes]
        for one in unprobed:
            one.probed = True
            self._add(self._semantic.everywhere(one, self._around), self._semantic.name)
            self._enrich(one.expression)
        pool = self._elites.front() + self._elites.draw(self._rng, 3 * self._policy.refinements, 4)
        ready = list({id(one): one for one in pool if not one.fitted}.values())
        for one in ready[: self._policy.refinements]:
            one.fitted = True
            self._improve(one.expression, one.offset != 0.0, one.source)
        for _ in range(self._policy.restarts):
            pool = self._elites.front() + self._elites.draw(self._rng, 8, 6)
            untried = [one for one in pool if free_constants(one.expression)[0] not in self._tried]
            if untried:
                self._restart(min(untried, key=lambda one: one.loss * 1.1**one.complexity))

    def _enrich(self, expression: Expression) -> None:
        """Put in the constants that promise most, and fit them."""
        scorer = self._scorer
        for richer in enriched(
            expression,
            scorer.inputs,
            scorer.target,
            scorer.share,
            self._problem.operators,
            self._policy.enrichments,
        ):
            self._improve(richer, True, "one more constant")

    def _improve(self, expression: Expression, offset: bool, source: str) -> Expression | None:
        """Keep the formula with better constants, and return it."""
        scorer, steps = self._scorer, self._policy.iterations
        better = refine(expression, scorer.inputs, scorer.target, scorer.share, offset, steps)
        if better is None:
            return None
        refined, converged = better
        if degenerate(refined, scorer.inputs):
            return None
        self._add([strip(refined, self._problem.columns)], source, converged, True)
        return refined

    def _restart(self, one: Individual) -> None:
        """Fit the constants of a formula from many starts."""
        self._tried.add(free_constants(one.expression)[0])
        skeleton, start = free_constants(one.whole())
        fit = fit_constants(
            skeleton,
            self._scorer.inputs,
            self._scorer.target,
            weights=self._base_weights,
            loss=self._problem.loss,
            initial=start,
            starts=8,
            iterations=20,
            rng=self._rng,
        )
        inner = strip(fit.expression, self._problem.columns)
        ran_away = max(map(abs, free_constants(inner)[1]), default=0.0) > RUNAWAY
        if np.isfinite(fit.loss) and not ran_away and not degenerate(inner, self._scorer.inputs):
            self._add([inner], one.source, True, True)

    def _reweight(self) -> None:
        """Student's weights, from the residuals of the formula that fits most rows best.

        Iterated least squares. Not of the formula of smallest loss: that one bends towards the outliers.
        """
        first, interval = self._policy.first_reweightings, self._policy.reweighting_interval
        if self.generations not in first and self.generations % interval:
            return
        target = self._scorer.target
        best = np.inf
        residual = None
        for one in self._elites.front():
            value = one.offset + one.factor * self._scorer.values([one.expression])[0]
            left = np.abs(target - value)
            merit = np.log(np.median(left) + 1e-300) + self._policy.price * one.full_complexity
            if merit < best:
                best, residual = merit, left
        if residual is None:
            return
        if residual.any():
            weights = student_weights(residual)
            if self._base_weights is not None:
                weights = weights * self._base_weights
            self._scorer.reweight(weights)
            everyone = [one.expression for one in self._elites.everyone()]
            self._elites.rescore([])
            self._seen.clear()
            self._add(everyone, "an earlier formula, reweighted,", again=True)

    def _seed(self, archive: Archive) -> None:
        """Formulas that others have found, in scaled columns."""
        new = [entry.candidate for entry in archive.front()]
        trees: list[Expression] = []
        for candidate in new:
            if candidate.expression in self._seeded or candidate.generator == self.name:
                continue
            self._seeded.add(candidate.expression)
            trees.append(self._scale_in(candidate.expression))
        source = "a formula of another generator"
        self._add(trees, source)
        for tree in trees[-self._policy.seeds :]:
            # Others may have the form and lack a constant: what would take long to reach by chance.
            fitted = self._improve(tree, True, source) or tree
            self._enrich(fitted)

    def _scale_in(self, expression: Expression) -> Expression:
        exponents = self._scaling.columns

        def replace(node: Expression) -> Expression | None:
            if isinstance(node, Variable) and exponents[node.index]:
                return mul(Number(10.0 ** exponents[node.index]), node)
            return None

        return substitute(expression, replace)

    def _improvements(self, archive: Archive) -> Iterator[Candidate]:
        """Formulas on this population's front that would enter the archive's."""
        for one in self._elites.front():
            cost = one.full_complexity
            known = min((loss for size, loss in self._offered.items() if size <= cost), default=np.inf)
            if one.loss >= known * self._policy.improvement:
                continue
            self._offered[cost] = one.loss
            candidate = self._candidate(one)
            if profile(candidate.expression, self._problem.operators) is None:
                continue
            cost = complexity(candidate.expression)
            loss = loss_of(candidate.expression, self._problem)
            if any(entry.loss <= loss * (1 + 1e-9) and entry.complexity <= cost for entry in archive.front()):
                continue
            yield candidate

    def _candidate(self, one: Individual) -> Candidate:
        problem = self._problem
        whole = one.whole()
        # At rounding there is nothing to refine on noise-free rows but the last digits.
        fit = refit(whole, self._inputs, self._target, weights=problem.weights, loss=problem.loss)
        ran_away = max(map(abs, fit.parameters), default=0.0) > RUNAWAY * max(1.0, abs(one.factor))
        if np.isfinite(fit.loss) and not ran_away:
            whole = fit.expression
        whole = without_rounding(whole, self._scorer.inputs)
        expression = self._scaling.restore(whole)
        expression = without_signs(expression, problem.operators)
        text = to_text(expression, problem.names, 4)
        exact = " (exact on the rows compared)" if one.loss <= 10 * LOSS_FLOOR else ""
        sentence = f"evolution: generation {self.generations}, {one.source} gave {text}{exact}"
        return Candidate(expression, self.name, (sentence,))
