"""Suites of differential equations, and the command that evaluates them."""
