"""The best law of several groups among many forms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray
from physdiffuser.core.problem import Rules
from physdiffuser.expressions import Expression, Number, complexity
from physdiffuser.expressions.tree import bind, parameter_count
from physdiffuser.groups.candidates import Form
from physdiffuser.groups.constrained import constrained_law, satisfied
from physdiffuser.groups.joint_fit import GroupedRows, JointFit, JointModel
from physdiffuser.groups.numbers import Placed, PutNumber, with_number
from physdiffuser.groups.sharing import GroupDescriptionLength, GroupLaw, best_sharing, separate_fits


@dataclass(frozen=True)
class GroupPolicy:
    """How the law of several groups is chosen.

    Set on development tables of groups.

    Attributes
    ----------
    thorough
        Forms of one search that are fitted thoroughly: those with the shortest description after a quick
        fit.
    reweighted_forms
        Forms that are considered again with the weights of another noise model.
    nearly_exact
        A loss of at most so many times that of rounding is rounding.
    chance
        A shared constant may become a number that fewer than this share of arbitrary constants lie as
        near to, and that is no further from it than one standard error.
    structural, deviations
        These values take a part of the form away: the description length decides about them, within so
        many standard errors.
    no_constant
        A constant of a noise-free table below this may be nothing but rounding.
    undetermined
        A constant with so many times its value as standard error is not determined.
    short_digits, same_digits
        Of a noise-free table a constant is a decimal of so many digits if it agrees with it to this
        accuracy.
    nearly_as_good
        The rows do not decide between descriptions that differ by less than so many nats: odds of 20 to
        1.
    worth_simplifying, max_simplified
        Simple numbers shorten a description by a few nats each: laws that are longer than the best by so
        many nats are simplified as well, at most so many laws.
    max_constrained
        Laws that are fitted under the constraints of the user after each search: the shortest.
    violating_again
        Laws that violate a constraint and are fitted again with the weights of another noise model.
    worth_showing
        A law that a simpler one nearly reaches is not shown: its loss must be smaller by this factor.
    """

    thorough: int = 14
    reweighted_forms: int = 30
    nearly_exact: float = 4.0
    chance: float = 0.005
    structural: tuple[float, ...] = (0.0, 1.0, -1.0)
    deviations: float = 3.0
    no_constant: float = 1e-12
    undetermined: float = 1e3
    short_digits: int = 5
    same_digits: float = 1e-11
    nearly_as_good: float = 3.0
    worth_simplifying: float = 8.0
    max_simplified: int = 10
    max_constrained: int = 8
    violating_again: int = 3
    worth_showing: float = 0.98


POLICY = GroupPolicy()


class GroupSelection:
    """Fits forms to all groups and keeps the laws that describe the table best.

    Parameters
    ----------
    rows
        The table.
    floor
        Relative loss that rounding alone causes.
    seed
        Random seed of the fits.
    stop
        Asked whether to end.
    allowed
        Whether a form may be an answer.
    rules
        Constraints, which the formulas of all groups have to satisfy; None without any.
    put_number
        Puts a number in place of a constant of a law.
    """

    def __init__(
        self,
        rows: GroupedRows,
        floor: float,
        seed: int,
        *,
        stop: Callable[[], bool] = lambda: False,
        allowed: Callable[[Expression], bool] = lambda expression: True,
        rules: Rules | None = None,
        put_number: PutNumber = with_number,
    ) -> None:
        self.rows, self._seed, self.stop = rows, seed, stop
        self._allowed, self._rules, self._put_number = allowed, rules, put_number
        self.measure = GroupDescriptionLength(rows, floor)
        self.laws: dict[Expression, GroupLaw] = {}
        # Laws that violate a constraint, and those of them that were fitted under the constraints.
        self._violating: dict[Expression, GroupLaw] = {}
        self._constrained: set[Expression] = set()
        self._usual: set[Expression] = set()
        self._forms: dict[Expression, tuple[float, Form]] = {}

    def reweighted(self, rows: GroupedRows, *, forms: bool, laws: int | None = None) -> GroupSelection:
        """The best laws fitted with other weights.

        Parameters
        ----------
        rows
            The same rows with other weights.
        forms
            Whether further forms are considered again, those with the shortest description after a quick fit.
        laws
            How many laws at most; as many as are fitted thoroughly when None.
        """
        most = POLICY.thorough if laws is None else laws
        again = GroupSelection(
            rows,
            self.measure.floor,
            self._seed,
            stop=self.stop,
            allowed=self._allowed,
            rules=self._rules,
            put_number=self._put_number,
        )
        again._usual = self._usual
        best = sorted(self.laws.values(), key=lambda law: law.length)[:most]
        for law in [*best, *self._shortest_violating()[: POLICY.violating_again]]:
            if self.stop() and again.laws:
                break
            again._refit(law.fit.skeleton, law.fit.parameters)
        others = sorted((one for one in self._forms.values()), key=lambda form: form[0])
        if forms:
            again.consider([form for _, form in others[: POLICY.reweighted_forms]])
        again._constrain()
        return again

    @property
    def violating(self) -> GroupLaw | None:
        """The law with the shortest description of those that violate a constraint."""
        return min(self._violating.values(), key=lambda law: law.length, default=None)

    @property
    def best(self) -> GroupLaw | None:
        """The law with the shortest description, or a usual law whose description is nearly as short.

        If none satisfies the constraints, the shortest of those that violate one.
        """
        least = min((law.length for law in self.laws.values()), default=0.0)
        near = {form: law for form, law in self.laws.items() if law.length < least + POLICY.nearly_as_good}
        usual = [law for form, law in near.items() if form in self._usual]
        return min(usual or near.values(), key=lambda law: law.length, default=self.violating)

    @property
    def exact(self) -> bool:
        """Whether the residuals of some law are rounding."""
        best = self.best
        return best is not None and best.fit.loss <= POLICY.nearly_exact * self.measure.floor

    def consider(self, forms: Sequence[Form], *, usual: bool = False) -> None:
        """Fit forms to all groups; the promising ones thoroughly. `usual` if they are usual laws."""
        self._usual |= {form.skeleton for form in forms} if usual else set()
        quick: list[tuple[float, Form]] = []
        for form in forms:
            if self.stop() and (quick or self.laws):
                break
            if form.skeleton in self.laws or not self._allowed(_bound(form)):
                continue
            model = JointModel(form.skeleton, self.rows)
            start = np.repeat(np.array(form.known)[:, None], self.rows.groups, axis=1)
            fit = model.fit(start, np.zeros(model.count, bool))
            quick.append((self._least(fit), form))
        quick.sort(key=lambda pair: pair[0])
        self._forms |= {form.skeleton: (least, form) for least, form in quick}
        for _, form in quick[: POLICY.thorough]:
            if self.stop() and self.laws:
                return
            self._take(form.skeleton, np.array(form.known))
        self._constrain()

    def simplify(self) -> None:
        """Replace shared constants by simple numbers where that shortens the description.

        The best laws are tried, the shortest first: of two that are nearly as good, only one may get shorter.
        """
        done: set[Expression] = set()
        while len(done) < POLICY.max_simplified and not self.stop():
            left = [law for form, law in self.laws.items() if form not in done]
            law = min(left, key=lambda law: law.length, default=None)
            if law is None or self.best is None or law.length > self.best.length + POLICY.worth_simplifying:
                return
            done.add(law.fit.skeleton)
            for skeleton, kept in filter(None, self._simpler(law.fit)):
                if skeleton not in self.laws and self._allowed(bind(skeleton, [1.5] * len(kept))):
                    simpler = best_sharing(skeleton, self.rows, self.measure, law.fit.parameters[kept])
                    if simpler is not None and simpler.length < law.length:
                        self._keep(simpler)

    def front(self) -> list[GroupLaw]:
        """The laws that no simpler one surpasses in accuracy, simple ones first; the best is among them.

        Laws with constants that others can take the part of are left out: they are longer than need be.
        """
        front: list[GroupLaw] = []
        best = self.best

        def cost(law: GroupLaw) -> tuple[int, int, float]:
            return _complexity(law), law.fit.constants, law.length

        laws = self.laws.values() or [law for law in (best,) if law is not None]
        for law in sorted(laws, key=cost):
            better = not front or law.fit.loss < POLICY.worth_showing * min(other.fit.loss for other in front)
            better = better and not self._undetermined(law.fit).any()
            same = bool(front) and _complexity(law) == _complexity(front[-1])
            if law is best:
                # The best law takes the place of another of its complexity.
                front = [other for other in front if _complexity(other) != _complexity(law)]
                front.append(law)
            elif better and not same:
                front.append(law)
        return front

    def _take(self, skeleton: Expression, known: FloatArray) -> None:
        own = separate_fits(skeleton, self.rows, self._seed, known)
        if not np.isfinite(own).all():
            return
        self._refit(skeleton, own)

    def _refit(self, skeleton: Expression, start: FloatArray) -> None:
        """Fit from constants of each group, shape (parameters, groups), and keep what is promising."""
        model = JointModel(skeleton, self.rows)
        own = model.fit(start, np.zeros(model.count, bool)).parameters
        loss = model.loss(own)
        fit = JointFit(skeleton, np.zeros(model.count, bool), own, loss)
        if self._least(fit) > self._shortest + 30.0:
            return
        law = best_sharing(skeleton, self.rows, self.measure, own)
        if law is not None:
            self._keep(law)

    @property
    def _shortest(self) -> float:
        """Nats of the shortest description of all that satisfy the constraints; infinite without any."""
        return min((law.length for law in self.laws.values()), default=np.inf)

    def _keep(self, law: GroupLaw) -> None:
        fulfilled = self._rules is None or satisfied(law.fit, self._rules)
        (self.laws if fulfilled else self._violating)[law.fit.skeleton] = law

    def _constrain(self) -> None:
        """In place of laws that violate a constraint, the same with constants for which they do not.

        The shortest that were not tried yet, as far as they are shorter than those that satisfy the
        constraints: other constants only make them longer.
        """
        for law in self._shortest_violating(without=self._constrained)[: POLICY.max_constrained]:
            if self._rules is None or law.length >= self._shortest or (self.stop() and self.laws):
                return
            self._constrained.add(law.fit.skeleton)
            made = constrained_law(law, self.rows, self._rules, self.measure, self._put_number)
            if made is not None and self._allowed(bind(made.fit.skeleton, [1.5] * len(made.fit.shared))):
                self._keep(made)

    def _shortest_violating(self, without: Collection[Expression] = ()) -> list[GroupLaw]:
        laws = (law for form, law in self._violating.items() if form not in without)
        return sorted(laws, key=lambda law: law.length)

    def _least(self, fit: JointFit) -> float:
        """What the description takes at least: with every constant shared, and no row the worse for it."""
        return self.measure(JointFit(fit.skeleton, np.ones(len(fit.shared), bool), fit.parameters, fit.loss))

    def _undetermined(self, fit: JointFit) -> BoolArray:
        """Which shared constants have no value of their own, shape (parameters,)."""
        _, errors, _ = JointModel(fit.skeleton, self.rows).covariance(fit)
        return fit.shared & ~(errors[:, 0] < POLICY.undetermined * np.abs(fit.parameters[:, 0]))

    def _simpler(self, fit: JointFit) -> Iterator[Placed | None]:
        _, errors, _ = JointModel(fit.skeleton, self.rows).covariance(fit)
        undetermined = self._undetermined(fit)
        for position in np.flatnonzero(fit.shared):
            value, error = float(fit.parameters[position, 0]), float(errors[position, 0])
            if undetermined[position]:
                # The other constants can take its part: one of several factors, say.
                yield self._put_number(fit, int(position), Number(1))
                continue
            numbers = [*_simple_numbers(value, error)]
            if fit.loss <= POLICY.nearly_exact * self.measure.floor:
                # Rounding alone gives a constant that is not needed a value, and a small error.
                numbers += [Number(0)] if abs(value) < POLICY.no_constant else [*_short_decimals(value)]
            for number in numbers:
                yield self._put_number(fit, int(position), number)


def _simple_numbers(value: float, error: float) -> Iterator[Number]:
    rounding = 1e-9 * abs(value)
    for number in POLICY.structural:
        if abs(value - number) <= max(POLICY.deviations * error, rounding):
            yield Number(int(number))
    slack = max(error, rounding)
    nearest = round(2 * value) / 2
    if nearest not in POLICY.structural and abs(value - nearest) <= slack and 2 * slack / 0.5 < POLICY.chance:
        yield Number(int(nearest)) if nearest == int(nearest) else Number(Fraction(nearest))


def _short_decimals(value: float) -> Iterator[Number]:
    """A decimal of few digits that a constant of a noise-free table agrees with to many more."""
    short = Fraction(f"{value:.{POLICY.short_digits}g}")
    if short and abs(float(short) - value) <= POLICY.same_digits * abs(value):
        yield Number(int(short) if short.denominator == 1 else short)


def _bound(form: Form) -> Expression:
    return bind(form.skeleton, list(form.known))


def _complexity(law: GroupLaw) -> int:
    return complexity(bind(law.fit.skeleton, [1.5] * parameter_count(law.fit.skeleton)))
