"""Verification: equivalence of formulas, numerically and symbolically, and checks on fresh rows."""

from physdiffuser.verification.equivalence import Rule, Verdict, equivalent
from physdiffuser.verification.verify import Verification, verify
from physdiffuser.verification.worker import SymbolicWorker, shared_worker

__all__ = [
    "Rule",
    "SymbolicWorker",
    "Verdict",
    "Verification",
    "equivalent",
    "shared_worker",
    "verify",
]
