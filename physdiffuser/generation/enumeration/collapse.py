"""Data collapse: which columns act only together, found from the rows alone.

If `y = x1**2 * g(x2 - x3)`, then rows with nearly the same `x2 - x3` have nearly the same `y/x1**2`, whatever
else differs between them. Each way to have one feature less (leave one out, divided by a power of it or not;
replace two by their product, quotient, sum, ...) is judged by how well rows that are neighbours in the
features left over predict each other. Nothing but order is looked at, so g may be any function, and noise
only raises the level of all scores.

This is what a physicist does who plots scattered measurements against one combination after the other until
they fall on one curve. The score is a nearest-neighbour estimate of the residual variance (the "gamma test"
of Stefansson, Koncar and Jones 1997), refined by local linear fits where the law has much detail, and by
polynomials in the ranks, which average over more rows, where there is much noise.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Expression, Variable, complexity
from physdiffuser.generation.enumeration.factors import Frame, hypotheses, telling_columns
from physdiffuser.generation.enumeration.joins import JOINS
from physdiffuser.generation.enumeration.rank_predictions import (
    local_predictions,
    rank_of,
    smooth_predictions,
)
from physdiffuser.search.archive import ParetoArchive
from physdiffuser.search.problem import Problem

FloatArray = npt.NDArray[np.float64]
FloatArray32 = npt.NDArray[np.float32]

# Rows whose neighbours are looked for, and fewest with which it makes sense.
ROWS = 400
FEWEST_ROWS = 24
# Features at the start; steps of the search look at all pairs of them.
MOST_FEATURES = 6
SOME_FEATURES = 5
# States followed at each number of features, ways looked at more closely for each, and frames in the end.
BEAM = 6
CLOSER = 12
# Ways that are judged by polynomials, the best by single neighbours.
SMOOTHED = 60
FRAMES_OF_SIZE = {1: 2, 2: 2, 3: 1, 4: 1}
# Powers of a feature that are looked at more closely than by single neighbours.
SOME_POWERS = 3
# A combined feature is at most so complex.
MOST_COMPLEX = 11
# A step may leave the rows this much less predictable; chance alone does as much.
SLACK = 1.15
UNIMPORTANT = 1e-3
# The features must predict the rows to this share of what the mean leaves over.
PREDICTS = 0.5
# A power divided out is one more thing to be wrong about.
FACTOR_DOUBT = 1.1
# ... and not much worse than others do.
COMPARABLE = 2.5
# Errors of one row count at most so many times the target's variance.
MOST_ERROR = 4.0

_HALF = Fraction(1, 2)
_DROP_EXPONENTS = tuple(Fraction(n, 2) for n in (1, -1, 2, -2, 3, -3, 4, -4, 6, -6, 8, -8))
_MERGE_EXPONENTS = tuple(Fraction(n, 2) for n in (1, -1, 2, -2, 4, -4))


@dataclass(frozen=True)
class _State:
    """A frame on the way, with what it does to the rows.

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

    def frame(self) -> Frame:
        """The state as a hypothesis of the enumeration."""
        exponents: dict[Expression, Fraction] = {}
        for base, exponent in self.factors:
            exponents[base] = exponents.get(base, Fraction(0)) + exponent
        kept = [(base, exponent) for base, exponent in exponents.items() if exponent]
        product = tuple((position, exponent) for position, (_, exponent) in enumerate(kept))
        return Frame(product, self.trees, tuple(base for base, _ in kept) if kept else None)


def collapsed(problem: Problem, archive: ParetoArchive) -> Generator[float, None, tuple[Frame, ...]]:
    """Frames that the rows suggest, those of fewest features first; yields nominal seconds of work.

    Worked out once in a run, whoever asks first.
    """
    known: tuple[Frame, ...] | None = archive.notes.get(__name__)
    if known is None:
        known = yield from _search(problem)
        archive.notes[__name__] = known
    return known


