"""Verification: equivalence of formulas, numerically and symbolically, and checks on fresh rows."""

from physdiffuser.verification.equivalence import Rule, Verdict, equivalent
from physdiffuser.verification.verify import Verification, verify

__all__ = ["Rule", "Verdict", "Verification", "equivalent", "verify"]
