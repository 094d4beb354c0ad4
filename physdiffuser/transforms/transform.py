"""What an output transform is, and the table of those that searches try.

A transform is one or more invertible steps. Their inverses are applied to the target before anything is
looked up, and the steps to whatever was found. Modules of this package register theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import numpy as np

import physdiffuser.transforms
from physdiffuser.arrays import FloatArray
from physdiffuser.expressions import Expression


@dataclass(frozen=True)
class ElementaryTransform:
    """One invertible function of the target.

    Attributes
    ----------
    id
        Short name, by which algorithms and plugins refer to it.
    sentence
        How a derivation describes it: "took the reciprocal".
    undo
        Applied to the target.
    slope
        Derivative of `undo`: the inverse square weights the rows, so that a residual on the transformed
        target counts as the residual of the target it stands for.
    redo
        Builds the formula of the target from the formula of the transformed target.
    shown
        The undoing as a formula, for derivations: `log(y)` from `y`.
    needs
        Operators that `redo` writes.
    noise_tolerant
        Whether the transformed target of noisy rows is still useful; the others are for exact data.
    """

    id: str
    sentence: str
    undo: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]
    redo: Callable[[Expression], Expression]
    needs: frozenset[str]
    shown: Callable[[Expression], Expression]
    noise_tolerant: bool = False


@dataclass(frozen=True)
class OutputTransform:
    """Steps inverted one after the other, from the outside in."""

    steps: tuple[ElementaryTransform, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Identifiers of the steps, the first applied first."""
        return tuple(step.id for step in self.steps)

    @property
    def noise_tolerant(self) -> bool:
        """Whether all steps are."""
        return all(step.noise_tolerant for step in self.steps)

    def allowed(self, operators: frozenset[str]) -> bool:
        """Whether a problem with these operators may contain its inverse."""
        return all(step.needs <= operators for step in self.steps)

    @property
    def cost(self) -> int:
        """Steps in the transform; the search tries short transforms first."""
        return len(self.steps)

    def undo(self, target: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Transformed target and the weight of each row, or None where a step does not apply.

        The weights are `1 / (dT⁻¹/dy)**2`, scaled to mean 1.
        """
        value = target
        slope = np.ones_like(target)
        with np.errstate(all="ignore"):
            for step in self.steps:
                slope = slope * step.slope(value)
                value = step.undo(value)
            if not np.isfinite(value).all() or not np.isfinite(slope).all():
                return None
            spread = np.ptp(value)
            if not np.isfinite(spread) or spread <= 1e-9 * np.abs(value).max():
                return None
            # A slope of zero (the sine at its crest) makes the transformed value certain, not infinitely so.
            size = np.abs(slope)
            size = np.maximum(size, 1e-3 * size.max())
            weights = np.square(size.min() / size)
        return value, weights / weights.mean()

    def redo(self, inner: Expression) -> Expression:
        """The formula of the target around the formula of the transformed target."""
        for step in reversed(self.steps):
            inner = step.redo(inner)
        return inner

    def shown(self, target: Expression) -> Expression:
        """What the transformed target is, as a formula of the target; to be printed only."""
        for step in self.steps:
            target = step.shown(target)
        return target

    def sentences(self) -> tuple[str, ...]:
        """The steps as a derivation."""
        return tuple(step.sentence for step in self.steps)


KNOWN: dict[int, list[OutputTransform]] = {1: [], 2: []}


def register(*steps: ElementaryTransform, depth: int = 2) -> OutputTransform:
    """Add an output transform to those that searches try.

    Parameters
    ----------
    steps
        Inverted one after the other, from the outside in.
    depth
        1 for a transform that every search tries, 2 for one that only some stages have time for.

    Raises
    ------
    ValueError
        If the same steps are registered already, or another step has the id of one of them.
    """
    transform = OutputTransform(steps)
    every = [*KNOWN[1], *KNOWN[2]]
    if transform in every:
        raise ValueError(f"the output transform {'+'.join(transform.ids)!r} is registered already")
    known = {step.id: step for other in every for step in other.steps}
    for step in steps:
        if known.get(step.id, step) != step:
            raise ValueError(f"there is already an output transform step named {step.id!r}")
    KNOWN[depth].append(transform)
    return transform


@cache
def _load() -> None:
    """Import the modules of this package, which register their transforms."""
    for module in iter_modules(physdiffuser.transforms.__path__):
        import_module(f"physdiffuser.transforms.{module.name}")


def known_transforms(depth: int) -> tuple[OutputTransform, ...]:
    """All transforms of at most a depth (1 or 2)."""
    _load()
    return tuple(transform for level in range(1, depth + 1) for transform in KNOWN[level])


def output_transforms(depth: int, operators: frozenset[str]) -> tuple[OutputTransform, ...]:
    """The transforms of at most a depth (1 or 2) whose operators are allowed."""
    return tuple(transform for transform in known_transforms(depth) if transform.allowed(operators))
