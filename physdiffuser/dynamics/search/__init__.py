"""Candidate equations of each state, and the choice of a system by the trajectories."""
