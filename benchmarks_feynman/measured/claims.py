"""Whether what `solve` prints about its answer is true: each number is computed again from the table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from benchmarks_feynman.measured.independent import PrintedFormula, refit
from physdiffuser.arrays import FloatArray

_CONCISE = re.compile(r"(-?[\d.]+)\(([\d.]+)\)(?:e([+-]?\d+))?")

Truth = Literal["true", "false", "unknown"]

# Numbers that follow from the printed formula alone; a constant without an error has six digits.
ROUNDING, SIX_DIGITS = 1e-6, 6e-6
# Of the last place written, and a little for the binary fractions.
HALF = 0.501
# Share of an interval's width by which a refit may differ.
INTERVAL = 0.1


def check_claims(document: Mapping[str, Any], inputs: FloatArray, target: FloatArray) -> dict[str, Truth]:
    """The truth of each number about the chosen formula.

    Parameters
    ----------
    document
        Of `solve --json`, its formula in the names of all columns of `inputs`.
    inputs, target
        The table, as it was given to `solve`.

    Returns
    -------
    dict
        `unknown` for intervals of a robust fit, which is not made again here.
    """
    best, rows = document["best"], document["fit_rows"]
    out = np.zeros(len(target), bool)
    out[np.array(rows["test"], int) - 1] = True
    kept = np.delete(np.arange(len(target)), np.array(rows["left_out"], int) - 1)
    inputs, target, out = inputs[kept], target[kept], out[kept]
    weights = np.ones(len(target)) if rows["weights"] is None else np.array(rows["weights"])
    formula = _formula(document)
    prediction = formula.values(inputs)
    residual = target - prediction
    truths: dict[str, Truth] = {
        "rmse": _equal(best["rmse"], _root_mean_square(residual, weights)),
        "r2": _equal(best["r2"], _r2(target, prediction, weights), least=1.0),
        "max_relative_error": _equal(best["max_relative_error"], _largest(target, prediction)),
        "constants": _constant_values(best["constants"]),
    }
    if best["test_rmse"] is not None and out.any():
        truths["test_rmse"] = _equal(best["test_rmse"], _root_mean_square(residual[out], weights[out]))
    if any(constant["low"] is not None for constant in best["constants"]):
        fit = inputs[~out], target[~out], weights[~out]
        truths["intervals"] = (
            "unknown" if rows["loss"] == "robust" else _intervals(best["constants"], formula, *fit)
        )
    return truths


def _formula(document: Mapping[str, Any]) -> PrintedFormula:
    best = document["best"]
    names = [column["alias"] for column in document["inputs"]]
    fitted = [constant["value"] for constant in best["constants"] if constant["set_to"] is None]
    return PrintedFormula.read(best["expression"], names, fitted)


def _equal(
    printed: float | None, computed: float, tolerance: float = ROUNDING, least: float = 1e-300
) -> Truth:
    """Whether two numbers agree, relative to the computed one or, if that is smaller, to `least`."""
    if printed is None:
        return "true" if not np.isfinite(computed) else "false"
    return "true" if abs(printed - computed) <= tolerance * max(abs(computed), least) else "false"


def _largest(target: FloatArray, prediction: FloatArray) -> float:
    some = target != 0
    return float(np.abs((prediction - target)[some] / target[some]).max(initial=0.0))


def _root_mean_square(residual: FloatArray, weights: FloatArray) -> float:
    return float(np.sqrt(np.average(residual**2, weights=weights)))


def _r2(target: FloatArray, prediction: FloatArray, weights: FloatArray) -> float:
    mean = np.average(target, weights=weights)
    left = np.average((target - prediction) ** 2, weights=weights)
    return float(1.0 - left / np.average((target - mean) ** 2, weights=weights))


def _constant_values(constants: Sequence[Mapping[str, Any]]) -> Truth:
    """Whether the text of each constant is its value, with its standard error where that is written."""
    return "true" if all(map(_is_written, constants)) else "false"


def _is_written(constant: Mapping[str, Any]) -> bool:
    value, text = float(constant["value"]), constant["text"]
    concise = _CONCISE.fullmatch(text)
    if concise is None:
        written = float(PrintedFormula.read(text, ()).values(np.zeros((1, 0)))[0])
        return _equal(value, written, ROUNDING if constant["set_to"] is not None else SIX_DIGITS) == "true"
    number, error, exponent = concise.groups()
    scale = 10.0 ** int(exponent or 0)
    unit = scale * 10.0 ** -len(number.partition(".")[2])
    sigma = float(error) * (scale if "." in error else unit)
    # Numbers before the point are rounded to the leading digit of the error.
    place = max(unit, 10.0 ** math.floor(math.log10(sigma)))
    near = abs(float(number) * scale - value) <= HALF * place
    return near and abs(sigma - float(constant["sigma"])) <= HALF * place


def _intervals(
    constants: Sequence[Mapping[str, Any]],
    formula: PrintedFormula,
    inputs: FloatArray,
    target: FloatArray,
    weights: FloatArray,
) -> Truth:
    """Whether a refit gives the intervals."""
    printed = [constant for constant in constants if constant["low"] is not None]
    found = refit(formula, inputs, target, weights)
    by_size = {
        size: (value, half) for size, value, half in zip(formula.free, found.sizes, found.half, strict=True)
    }
    same = all(_reproduced(constant, *by_size[abs(constant["value"])]) for constant in printed)
    return "true" if same else "false"


def _reproduced(constant: Mapping[str, Any], value: float, half: float) -> bool:
    # In the text a sign may stand before the number: a negative constant is compared by its size.
    low, high = constant["low"], constant["high"]
    if constant["value"] < 0:
        low, high = -high, -low
    slack = INTERVAL * 2 * half
    return bool(abs(low - (value - half)) <= slack and abs(high - (value + half)) <= slack)
