"""A skeleton bound to rows: values and exact derivatives at many parameter vectors, fast.

Fitting evaluates one skeleton on the same rows hundreds of times. What does not depend on a parameter
is computed once, when the tape is made; what does is a flat list of instructions, run forwards for the
value and backwards for the derivatives (reverse mode, so that one more parameter costs next to nothing).

Skeletons with equally many parameters, the same of them linear, can share all that a fit does besides
evaluating them: `EvaluationTapes` reads several tapes as if they were one. The starts of the first tape come
first, then those of the second, and so on.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from physdiffuser.arrays import CHECK_ARRAYS, BoolArray, FloatArray, IndexArray, checked
from physdiffuser.expressions import OPERATORS, Apply, Expression, Number, Parameter, Symbol, Variable
from physdiffuser.expressions.tree import parameter_count

if TYPE_CHECKING or CHECK_ARRAYS:
    from jaxtyping import Float64

_Numeric = Callable[..., FloatArray]
_ONE: FloatArray = np.float64(1.0)  # type: ignore[assignment]  # a scalar broadcasts like an array


@dataclass(frozen=True, slots=True)
class _Step:
    """`slots[out] = evaluate(*(slots[i] for i in sources))`."""

    operator: str
    out: int
    sources: tuple[int, ...]
    evaluate: _Numeric
    derivatives: tuple[_Numeric, ...]


class EvaluationTape:
    """Values and derivatives of one skeleton on fixed rows.

    Parameters
    ----------
    skeleton
        An expression with `Parameter` nodes.
    inputs
        Shape (rows, columns), or (starts, rows, columns): other columns for each parameter vector, of which
        there must then be as many. An array of another device (`physdiffuser.device`) has values and
        derivatives worked out there.

    Notes
    -----
    Parameter vectors have shape (parameters,) or (parameters, starts); values (rows,) or (starts, rows),
    derivatives (wanted, rows) or (starts, wanted, rows). Points outside the domain give nan or inf; the
    caller silences numpy's warnings once around its loop, since entering `np.errstate` a hundred times a
    fit costs more than the arithmetic.
    """

    @checked
    def __init__(self, skeleton: Expression, inputs: Float64[np.ndarray, "*starts rows columns"]) -> None:
        self.skeleton = skeleton
        self.rows = int(inputs.shape[-2])
        self.parameters = parameter_count(skeleton)
        self._inputs = inputs
        self._initial: list[FloatArray | None] = []
        self._slot_of: dict[Expression, int] = {}
        self._active: list[bool] = []
        self._parameter_slots: list[tuple[int, int]] = []
        self._steps: list[_Step] = []
        with np.errstate(all="ignore"):
            self._root = self._place(skeleton)
        self._plans: dict[tuple[int, ...], list[tuple[_Step, tuple[bool, ...]]]] = {}

    def take(self, chosen: BoolArray | IndexArray) -> EvaluationTape:
        """The tape for some of the starts, where each has columns of its own."""
        if self._inputs.ndim == 2:
            return self
        part = copy.copy(self)
        part._inputs = self._inputs[chosen]
        part._initial = [
            value[chosen] if value is not None and np.ndim(value) == 2 else value for value in self._initial
        ]
        return part

    @property
    def starts(self) -> int:
        """How many parameter vectors there must be, where each has columns of its own."""
        return int(self._inputs.shape[0]) if self._inputs.ndim == 3 else 1

    def there(self, parameters: FloatArray) -> FloatArray:
        """Parameters as an array of the device that the columns are on."""
        return np.asarray(parameters, like=self._inputs)

    def _new_slot(self, value: FloatArray | None, active: bool) -> int:
        self._initial.append(value)
        self._active.append(active)
        return len(self._initial) - 1

    def _place(self, node: Expression) -> int:
        known = self._slot_of.get(node)
        if known is not None:
            return known
        match node:
            case Variable(index=index):
                slot = self._new_slot(np.copy(self._inputs[..., index], order="C"), False)
            case Number(value=value) | Symbol(value=value):
                slot = self._new_slot(np.float64(value), False)  # type: ignore[arg-type]  # broadcasts
            case Parameter(index=index):
                slot = self._new_slot(None, True)
                self._parameter_slots.append((slot, index))
            case Apply(operator=operator, arguments=arguments):
                sources = tuple(self._place(argument) for argument in arguments)
                spec = OPERATORS[operator]
                if any(self._active[source] for source in sources):
                    slot = self._new_slot(None, True)
                    self._steps.append(_Step(operator, slot, sources, spec.evaluate, spec.derivatives))
                else:
                    slot = self._new_slot(spec.evaluate(*(self._initial[i] for i in sources)), False)
        self._slot_of[node] = slot
        return slot

    def _forward(self, parameters: FloatArray) -> list[FloatArray]:
        slots: list[FloatArray] = list(self._initial)  # type: ignore[arg-type]  # filled before they are read
        parameters = self.there(parameters)
        vectors = parameters if parameters.ndim == 1 else parameters[:, :, None]
        for slot, index in self._parameter_slots:
            slots[slot] = vectors[index]
        for step in self._steps:
            sources = step.sources
            if len(sources) == 2:
                slots[step.out] = step.evaluate(slots[sources[0]], slots[sources[1]])
            else:
                slots[step.out] = step.evaluate(slots[sources[0]])
        return slots

    def _shape(self, parameters: FloatArray) -> tuple[int, ...]:
        return (self.rows,) if parameters.ndim == 1 else (parameters.shape[1], self.rows)

    @checked
    def value(
        self, parameters: Float64[np.ndarray, " parameters *starts"]
    ) -> Float64[np.ndarray, "*starts rows"]:
        """Values on every row."""
        value = self._forward(parameters)[self._root]
        return self._full(value, self._shape(parameters))

    @staticmethod
    def _full(value: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        return value if np.shape(value) == shape else np.broadcast_to(value, shape).copy(order="K")

    @checked
    def value_and_jacobian(
        self, parameters: Float64[np.ndarray, " parameters *starts"], wanted: tuple[int, ...] | None = None
    ) -> tuple[Float64[np.ndarray, "*starts rows"], Float64[np.ndarray, "*starts wanted rows"]]:
        """Values, and derivatives by the wanted parameters (all of them by default), in that order."""
        if wanted is None:
            wanted = tuple(range(self.parameters))
        shape = self._shape(parameters)
        jacobian = np.zeros((*shape[:-1], len(wanted), self.rows), like=self._inputs)
        slots = self._forward(parameters)
        slopes = self._backward(slots, wanted)
        place = {index: position for position, index in enumerate(wanted)}
        for slot, index in self._parameter_slots:
            if index in place and slot in slopes:
                jacobian[..., place[index], :] = slopes[slot]
        return self._full(slots[self._root], shape), jacobian

    def _plan(self, wanted: tuple[int, ...]) -> list[tuple[_Step, tuple[bool, ...]]]:
        """The steps that lead to a wanted parameter, last first, with the arguments that do."""
        leads = {slot for slot, index in self._parameter_slots if index in wanted}
        plan: list[tuple[_Step, tuple[bool, ...]]] = []
        for step in self._steps:
            flags = tuple(source in leads for source in step.sources)
            if any(flags):
                leads.add(step.out)
                plan.append((step, flags))
        plan.reverse()
        return plan

    def _backward(self, slots: list[FloatArray], wanted: tuple[int, ...]) -> dict[int, FloatArray]:
        plan = self._plans.get(wanted)
        if plan is None:
            plan = self._plans[wanted] = self._plan(wanted)
        # None stands for the constant 1, which is what most sums and products pass on.
        slopes: dict[int, FloatArray | None] = {self._root: None}

        def add(slot: int, slope: FloatArray | None) -> None:
            if slot not in slopes:
                slopes[slot] = slope
            else:
                before = slopes[slot]
                slopes[slot] = (_ONE if before is None else before) + (_ONE if slope is None else slope)

        for step, flags in plan:
            if step.out not in slopes:
                continue
            slope = slopes[step.out]
            first = step.sources[0]
            match step.operator:
                case "add" | "sub":
                    second = step.sources[1]
                    if flags[0]:
                        add(first, slope)
                    if flags[1]:
                        if step.operator == "add":
                            add(second, slope)
                        else:
                            add(second, -_ONE if slope is None else -slope)
                case "neg":
                    add(first, -_ONE if slope is None else -slope)
                case "mul":
                    second = step.sources[1]
                    if flags[0]:
                        add(first, slots[second] if slope is None else slope * slots[second])
                    if flags[1]:
                        add(second, slots[first] if slope is None else slope * slots[first])
                case _:
                    arguments = [slots[source] for source in step.sources]
                    value = slots[step.out]
                    for source, flag, derivative in zip(step.sources, flags, step.derivatives, strict=True):
                        if flag:
                            outer = derivative(*arguments, value)
                            add(source, outer if slope is None else slope * outer)
        return {slot: _ONE if slope is None else slope for slot, slope in slopes.items()}


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

    @checked
    def value(
        self, parameters: Float64[np.ndarray, "parameters starts"]
    ) -> Float64[np.ndarray, "starts rows"]:
        """Values, shape (starts, rows), for parameters of shape (parameters, starts)."""
        parameters = self.tapes[0].there(parameters)
        value = np.empty((self.starts, self.rows), like=parameters)
        for tape, some in zip(self.tapes, self._slices, strict=True):
            value[some] = tape.value(parameters[:, some])
        return value

    @checked
    def value_and_jacobian(
        self, parameters: Float64[np.ndarray, "parameters starts"], wanted: tuple[int, ...] | None = None
    ) -> tuple[Float64[np.ndarray, "starts rows"], Float64[np.ndarray, "starts wanted rows"]]:
        """Values, and derivatives by the wanted parameters, shape (starts, wanted, rows)."""
        count = self.parameters if wanted is None else len(wanted)
        parameters = self.tapes[0].there(parameters)
        value = np.empty((self.starts, self.rows), like=parameters)
        jacobian = np.empty((self.starts, count, self.rows), like=parameters)
        for tape, some in zip(self.tapes, self._slices, strict=True):
            value[some], jacobian[some] = tape.value_and_jacobian(parameters[:, some], wanted)
        return value, jacobian
