"""The search: archive, scheduler, time limit and the loop."""
