"""A proposed formula and where it came from."""

from __future__ import annotations

from dataclasses import dataclass

from physdiffuser.expressions import Expression


@dataclass(frozen=True)
class Candidate:
    """A formula with its constants filled in.

    Attributes
    ----------
    expression
        No parameters left; fitted constants are float numbers, the others exact.
    generator
        Name of the generator that proposed it.
    derivation
        How it was found, one sentence a step, with the table's own names.
    """

    expression: Expression
    generator: str
    derivation: tuple[str, ...] = ()
