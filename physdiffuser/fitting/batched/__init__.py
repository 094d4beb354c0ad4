"""Many formulas of one structure fitted at once on an evaluation tape."""
