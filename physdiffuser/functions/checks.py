"""The contract check of function families."""

from __future__ import annotations

import numpy as np

from physdiffuser.arrays import FloatArray
from physdiffuser.core.family import FamilySpec, Use
from physdiffuser.functions.family import Family, alternatives, compiled, linear_form, numeric
from physdiffuser.plugin_system.contract import CALL_LIMIT, Calls, ContractError
from physdiffuser.plugin_system.guard import grid_fault

# Ranges of arguments, and rows of each.
_RANGES = ((0.2, 5.0), (-3.0, 4.0), (-9.0, -1.0), (1e-9, 3e-9), (2e6, 5e7))
_ROWS = 60
# Of the constants that are tried on one range, at least this share leads to numbers.
_NUMBERS = 0.25


def check_family(spec: FamilySpec, *, limit: float = CALL_LIMIT) -> list[str]:
    """Check a function family: its template and its grids.

    * the template, its conditions and its other ways of writing can be read, and hold all constants;
    * the formula of a curve, or its logarithm, is linear in the coefficients;
    * each grid returns float64 of shape (tries, constants), finite, the same for the same arguments, for
      arguments of any sign and size, and leaves these alone;
    * for some range of arguments there are constants to try, with which the formula has finite values that
      vary.

    Parameters
    ----------
    spec
        The family.
    limit
        Seconds for each call of a grid.

    Returns
    -------
    What was checked, one sentence each.

    Raises
    ------
    ContractError
        Naming what is wrong.
    """
    return Calls(limit).run(lambda calls: _checks(spec, calls))


def _checks(spec: FamilySpec, calls: Calls) -> list[str]:
    try:
        family = compiled(spec)
        alternatives(family)
        if "curves" in spec.grids:
            linear_form(family)
    except ValueError as error:
        raise ContractError(str(error)) from error
    rng = np.random.default_rng(0)
    samples = [rng.uniform(low, high, (spec.arity, _ROWS)) for low, high in _RANGES]
    checked = ["the template can be read and holds all constants"]
    for use in spec.grids:
        tries = max(_grid_checks(family, use, arguments, calls) for arguments in samples)
        if not tries:
            raise ContractError(
                f"the grid for {use!r} has no constants with which {spec.template} has finite values that "
                "vary, neither for positive nor for negative arguments"
            )
        checked.append(f"the grid for {use} has up to {tries} constants to try, with finite values")
    return checked


def _grid_checks(family: Family, use: Use, arguments: FloatArray, calls: Calls) -> int:
    """Check one grid on one sample; returns how many points of it lead to values."""
    what = f"the grid for {use!r}"
    before = arguments.copy()
    with np.errstate(all="ignore"):
        first = calls(what, family.tries, use, *arguments)
        second = calls(what, family.tries, use, *arguments)
        if not np.array_equal(before, arguments):
            raise ContractError(f"{what} changes the arguments")
        fault = grid_fault(first, family.constants)
        if fault is not None:
            limits = f"from {before.min():.3g} to {before.max():.3g}"
            raise ContractError(f"{what} {fault}, for arguments {limits}")
        if not np.array_equal(first, second):
            raise ContractError(f"{what} is not deterministic: two calls with the same arguments differ")
        if not len(first):
            return 0
        form = linear_form(family) if use == "curves" else None
        values = (
            [family.values(list(arguments), first)]
            if form is None
            else numeric(form.terms, form.arguments(arguments[0]), first)
        )
        good = np.ones(len(first), np.bool_)
        for value in values:
            whole = np.broadcast_to(value, (len(first), _ROWS))
            good &= np.isfinite(whole).all(axis=1) & (np.ptp(whole, axis=1) > 0)
    return int(good.sum()) if good.mean() >= _NUMBERS else 0
