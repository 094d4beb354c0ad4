"""The former place of `physdiffuser.core.problem`, for plugins and pickles of version 1."""

from physdiffuser.core.problem import Budget, Loss, Problem

__all__ = ["Budget", "Loss", "Problem"]
