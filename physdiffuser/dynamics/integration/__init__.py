"""Right-hand sides integrated, and their constants fitted by multiple shooting."""
