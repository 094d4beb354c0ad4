"""Which formulas of an archive are worked out at the end, and by what they are compared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.archive import Entry, same_loss
from physdiffuser.core.generator import FormPrior
from physdiffuser.expressions import Expression, complexity
from physdiffuser.expressions.tree import free_constants
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.selection.description_length import DescriptionLength

if TYPE_CHECKING:
    from physdiffuser.core.generator import Generator
    from physdiffuser.core.problem import Problem


class Finalist(Protocol):
    """A formula with its final constants (`physdiffuser.finalize.finalize.Law`)."""

    @property
    def final(self) -> Expression:
        """The formula."""

    @property
    def loss(self) -> float:
        """Its residuals."""


Row = TypeVar("Row", bound=Finalist)
FormNats = Callable[[Sequence[Expression]], FloatArray]
"""Nats of forms in a code for the table at hand (`physdiffuser.core.generator.FormPrior`); nan for none."""

# Formulas of the front that are finalized; the rest of a longer front is beaten in any case.
MAX_FINALISTS = 14
# Formulas off the front that are finalized beside it, where there is noise.
MAX_RUNNERS_UP = 6
# A usual law is shown instead of an equally complex formula whose loss is smaller by less than this factor.
COMPARABLE = 2.25


class ConditionalFormPrior:
    """A generator that is asked about forms; what goes wrong costs its word, not the run.

    Attributes
    ----------
    fault
        What went wrong, for the user.
    """

    def __init__(self, name: str, form_prior: FormPrior, problem: Problem) -> None:
        self.name, self._form_prior, self._problem = name, form_prior, problem
        self.fault: str | None = None

    def __call__(self, formulas: Sequence[Expression]) -> FloatArray:
        """See `FormNats`."""
        if self.fault is None:
            try:
                return self._form_prior.form_nats(self._problem, formulas)
            except Exception as error:
                what = " ".join(str(error).split())[:200]
                self.fault = (
                    f"generator {self.name!r} failed when asked how usual formulas are, and was not heard "
                    f"({type(error).__name__}: {what})"
                )
        return np.full(len(formulas), np.nan)


def conditional_form_prior(
    generators: Mapping[str, Generator], steps: Mapping[str, int], failed: Collection[str], problem: Problem
) -> ConditionalFormPrior | None:
    """The first generator that took part and knows how usual forms are for this table.

    Parameters
    ----------
    generators, steps
        By name, with the steps that each was granted.
    failed
        Names of those that were switched off.
    problem
        The table, as the generators were given it.
    """
    for name, generator in generators.items():
        if isinstance(generator, FormPrior) and steps.get(name, 0) and name not in failed:
            return ConditionalFormPrior(name, generator, problem)
    return None


class ConditionalDescriptionLength:
    """Lengths of descriptions of one table, forms in the shortest code that there is.

    Parameters
    ----------
    description_length
        Of the table.
    form_prior
        Gives the nats of a form for this table; None where there is none.
    """

    def __init__(self, description_length: DescriptionLength, form_prior: FormNats | None = None) -> None:
        self.description_length, self._form_prior = description_length, form_prior
        self._conditional: dict[Expression, float] = {}

    def read(self, formulas: Sequence[Expression]) -> None:
        """Ask the form prior about many formulas at once, which costs less than one by one."""
        if self._form_prior is None:
            return
        # Forms with other constants are the same to it.
        fresh = {free_constants(formula)[0]: formula for formula in formulas}
        for known in fresh.keys() & self._conditional.keys():
            del fresh[known]
        if fresh:
            self._conditional.update(zip(fresh, map(float, self._form_prior([*fresh.values()])), strict=True))

    def length(self, formula: Expression, loss: float) -> float:
        """Nats to describe the table by a formula of known loss, up to a constant of the table."""
        nats = self._conditional.get(free_constants(formula)[0], np.nan) if self._conditional else np.nan
        return self.description_length.length(formula, loss, None if np.isnan(nats) else nats)


def finalists(
    archive: ParetoArchive, measure: ConditionalDescriptionLength, standard: Sequence[Entry] = ()
) -> list[Entry]:
    """The front, and with noise some that it beats by little: exact constants may turn that round.

    Of several ways to write one function only the shortest is kept.

    Parameters
    ----------
    standard
        Usual laws that belong into the Pareto table whatever the archive has kept.

    Returns
    -------
    The most promising first, so that a deadline costs the least.
    """
    front = [*archive.front(), *standard]
    noisy = archive.best_loss > measure.description_length.floor
    entries = [*front, *(archive.near() if noisy else ())]
    measure.read([entry.candidate.expression for entry in entries])
    lengths = [measure.length(entry.candidate.expression, entry.loss) for entry in entries]
    first: list[int] = []
    shortest: dict[int, int] = {}
    for position, entry in enumerate(entries):
        known = next((other for other in first if same_function(entry, entries[other])), None)
        if known is None:
            first.append(position)
            shortest[position] = position
        elif lengths[position] < lengths[shortest[known]]:
            shortest[known] = position
    on_front = [shortest[position] for position in first if position < len(front)]
    beside = [shortest[position] for position in first if position >= len(front)]
    chosen = [*on_front, *sorted(beside, key=lengths.__getitem__)[:MAX_RUNNERS_UP]]
    chosen.sort(key=lengths.__getitem__)
    kept = chosen[: MAX_FINALISTS + MAX_RUNNERS_UP]
    kept += [place for place in chosen[len(kept) :] if is_standard(entries[place], standard)]
    return [entries[position] for position in kept]


def is_standard(entry: Entry, standard: Sequence[Entry]) -> bool:
    """Whether an entry is one of the usual laws, however it is written."""
    return any(same_function(entry, other) for other in standard)


def with_standard(laws: Sequence[Row], chosen: Row, standard: Sequence[Row]) -> tuple[list[Row], int]:
    """The rows of the Pareto table with the usual laws among them, and the position of the chosen one.

    A usual law has a row if no simpler row fits as well. Of two formulas of one complexity the usual law is
    shown, unless the other fits much better. Where the other is the chosen one, both are shown, the better
    one last.
    """
    rows = list(laws)
    for law in standard:
        size = complexity(law.final)
        alike = [other for other in rows if complexity(other.final) == size]
        if any(other.loss <= law.loss for other in rows if complexity(other.final) < size) or any(
            other is law or other.loss * (COMPARABLE if other not in standard else 1.0) <= law.loss
            for other in alike
        ):
            continue
        rows = [other for other in rows if other is chosen or other not in alike]
        rows.append(law)
    rows.sort(key=lambda law: (complexity(law.final), -law.loss))
    return rows, next(position for position, law in enumerate(rows) if law is chosen)


def same_function(entry: Entry, other: Entry) -> bool:
    """Whether two formulas leave the same residuals with as many fitted constants."""
    return entry.constants == other.constants and same_loss(entry.loss, other.loss)
