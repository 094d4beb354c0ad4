"""Verification: equivalence of formulas, numerically and symbolically, and checks on fresh rows."""

from physdiffuser.verification.equivalence import Rule, Verdict, equivalent

__all__ = ["Rule", "Verdict", "equivalent"]
