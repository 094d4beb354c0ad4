"""The search: problem, archive, scheduler, selection."""
