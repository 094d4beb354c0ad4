"""The former place of `physdiffuser.core.solution`, for plugins and pickles of version 1."""

from physdiffuser.core.solution import (
    ColumnSummary,
    ConstantEstimate,
    Equation,
    FitPoints,
    Solution,
    Status,
    Verdict,
)

__all__ = ["ColumnSummary", "ConstantEstimate", "Equation", "FitPoints", "Solution", "Status", "Verdict"]
