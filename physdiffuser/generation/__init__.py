"""Generators: interchangeable sources of candidate formulas."""
