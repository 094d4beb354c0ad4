"""Contract checks for plugin authors: call one from a test of your package.

    from physdiffuser.testing import check_generator
    from my_package import physdiffuser_generators

    def test_contract() -> None:
        for spec in physdiffuser_generators():
            check_generator(spec)

`physdiffuser plugins check NAME` runs the same checks on an installed plugin. A check returns what it
looked at, one sentence each, and raises `ContractError` at the first thing that is not as promised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from physdiffuser.plugin_guard import candidate_fault

if TYPE_CHECKING:
    from physdiffuser.search.candidate import Candidate
    from physdiffuser.search.problem import Problem
    from physdiffuser.specs import AttentionSpec, GeneratorSpec, OperatorSpec

FloatArray = npt.NDArray[np.float64]
CANDIDATES_PER_STEP = 10_000


class ContractError(AssertionError):
    """A plugin does not do what the extension point asks for."""


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ContractError(message)


def check_operator(spec: OperatorSpec) -> list[str]:
    """Check the row of an operator: its numeric form and its derivatives.

    * arity, complexity and the number of derivatives fit together;
    * `evaluate` takes arrays of any shape, and scalars, and returns float64 of the same shape;
    * it is elementwise and deterministic, does not change its arguments, and has values on most of
      some ordinary range;
    * each derivative agrees with central differences;
    * with a `degree`, scaling all arguments by k scales the value by k**degree.

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
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
            value = _numeric(spec.evaluate, "evaluate", arguments)
            finite = finite or np.isfinite(value).mean() > 0.5
            # Element by element, and as a column: the search calls it on both.
            single = _numeric(spec.evaluate, "evaluate", [np.asarray(argument[7]) for argument in arguments])
            _require(
                bool(np.isclose(single, value[7], rtol=1e-12, atol=0.0, equal_nan=True)),
                "evaluate is not elementwise: one row gives another value alone than in a column",
            )
            matrix = _numeric(spec.evaluate, "evaluate", [argument.reshape(8, 8) for argument in arguments])
            _require(
                np.allclose(matrix.ravel(), value, rtol=1e-12, atol=0.0, equal_nan=True),
                "evaluate is not elementwise: a matrix gives other values than a column",
            )
            _check_derivatives(spec, arguments, value)
            if spec.degree is not None:
                scaled = _numeric(spec.evaluate, "evaluate", [4.0 * argument for argument in arguments])
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


def _numeric(function: Callable[..., Any], name: str, arguments: list[FloatArray]) -> FloatArray:
    before = [argument.copy() for argument in arguments]
    first, second = function(*arguments), function(*arguments)
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


def _check_derivatives(spec: OperatorSpec, arguments: list[FloatArray], value: FloatArray) -> None:
    for position, derivative in enumerate(spec.derivatives):
        name = f"the derivative by argument {position + 1}"
        exact = _numeric(derivative, name, [*arguments, value])
        step = 1e-5
        ahead, behind = list(arguments), list(arguments)
        ahead[position] = arguments[position] + step
        behind[position] = arguments[position] - step
        slope = (spec.evaluate(*ahead) - spec.evaluate(*behind)) / (2 * step)
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


def check_generator(spec: GeneratorSpec, *, steps: int = 20) -> list[str]:
    """Check a generator on a small problem with a limited budget.

    * `build` makes an object with `propose`;
    * it yields well-formed candidates with its own name, or none;
    * it returns once the budget is spent, or the user asked to stop;
    * it leaves the problem's arrays alone;
    * two runs with the same seed and steps yield the same formulas.

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
    problem = _sample_problem()
    before = (problem.inputs.copy(), problem.target.copy())
    first = _propose(spec, problem, steps)
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
    second = _propose(spec, problem, steps)
    _require(
        [candidate.expression for candidate in first] == [candidate.expression for candidate in second],
        "two runs with the same seed and steps differ; draw random numbers from problem.generator(...)",
    )
    stopped = _propose(spec, problem, steps, cancelled=True)
    _require(
        len(stopped) <= max(len(first), 1000), "it goes on after the user asked to stop; see Budget.spend"
    )
    return [
        f"{len(first)} candidates in {steps} steps, all well formed",
        "it keeps to its budget and leaves the problem alone",
        "two runs with the same seed are the same",
    ]


def _sample_problem() -> Problem:
    from physdiffuser.search.problem import Problem

    rng = np.random.default_rng(1)
    inputs = rng.uniform(1.0, 3.0, (100, 2))
    return Problem(inputs=inputs, target=3.0 * inputs[:, 0] ** 2 / inputs[:, 1], names=("a", "b"), seed=1)


def _propose(spec: GeneratorSpec, problem: Problem, steps: int, cancelled: bool = False) -> list[Candidate]:
    from physdiffuser.search.archive import ParetoArchive
    from physdiffuser.search.problem import Budget

    generator = spec.build(**spec.options)
    _require(callable(getattr(generator, "propose", None)), "build returns an object without propose()")
    _require(
        getattr(generator, "name", None) == spec.name,
        f"its name is {getattr(generator, 'name', None)!r}, but it is registered as {spec.name!r}",
    )
    archive = ParetoArchive(problem)
    budget = Budget(steps=steps, cancelled=lambda: cancelled)
    candidates: list[Candidate] = []
    for candidate in generator.propose(problem, archive, budget):
        candidates.append(candidate)
        if candidate_fault(candidate, problem) is None:
            archive.offer(candidate)
        _require(
            budget.spent <= 2 * steps,
            f"it spent {budget.spent} steps of {steps}; stop when spend() answers False",
        )
        _require(
            len(candidates) < CANDIDATES_PER_STEP * steps,
            f"it yields more than {CANDIDATES_PER_STEP} candidates a step; call spend() after bounded work",
        )
    return candidates


def check_attention(spec: AttentionSpec, *, width: int = 32, heads: int = 4) -> list[str]:
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

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
    from physdiffuser import testing_attention

    return testing_attention.check(spec, width=width, heads=heads)
