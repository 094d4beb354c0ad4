"""Contract checks for plugin authors: call one from a test of your package.

    from physdiffuser.testing import check_generator
    from my_package import physdiffuser_generators

    def test_contract() -> None:
        for spec in physdiffuser_generators():
            check_generator(spec)

`physdiffuser plugins check NAME` runs the same checks on an installed plugin. A check returns what it
looked at, one sentence each, and raises `ContractError` at the first thing that is not as promised. Each call
of the plugin has a time limit, and the check fails if one does not return in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.plugin_system.candidates import candidate_fault
from physdiffuser.plugin_system.guard import POLICY as GUARD
from physdiffuser.plugin_system.guard import ArchiveView, CandidateMeter

if TYPE_CHECKING:
    from physdiffuser.core.candidate import Candidate
    from physdiffuser.core.problem import Problem
    from physdiffuser.specs import AttentionSpec, GeneratorSpec

from physdiffuser.functions.checks import check_family
from physdiffuser.plugin_system.contract import CALL_LIMIT, CALLS_IN_ALL, Calls, ContractError, ensure
from physdiffuser.plugin_system.operator_checks import check_operator

__all__ = [
    "CALLS_IN_ALL",
    "CALL_LIMIT",
    "Calls",
    "ContractError",
    "check_attention",
    "check_family",
    "check_generator",
    "check_operator",
]


def check_generator(spec: GeneratorSpec, *, steps: int = 20, limit: float = CALL_LIMIT) -> list[str]:
    """Check a generator on a small problem with a limited budget.

    * `build` makes an object with `propose`;
    * it yields well-formed candidates with its own name, or none;
    * it returns once the budget is spent, or the user asked to stop;
    * it leaves the problem's arrays alone;
    * two runs with the same seed and steps yield the same formulas.

    Parameters
    ----------
    spec
        The generator.
    steps
        The budget.
    limit
        Seconds for `build`, and for each candidate.

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
    return Calls(limit).run(lambda calls: _generator_checks(spec, steps, calls))


def _generator_checks(spec: GeneratorSpec, steps: int, calls: Calls) -> list[str]:
    problem = _sample_problem()
    before = (problem.inputs.copy(), problem.target.copy())
    first = _propose(spec, problem, steps, calls)
    ensure(
        bool(np.array_equal(before[0], problem.inputs) and np.array_equal(before[1], problem.target)),
        "propose changes the problem's arrays",
    )
    for candidate in first:
        fault = candidate_fault(candidate, problem)
        ensure(fault is None, f"a candidate is malformed: {fault}")
        ensure(
            candidate.generator == spec.name,
            f"a candidate says it is from {candidate.generator!r}, not {spec.name!r}",
        )
    second = _propose(spec, problem, steps, calls)
    ensure(
        [candidate.expression for candidate in first] == [candidate.expression for candidate in second],
        "two runs with the same seed and steps differ; draw random numbers from problem.generator(...)",
    )
    stopped = _propose(spec, problem, steps, calls, cancelled=True)
    ensure(len(stopped) <= max(len(first), 1000), "it goes on after the user asked to stop; see Budget.spend")
    return [
        f"{len(first)} candidates in {steps} steps, all well formed",
        "it keeps to its budget and leaves the problem alone",
        "two runs with the same seed are the same",
    ]


def _sample_problem() -> Problem:
    from physdiffuser.core.problem import Problem

    rng = np.random.default_rng(1)
    inputs = rng.uniform(1.0, 3.0, (100, 2))
    return Problem(inputs=inputs, target=3.0 * inputs[:, 0] ** 2 / inputs[:, 1], names=("a", "b"), seed=1)


def _propose(
    spec: GeneratorSpec, problem: Problem, steps: int, calls: Calls, cancelled: bool = False
) -> list[Candidate]:
    from physdiffuser.core.problem import Budget
    from physdiffuser.search.archive import ParetoArchive

    generator = calls("build", spec.build, **spec.options)
    ensure(callable(getattr(generator, "propose", None)), "build returns an object without propose()")
    ensure(
        getattr(generator, "name", None) == spec.name,
        f"its name is {getattr(generator, 'name', None)!r}, but it is registered as {spec.name!r}",
    )
    archive = ParetoArchive(problem)
    view: Any = ArchiveView(archive, problem)
    budget = Budget(steps=steps, cancelled=lambda: cancelled)
    meter = CandidateMeter(budget)
    candidates: list[Candidate] = []
    proposals = iter(calls("propose", generator.propose, problem, view, budget))
    try:
        while (candidate := calls("propose", next, proposals, None)) is not None:
            candidates.append(candidate)
            if candidate_fault(candidate, problem) is None:
                archive.offer(candidate)
            ensure(
                budget.spent <= 2 * steps + 1,
                f"it spent {budget.spent} steps of {steps}; stop when spend() answers False",
            )
            ensure(
                not meter.count(),
                f"it yields {GUARD.candidates_per_step} candidates after its budget of {steps} steps is "
                f"spent (a step is also charged for {GUARD.candidates_charged} candidates without one); call "
                "budget.spend() after bounded work, and return when it answers False",
            )
    finally:
        if hasattr(proposals, "close"):
            # Here, where it has a time limit, and not when the object is collected.
            calls("propose, when it is closed,", proposals.close)
    return candidates


def check_attention(
    spec: AttentionSpec, *, width: int = 32, heads: int = 4, limit: float = CALL_LIMIT
) -> list[str]:
    """Check an attention variant, built with its default options.

    * outputs have the shape of the queries; evaluation is deterministic;
    * finite gradients reach every parameter, in training and in evaluation mode;
    * rows in another order give the same outputs in that order; padded rows have no influence;
    * saved and loaded it answers the same, and it runs in bfloat16;
    * each capability in `supports` is there, and the others are refused with the reason.

    Parameters
    ----------
    spec
        The variant.
    width, heads
        The size to build it in.
    limit
        Seconds to build it, and for each of the checks above.

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
    from physdiffuser.testing import attention as attention_checks

    return Calls(limit).run(lambda calls: attention_checks.check(spec, calls, width=width, heads=heads))
