"""Data collapse: which columns act only together, found from the rows alone.

If `y = x1**2 * g(x2 - x3)`, then rows with nearly the same `x2 - x3` have nearly the same `y/x1**2`, whatever
else differs between them. Each way to have one feature less (leave one out, divided by a power of it or not;
replace two by their product, quotient, sum, ...) is judged by how well rows that are neighbours in the
features left over predict each other. Nothing but order is looked at, so g may be any function, and noise
only raises the level of all scores.

This is what a physicist does who plots scattered measurements against one combination after the other until
they fall on one curve. The score is a nearest-neighbour estimate of the residual variance (the "gamma test"
of Stefansson, Koncar and Jones 1997), refined by local linear fits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray, IndexArray
from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.expressions import Expression, complexity
from physdiffuser.reduction.factors import demanded, relevant_columns
from physdiffuser.reduction.merges import MERGES
from physdiffuser.reduction.scale_groups import alike

FloatArray32 = npt.NDArray[np.float32]


@dataclass(frozen=True)
class CollapsePolicy:
    """How far the search for data collapse goes, and what it accepts.

    The values were chosen on development laws with 0, 1 and 10 % noise; `max_features=0` turns it off, which
    is measured in docs/search.md.
    """

    rows: int = 400
    min_rows: int = 24
    """Rows whose neighbours are looked for, and fewest with which it makes sense. The cost grows with the
    square of the rows."""
    max_features: int = 6
    usual_features: int = 5
    """Features at the start: all pairs of them are merged at each step. The larger number only where nothing
    else is known."""
    beam: int = 4
    closer: int = 12
    """States followed at each number of features, and ways looked at more closely for each."""
    reductions: tuple[int, ...] = (2, 2, 1, 1)
    """Reductions returned, by their number of features."""
    max_complexity: int = 11
    """Of a merged feature."""
    slack: float = 1.15
    negligible: float = 1e-3
    """A step may leave the rows this factor, and this much more, less predictable, as chance alone does."""
    predicts: float = 0.5
    """The features must predict the rows to this share of the variance."""
    comparable: float = 2.5
    """... and at most this factor worse than the best features do."""
    max_error: float = 4.0
    """Errors of one row count at most so many times the target's variance."""


POLICY = CollapsePolicy()

_DROP_EXPONENTS = tuple(Fraction(n, 2) for n in (1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8))
_MERGE_EXPONENTS = tuple(Fraction(n, 2) for n in (1, -1, 2, -2, 4, -4))


@dataclass(frozen=True)
class _State:
    """A reduction on the way, with what it does to the rows.

    Attributes
    ----------
    factors
        Divided out of the target, with their exponents.
    trees, values
        The features left, and their values, shape (features, rows).
    target
        Shape (rows,): the target with the factors divided out.
    score
        How badly neighbours predict each other; 1 is chance.
    """

    factors: tuple[tuple[Expression, Fraction], ...]
    trees: tuple[Expression, ...]
    values: FloatArray
    target: FloatArray
    score: float = 1.0

    @property
    def merit(self) -> float:
        """The score, with a little added for what is long: y = w*g(w) is also y = g(w)."""
        parts = [*self.trees, *(base for base, _ in self.factors)]
        return (self.score + 1e-4) * (1 + 0.04 * sum(map(complexity, parts)))

    def reduction(self) -> Reduction:
        """The state as a hypothesis of the enumeration."""
        return Reduction.of(self.factors, self.trees)


def collapsed(problem: Problem, first: Sequence[Reduction]) -> Generator[float, None, tuple[Reduction, ...]]:
    """Reductions that the rows suggest, those of fewest features first; yields nominal seconds of work.

    Parameters
    ----------
    first
        Where to begin, besides the bare columns.
    """
    rows = problem.generator(5).permutation(problem.rows)[: POLICY.rows]
    if len(rows) < POLICY.min_rows or problem.columns < 2:
        return ()
    waiting, judge = _starts(problem, rows, first)
    yield 0.02 * sum(map(len, waiting.values()))
    beam: list[_State] = []
    kept: list[_State] = []
    for size in range(max(waiting, default=0), 0, -1):
        beam = sorted([*beam, *waiting.get(size, [])], key=lambda state: state.merit)[: POLICY.beam]
        reached: dict[frozenset[bytes], _State] = {}
        for state in beam:
            if size == 1:
                break
            for reduced in _reduced(state, problem.operators, judge):
                # u/v says as much as v/u does.
                key = frozenset(alike(value) for value in reduced.values)
                if key not in reached or reduced.merit < reached[key].merit:
                    reached[key] = reduced
            yield 4e-4 * len(MERGES) * size**2 + 0.05
        beam = list(reached.values())
        ranked = sorted(beam, key=lambda state: state.merit)[: _reductions_of(size - 1)]
        # The search goes on to fewer features, the enumeration begins with the fewest.
        kept[:0] = [state for state in ranked if state.score < POLICY.predicts]
    least = min((state.score for state in kept), default=0.0)
    return tuple(
        state.reduction() for state in kept if state.score <= POLICY.comparable * least + POLICY.negligible
    )


