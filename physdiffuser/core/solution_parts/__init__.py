"""Parts of a solution: what it says of groups, templates, constraints, rows and next measurements."""
