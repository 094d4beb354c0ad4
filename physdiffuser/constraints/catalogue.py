"""All constraints by the names that they have in files."""

from __future__ import annotations

# Each module registers its constraints.
import physdiffuser.constraints.ranges
import physdiffuser.constraints.shapes
import physdiffuser.constraints.symmetries  # noqa: F401
from physdiffuser.constraints.constraint import KINDS

__all__ = ["KINDS"]
