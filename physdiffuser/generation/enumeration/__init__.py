"""Enumeration: libraries of small formulas, looked up in pairs."""
