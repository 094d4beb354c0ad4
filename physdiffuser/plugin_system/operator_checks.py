"""The contract check of operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from physdiffuser.arrays import FloatArray

if TYPE_CHECKING:
    from physdiffuser.specs import OperatorSpec

from physdiffuser.plugin_system.contract import CALL_LIMIT, Calls, ensure


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
    ensure(spec.arity in (1, 2), f"arity is {spec.arity!r}; it must be 1 or 2")
    ensure(
        isinstance(spec.complexity, int) and spec.complexity >= 1,
        f"complexity is {spec.complexity!r}; it must be a whole number of at least 1",
    )
    ensure(
        len(spec.derivatives) == spec.arity,
        f"{len(spec.derivatives)} derivatives for {spec.arity} arguments; give one for each",
    )
    ensure(callable(spec.sympy), "sympy must be a function that builds the sympy form")
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
            ensure(
                bool(np.isclose(single, value[7], rtol=1e-12, atol=0.0, equal_nan=True)),
                "evaluate is not elementwise: one row gives another value alone than in a column",
            )
            matrix = _numeric(
                calls, spec.evaluate, "evaluate", [argument.reshape(8, 8) for argument in arguments]
            )
            ensure(
                np.allclose(matrix.ravel(), value, rtol=1e-12, atol=0.0, equal_nan=True),
                "evaluate is not elementwise: a matrix gives other values than a column",
            )
            _check_derivatives(spec, arguments, value, calls)
            if spec.degree is not None:
                scaled = _numeric(
                    calls, spec.evaluate, "evaluate", [4.0 * argument for argument in arguments]
                )
                ensure(
                    np.allclose(scaled, 4.0 ** float(spec.degree) * value, rtol=1e-9, equal_nan=True),
                    f"degree {spec.degree} is declared, but scaling the arguments by 4 does not scale "
                    f"the value by 4**{spec.degree}",
                )
    ensure(finite, "evaluate has no finite values for arguments between 0.2 and 3, nor between -2 and 2")
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
        ensure(bool(np.array_equal(kept, argument, equal_nan=True)), f"{name} changes its arguments")
    value = np.asarray(first)
    ensure(value.dtype == np.float64, f"{name} returns {value.dtype}, not float64")
    ensure(
        value.shape == np.shape(arguments[0]),
        f"{name} returns shape {value.shape} for arguments of shape {np.shape(arguments[0])}",
    )
    ensure(
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
        ensure(
            wrong.sum() <= 0.05 * max(both.sum(), 1),
            f"{name} differs from central differences on {int(wrong.sum())} of {int(both.sum())} points",
        )
        ensure(
            bool(both.any()) or not np.isfinite(slope).any(), f"{name} is nowhere finite where the value is"
        )
