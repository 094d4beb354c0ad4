"""How the chosen law compares with the other formulas of the search, by description length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.core.archive import Entry
from physdiffuser.expressions import Expression, evaluate
from physdiffuser.search.archive import ParetoArchive

Array = npt.NDArray[np.float64]

# Two formulas are the same law if their predictions differ by less than this share of the residuals.
SAME = 0.1
# Gaps larger than this many nats say no more.
LARGEST_GAP = 30.0
# Formulas that are longer by less than so many nats are rivals.
CLOSE = 10.0
RESAMPLES = 200


@dataclass(frozen=True)
class Comparison:
    """The chosen law and the formulas with other predictions; see `LawEvidence` for the figures."""

    gap: float
    rivals: int
    posterior: float
    stability: float


def compare(entry: Entry, archive: ParetoArchive, seed: int = 0) -> Comparison:
    """Compare a formula of the archive with all others.

    Parameters
    ----------
    entry
        Of the chosen law.
    archive
        Of the search that found it.
    seed
        Of the bootstrap.
    """
    known = {other.candidate.expression: other for other in (entry, *archive.front(), *archive.near())}
    entries = list(known.values())
    residuals = _residuals([other.candidate.expression for other in entries], archive)
    lengths = np.array([archive.length(other) for other in entries])
    usable = np.isfinite(residuals).all(axis=1) & np.isfinite(lengths)
    usable[0] = True
    residuals, lengths = residuals[usable], lengths[usable]
    entries = [other for other, kept in zip(entries, usable, strict=True) if kept]
    own = lengths[0]
    differ = _differ(residuals)
    others = lengths[differ]
    return Comparison(
        gap=float(np.clip(others.min(initial=np.inf) - own, -LARGEST_GAP, LARGEST_GAP)),
        rivals=int((others < own + CLOSE).sum()),
        posterior=float(
            np.clip(np.logaddexp.reduce(own - others, initial=-np.inf), -LARGEST_GAP, LARGEST_GAP)
        ),
        stability=_stability(entries, residuals, lengths, differ, archive, seed),
    )


def _residuals(forms: list[Expression], archive: ParetoArchive) -> Array:
    """Weighted residuals relative to the largest of the first formula, shape (formulas, rows)."""
    problem = archive.problem
    weights = 1.0 if problem.weights is None else np.sqrt(problem.weights)
    residuals = np.empty((len(forms), problem.rows))
    with np.errstate(all="ignore"):
        for row, form in enumerate(forms):
            residuals[row] = weights * (problem.target - evaluate(form, problem.inputs))
        scale = float(np.abs(residuals[0]).max())
        return residuals / scale if 0 < scale < np.inf else residuals


def _differ(residuals: Array) -> npt.NDArray[np.bool_]:
    """Which formulas have predictions other than those of the first."""
    apart = np.square(residuals - residuals[0]).mean(axis=1)
    return np.asarray(apart > SAME**2 * np.square(residuals[0]).mean())


def _stability(
    entries: list[Entry],
    residuals: Array,
    lengths: Array,
    differ: npt.NDArray[np.bool_],
    archive: ParetoArchive,
    seed: int,
) -> float:
    """Share of bootstrap samples of the rows in which no formula with other predictions is shorter."""
    squares = np.square(residuals)
    means = squares.mean(axis=1)
    if not differ.any() or not means[0] > 0:
        return 1.0
    measure = archive.description_length
    rows = residuals.shape[1]
    draws = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1.0 / rows), RESAMPLES)
    losses = np.array([entry.loss for entry in entries])
    free = np.maximum(measure.rows - np.array([entry.constants for entry in entries]), 0)
    with np.errstate(all="ignore"):
        resampled = np.maximum(losses * (draws @ squares.T / rows) / means, measure.floor)
        change = 0.5 * free * np.log(resampled / np.maximum(losses, measure.floor))
    found = lengths + np.nan_to_num(change, nan=0.0)
    return float((found[:, ~differ].min(axis=1) <= found[:, differ].min(axis=1)).mean())
