"""Improvement of formulas that a search has found: limiting forms, exact constants, polishing, rewriting."""
