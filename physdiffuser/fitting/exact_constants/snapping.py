"""From fitted numbers to exact constants, where the data cannot tell the difference.

Each constant is either free (a number with as many digits as the data support) or exact (a form with a
price, `fitting.forms`), tied to another one, or absent. The states are compared by what they cost to
write down together with the data: the logarithm of the evidence of the free constants (Laplace's
approximation; MacKay, *Neural Computation* 4, 1992) and the price of the exact ones. A constant known
to 1 % pays for a small integer, not for `3/(8*pi)`; one known to 1e-12 pays for either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, FloatArray, checked
from physdiffuser.expressions import Expression, Symbol, evaluate
from physdiffuser.expressions.tree import free_constants
from physdiffuser.fitting.exact_constants.evidence import Evidence, State
from physdiffuser.fitting.exact_constants.folding import numerators
from physdiffuser.fitting.exact_constants.forms import FormTable, form_table
from physdiffuser.fitting.exact_constants.odds import DEFAULT_RULE, SettingRule
from physdiffuser.fitting.exact_constants.proposals import proposals, removals
from physdiffuser.fitting.losses import Loss, relative_loss

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64


@dataclass(frozen=True)
class SnappingPolicy:
    """How long exact constants are searched for, and what they must gain.

    docs/fitting.md measures the rule as a whole.
    """

    rows: int = 20_000
    """Most rows that are used."""
    beam: int = 3
    tried: int = 6
    """States that are followed, and proposals tried for each."""
    better_than_free: float = 5.0
    """Gain of the likelihood by a constraint, in nats, that shows the free fit to be no optimum."""
    min_gain: float = 1.0
    """What a snap must gain, in nats: the odds must be at least e to 1 in its favour."""
    few_rows: float = 12.0
    """With so many degrees of freedom it must gain twice as much: the noise level is hardly known either."""


POLICY = SnappingPolicy()


@dataclass(frozen=True)
class Snap:
    """A formula with exact constants.

    Attributes
    ----------
    expression
        Evaluates as well as the data permit: the loss rose by no more than noise explains.
    changes
        What was done, one sentence each.
    loss
        Relative to the best constant's, on the rows given.
    skeleton, parameters
        The formula with what is left free as parameters (tied constants share one), and their values:
        what `fitting.uncertainty` needs.
    """

    expression: Expression
    changes: tuple[str, ...]
    loss: float
    skeleton: Expression
    parameters: FloatArray


@checked
def snap(
    expression: Expression,
    inputs: Float64[np.ndarray, "rows columns"],
    target: Float64[np.ndarray, " rows"],
    *,
    weights: Float64[np.ndarray, " rows"] | None = None,
    loss: Loss = "squared",
    noise: float | None = None,
    known_constants: Iterable[Symbol] = (),
    rng: np.random.Generator | None = None,
    stop: Callable[[], bool] | None = None,
    rule: SettingRule = DEFAULT_RULE,
) -> Snap:
    """Replace fitted constants by exact ones where the data cannot tell.

    More than eight parameters: the rows, and one keyword for each option of a fit.

    Parameters
    ----------
    expression
        A formula whose float numbers are fitted; exact numbers and named constants stay.
    inputs
        Shape (rows, columns).
    target
        Shape (rows,).
    weights
        Shape (rows,), positive, or None.
    loss
        "squared" or "robust".
    noise
        Standard deviation of the target relative to its root mean square, if known.
    known_constants
        Named constants that may appear, alone or in products.
    rng
        Chooses rows where there are very many; `default_rng(0)` when None.
    stop
        Asked between the forms tried; once it answers True, what has been found is given.
    rule
        How near a special value must be, and how rare.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    skeleton, values = free_constants(numerators(expression))
    all_inputs, all_target, all_weights = inputs, target, weights
    if target.shape[0] > POLICY.rows:
        rows = np.sort(rng.choice(target.shape[0], POLICY.rows, replace=False))
        inputs, target = inputs[rows], target[rows]
        weights = None if weights is None else weights[rows]

    def finish(found: Expression, changes: tuple[str, ...], left: Expression, free: FloatArray) -> Snap:
        value = relative_loss(evaluate(found, all_inputs), all_target, all_weights, loss)
        return Snap(found, changes, value, left, free)

    if not values:
        return finish(expression, (), expression, np.zeros(0))
    table = form_table(tuple(known_constants))
    with np.errstate(all="ignore"):
        evidence = Evidence(skeleton, inputs, target, weights, loss, noise, rng, rule)
        first = evidence.start(skeleton, np.array(values))
        if first is None:
            return finish(expression, (), skeleton, np.array(values))
        freedom = max(target.shape[0] - len(values), 1)
        least = POLICY.min_gain * (1.0 if noise else 1.0 + POLICY.few_rows / freedom)
        best = _search(evidence, first, table, least, stop or _never)
    return finish(best.expression, best.changes, best.skeleton, best.values)


def _never() -> bool:
    return False


def _search(
    evidence: Evidence, first: State, table: FormTable, least: float, stop: Callable[[], bool]
) -> State:
    """Beam search from the free fit over ever more exact states; each step must gain `least` nats."""
    best = _without_needless(evidence, first)
    beam = [best]
    seen = {best.skeleton}
    while beam:
        following: list[State] = []
        for state in beam:
            for proposal in proposals(evidence, state, table)[: POLICY.tried]:
                if stop():
                    break
                if proposal.gain < least or proposal.skeleton in seen:
                    continue
                seen.add(proposal.skeleton)
                changed = evidence.follow(state, proposal)
                if changed is not None and changed.fit > POLICY.better_than_free:
                    # The free fit had not ended well: (x - c)**2.0 cannot move its exponent where x < c.
                    again = evidence.start(changed.skeleton, changed.values)
                    if again is not None:
                        again = replace(
                            again,
                            cost=changed.cost,
                            score=again.score - changed.cost,
                            changes=changed.changes,
                        )
                        return _search(evidence, again, table, least, stop)
                if changed is not None and changed.score >= state.score + least:
                    following.append(changed)
        following.sort(key=lambda state: -state.score)
        beam = following[: POLICY.beam]
        if beam and beam[0].score > best.score:
            best = beam[0]
    return best


def _without_needless(evidence: Evidence, state: State) -> State:
    """The same fit without the constants that only repeat what others do."""
    while True:
        for proposal in removals(state):
            changed = evidence.follow(state, proposal)
            if changed is not None and changed.fit >= state.fit - 3.0:
                state = changed
                break
        else:
            return state