def _search(problem: Problem) -> Generator[float, None, tuple[Frame, ...]]:
    rows = problem.generator(5).permutation(problem.rows)[:ROWS]
    if len(rows) < FEWEST_ROWS or problem.columns < 2:
        return ()
    waiting, judge, needed = _starts(problem, rows)
    yield 0.02 * sum(map(len, waiting.values()))
    beam: list[_State] = []
    kept: list[_State] = []
    for size in range(max(waiting, default=0), 0, -1):
        beam = sorted([*beam, *waiting.get(size, [])], key=lambda state: state.merit)[:BEAM]
        reached: dict[frozenset[bytes], _State] = {}
        for state in beam:
            if size == 1:
                break
            for reduced in _reduced(state, problem.operators, judge):
                # u/v says as much as v/u does.
                key = frozenset(_alike(value) for value in reduced.values)
                if key not in reached or reduced.merit < reached[key].merit:
                    reached[key] = reduced
            yield 4e-4 * len(JOINS) * size**2 + 0.05
        beam = list(reached.values())
        ranked = sorted(beam, key=lambda state: state.merit)[: FRAMES_OF_SIZE.get(size - 1, 0)]
        # The search goes on to fewer features, the enumeration begins with the fewest.
        kept[:0] = [state for state in ranked if state.score < PREDICTS]
    least = min((state.score for state in kept), default=0.0)
    chosen = [state.frame() for state in kept if state.score <= COMPARABLE * least + UNIMPORTANT]
    if len(needed.features) < problem.columns:
        # Whatever acts together, the columns that are needed are a safe guess.
        chosen.append(needed)
    return tuple(dict.fromkeys(chosen))


def _starts(problem: Problem, rows: npt.NDArray[np.intp]) -> tuple[dict[int, list[_State]], _Judge, Frame]:
    """What slopes and units suggest, by number of features; who judges it; and the needed columns alone."""
    inputs, target = problem.inputs[rows], problem.target[rows]
    telling = telling_columns(problem.inputs, problem.target)
    chosen = telling if len(telling) < problem.columns else list(range(problem.columns))
    found: dict[int, list[_State]] = {}
    off = np.median(np.abs(local_predictions(inputs[:, chosen].T, target) - target))
    judge = _Judge(target, max(1.5 * float(off), 1e-3 * float(np.median(np.abs(target)))) or 1.0)
    needed = _needed(chosen, inputs, target, judge)
    bare = Frame((), tuple(Variable(column) for column in needed))
    idle = {Variable(column) for column in chosen if column not in needed}
    for frame in dict.fromkeys(_without(frame, idle) for frame in [*hypotheses(problem), bare]):
        size = len(frame.features)
        fewer = any(others and number < size for number, others in found.items())
        # Many features take long; they are worth it only where nothing else is known.
        if not 2 <= size <= (SOME_FEATURES if fewer else MOST_FEATURES):
            continue
        values = frame.values(inputs).T
        with np.errstate(all="ignore"):
            divided = target / frame.product(inputs)
        if not (np.isfinite(values).all() and np.isfinite(divided).all()):
            continue
        bases = frame.bases or tuple(Variable(column) for column in range(problem.columns))
        factors = tuple((bases[position], exponent) for position, exponent in frame.factors)
        score = _score(values, divided, judge)
        found.setdefault(size, []).append(_State(factors, frame.features, values, divided, score))
    return found, judge, bare


def _needed(columns: list[int], inputs: FloatArray, target: FloatArray, judge: _Judge) -> list[int]:
    """The columns without those that no prediction is better for, left out one after the other."""
    kept = list(columns)
    score = _score(inputs[:, kept].T, target, judge)
    while len(kept) > 2:
        scores = [
            _score(inputs[:, [other for other in kept if other != column]].T, target, judge)
            for column in kept
        ]
        best = int(np.argmin(scores))
        if scores[best] > score:
            break
        score = scores[best]
        del kept[best]
    return kept


