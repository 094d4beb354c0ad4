"""What all rows say, once a system was found without the held-out ones and checked on these."""

from __future__ import annotations

from dataclasses import replace

from physdiffuser.dynamics.attempts import Attempt
from physdiffuser.dynamics.schedule import Stop
from physdiffuser.dynamics.search.candidates import Candidate
from physdiffuser.dynamics.search.choice import Choice, Shortlist
from physdiffuser.dynamics.search.constants import parameter_errors, with_exact_constants
from physdiffuser.dynamics.search.selection import POLICY as SELECTION
from physdiffuser.dynamics.search.selection import Fitted, Selector, mean_square
from physdiffuser.dynamics.verification.simulation import simulate_all
from physdiffuser.dynamics.verification.verdict import judge_system, with_check

CHOSEN = "the equations were chosen with the held-out rows, so that these are no test of them"


def chosen_by_all_rows(attempt: Attempt, seed: int, stop: Stop) -> Attempt:
    """The attempt with another system, where all rows prefer one to a system that is not verified.

    A verified system stays: it was found without the rows that confirm it. Where the noise leaves several
    systems, the held-out rows help to choose; the one that they choose is not verified by them.
    """
    settled = attempt.selector.prepared.exact or attempt.judged.verdict == "verified"
    if settled or not attempt.division.held_out or stop():
        return attempt
    own = attempt.fitted
    lists = [
        [Candidate(skeleton, part, 0.0, 0.0, "trajectories")]
        for skeleton, part in zip(own.skeletons, own.parts(), strict=True)
    ]
    for state, candidate, _ in sorted(attempt.rivals, key=lambda rival: rival[2]):
        lists[state].append(candidate)
    whole = Selector(attempt.everything, stop)
    best, rivals = Choice(whole).choose([Shortlist(found, found) for found in lists])
    if stop() or best.skeletons == own.skeletons:
        return attempt
    selector = attempt.selector
    selector.stop = stop
    fitted = selector.lengthened(selector.fit(best.skeletons, best.parts(), selector.first))
    if not mean_square(fitted) <= SELECTION.worse * mean_square(own):
        return attempt
    exact = with_exact_constants(selector, fitted)
    curves = attempt.everything.curves
    simulation = simulate_all(attempt.table, attempt.division, selector, exact, curves, seed)
    errors = parameter_errors(selector, exact)
    judged = judge_system(exact, simulation, [gap for _, _, gap in rivals], False, errors)
    return replace(
        attempt,
        rivals=rivals,
        fitted=fitted,
        exact=exact,
        simulation=simulation,
        judged=with_check(judged, False, CHOSEN),
    )


def on_all_rows(attempt: Attempt, stop: Stop) -> tuple[Fitted, Selector]:
    """The system with its constants fitted to all rows, after the check on the held-out ones."""
    exact, selector, free = attempt.exact, attempt.selector, attempt.fitted
    if not attempt.division.held_out or stop():
        return exact, selector
    whole = Selector(attempt.everything, stop)
    intervals = free.intervals if free.intervals < selector.longest else whole.longest
    if attempt.everything.exact:
        intervals = whole.first
    fitted = whole.fit(free.skeletons, free.parts(), intervals, free.substeps)
    # A fit to longer runs may end elsewhere; its constants are not those that were checked.
    if not mean_square(fitted) <= SELECTION.worse * max(mean_square(exact), 1.0):
        return exact, selector
    return with_exact_constants(whole, fitted), whole
