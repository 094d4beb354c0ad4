"""Simulations beside the measured runs, and the verdict they lead to."""
