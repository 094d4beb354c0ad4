"""physdiffuser: find the law in a table of measurements."""