def _reductions_of(features: int) -> int:
    return POLICY.reductions[features - 1] if 0 < features <= len(POLICY.reductions) else 0


def _starts(
    problem: Problem, rows: IndexArray, first: Sequence[Reduction]
) -> tuple[dict[int, list[_State]], _Judge]:
    """What units demand, or the bare columns and what slopes suggest, by number of features; and a judge."""
    inputs, target = problem.inputs[rows], problem.target[rows]
    relevant = relevant_columns(problem.inputs, problem.target)
    # Where no column stands out, nothing is known of any of them.
    chosen = relevant if 0 < len(relevant) < problem.columns else list(range(problem.columns))
    bare = Reduction.of_columns((), chosen)
    found: dict[int, list[_State]] = {}
    off = np.median(np.abs(_local_predictions(bare.values(inputs).T, target) - target))
    judge = _Judge(target, max(1.5 * float(off), 1e-3 * float(np.median(np.abs(target)))) or 1.0)
    by_units = demanded(problem)
    if by_units is not None and by_units.columns >= set(relevant):
        # Merged columns would rarely balance in their units.
        reductions = [by_units]
    else:
        reductions = [*first, bare]
    for reduction in dict.fromkeys(reductions):
        size = len(reduction.features)
        fewer = any(others and number < size for number, others in found.items())
        # Many features take long; they are worth it only where nothing else is known.
        if not 2 <= size <= (POLICY.usual_features if fewer else POLICY.max_features):
            continue
        values = reduction.values(inputs).T
        with np.errstate(all="ignore"):
            divided = target / reduction.product(inputs)
        if not (np.isfinite(values).all() and np.isfinite(divided).all()):
            continue
        score = _local_score(values, divided, judge)
        found.setdefault(size, []).append(
            _State(reduction.factors, reduction.features, values, divided, score)
        )
    return found, judge


class _Judge:
    """How far predictions are off: relative where the target is large, absolute where it is small.

    In the target itself, not in what is left of it: divided by a high power of one feature, any target is
    mostly that power, and easy to predict.

    Parameters
    ----------
    scale
        Where absolute turns into relative: the size of the noise, roughly.
    """

    def __init__(self, target: FloatArray, scale: float) -> None:
        self.target = target
        self._scale = scale
        self._image = np.arcsinh(target / scale)
        self._spread = float(self._image.var()) or 1.0

    def errors(self, predicted: FloatArray) -> FloatArray:
        """Mean squared error of each row of predictions of the target; 1 is the mean's error."""
        square = np.square(np.arcsinh(predicted / self._scale) - self._image)
        # One row at a pole must not decide.
        errors: FloatArray = np.minimum(square, POLICY.max_error * self._spread).mean(axis=-1) / self._spread
        return errors

    def restored(self, divided: FloatArray, predicted: FloatArray) -> FloatArray:
        """Predictions of the target from those of the target divided by some factor."""
        with np.errstate(all="ignore"):
            return np.where(divided != 0, self.target * (predicted / divided), 0.0)


@dataclass(frozen=True)
class _Divisors:
    """Powers of a feature that may be divided out."""

    position: int
    exponents: tuple[Fraction, ...]

    def quotients(self, values: FloatArray, nearest: IndexArray) -> FloatArray:
        """Each power's ratio between a row and its neighbour, shape (exponents, rows)."""
        with np.errstate(all="ignore"):
            ratio = values / values[nearest]
            powers: FloatArray = np.abs(ratio) ** np.array([float(e) for e in self.exponents])[:, None]
        odd = np.array([exponent.numerator % 2 for exponent in self.exponents], bool)
        return np.where(odd[:, None] & (ratio < 0), -powers, powers)


def _divisors(state: _State, position: int, exponents: tuple[Fraction, ...]) -> _Divisors:
    value = state.values[position]
    if not (value != 0).all():
        return _Divisors(position, ())
    positive = (value > 0).all()
    return _Divisors(position, tuple(e for e in exponents if positive or e.denominator == 1))


