"""Several skeletons on the same rows, side by side: one tape for each, read as if they were one.

Skeletons with equally many parameters, the same of them linear, can share all that a fit does besides
evaluating them. The starts of the first tape come first, then those of the second, and so on.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from physdiffuser.arrays import BoolArray, FloatArray, IndexArray
from physdiffuser.fitting.batched.evaluation_tape import EvaluationTape


class EvaluationTapes:
    """Values and derivatives of skeletons with equally many parameters; see `Tape`.

    Parameters
    ----------
    tapes
        With columns of their own for each start, that is with inputs of shape (starts, rows, columns).

    Attributes
    ----------
    parameters, rows
        As for each of the tapes.
    starts
        Parameter vectors of all tapes together.
    """

    def __init__(self, tapes: Sequence[EvaluationTape]) -> None:
        self.parameters = tapes[0].parameters
        self.rows = tapes[0].rows
        self._line_up(tapes)

    def _line_up(self, tapes: Sequence[EvaluationTape]) -> None:
        self.tapes = tuple(tapes)
        ends = np.cumsum([0, *(tape.starts for tape in tapes)]).tolist()
        self._slices = [slice(*ends[place : place + 2]) for place in range(len(tapes))]
        self.starts: int = ends[-1]

    def take(self, chosen: BoolArray | IndexArray) -> EvaluationTapes:
        """The tapes for some of the starts, in their order."""
        wanted = np.zeros(self.starts, dtype=np.bool_)
        wanted[chosen] = True
        part = copy.copy(self)
        part._line_up(
            [
                tape if wanted[some].all() else tape.take(wanted[some])
                for tape, some in zip(self.tapes, self._slices, strict=True)
                if wanted[some].any()
            ]
        )
        return part

    def value(self, parameters: FloatArray) -> FloatArray:
        """Values, shape (starts, rows), for parameters of shape (parameters, starts)."""
        parameters = self.tapes[0].there(parameters)
        value = np.empty((self.starts, self.rows), like=parameters)
        for tape, some in zip(self.tapes, self._slices, strict=True):
            value[some] = tape.value(parameters[:, some])
        return value

    def value_and_jacobian(
        self, parameters: FloatArray, wanted: tuple[int, ...] | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Values, and derivatives by the wanted parameters, shape (starts, wanted, rows)."""
        count = self.parameters if wanted is None else len(wanted)
        parameters = self.tapes[0].there(parameters)
        value = np.empty((self.starts, self.rows), like=parameters)
        jacobian = np.empty((self.starts, count, self.rows), like=parameters)
        for tape, some in zip(self.tapes, self._slices, strict=True):
            value[some], jacobian[some] = tape.value_and_jacobian(parameters[:, some], wanted)
        return value, jacobian
