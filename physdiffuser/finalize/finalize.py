"""From the archive to the answer: constants fitted on more rows, snapped, simplified; one law chosen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from physdiffuser.core.archive import Entry, same_loss
from physdiffuser.core.derivation import readable
from physdiffuser.core.formula_fits import loss_of, refitted, with_exact_constants
from physdiffuser.core.problem import Problem
from physdiffuser.expressions import Expression, Number, complexity
from physdiffuser.expressions.simplification.canonical import canonical
from physdiffuser.expressions.simplification.textbook.arrange import arrange
from physdiffuser.expressions.simplification.textbook.rules import textbook
from physdiffuser.expressions.tree import fitted_constants, substitute, variables
from physdiffuser.finalize.constants.determined import is_singular, with_determined_constants
from physdiffuser.finalize.constants.freed import with_freed_constants
from physdiffuser.finalize.constants.physical import with_named_constants
from physdiffuser.finalize.constants.standard_error import within_standard_error
from physdiffuser.finalize.evidence.poles import regular_form
from physdiffuser.finalize.finalists import (
    ConditionalDescriptionLength,
    FormNats,
    finalists,
    is_standard,
    with_standard,
)
from physdiffuser.finalize.policy import POLICY
from physdiffuser.finalize.standard_rows import standard_entries
from physdiffuser.finalize.written_form import rewritten_fit, with_short_constants, written_form
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.refinement.limiting_forms import limiting_form
from physdiffuser.search.refinement.rewriting import one_fraction, tame, worth_arranging
from physdiffuser.selection.cancellation import cancels
from physdiffuser.selection.description_length import DescriptionLength, exact_nats, shortest


@dataclass(frozen=True)
class Law:
    """A formula of the front, worked out.

    Attributes
    ----------
    fitted
        With all constants as fitted.
    final
        Snapped and simplified.
    loss, fitted_loss
        Of `final` and `fitted` on the rows that formulas are compared on, relative to the constant model's.
    length
        Nats to describe these rows by it.
    rewritten
        Whether `final` has another form than it has by `arrange`: that of a textbook.
    """

    entry: Entry
    fitted: Expression
    final: Expression
    loss: float
    fitted_loss: float
    changes: tuple[str, ...]
    length: float = float("inf")
    rewritten: bool = False

    def on_rows(self, problem: Problem) -> Law:
        """The law with its losses on other rows."""
        return replace(self, loss=loss_of(self.final, problem), fitted_loss=loss_of(self.fitted, problem))


def finalize(
    archive: ParetoArchive,
    problem: Problem,
    floor: float,
    deadline: float,
    clock: Callable[[], float] = time.monotonic,
    form_prior: FormNats | None = None,
    slowdown: float = 1.0,
    compared_on: Problem | None = None,
) -> tuple[list[Law], int]:
    """The front with final constants, simple ones first, and the position of the chosen one.

    Parameters
    ----------
    problem
        The search's problem on the fit rows.
    floor
        Relative loss that rounding alone causes.
    deadline
        When it is over, the formulas that are left keep the constants that the search has fitted.
    judge
        Knows how usual forms are for this table; asked where there is some noise, not much, and time.
    slowdown
        How many times longer work takes than on an idle machine.
    compared_on
        The problem on the fit rows and the test set, by which the formulas are compared: a formula that
        predicts the test set badly is a longer description. Constants are fitted, and made exact, without
        the test set. Default: `problem`.
    """
    positive = problem.positive
    description_length = DescriptionLength(problem.rows, problem.columns, floor)
    exact, late = archive.best_loss <= floor, clock() + slowdown * POLICY.form_prior_seconds > deadline
    silent = exact or late or archive.best_loss > POLICY.form_prior_noise**2
    lengths = ConditionalDescriptionLength(description_length, None if silent else form_prior)
    ways: dict[Expression, list[Law]] = {}
    slowest = 0.0
    begun = clock()
    standard = [] if exact else standard_entries(archive)
    chosen = finalists(archive, lengths, standard)
    # The form prior is asked again at the end, about the final forms.
    deadline -= clock() - begun
    for number, entry in enumerate(chosen):
        begun = clock()
        # The next formula may take as long as the slowest did.
        quick = number > 0 and begun + slowest >= deadline
        stop = partial(_over, clock, max(deadline, begun + slowdown * POLICY.min_constant_seconds))
        law = _final_law(entry, problem, description_length, quick, stop)
        slowest = max(slowest, clock() - begun)
        ways.setdefault(canonical(_rounded(law.final), positive=positive), []).append(law)
    ways = _sound(ways, problem) or ways
    if compared_on is not None:
        lengths.description_length = replace(description_length, rows=compared_on.rows)
        ways = {form: [law.on_rows(compared_on) for law in same] for form, same in ways.items()}
    laws: list[Law] = []
    lengths.read([form for same in ways.values() for law in same for form in (law.final, law.fitted)])
    measured = [_best_told(same, lengths) for same in ways.values()]
    # Of equally complex ones the shortest description: `a**1.5` rather than `a**1.49985`, which fits better.
    for law in sorted(measured, key=lambda law: (complexity(law.final), law.length)):
        if laws and complexity(law.final) == complexity(laws[-1].final):
            continue
        if not laws or max(law.loss, floor) < min(max(other.loss, floor) for other in laws):
            laws.append(law)
        elif fitted_constants(law.final) < fitted_constants(laws[-1].final) and law.length < laws[
            -1
        ].length + (POLICY.as_short if exact_nats(law.final) < POLICY.plain_numbers else 0.0):
            # `2*pi*sqrt(a)` for `6.282*sqrt(a)`, which is simpler and fits better, but says less.
            laws[-1] = law
        elif law.length < min(other.length for other in laws) - POLICY.clearly and not any(
            same_loss(law.loss, other.loss) for other in laws
        ):
            # `m/sqrt(1 - v**2)` after `m/cos(v)`, which is simpler and fits a little better, but is no
            # usual law.
            laws.append(law)
    usual = [law for law in measured if is_standard(law.entry, standard)]
    return with_standard(laws, _chosen(laws), usual) if laws else ([], 0)


def _chosen(laws: Sequence[Law]) -> Law:
    """The shortest description; a number unless a formula of the columns is shorter by `no_chance` nats."""
    best = laws[shortest(law.length for law in laws)]
    numbers = [law for law in laws if not variables(law.final)]
    if not numbers:
        return best
    number = numbers[shortest(law.length for law in numbers)]
    return best if best.length < number.length - POLICY.no_chance else number


def _final_law(
    entry: Entry,
    problem: Problem,
    description_length: DescriptionLength,
    quick: bool,
    stop: Callable[[], bool],
) -> Law:
    """Worked out, without constants that the rows do not determine, as a textbook writes it."""
    law = _determined_law(entry, problem, description_length, quick, stop)
    written = with_short_constants(written_form(law.final, problem), problem, description_length.floor)
    changes = law.changes
    if problem.name_constants:
        named, names = with_named_constants(written, problem)
        if names:
            written, changes = textbook(_refitted(named, problem)), (*changes, *names)
    rewritten = law.rewritten or written != law.final
    if law.loss > description_length.floor:
        # Constants were made exact under weights of this law's own; what is printed has those of the table.
        written, freed = within_standard_error(written, problem)
        if freed:
            # `0.4993*m` for `m/2.003`.
            written = rewritten_fit(written, problem)
        written, changes = _refitted(written, problem, tied=True), (*changes, *freed)
    if written == law.final:
        return law
    loss = loss_of(written, problem)
    return replace(law, final=written, loss=loss, changes=changes, rewritten=rewritten)


def _determined_law(
    entry: Entry,
    problem: Problem,
    description_length: DescriptionLength,
    quick: bool,
    stop: Callable[[], bool],
) -> Law:
    """Without constants that the rows do not determine, and without needless poles."""
    law = _finalize_one(entry, problem, description_length, quick, stop)
    found = with_determined_constants(law.final, problem, description_length, stop)
    if found != law.final:
        # What is left is another formula: its constants may be exact where those of the first were not.
        simpler = replace(entry.candidate, expression=found)
        entry = replace(entry, candidate=simpler, complexity=complexity(found))
        changes = (*law.changes, "constants that the rows do not determine are taken out")
        law = _finalize_one(entry, problem, description_length, quick, stop)
        law = replace(law, changes=(*changes, *law.changes))
    if not worth_arranging(law.final, at_the_end=True):
        return law
    regular = regular_form(law.final, problem.inputs, positive=problem.positive)
    if regular is None or not problem.allows(regular):
        return law
    loss = loss_of(regular, problem)
    changes = (*law.changes, "divided out, so that no pole is left between the rows")
    return replace(law, final=regular, loss=loss, changes=changes)


def _sound(ways: dict[Expression, list[Law]], problem: Problem) -> dict[Expression, list[Law]]:
    """Without formulas that have no finite loss, whose fit is singular, or whose large terms cancel."""

    def is_sound(law: Law) -> bool:
        return (
            math.isfinite(law.loss)
            and not is_singular(law.final, problem)
            and not cancels(law.final, problem.inputs, law.loss)
        )

    sound = {form: [law for law in same if is_sound(law)] for form, same in ways.items()}
    obeying = {form: [law for law in same if problem.satisfies(law.final)] for form, same in sound.items()}
    kept = obeying if any(obeying.values()) else sound
    return {form: same for form, same in kept.items() if same}


def _best_told(ways: list[Law], lengths: ConditionalDescriptionLength) -> Law:
    """Of several ways to one law the one that tells it best; it is as long as the shortest of them."""
    best = ways[0]
    for law in ways[1:]:
        if _tells_better(law, best, lengths.description_length):
            best = law
    return replace(best, length=min(_length(law, lengths) for law in ways))


def _length(law: Law, lengths: ConditionalDescriptionLength) -> float:
    """Of the law as it is shown or, if shorter, as it was found, with the residuals of the shown one.

    A law does not become less likely because its constants are made exact, or because it is arranged as
    one would write it: of `(1 + r**2/b**2)/(r**2 + b**2)**1.5` a power of 5/2, which is rare, is made.
    """
    shown = lengths.length(law.final, law.loss)
    constants, fewer = fitted_constants(law.fitted), fitted_constants(law.final)
    if fewer > constants:
        return shown
    worse = lengths.description_length.left(constants, law.loss) - lengths.description_length.left(
        constants, law.fitted_loss
    )
    return min(shown, lengths.length(law.fitted, law.fitted_loss) + max(worse, 0.0))


def _rounded(expression: Expression) -> Expression:
    """The formula with its fitted constants to some digits: two ways to one law differ in the last ones."""

    def rewrite(node: Expression) -> Expression | None:
        if isinstance(node, Number) and not node.exact:
            return Number(float(f"{node.value:.4g}"))
        return None

    return substitute(expression, rewrite)


def _tells_better(law: Law, known: Law, description_length: DescriptionLength) -> bool:
    """Of two ways to one law the one with more exact constants, unless it is clearly less accurate.

    Else the shorter description, that of the form by its complexity: what is as usual as the other is the
    same law. Of two alike the one that began simpler.
    """
    fewer = fitted_constants(law.final) - fitted_constants(known.final)
    exact, other = (law, known) if fewer < 0 else (known, law)
    floor = description_length.floor
    if fewer and max(exact.loss, floor) <= (1 + POLICY.exact_slack / description_length.rows) * max(
        other.loss, floor
    ):
        return fewer < 0
    length, usual = (description_length.plain_length(one.final, one.loss) for one in (law, known))
    if abs(length - usual) > POLICY.same_nats:
        return length < usual
    return law.entry.complexity < known.entry.complexity


def _over(clock: Callable[[], float], end: float) -> bool:
    return clock() >= end


def _finalize_one(
    entry: Entry,
    problem: Problem,
    description_length: DescriptionLength,
    quick: bool,
    stop: Callable[[], bool],
) -> Law:
    """Constants refitted and made exact where the rows allow it, and the formula simplified."""
    fitted = entry.candidate.expression
    if not quick:
        # Of a law that fits to the last digit the numbers are proved; there is nothing to be fitted.
        free = fitted if entry.loss <= description_length.floor else with_freed_constants(fitted)
        fitted = _refitted(free, problem)
    fitted_loss = loss_of(fitted, problem)
    if quick:
        return Law(entry, fitted, _readable(fitted, problem), fitted_loss, fitted_loss, ())
    final = fitted
    changes: tuple[str, ...] = ()
    if fitted_constants(fitted):
        final, changes, limit = _with_exact_constants(fitted, fitted_loss, problem, description_length, stop)
        if limit is not None:
            fitted, fitted_loss = limit, loss_of(limit, problem)
    final = _simplified(final, problem, description_length.floor)
    return Law(entry, fitted, _readable(final, problem), loss_of(final, problem), fitted_loss, changes)


def _readable(expression: Expression, problem: Problem) -> Expression:
    plain = readable(expression)
    return plain if problem.allows(plain) else expression


def _refitted(expression: Expression, problem: Problem, tied: bool = False) -> Expression:
    if not fitted_constants(expression):
        return expression
    new = refitted(expression, problem, tied=tied)
    if not problem.satisfies(new):
        assert problem.rules is not None  # or it would satisfy them
        return problem.rules.fitted(expression, problem) or expression
    return new if loss_of(new, problem) <= loss_of(expression, problem) else expression


def _with_exact_constants(
    fitted: Expression,
    fitted_loss: float,
    problem: Problem,
    description_length: DescriptionLength,
    stop: Callable[[], bool],
) -> tuple[Expression, tuple[str, ...], Expression | None]:
    """The formula with exact constants, what was changed, and the fitted limit if that is used."""
    positive = problem.positive
    # The arranged form has fewer constants (2*(a + 3*x) has one too many), so more can be exact.
    arranged = arrange(fitted, positive=positive) if worth_arranging(fitted, at_the_end=True) else fitted
    # log(c*x/y) must not be taken apart into logarithms with a constant each.
    tied = fitted_constants(arranged) <= fitted_constants(fitted)
    usable = tied and problem.allows(arranged) and tame(arranged, fitted)
    as_good = usable and _as_good(loss_of(arranged, problem), fitted_loss, description_length.floor)
    start = arranged if as_good else fitted
    final: Expression = fitted
    changes: tuple[str, ...] = ()
    for _ in range(POLICY.max_rounds):
        snapped = with_exact_constants(start, problem, stop)
        # Noise that grows with the target may pull a formula that explains nothing below the mean.
        useful = snapped.loss <= max(fitted_loss, 1.0 + 4.0 / problem.rows)
        if not useful or not problem.allows(snapped.expression):
            break
        final, changes = snapped.expression, (*changes, *snapped.changes)
        # Without the terms that were dropped the fit leaves more over, and more can be exact.
        if not fitted_constants(final) or complexity(final) > complexity(start) - POLICY.min_dropped:
            break
        start = final
    limit = limiting_form(final, problem.inputs)
    if limit is not None and worth_arranging(limit, at_the_end=True):
        # Snapping may free a constant that then runs away: what is meant is the limit.
        limit = refitted(limit, problem)
        snapped = with_exact_constants(arrange(limit, positive=positive), problem, stop)
        short = description_length.length(snapped.expression, snapped.loss)
        if problem.allows(snapped.expression) and short < description_length.length(
            final, loss_of(final, problem)
        ):
            change = "a function near its limit is replaced by it"
            return snapped.expression, (*changes, change, *snapped.changes), limit
    return final, changes, None


def _simplified(final: Expression, problem: Problem, floor: float) -> Expression:
    """The formula in its simplest form with the same loss."""
    if not worth_arranging(final, at_the_end=True):
        return final
    for form in (final, one_fraction(final)):
        simplified = arrange(form, positive=problem.positive)
        allowed = problem.allows(simplified) and tame(simplified, final)
        shorter = allowed and complexity(simplified) <= complexity(final)
        # Multiplying out may split one constant in two, which are then no longer tied.
        tied = fitted_constants(simplified) <= fitted_constants(final)
        if shorter and tied and _as_good(loss_of(simplified, problem), loss_of(final, problem), floor):
            return simplified
    return final


def _as_good(new: float, old: float, floor: float) -> bool:
    """Whether a rewriting left the loss as it was, up to rounding."""
    return new <= max(old * (1 + 1e-6), floor)
