"""Contracts shared by all packages: problem, candidate, budget, solution and the generator protocol."""
