"""Values, refits and intervals of printed formulas, by code that shares nothing with the program under test.

A formula is read from its printed text with Python's grammar (nothing is executed) and computed with numpy.
Fits are those of `scipy.optimize.least_squares`, with derivatives by central differences.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import t as student

from physdiffuser.arrays import FloatArray

_FUNCTIONS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "abs": np.abs,
    "sign": np.sign,
}
_OPERATORS: Mapping[type[ast.operator], Callable[[FloatArray, FloatArray], FloatArray]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
# From so many rows beyond the number of constants the intervals are those of HC3 (docs/fitting.md).
SANDWICH_ROWS = 8


@dataclass(frozen=True)
class PrintedFormula:
    """A formula as printed.

    Attributes
    ----------
    tree
        Its syntax tree.
    names
        Columns by name, in their order.
    free
        Sizes of the constants that count as fitted; equal ones are tied.
    """

    tree: ast.expr
    names: tuple[str, ...]
    free: tuple[float, ...] = ()

    @classmethod
    def read(cls, text: str, names: Sequence[str], fitted: Sequence[float] = ()) -> PrintedFormula:
        """Read a text; `fitted` are the values of its constants that were fitted."""
        sizes = tuple(dict.fromkeys(abs(value) for value in fitted))
        return cls(ast.parse(text, mode="eval").body, tuple(names), sizes)

    @np.errstate(all="ignore")
    def values(self, inputs: FloatArray, free: Sequence[float] | None = None) -> FloatArray:
        """Values on rows, shape (rows,), with other sizes of the fitted constants if given."""
        sizes = dict(zip(self.free, self.free if free is None else free, strict=True))
        columns = dict(zip(self.names, inputs.T, strict=True))
        return np.asarray(_value(self.tree, columns, sizes) + np.zeros(len(inputs)), float)


def _value(node: ast.expr, columns: Mapping[str, FloatArray], sizes: Mapping[float, float]) -> FloatArray:
    match node:
        case ast.Constant(value=int() | float() as number):
            return np.asarray(sizes.get(float(number), float(number)), float)
        case ast.Name(id="pi"):
            return np.asarray(math.pi)
        case ast.Name(id=name):
            return columns[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, columns, sizes)
        case ast.BinOp(left=left, op=operator, right=right):
            return _OPERATORS[type(operator)](_value(left, columns, sizes), _value(right, columns, sizes))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return _FUNCTIONS[name](_value(argument, columns, sizes))
    raise ValueError(f"{ast.unparse(node)!a} is no part of a formula")


@dataclass(frozen=True, eq=False)
class Refit:
    """Constants of a formula fitted again.

    Attributes
    ----------
    sizes, errors
        Shape (constants,): the values and their standard errors.
    half
        Shape (constants,): half widths of the 95 % intervals.
    """

    sizes: FloatArray
    errors: FloatArray
    half: FloatArray


def refit(
    formula: PrintedFormula, inputs: FloatArray, target: FloatArray, weights: FloatArray | None = None
) -> Refit:
    """Weighted least squares from the printed constants, with 95 % intervals."""
    start = np.array(formula.free)
    root = np.ones(len(target)) if weights is None else np.sqrt(weights / weights.mean())
    scale = np.where(start != 0, np.abs(start), 1.0)

    def residual(unit: FloatArray) -> FloatArray:
        left = root * (formula.values(inputs, list(unit * scale)) - target)
        return np.where(np.isfinite(left), left, 1e150)

    found = least_squares(residual, start / scale, method="lm", x_scale=1.0, xtol=1e-14, ftol=1e-14)
    jacobian = _central(residual, found.x)
    inverse = np.linalg.pinv(jacobian.T @ jacobian)
    freedom = len(target) - start.size
    left = residual(found.x)
    if freedom >= SANDWICH_ROWS:
        leverage = np.einsum("ij,jk,ik->i", jacobian, inverse, jacobian)
        middle = jacobian * (left / np.maximum(1.0 - leverage, 1e-12))[:, None]
        covariance = inverse @ (middle.T @ middle) @ inverse
    else:
        covariance = inverse * float(left @ left) / max(freedom, 1)
    errors = scale * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    half = errors * float(student.ppf(0.975, freedom)) if freedom > 0 else np.full(start.size, np.inf)
    return Refit(found.x * scale, errors, half)


def _central(residual: Callable[[FloatArray], FloatArray], point: FloatArray) -> FloatArray:
    columns = []
    for position in range(point.size):
        step = 1e-5 * max(abs(point[position]), 1e-3)
        up, down = point.copy(), point.copy()
        up[position] += step
        down[position] -= step
        columns.append((residual(up) - residual(down)) / (2 * step))
    return np.stack(columns, axis=1)


def left_out_errors(
    formula: PrintedFormula, inputs: FloatArray, target: FloatArray, weights: FloatArray, folds: int
) -> FloatArray:
    """Errors on rows that the fit has not seen, shape (rows,): every `folds`-th row is left out in turn."""
    errors = np.empty(len(target))
    for fold in range(min(folds, len(target))):
        out = np.arange(len(target)) % min(folds, len(target)) == fold
        sizes = None
        if formula.free:
            sizes = list(refit(formula, inputs[~out], target[~out], weights[~out]).sizes)
        errors[out] = target[out] - formula.values(inputs[out], sizes)
    return errors