def _without(frame: Frame, idle: set[Variable]) -> Frame:
    """The frame without the features that are idle columns."""
    left = tuple(feature for feature in frame.features if feature not in idle)
    return replace(frame, features=left)


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
        errors: FloatArray = np.minimum(square, MOST_ERROR * self._spread).mean(axis=-1) / self._spread
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

    def quotients(self, values: FloatArray, nearest: npt.NDArray[np.intp]) -> FloatArray:
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
    # Features, and what single neighbours say of each power divided out: score, feature, exponent.
    looked: list[tuple[_State, list[tuple[float, int, Fraction]]]] = []

    def look(distance: FloatArray32, made: _State, divisors: list[_Divisors]) -> None:
        nearest = _nearest(distance)
        plain = judge.restored(state.target, state.target[nearest])
        ways = [(float(judge.errors(plain)), 0, Fraction(0))]
        for some in divisors:
            if some.exponents:
                quotients = some.quotients(state.values[some.position], nearest)
                # A factor is one more thing to be wrong about.
                scores = FACTOR_DOUBT * judge.errors(plain * quotients)
                chosen = np.argsort(scores, kind="stable")[:SOME_POWERS]
                ways += [(float(scores[way]), some.position, some.exponents[way]) for way in chosen]
        looked.append((made, ways))

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
            for join in JOINS:
                if (not join.ordered and first > second) or not join.needs <= operators:
                    continue
                if join.positive and not (positive[first] and positive[second]):
                    continue
                tree = join.build(state.trees[first], state.trees[second])
                if complexity(tree) > MOST_COMPLEX:
                    continue
                with np.errstate(all="ignore"):
                    value = join.evaluate(state.values[first], state.values[second])
                if not np.isfinite(value).all() or not np.ptp(value) > 0:
                    continue
                made = replace(
                    state,
                    trees=(tree, *(state.trees[i] for i in left)),
                    values=np.concatenate([value[None], state.values[left]]),
                )
                look(rest + _distances(value), made, factors)
    looked.sort(key=lambda item: min(way[0] for way in item[1]))
    tried: list[tuple[float, _State, int, Fraction]] = []
    for made, ways in looked[:SMOOTHED]:
        divided = np.stack([_divided(state, position, exponent) for _, position, exponent in ways], axis=1)
        smooth = judge.errors(judge.restored(divided.T, smooth_predictions(made.values, divided).T))
        for (score, position, exponent), other in zip(ways, smooth, strict=True):
            # What the polynomial cannot follow is left to the neighbours.
            tried.append(
                (min(score, float(other) * (FACTOR_DOUBT if exponent else 1.0)), made, position, exponent)
            )
    tried.sort(key=lambda item: item[0])
    closer: list[_State] = []
    for _, made, position, exponent in tried[:CLOSER]:
        if exponent:
            target = _divided(made, position, exponent, state.values[position])
            if not np.isfinite(target).all():
                continue
            made = replace(made, target=target, factors=(*made.factors, (state.trees[position], exponent)))
        closer.append(replace(made, score=_score(made.values, made.target, judge)))
    return [made for made in closer if made.score <= SLACK * state.score + UNIMPORTANT]


def _divided(state: _State, position: int, exponent: Fraction, base: FloatArray | None = None) -> FloatArray:
    """The state's target divided by a power of one of its features."""
    if not exponent:
        return state.target
    base = state.values[position] if base is None else base
    with np.errstate(all="ignore"):
        divided: FloatArray = state.target / base ** (
            int(exponent) if exponent.denominator == 1 else float(exponent)
        )
    return divided


def _alike(values: FloatArray) -> bytes:
    """A key that features share which order the rows alike, forwards or backwards."""
    order = np.argsort(values, kind="stable").astype(np.int32)
    return min(order.tobytes(), order[::-1].tobytes())


def _distances(values: FloatArray) -> FloatArray32:
    """Squared differences of the ranks of all pairs of rows."""
    rank = rank_of(values).astype(np.float32)
    squares: FloatArray32 = np.square(rank[:, None] - rank[None, :])
    return squares


def _nearest(distances: FloatArray32) -> npt.NDArray[np.intp]:
    """The nearest other row of each row."""
    some = distances.copy()
    np.fill_diagonal(some, np.inf)
    nearest: npt.NDArray[np.intp] = some.argmin(axis=1)
    return nearest


def _score(values: FloatArray, target: FloatArray, judge: _Judge) -> float:
    """Error of predicting a row from the others, by neighbours or by a polynomial; 1 is the mean's error."""
    local = judge.errors(judge.restored(target, local_predictions(values, target)))
    smooth = judge.errors(judge.restored(target, smooth_predictions(values, target[:, None])[:, 0]))
    return float(min(local, smooth))
