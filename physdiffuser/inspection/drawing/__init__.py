"""Figures of `inspect`, one module for each kind."""
