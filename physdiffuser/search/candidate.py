"""The former place of `physdiffuser.core.candidate`, for plugins and pickles of version 1."""

from physdiffuser.core.candidate import Candidate

__all__ = ["Candidate"]
