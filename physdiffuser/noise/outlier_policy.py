"""Numbers that decide whether rows of a small table are outliers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutlierPolicy:
    """When rows of a small table are taken for outliers.

    Set on small development tables with gross errors (docs/methods/selection.md).
    """

    min_rows: int = 8
    max_rows: int = 29
    """Sizes of table: with fewer rows an outlier cannot be distinguished from a bend of the law, with more
    the neighbouring rows show it (`physdiffuser.noise.reweighting`)."""
    max_outliers: int = 3
    max_share: float = 0.25
    """Largest number of outliers, and largest share of the rows."""
    min_freedom: int = 4
    """Rows beyond the constants of a law that must agree with it."""
    margin: float = 6.0
    """Nats by which the description with outliers must be the shorter one."""
    gross: float = 6.0
    """An outlier lies at least so many standard deviations of the other rows from the law."""
    max_laws: int = 16
    """Laws of the search that are tried."""
    slack: float = 15.0
    """A law is fitted with rows left out if the linearised fit says that this is at most so many nats too
    long."""
    rounds: int = 5
    """Fits of one law, each with the outliers of the one before left out."""
    max_sets: int = 3
    """Sets of rows that the usual laws are fitted without."""


POLICY = OutlierPolicy()
