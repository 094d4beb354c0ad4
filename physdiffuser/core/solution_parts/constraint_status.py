"""Whether the chosen law satisfies a constraint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

ConstraintState = Literal["proved", "holds", "violated"]


@dataclass(frozen=True)
class ConstraintStatus:
    """Whether the chosen law satisfies a constraint.

    Attributes
    ----------
    text
        The constraint as the user wrote it.
    state
        "proved": in the whole region. "holds": at the sample points. "violated": at one of them at least.
    points
        How many sample points were looked at.
    at
        The inputs where it is violated the most.
    """

    text: str
    state: ConstraintState
    points: int
    at: Mapping[str, float] | None = None

    @property
    def sentence(self) -> str:
        """The status for readers."""
        if self.state == "proved":
            return "proved"
        if self.state == "holds" or self.at is None:
            return f"holds at {self.points:,} points"
        place = ", ".join(f"{name} = {value:.4g}" for name, value in self.at.items())
        return f"violated, for example at {place}"
