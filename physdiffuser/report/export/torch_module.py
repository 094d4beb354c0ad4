"""A formula as a torch module. Imports torch: use `physdiffuser.report.export.functions.to_torch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch

from physdiffuser.errors import UsageError
from physdiffuser.expressions import OPERATORS, Expression, evaluate, to_text
from physdiffuser.expressions.definitions import expanded
from physdiffuser.expressions.tree import (
    Apply,
    Number,
    Parameter,
    Symbol,
    Variable,
    free_constants,
    parameter_count,
    variables,
    walk,
)

Value: TypeAlias = torch.Tensor | float


class TorchLaw(torch.nn.Module):
    """A formula whose fitted constants can be trained further.

    Parameters
    ----------
    expression
        The tree; its fitted constants (float numbers) become `constants`.
    names
        Names of the table's input columns, in order.

    Raises
    ------
    UsageError
        If an operator of the formula has no torch form.
    """

    def __init__(self, expression: Expression, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names
        self.formula = to_text(expression, names)
        skeleton, values = free_constants(expression)
        self.skeleton = expanded(skeleton)
        self.constants = torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))
        for node in walk(self.skeleton):
            if isinstance(node, Apply):
                _torch_function(node.operator)

    def forward(self, table: torch.Tensor) -> torch.Tensor:
        """Value of the formula.

        Parameters
        ----------
        table
            Shape (..., columns), floating point.

        Returns
        -------
        Shape (...). nan or inf outside the domain.
        """
        if table.shape[-1:] != (len(self.names),):
            raise UsageError(
                f"the tensor has shape {tuple(table.shape)}; expected (..., {len(self.names)}) with the "
                f"columns {', '.join(self.names)}"
            )
        value = self._value(self.skeleton, table)
        if isinstance(value, float):
            return torch.full(table.shape[:-1], value, dtype=table.dtype, device=table.device)
        return value.expand(table.shape[:-1])

    def _value(self, node: Expression, table: torch.Tensor) -> Value:
        match node:
            case Variable(index=index):
                return table[..., index]
            case Number(value=value) | Symbol(value=value):
                return float(value)
            case Parameter(index=index):
                return self.constants[index].to(table)
            case Apply(operator=operator, arguments=arguments):
                if not variables(node) and parameter_count(node) == 0:
                    return float(evaluate(node, np.empty((1, 0)))[0])
                return _torch_function(operator)(*(self._value(argument, table) for argument in arguments))

    def extra_repr(self) -> str:
        """The formula, shown by `print(module)`."""
        return self.formula


_INFIX: dict[str, Callable[..., Value]] = {
    "add": lambda left, right: left + right,
    "sub": lambda left, right: left - right,
    "mul": lambda left, right: left * right,
    "div": lambda left, right: left / right,
    "pow": lambda left, right: left**right,
    "neg": lambda argument: -argument,
}


def _torch_function(operator: str) -> Callable[..., Value]:
    known = _INFIX.get(operator)
    if known is not None:
        return known
    spec = OPERATORS[operator]
    function = getattr(torch, spec.torch or spec.name, None)
    if not callable(function):
        raise UsageError(
            f"operator '{operator}' has no torch form; its plugin can name one in OperatorSpec(torch=...)"
        )
    found: Callable[..., Value] = function
    return found
