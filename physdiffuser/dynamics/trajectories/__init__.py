"""Trajectories: tables read into runs, and states smoothed to curves."""
