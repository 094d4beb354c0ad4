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

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from physdiffuser.plugin_system.calls import PluginWorker
from physdiffuser.plugin_system.candidates import candidate_fault
from physdiffuser.plugin_system.guard import (
    CANDIDATES_CHARGED,
    CANDIDATES_PER_STEP,
    ArchiveView,
    CandidateMeter,
)

if TYPE_CHECKING:
    from physdiffuser.core.candidate import Candidate
    from physdiffuser.core.problem import Problem
    from physdiffuser.specs import AttentionSpec, GeneratorSpec, OperatorSpec

FloatArray = npt.NDArray[np.float64]
T = TypeVar("T")

CALL_LIMIT = 30.0
"""Seconds for each call of the plugin."""

CALLS_IN_ALL = 10
"""All calls of one check together may take so many times as long as one."""


class ContractError(AssertionError):
    """A plugin does not do what the extension point asks for."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)


class Calls:
    """The calls of one check, and how long each takes.

    Parameters
    ----------
    limit
        Seconds for each call.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._name = "it"
        self._started = time.monotonic()

    def __call__(self, name: str, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call a function of the plugin, under a name for the message."""
        self._name, self._started = name, time.monotonic()
        return function(*arguments, **options)

    def run(self, check: Callable[[Calls], list[str]]) -> list[str]:
        """Run a check in a thread of its own, and give it up once a call exceeds the limit."""
        worker = PluginWorker()
        too_long = ""

        def give_up(waited: float) -> bool:
            nonlocal too_long
            if time.monotonic() - self._started >= self.limit:
                too_long = f"{self._name} does not return within {self.limit:g} s"
            elif waited >= CALLS_IN_ALL * self.limit:
                too_long = f"the check does not end within {CALLS_IN_ALL * self.limit:g} s"
            return bool(too_long)

        try:
            return worker.call(lambda: check(self), give_up)
        except TimeoutError:
            raise ContractError(too_long) from None
        finally:
            worker.close()


def check_operator(spec: OperatorSpec, *, limit: float = CALL_LIMIT) -> list[str]:
    """Check the row of an operator: its numeric form and its derivatives.

    * arity, complexity and the number of derivatives fit together;
    * `evaluate` takes arrays of any shape, and scalars, and returns float64 of the same shape;
    * it is elementwise and deterministic, does not change its arguments, and has values on most of
      some ordinary range;
    * each derivative agrees with central differences;
    * with a `degree`, scaling all arguments by k scales the value by k**degree.

    Parameters
    ----------
    spec
        The operator.
    limit
        Seconds for each call of a function of the plugin.

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
    return Calls(limit).run(lambda calls: _operator_checks(spec, calls))


def _operator_checks(spec: OperatorSpec, calls: Calls) -> list[str]:
    _require(spec.arity in (1, 2), f"arity is {spec.arity!r}; it must be 1 or 2")
    _require(
        isinstance(spec.complexity, int) and spec.complexity >= 1,
        f"complexity is {spec.complexity!r}; it must be a whole number of at least 1",
    )
    _require(
        len(spec.derivatives) == spec.arity,
        f"{len(spec.derivatives)} derivatives for {spec.arity} arguments; give one for each",
    )
    _require(callable(spec.sympy), "sympy must be a function that builds the sympy form")
    rng = np.random.default_rng(0)
    ranges = ((0.2, 0.9), (1.1, 3.0), (-2.0, 2.0))
    samples = [[rng.uniform(low, high, 64) for _ in range(spec.arity)] for low, high in ranges]
    finite = False
    with np.errstate(all="ignore"):
        for arguments in samples:
            value = _numeric(calls, spec.evaluate, "evaluate", arguments)
            finite = finite or np.isfinite(value).mean() > 0.5
            # Element by element, and as a column: the search calls it on both.
            single = _numeric(
                calls, spec.evaluate, "evaluate", [np.asarray(argument[7]) for argument in arguments]
            )
            _require(
                bool(np.isclose(single, value[7], rtol=1e-12, atol=0.0, equal_nan=True)),
                "evaluate is not elementwise: one row gives another value alone than in a column",
            )
            matrix = _numeric(
                calls, spec.evaluate, "evaluate", [argument.reshape(8, 8) for argument in arguments]
            )
            _require(
                np.allclose(matrix.ravel(), value, rtol=1e-12, atol=0.0, equal_nan=True),
                "evaluate is not elementwise: a matrix gives other values than a column",
            )
            _check_derivatives(spec, arguments, value, calls)
            if spec.degree is not None:
                scaled = _numeric(
                    calls, spec.evaluate, "evaluate", [4.0 * argument for argument in arguments]
                )
                _require(
                    np.allclose(scaled, 4.0 ** float(spec.degree) * value, rtol=1e-9, equal_nan=True),
                    f"degree {spec.degree} is declared, but scaling the arguments by 4 does not scale "
                    f"the value by 4**{spec.degree}",
                )
    _require(finite, "evaluate has no finite values for arguments between 0.2 and 3, nor between -2 and 2")
    checked = [
        "evaluate is elementwise, deterministic and leaves its arguments alone",
        "each derivative agrees with central differences",
    ]
    if spec.degree is not None:
        checked.append(f"it is homogeneous of degree {spec.degree}")
    return checked


def _numeric(
    calls: Calls, function: Callable[..., Any], name: str, arguments: list[FloatArray]
) -> FloatArray:
    before = [argument.copy() for argument in arguments]
    first, second = calls(name, function, *arguments), calls(name, function, *arguments)
    for kept, argument in zip(before, arguments, strict=True):
        _require(bool(np.array_equal(kept, argument, equal_nan=True)), f"{name} changes its arguments")
    value = np.asarray(first)
    _require(value.dtype == np.float64, f"{name} returns {value.dtype}, not float64")
    _require(
        value.shape == np.shape(arguments[0]),
        f"{name} returns shape {value.shape} for arguments of shape {np.shape(arguments[0])}",
    )
    _require(
        bool(np.array_equal(value, np.asarray(second), equal_nan=True)),
        f"{name} is not deterministic: two calls on the same arguments differ",
    )
    return value


def _check_derivatives(
    spec: OperatorSpec, arguments: list[FloatArray], value: FloatArray, calls: Calls
) -> None:
    for position, derivative in enumerate(spec.derivatives):
        name = f"the derivative by argument {position + 1}"
        exact = _numeric(calls, derivative, name, [*arguments, value])
        step = 1e-5
        ahead, behind = list(arguments), list(arguments)
        ahead[position] = arguments[position] + step
        behind[position] = arguments[position] - step
        difference = calls("evaluate", spec.evaluate, *ahead) - calls("evaluate", spec.evaluate, *behind)
        slope = difference / (2 * step)
        both = np.isfinite(slope) & np.isfinite(exact)
        wrong = both & ~np.isclose(exact, slope, rtol=1e-4, atol=1e-4)
        # A kink or a pole may fall between two of the points; a wrong formula is wrong all over.
        _require(
            wrong.sum() <= 0.05 * max(both.sum(), 1),
            f"{name} differs from central differences on {int(wrong.sum())} of {int(both.sum())} points",
        )
        _require(
            bool(both.any()) or not np.isfinite(slope).any(), f"{name} is nowhere finite where the value is"
        )


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
    _require(
        bool(np.array_equal(before[0], problem.inputs) and np.array_equal(before[1], problem.target)),
        "propose changes the problem's arrays",
    )
    for candidate in first:
        fault = candidate_fault(candidate, problem)
        _require(fault is None, f"a candidate is malformed: {fault}")
        _require(
            candidate.generator == spec.name,
            f"a candidate says it is from {candidate.generator!r}, not {spec.name!r}",
        )
    second = _propose(spec, problem, steps, calls)
    _require(
        [candidate.expression for candidate in first] == [candidate.expression for candidate in second],
        "two runs with the same seed and steps differ; draw random numbers from problem.generator(...)",
    )
    stopped = _propose(spec, problem, steps, calls, cancelled=True)
    _require(
        len(stopped) <= max(len(first), 1000), "it goes on after the user asked to stop; see Budget.spend"
    )
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
    _require(callable(getattr(generator, "propose", None)), "build returns an object without propose()")
    _require(
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
            _require(
                budget.spent <= 2 * steps + 1,
                f"it spent {budget.spent} steps of {steps}; stop when spend() answers False",
            )
            _require(
                not meter.count(),
                f"it yields {CANDIDATES_PER_STEP} candidates after its budget of {steps} steps is spent (a "
                f"step is also charged for {CANDIDATES_CHARGED} candidates without one); call budget.spend() "
                "after bounded work, and return when it answers False",
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
    from physdiffuser.plugin_system import attention_checks as testing_attention

    return Calls(limit).run(lambda calls: testing_attention.check(spec, calls, width=width, heads=heads))
