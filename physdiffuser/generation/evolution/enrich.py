"""Where one more constant would help: every place of a formula is tried with one derivative each.

`node` may become `c*node` or `node + c`, and an exact number a fitted one. At the neutral value of c
(1, 0, the number itself) the formula is unchanged, so the slopes at that point tell what each c would gain to
first order, beside the constants, scale and offset that the formula has already (a score test).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from physdiffuser.expressions import Apply, Expression, Number, Parameter
from physdiffuser.expressions.tree import add, mul
from physdiffuser.fitting.tape import Tape
from physdiffuser.generation.evolution.trees import Path, positions, replace_at

FloatArray = npt.NDArray[np.float64]

# Share of the remaining loss that a constant must promise to remove.
_LEAST_GAIN = 0.02
_INDEPENDENT = 1e-8


@dataclass(frozen=True)
class _Slot:
    path: Path
    node: Expression
    kind: str

    @property
    def neutral(self) -> float:
        match self.kind:
            case "mul":
                return 1.0
            case "add":
                return 0.0
            case _:
                assert isinstance(self.node, Number)
                return float(self.node.value)

    def filled(self, constant: Expression, node: Expression) -> Expression:
        match self.kind:
            case "mul":
                return mul(constant, node)
            case "add":
                return add(node, constant)
            case _:
                return constant


def enriched(
    expression: Expression,
    inputs: FloatArray,
    target: FloatArray,
    share: FloatArray,
    allowed: frozenset[str],
    count: int,
) -> list[Expression]:
    """The formula with the most promising new constants, one each, at their first-order value.

    Parameters
    ----------
    expression
        With fitted constants as float numbers.
    inputs, target, share
        Shapes (rows, columns), (rows,), (rows,).
    allowed
        Operators that may be put in.
    count
        Most formulas to return, best first.
    """
    slots = _slots(expression, allowed)
    if not slots:
        return []
    skeleton, start = _with_parameters(expression, slots)
    with np.errstate(all="ignore"):
        value, slopes = Tape(skeleton, inputs).value_and_jacobian(np.array(start))
        gains, steps = _gains(value, slopes, [slot.kind for slot in slots], target, np.sqrt(share))
    order = np.argsort(-gains, kind="stable")[:count]
    found: list[Expression] = []
    for index in order.tolist():
        slot = slots[index]
        if gains[index] > _LEAST_GAIN and slot.kind != "fitted":
            constant = Number(slot.neutral + float(steps[index]))
            found.append(replace_at(expression, slot.path, slot.filled(constant, slot.node)))
    return found


def _slots(expression: Expression, allowed: frozenset[str]) -> list[_Slot]:
    slots: list[_Slot] = []
    for path, node in positions(expression):
        if isinstance(node, Number):
            slots.append(_Slot(path, node, "exact" if node.exact else "fitted"))
            continue
        if not path:
            continue  # the outer scale and offset do that
        slots += [_Slot(path, node, kind) for kind in ("mul", "add") if kind in allowed]
    return slots


def _with_parameters(expression: Expression, slots: list[_Slot]) -> tuple[Expression, list[float]]:
    """All the constants put in at once, and their neutral values."""
    by_path: dict[Path, list[tuple[int, _Slot]]] = {}
    for index, slot in enumerate(slots):
        by_path.setdefault(slot.path, []).append((index, slot))

    def build(node: Expression, path: Path) -> Expression:
        if isinstance(node, Apply):
            arguments = (build(argument, (*path, place)) for place, argument in enumerate(node.arguments))
            node = Apply(node.operator, tuple(arguments))
        for index, slot in by_path.get(path, ()):
            node = slot.filled(Parameter(index), node)
        return node

    return build(expression, ()), [slot.neutral for slot in slots]


def _gains(
    value: FloatArray, slopes: FloatArray, kinds: list[str], target: FloatArray, root: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Share of the loss that each constant would remove to first order, and the step that does it."""
    none = np.full(len(kinds), -np.inf)
    shape = value * root
    slopes = slopes * root
    if not np.isfinite(shape).all():
        return none, none
    usable = np.isfinite(slopes).all(axis=1)
    slopes[~usable] = 0.0
    fitted = np.array([kind == "fitted" for kind in kinds])
    known = np.vstack([root, shape, slopes[fitted & usable]])
    length = np.sqrt((known**2).sum(axis=1, keepdims=True))
    basis, triangle = np.linalg.qr((known / np.where(length > 0.0, length, 1.0)).T)
    basis = basis[:, np.abs(np.diag(triangle)) > _INDEPENDENT]
    wanted = root * target
    line = np.linalg.lstsq(np.column_stack([root, shape]), wanted, rcond=None)[0]
    residual = wanted - basis @ (basis.T @ wanted)
    own = slopes - (slopes @ basis) @ basis.T
    size = (own**2).sum(axis=1)
    usable &= size > _INDEPENDENT * (slopes**2).sum(axis=1)
    along = own @ residual
    loss = float(residual @ residual)
    if loss <= 0.0 or not np.isfinite(loss):
        return none, none
    gains = np.where(usable, along**2 / np.where(usable, size, 1.0) / loss, -np.inf)
    factor = float(line[1])
    steps = np.where(usable, along / np.where(usable, size, 1.0), 0.0) / (factor if factor != 0.0 else 1.0)
    return gains, steps
