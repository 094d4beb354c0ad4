"""Stages: what the enumeration does with one reduction. Each is registered where it is defined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from physdiffuser.core.problem import Problem
from physdiffuser.core.reduction import Reduction
from physdiffuser.core.registry import Registry
from physdiffuser.core.work import Work
from physdiffuser.generation.enumeration.context import Context


@dataclass(frozen=True)
class Size:
    """How much a stage does; each stage uses some of these numbers.

    Attributes
    ----------
    entries
        Size of the library, or number of power products that functions with constants are applied to.
    divisors
        How many entries are tried as the other factor.
    depth
        Depth of the output transforms.
    shifts
        How many entries are tried as the third part of triples, as prefactors, or as summands.
    average
        Of a reduction with one feature, screen means over neighbouring values of it instead of some rows.
    """

    entries: int = 0
    divisors: int = 0
    depth: int = 1
    shifts: int = 0
    average: bool = False


class Stage(ABC):
    """One way to look for a law; ladders name it (`physdiffuser.generation.enumeration.ladders`).

    Attributes
    ----------
    name
        By which the ladders refer to it.
    exact
        Whether it looks for matches to all digits, of which there are none once only noise is left.
    when_incomplete
        Whether it is of no use once the best formula leaves only noise.
    fits_constants
        Whether it fits constants inside functions.
    sizes
        Sizes at which it runs behind the rows of the ladders, if these do not name it.
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    when_incomplete: ClassVar[bool] = False
    fits_constants: ClassVar[bool] = False
    sizes: ClassVar[tuple[Size, ...]] = ()

    def accepts(self, problem: Problem, reduction: Reduction) -> bool:
        """Whether the stage is of use for a reduction."""
        return True

    @abstractmethod
    def run(self, context: Context, size: Size, reduction: Reduction) -> Work:
        """Yield candidates, and after each piece of work its nominal seconds."""


STAGES: Registry[Stage] = Registry("enumeration stage")
_Kind = TypeVar("_Kind", bound=type[Stage])


def register(kind: _Kind) -> _Kind:
    """Make a stage available to ladders: a decorator of its class; see `Registry.add`."""
    STAGES.add(kind.name, kind())
    return kind
