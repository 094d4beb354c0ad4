"""Differential equations from trajectories: `dx/dt = f(x, t)` found, refined and checked by simulation."""
