"""Whether what `solve` prints about its answer is true: each number is computed again from the table."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks_feynman.measured.independent import FloatArray, PrintedFormula, refit

_CONCISE = re.compile(r"(-?[\d.]+)\(([\d.]+)\)(?:e([+-]?\d+))?")

Truth = Literal["true", "false", "unknown"]

# Numbers that follow from the printed formula alone; a constant without an error has six digits.
ROUNDING, SIX_DIGITS = 1e-6, 6e-6
# Of the last place written, and a little for the binary fractions.
HALF = 0.501
# Numbers under weights that are estimated: these follow from an earlier fit.
ESTIMATED = 0.05
# Share of an interval's width by which a refit may differ.
INTERVAL = 0.1


def check_claims(
    document: Mapping[str, Any], inputs: FloatArray, target: FloatArray, test_rows: Sequence[int]
) -> dict[str, Truth]:
    """The truth of each number about the chosen formula.

    Parameters
    ----------
    document
        Of `solve --json`, its formula in the names of all columns of `inputs`.
    test_rows
        Rows of the test set, counted without those that were left out as gross errors.

    Returns
    -------
    dict
        `unknown` where the document does not say what a number refers to.
    """
    best = document["best"]
    kept = _kept_rows(document, inputs, target)
    inputs, target = inputs[kept], target[kept]
    formula = _formula(document)
    prediction = formula.values(inputs)
    weightings = _weightings(prediction, target)
    truths: dict[str, Truth] = {
        "rmse": _rmse(best["rmse"], target - prediction, weightings),
        "r2": _r2(best["r2"], target, prediction, weightings),
        "max_relative_error": _equal(best["max_relative_error"], _largest(target, prediction)),
        "constants": _constant_values(best["constants"]),
    }
    out = np.zeros(len(target), bool)
    out[list(test_rows)] = True
    if best["test_rmse"] is not None and out.any():
        some = {name: weights[out] for name, weights in weightings.items()}
        truths["test_rmse"] = _rmse(best["test_rmse"], (target - prediction)[out], some)
    if any(constant["low"] is not None for constant in best["constants"]):
        truths["intervals"] = _intervals(best["constants"], formula, inputs[~out], target[~out])
    return truths


def _formula(document: Mapping[str, Any]) -> PrintedFormula:
    best = document["best"]
    names = [column["alias"] for column in document["inputs"]]
    fitted = [constant["value"] for constant in best["constants"] if constant["set_to"] is None]
    return PrintedFormula.read(best["expression"], names, fitted)


def _kept_rows(document: Mapping[str, Any], inputs: FloatArray, target: FloatArray) -> npt.NDArray[np.intp]:
    """Rows that the numbers refer to: all but those of the largest errors where the document counts fewer."""
    order = np.argsort(np.abs(target - _formula(document).values(inputs)))
    return np.sort(order[: document["rows"]])


def _weightings(prediction: FloatArray, target: FloatArray) -> dict[str, FloatArray]:
    """Weights that `solve` may have used: equal ones, and those of its noise models."""
    found = {"equal": np.ones(len(target))}
    for name, values in (("prediction", prediction), ("value", target)):
        size = np.abs(values)
        finite = size[np.isfinite(size)]
        smallest = 1e-12 * float(finite.max(initial=0.0)) or 1.0
        size = np.clip(size, smallest, float(finite.max(initial=smallest)))
        found[f"relative to {name}"], found[f"poisson, {name}"] = size**-2.0, 1.0 / size
    return found


def _equal(printed: float | None, computed: float, tolerance: float = ROUNDING) -> Truth:
    if printed is None:
        return "true" if not np.isfinite(computed) else "false"
    return "true" if abs(printed - computed) <= tolerance * max(abs(computed), 1e-300) else "false"


def _largest(target: FloatArray, prediction: FloatArray) -> float:
    some = target != 0
    return float(np.abs((prediction - target)[some] / target[some]).max(initial=0.0))


def _weighted(
    printed: float | None, number: Callable[[FloatArray], float], all_of: Mapping[str, FloatArray]
) -> Truth:
    """Whether a number is that with equal weights, or nearly that with the weights of a noise model.

    A mixed model has weights between these; a number between theirs cannot be refuted.
    """
    with np.errstate(all="ignore"):
        found = {name: number(weights) for name, weights in all_of.items()}
    if _equal(printed, found["equal"]) == "true":
        return "true"
    if any(_equal(printed, value, ESTIMATED) == "true" for value in found.values()):
        return "true"
    low, high = min(found.values()), max(found.values())
    return "unknown" if printed is not None and low <= printed <= high else "false"


def _rmse(printed: float | None, residual: FloatArray, weightings: Mapping[str, FloatArray]) -> Truth:
    return _weighted(
        printed, lambda weights: float(np.sqrt(np.average(residual**2, weights=weights))), weightings
    )


def _r2(
    printed: float | None, target: FloatArray, prediction: FloatArray, weightings: Mapping[str, FloatArray]
) -> Truth:
    def r2(weights: FloatArray) -> float:
        mean = np.average(target, weights=weights)
        left = np.average((target - prediction) ** 2, weights=weights)
        return float(1.0 - left / np.average((target - mean) ** 2, weights=weights))

    return _weighted(printed, r2, weightings)


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
    constants: Sequence[Mapping[str, Any]], formula: PrintedFormula, inputs: FloatArray, target: FloatArray
) -> Truth:
    """Whether a refit with one of the weightings gives the intervals."""
    printed = [constant for constant in constants if constant["low"] is not None]
    for weights in _weightings(formula.values(inputs), target).values():
        found = refit(formula, inputs, target, weights)
        by_size = {
            size: (value, half)
            for size, value, half in zip(formula.free, found.sizes, found.half, strict=True)
        }
        if all(_reproduced(constant, *by_size[abs(constant["value"])]) for constant in printed):
            return "true"
    return "false"


def _reproduced(constant: Mapping[str, Any], value: float, half: float) -> bool:
    # In the text a sign may stand before the number: a negative constant is compared by its size.
    low, high = constant["low"], constant["high"]
    if constant["value"] < 0:
        low, high = -high, -low
    slack = INTERVAL * 2 * half
    return bool(abs(low - (value - half)) <= slack and abs(high - (value + half)) <= slack)
