"""Constraints from theory: what a law must satisfy, tested at points and proved."""
