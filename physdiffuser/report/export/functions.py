"""A found formula as something to call: a numpy function or a torch module."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from physdiffuser.arrays import FloatArray
from physdiffuser.errors import UsageError
from physdiffuser.expressions import Expression, evaluate, to_text
from physdiffuser.expressions.tree import variables

if TYPE_CHECKING:
    from physdiffuser.report.export.torch_module import TorchLaw


class NumpyFunction:
    """A formula as a function of arrays.

    It walks the tree, so no code is generated or run; it can be pickled and sent to workers.

    Parameters
    ----------
    names
        Names of the table's input columns, in order.

    Examples
    --------
    >>> from physdiffuser.expressions import parse
    >>> energy = to_numpy(parse("m*v**2/2", ["m", "v"]), ["m", "v"])
    >>> energy(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([ 2., 24.])
    >>> energy(m=2.0, v=np.array([1.0, 3.0]))
    array([1., 9.])
    """

    def __init__(self, expression: Expression, names: Sequence[str]) -> None:
        self.expression = expression
        self.names = tuple(names)

    def __call__(self, table: npt.ArrayLike | None = None, /, **columns: npt.ArrayLike) -> FloatArray:
        """Value of the formula.

        Parameters
        ----------
        table
            Shape (rows, columns), the input columns in the order of the table that was solved.
        columns
            Instead of `table`: one array for each variable of the formula, by name. They broadcast.

        Returns
        -------
        Shape (rows,), or the common shape of the columns. nan or inf outside the domain.

        Raises
        ------
        UsageError
            If both or neither way is used, or a column is missing, unknown or does not fit.
        """
        if table is not None:
            if columns:
                raise UsageError("give either one table or columns by name, not both")
            values = np.asarray(table, dtype=np.float64)
            if values.ndim != 2 or values.shape[1] != len(self.names):
                raise UsageError(
                    f"the table has shape {values.shape}; expected (rows, {len(self.names)}) with the "
                    f"columns {', '.join(self.names)}"
                )
            return evaluate(self.expression, values)
        return self._by_name(columns)

    def _by_name(self, columns: dict[str, npt.ArrayLike]) -> FloatArray:
        unknown = [name for name in columns if name not in self.names]
        needed = [self.names[index] for index in sorted(variables(self.expression))]
        missing = [name for name in needed if name not in columns]
        if unknown or missing:
            what = f"unknown columns {unknown}" if unknown else f"missing columns {missing}"
            raise UsageError(f"{what}; the formula needs {', '.join(needed) or 'none'}")
        given = [np.asarray(columns[name], dtype=np.float64) for name in needed]
        try:
            together = np.broadcast_arrays(*given)
        except ValueError:
            shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(needed, given, strict=True))
            raise UsageError(f"the columns do not broadcast: {shapes}") from None
        shape = together[0].shape if together else ()
        values = np.zeros((int(np.prod(shape)), len(self.names)))
        for name, array in zip(needed, together, strict=True):
            values[:, self.names.index(name)] = array.ravel()
        return evaluate(self.expression, values).reshape(shape)

    def __repr__(self) -> str:
        return f"NumpyFunction({to_text(self.expression, self.names)!r}, {list(self.names)!r})"


def to_numpy(expression: Expression, names: Sequence[str]) -> NumpyFunction:
    """A formula as a function of arrays; see `NumpyFunction`."""
    return NumpyFunction(expression, names)


def to_torch(expression: Expression, names: Sequence[str]) -> TorchLaw:
    """A formula as a `torch.nn.Module` whose fitted constants are its parameters.

    `forward` takes a tensor of shape (..., columns) and returns one of shape (...), on the device
    and in the precision of its input.

    Raises
    ------
    UsageError
        If an operator of the formula has no torch form.
    """
    from physdiffuser.report.export.torch_module import TorchLaw

    return TorchLaw(expression, tuple(names))


def to_sympy(expression: Expression, names: Sequence[str]) -> Any:
    """A formula as a sympy expression."""
    from physdiffuser.expressions.sympy_bridge import to_sympy as convert

    return convert(expression, names)