def _reduced(state: _State, operators: frozenset[str], judge: _Judge) -> list[_State]:
    """The best states with one feature less."""
    count = len(state.trees)
    positive = [bool((value > 0).all()) for value in state.values]
    distances = [_distances(value) for value in state.values]
    total = np.sum(distances, axis=0)
    # Score, features, and the power divided out.
    tried: list[tuple[float, _State, int, Fraction]] = []

    def look(distance: FloatArray32, made: _State, divisors: list[_Divisors]) -> None:
        nearest = _nearest(distance)
        plain = judge.restored(state.target, state.target[nearest])
        tried.append((float(judge.errors(plain)), made, 0, Fraction(0)))
        for some in divisors:
            if some.exponents:
                quotients = some.quotients(state.values[some.position], nearest)
                # A factor is one more thing to be wrong about.
                scores = 1.1 * judge.errors(plain * quotients)
                best = int(np.argmin(scores))
                tried.append((float(scores[best]), made, some.position, some.exponents[best]))

    for column in range(count):
        left = [other for other in range(count) if other != column]
        made = replace(state, trees=tuple(state.trees[i] for i in left), values=state.values[left])
        look(total - distances[column], made, [_divisors(state, column, _DROP_EXPONENTS)])
    for first in range(count):
        for second in range(count):
            if first == second:
                continue
            left = [other for other in range(count) if other not in (first, second)]
            rest = total - distances[first] - distances[second]
            factors = [_divisors(state, position, _MERGE_EXPONENTS) for position in (first, second)]
            for merge in MERGES:
                if (not merge.ordered and first > second) or not merge.needs <= operators:
                    continue
                if merge.positive and not (positive[first] and positive[second]):
                    continue
                tree = merge.build(state.trees[first], state.trees[second])
                if complexity(tree) > POLICY.max_complexity:
                    continue
                with np.errstate(all="ignore"):
                    value = merge.evaluate(state.values[first], state.values[second])
                if not np.isfinite(value).all() or not np.ptp(value) > 0:
                    continue
                made = replace(
                    state,
                    trees=(tree, *(state.trees[i] for i in left)),
                    values=np.concatenate([value[None], state.values[left]]),
                )
                look(rest + _distances(value), made, factors)
    tried.sort(key=lambda item: item[0])
    divided = [
        _divided(state, made, position, exponent) for _, made, position, exponent in tried[: POLICY.closer]
    ]
    closer = [
        replace(made, score=_local_score(made.values, made.target, judge))
        for made in divided
        if made is not None
    ]
    return [made for made in closer if made.score <= POLICY.slack * state.score + POLICY.negligible]


def _divided(state: _State, made: _State, position: int, exponent: Fraction) -> _State | None:
    """A state with a power of one of the features of `state` divided out; None where it is not finite."""
    if not exponent:
        return made
    with np.errstate(all="ignore"):
        power = int(exponent) if exponent.denominator == 1 else float(exponent)
        target = made.target / state.values[position] ** power
    if not np.isfinite(target).all():
        return None
    return replace(made, target=target, factors=(*made.factors, (state.trees[position], exponent)))


def _order(values: FloatArray) -> FloatArray:
    """Ranks from 0 to 1."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks / len(values)


def _distances(values: FloatArray) -> FloatArray32:
    """Squared differences of the ranks of all pairs of rows."""
    rank = _order(values).astype(np.float32)
    squares: FloatArray32 = np.square(rank[:, None] - rank[None, :])
    return squares


def _nearest(distances: FloatArray32) -> IndexArray:
    """The nearest other row of each row."""
    some = distances.copy()
    np.fill_diagonal(some, np.inf)
    nearest: IndexArray = some.argmin(axis=1)
    return nearest


def _local_score(values: FloatArray, target: FloatArray, judge: _Judge) -> float:
    """Error of predicting a row by a local linear fit to its neighbours; 1 is the mean's error."""
    return float(judge.errors(judge.restored(target, _local_predictions(values, target))))


def _local_predictions(values: FloatArray, target: FloatArray) -> FloatArray:
    """Each row predicted by a local linear fit, of ranks, to its nearest neighbours.

    Parameters
    ----------
    values
        Shape (features, rows).
    target
        Shape (rows,).
    """
    features, rows = values.shape
    ranks = np.stack([_order(value) for value in values], axis=1)
    wanted = _order(target)
    square = np.square(ranks).sum(axis=1)
    distance = square[:, None] + square[None, :] - 2 * ranks @ ranks.T
    np.fill_diagonal(distance, np.inf)
    count = min(2 * features + 4, rows - 2)
    near = np.argpartition(distance, count, axis=1)[:, :count]
    offset = ranks[near] - ranks[:, None, :]
    design = np.concatenate([np.ones((rows, count, 1)), offset], axis=2)
    gram = design.transpose(0, 2, 1) @ design
    # A ridge far below the spread of the neighbours: they may lie in a plane.
    gram[:, np.arange(1, features + 1), np.arange(1, features + 1)] += 1e-3 * np.square(offset).mean() + 1e-12
    solved = np.linalg.solve(gram, design.transpose(0, 2, 1) @ wanted[near][:, :, None])
    predictions: FloatArray = np.interp(solved[:, 0, 0], np.arange(rows) / rows, np.sort(target))
    return predictions
